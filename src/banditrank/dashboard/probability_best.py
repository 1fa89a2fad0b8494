"""How probable it is that a ranking is the best one for everybody: over worlds drawn from the posterior."""

import time
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard.alternatives import all_rankings
from banditrank.dashboard.posterior_samples import Interval, PosteriorDraws
from banditrank.policies.sampled_problem import SampledProblem
from banditrank.solvers.instance import as_instance, total_value
from banditrank.solvers.solve import solve
from banditrank.utilities.utility import Utility

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

FEWEST_DRAWS = 50
"""Fewer say too little: then there is no telling."""

_MOST_NUMBERS = 4_000_000  # to work with at a time
_SOLVER_SECONDS = 0.05  # for all draws together, if rankings are too many to try them all
_GAP = 1e-4
_TIE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class BestOfDraws:
    """What is best for everybody in worlds that were drawn.

    Attributes
    ----------
    wins
        Whether no ranking is better than the one that was asked for, shape (D,).
    values
        What the best one is worth to each type, shape (D, N).
    """

    wins: NDArray[np.bool_]
    values: Floats


def share_of(wins: NDArray[np.bool_], level: float) -> Interval:
    """Return the share of draws that were won, and Wilson's interval of the chance behind it.

    Examples
    --------
    >>> round(share_of(np.ones(400, dtype=bool), 0.95).low, 4)
    0.9905
    """
    size, share = wins.size, float(wins.mean())
    square = NormalDist().inv_cdf((1 + level) / 2) ** 2
    middle = share + square / (2 * size)
    half = sqrt(square * (share * (1 - share) / size + square / (4 * size**2)))
    low, high = ((middle + end) / (1 + square / size) for end in (-half, half))
    return Interval(share, max(low, 0.0), min(high, 1.0))


def best_of_draws(draws: PosteriorDraws, ranking: Places, utility: Utility) -> BestOfDraws | None:
    """Return what is best for all user types in each draw, and whether a ranking is; None without telling.

    Parameters
    ----------
    draws
        Of all types.
    ranking
        Shape (K,).
    utility
        What makes a ranking better than another.
    """
    n_user_types, n_items = draws.shares.shape[1], draws.n_items
    if n_user_types * n_items * FEWEST_DRAWS > _MOST_NUMBERS:
        return None
    rankings = all_rankings(n_items, ranking.size)
    size = draws.size
    if rankings is not None:
        size = min(size, _MOST_NUMBERS // (rankings.size * n_user_types))
        if size < FEWEST_DRAWS:
            return None
    drawn = [draws.of_type(i) for i in range(n_user_types)]
    preferences = np.stack([one.preferences[:size] for one in drawn], axis=1)  # (D, N, K)
    means = np.stack([one.means[:size] for one in drawn], axis=1)  # (D, N, M)
    if rankings is None:
        return _by_solving(draws.shares, preferences, means, ranking, utility)
    return _by_trying(draws.shares[:size], preferences, means, rankings, ranking, utility)


def _by_trying(
    shares: Floats, preferences: Floats, means: Floats, rankings: Places, ranking: Places, utility: Utility
) -> BestOfDraws:
    values = np.einsum("dik,dirk->dri", preferences, means[:, :, rankings])  # (D, R, N)
    weights = np.repeat(shares, len(rankings), axis=0)
    totals = utility.collectives(weights, values.reshape(-1, values.shape[2])).reshape(len(shares), -1)
    ours = totals[:, (rankings == ranking).all(axis=1)]  # (D, 1)
    each, best = np.arange(len(shares)), totals.argmax(axis=1)
    return BestOfDraws(_no_worse(ours[:, 0], totals[each, best]), values[each, best])


def _by_solving(
    shares: Floats, preferences: Floats, means: Floats, ranking: Places, utility: Utility
) -> BestOfDraws | None:
    end = time.monotonic() + _SOLVER_SECONDS
    wins, values = [], []
    for weights, rho, mu in zip(shares, preferences, means, strict=True):
        world = SampledProblem(weights, rho, mu)
        ours = total_value(as_instance(world), utility.compiled(), ranking)
        left = max(end - time.monotonic(), 0.0)
        found = solve(world, utility, time_limit=left, target_gap=_GAP, warm_start=ranking)
        if not found.certified or time.monotonic() > end:
            break
        wins.append(bool(_no_worse(np.float64(ours), np.float64(found.value))))
        values.append(found.user_type_values)
    return BestOfDraws(np.array(wins), np.array(values)) if len(wins) >= FEWEST_DRAWS else None


def _no_worse(ours: Floats | np.float64, best: Floats | np.float64) -> NDArray[np.bool_]:
    return np.asarray((ours == best) | (ours >= best - _TIE * np.abs(best)))
