"""How probable it is that a ranking is the best one for everybody: over worlds drawn from the posterior."""

import time

import numpy as np
from numpy.typing import NDArray

from banditrank.engine.alternatives import all_rankings
from banditrank.engine.posterior_draws import PosteriorDraws
from banditrank.policies.drawn_world import DrawnWorld
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


def chance_of_best(draws: PosteriorDraws, ranking: Places, utility: Utility) -> float | None:
    """Return the share of draws in which no ranking for all user types is better, None without telling.

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
) -> float:
    values = np.einsum("dik,dirk->dri", preferences, means[:, :, rankings])  # (D, R, N)
    weights = np.repeat(shares, len(rankings), axis=0)
    totals = utility.collectives(weights, values.reshape(-1, values.shape[2])).reshape(len(shares), -1)
    ours = totals[:, (rankings == ranking).all(axis=1)]  # (D, 1)
    return float(_no_worse(ours[:, 0], totals.max(axis=1)).mean())


def _by_solving(
    shares: Floats, preferences: Floats, means: Floats, ranking: Places, utility: Utility
) -> float | None:
    end = time.monotonic() + _SOLVER_SECONDS
    best = []
    for weights, rho, mu in zip(shares, preferences, means, strict=True):
        world = DrawnWorld(weights, rho, mu)
        ours = total_value(as_instance(world), utility.compiled(), ranking)
        left = max(end - time.monotonic(), 0.0)
        found = solve(world, utility, time_limit=left, target_gap=_GAP, warm_start=ranking)
        best.append(bool(_no_worse(np.float64(ours), np.float64(found.value))))
        if time.monotonic() > end:
            break
    return float(np.mean(best)) if len(best) >= FEWEST_DRAWS else None


def _no_worse(ours: Floats | np.float64, best: Floats | np.float64) -> NDArray[np.bool_]:
    return np.asarray((ours == best) | (ours >= best - _TIE * np.abs(best)))
