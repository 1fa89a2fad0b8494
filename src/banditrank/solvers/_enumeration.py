"""The best ranking by enumeration of all rankings, or of a random share of them: the paper's own methods.

There are P(M, K) = M! / (M − K)! rankings; at most `MAX_ENUMERATED_RANKINGS` are supported.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled
from banditrank._interrupts import deferred_interrupts
from banditrank.solvers._instance import IS_RESTRICTED, N_ITEMS, Instance, smallest_instance
from banditrank.solvers._solver import Solver, SolverOptions, SolverResult
from banditrank.utilities._formulas import CompiledUtility, collective
from banditrank.utilities._utility import UTILITARIAN, Utility

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

MAX_ENUMERATED_RANKINGS = 1_000_000


class EnumerationWorkspace(NamedTuple):
    """Workspace of `enumerate_rankings`."""

    values: Floats  # (K + 1, N) each type's value of the first k positions
    bonuses: Floats  # (K + 1,) the sum of their items' bonuses
    items: Indices  # (K,) the current ranking
    shown: Indices  # (M,) 1 for items in it
    tried: Indices  # (1,) number of rankings evaluated
    sizes: Indices  # (2,) see `banditrank.solvers._instance`; items are the first ones of the instance
    allowed: NDArray[np.int8]  # (K, M) 1 for allowed cells, if they are restricted


def new_enumeration_workspace(n_user_types: int, n_items: int, n_positions: int) -> EnumerationWorkspace:
    """Allocate a workspace for the given sizes, without a restriction."""
    return EnumerationWorkspace(
        np.zeros((n_positions + 1, n_user_types)),
        np.zeros(n_positions + 1),
        np.zeros(n_positions, dtype=np.intp),
        np.zeros(n_items, dtype=np.intp),
        np.zeros(1, dtype=np.intp),
        np.array([n_items, 0], dtype=np.intp),
        np.ones((n_positions, n_items), dtype=np.int8),
    )


def count_rankings(n_items: int, n_positions: int) -> int:
    """Return the number of rankings, P(M, K).

    Examples
    --------
    >>> count_rankings(20, 4)
    116280
    """
    return math.perm(n_items, n_positions)


@compiled
def enumerate_rankings(
    instance: Instance,
    utility: CompiledUtility,
    share: float,
    rng: np.random.Generator,
    workspace: EnumerationWorkspace,
    ranking: NDArray[np.uintp],
) -> float:
    """Write the ranking that maximises Γ(σ) + Σ_k bonus of its items, and return that maximum.

    With a share below 1 each ranking is evaluated with that probability (section 4.2, case 3, of the paper);
    if none is, a ranking is drawn uniformly. Ties go to the first. Rankings with a cell that is not
    allowed are left out; there must be others.

    Parameters
    ----------
    instance, utility
        The objective.
    share
        δ: the probability of evaluating a ranking.
    rng
        Used only if the share is below 1.
    workspace
        Overwritten, except for the restriction; ``tried`` is the number of rankings evaluated.
    ranking
        The result, shape (K,).
    """
    weights, preferences, means, bonuses = instance
    n_user_types, n_positions = preferences.shape
    n_items, is_restricted = workspace.sizes[N_ITEMS], workspace.sizes[IS_RESTRICTED] == 1
    best, skipped = -np.inf, 0
    workspace.tried[0] = 0
    for j in range(n_items):
        workspace.shown[j] = 0
    for i in range(n_user_types):
        workspace.values[0, i] = 0.0
    workspace.bonuses[0] = 0.0
    depth = 0
    workspace.items[0] = -1
    while depth >= 0:
        item = workspace.items[depth]
        if item >= 0:
            workspace.shown[item] = 0
        item += 1
        while item < n_items and workspace.shown[item] == 1:
            item += 1
        if item == n_items:
            depth -= 1
            continue
        workspace.items[depth] = item
        if is_restricted and workspace.allowed[depth, item] == 0:
            continue
        for i in range(n_user_types):
            workspace.values[depth + 1, i] = (
                workspace.values[depth, i] + preferences[i, depth] * means[i, item]
            )
        workspace.bonuses[depth + 1] = workspace.bonuses[depth] + bonuses[item]
        if depth + 1 < n_positions:
            workspace.shown[item] = 1
            depth += 1
            workspace.items[depth] = -1
            continue
        if share < 1.0 and rng.random() >= share:
            if is_restricted and workspace.tried[0] == 0:
                skipped += 1
                if rng.random() * skipped < 1.0:  # a uniform draw among the rankings so far
                    for k in range(n_positions):
                        ranking[k] = workspace.items[k]
            continue
        total = collective(utility, weights, workspace.values[n_positions]) + float(
            workspace.bonuses[n_positions]
        )
        workspace.tried[0] += 1
        if total > best or workspace.tried[0] == 1:
            best = total
            for k in range(n_positions):
                ranking[k] = workspace.items[k]
    if workspace.tried[0] == 0 and not is_restricted:
        draw_uniform_ranking(rng, workspace.shown, ranking)
    return best


@compiled
def draw_uniform_ranking(rng: np.random.Generator, items: Indices, ranking: NDArray[np.uintp]) -> None:
    """Write a ranking drawn uniformly; ``items`` is scratch of shape (M,)."""
    for j in range(items.size):
        items[j] = j
    for k in range(ranking.size):
        other = k + int(rng.random() * (items.size - k))
        items[k], items[other] = items[other], items[k]
        ranking[k] = items[k]


def describe_excess(limit: int, n_items: int, n_positions: int) -> str | None:
    """Return the limit and the number of rankings in words if the number exceeds the limit, or None."""
    rankings = count_rankings(n_items, n_positions)
    if rankings <= limit:
        return None
    return f"{limit:,} rankings, got {n_items} items in {n_positions} positions: {rankings:,} rankings"


def _unsupported_reason(_: Utility, n_items: int, n_positions: int) -> str | None:
    excess = describe_excess(MAX_ENUMERATED_RANKINGS, n_items, n_positions)
    return excess and f"supports at most {excess}"


def _run(instance: Instance, utility: Utility, options: SolverOptions) -> SolverResult:
    return _enumerate(instance, utility, 1.0, options)


def _run_sampling(instance: Instance, utility: Utility, options: SolverOptions) -> SolverResult:
    """Evaluate a share of the rankings; there is no bound on the others."""
    result = _enumerate(instance, utility, options.share, options)
    return result if options.share == 1.0 else result._replace(upper_bound=np.inf)


def _enumerate(
    instance: Instance, utility: Utility, share: float, options: SolverOptions | None = None
) -> SolverResult:
    ranking = np.zeros(instance.n_positions, dtype=np.uintp)
    workspace = new_enumeration_workspace(instance.n_user_types, instance.n_items, instance.n_positions)
    if options is not None and options.allowed is not None:
        workspace.sizes[IS_RESTRICTED] = 1
        workspace.allowed[:] = options.allowed
    rng = np.random.default_rng(0 if options is None else options.seed)  # used only for sampling
    with deferred_interrupts():
        best = enumerate_rankings(instance, utility.compiled(), share, rng, workspace, ranking)
    return SolverResult(ranking.astype(np.intp), best, int(workspace.tried[0]))


@cache
def _prepare() -> None:
    """Compile or load all formulas by solving the smallest instance."""
    _enumerate(smallest_instance(), UTILITARIAN, 1.0)


SOLVER = Solver(_unsupported_reason, _run, _prepare)
SAMPLING_SOLVER = Solver(_unsupported_reason, _run_sampling, _prepare)
