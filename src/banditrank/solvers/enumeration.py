"""The best ranking by trying all of them, or a random share of them: the paper's own methods.

P(M, K) = M! / (M − K)! rankings are tried, so this is for small problems; `ENUMERATION_LIMIT` says how small.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled
from banditrank.solvers.instance import Instance
from banditrank.solvers.method import Limits, Method, Outcome
from banditrank.utilities.formulas import CompiledUtility, collective
from banditrank.utilities.utility import Utility

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

ENUMERATION_LIMIT = 1_000_000


class EnumerationRoom(NamedTuple):
    """Working room of `enumerate_rankings`."""

    values: Floats  # (K + 1, N) each type's value of the first k positions
    bonuses: Floats  # (K + 1,) their items' bonuses
    items: Indices  # (K,) the ranking being tried
    shown: Indices  # (M,) 1 for items in it
    tried: Indices  # (1,) how many rankings were tried


def enumeration_room(n_user_types: int, n_items: int, n_positions: int) -> EnumerationRoom:
    """Return room for problems of a size."""
    return EnumerationRoom(
        np.zeros((n_positions + 1, n_user_types)),
        np.zeros(n_positions + 1),
        np.zeros(n_positions, dtype=np.intp),
        np.zeros(n_items, dtype=np.intp),
        np.zeros(1, dtype=np.intp),
    )


def number_of_rankings(n_items: int, n_positions: int) -> int:
    """Return P(M, K).

    Examples
    --------
    >>> number_of_rankings(20, 4)
    116280
    """
    return math.perm(n_items, n_positions)


@compiled
def enumerate_rankings(
    instance: Instance,
    utility: CompiledUtility,
    share: float,
    rng: np.random.Generator,
    room: EnumerationRoom,
    ranking: NDArray[np.uintp],
) -> float:
    """Write the ranking that maximises Γ(σ) + Σ_k bonus of its items, and return that maximum.

    With a share below 1 each ranking is tried with that probability only (section 4.2, case 3, of the paper);
    if none is, the ranking is drawn uniformly. The first of equals wins.

    Parameters
    ----------
    instance, utility
        What to maximise.
    share
        δ: the share of rankings to try.
    rng
        Drawn from only when the share is below 1.
    """
    weights, preferences, means, bonuses = instance
    n_user_types, n_positions = preferences.shape
    n_items = means.shape[1]
    best = -np.inf
    room.tried[0] = 0
    for j in range(n_items):
        room.shown[j] = 0
    for i in range(n_user_types):
        room.values[0, i] = 0.0
    room.bonuses[0] = 0.0
    depth = 0
    room.items[0] = -1
    while depth >= 0:
        item = room.items[depth]
        if item >= 0:
            room.shown[item] = 0
        item += 1
        while item < n_items and room.shown[item] == 1:
            item += 1
        if item == n_items:
            depth -= 1
            continue
        room.items[depth] = item
        for i in range(n_user_types):
            room.values[depth + 1, i] = room.values[depth, i] + preferences[i, depth] * means[i, item]
        room.bonuses[depth + 1] = room.bonuses[depth] + bonuses[item]
        if depth + 1 < n_positions:
            room.shown[item] = 1
            depth += 1
            room.items[depth] = -1
            continue
        if share < 1.0 and rng.random() >= share:
            continue
        total = collective(utility, weights, room.values[n_positions]) + float(room.bonuses[n_positions])
        room.tried[0] += 1
        if total > best or room.tried[0] == 1:
            best = total
            for k in range(n_positions):
                ranking[k] = room.items[k]
    if room.tried[0] == 0:
        draw_ranking(rng, room.shown, ranking)
    return best


@compiled
def draw_ranking(rng: np.random.Generator, items: Indices, ranking: NDArray[np.uintp]) -> None:
    """Write a ranking drawn uniformly; ``items`` is room of shape (M,)."""
    for j in range(items.size):
        items[j] = j
    for k in range(ranking.size):
        other = k + int(rng.random() * (items.size - k))
        items[k], items[other] = items[other], items[k]
        ranking[k] = items[k]


def too_many(limit: int, n_items: int, n_positions: int) -> str | None:
    """Return what a size makes, in words, if that is more rankings than the limit."""
    rankings = number_of_rankings(n_items, n_positions)
    if rankings <= limit:
        return None
    return f"{limit:,} rankings, got {n_items} items in {n_positions} positions make {rankings:,} rankings"


def _refuse(_: Utility, n_items: int, n_positions: int) -> str | None:
    excess = too_many(ENUMERATION_LIMIT, n_items, n_positions)
    return excess and f"tries at most {excess}"


def _run(instance: Instance, utility: Utility, limits: Limits) -> Outcome:
    return _try(instance, utility, limits, 1.0)


def _run_share(instance: Instance, utility: Utility, limits: Limits) -> Outcome:
    """Try a share of the rankings, which says nothing about the others."""
    outcome = _try(instance, utility, limits, limits.share)
    return outcome if limits.share == 1.0 else outcome._replace(upper_bound=np.inf)


def _try(instance: Instance, utility: Utility, limits: Limits, share: float) -> Outcome:
    ranking = np.zeros(instance.n_positions, dtype=np.uintp)
    room = enumeration_room(instance.n_user_types, instance.n_items, instance.n_positions)
    rng = np.random.default_rng(limits.seed)  # drawn from only if some rankings are left out
    best = enumerate_rankings(instance, utility.compiled(), share, rng, room, ranking)
    return Outcome(ranking.astype(np.intp), best, int(room.tried[0]))


METHOD = Method(_refuse, _run)
SAMPLING = Method(_refuse, _run_share)
