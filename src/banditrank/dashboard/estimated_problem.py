"""The world that counts speak for, and what is best in it."""

import numpy as np
from numpy.typing import NDArray

from banditrank.engine.surface import Surface
from banditrank.estimators.maximum_likelihood import likelihood_estimate
from banditrank.model.problem import Problem
from banditrank.model.values import best_personalized_rankings
from banditrank.solvers.solve import solve
from banditrank.counts.counts import Counts
from banditrank.utilities.utility import Utility

SOLVER_SECONDS = 0.5
"""After which the best equal ranking so far is taken for the best."""

Places = NDArray[np.intp]


def estimated_problem(surface: Surface, counts: Counts, *, max_passes: int = 10_000) -> Problem:
    """Return the world that counts of all items speak for, with the items that can be shown.

    Chances are at most 1, and a type that has not come yet is expected now and then: each is taken to have
    come once more than it did.

    Parameters
    ----------
    surface
        Its definition.
    counts
        Of all items there ever were.
    max_passes
        Of the estimator; few are enough to tell which items are best.
    """
    estimates = likelihood_estimate(counts, max_passes=max_passes)
    arrivals = counts.arrivals + 1.0
    return Problem(
        arrivals / arrivals.sum(),
        estimates.position_preferences,
        estimates.item_means[:, surface.active_numbers].clip(0.0, 1.0),
        name=surface.name,
    )


def best_rankings(surface: Surface, world: Problem) -> Places:
    """Return the best ranking for each type under the surface's treatment, shape (N, K)."""
    if surface.treatment == "personalized":
        return best_personalized_rankings(world)
    return best_equal(world, surface.compiled_policy.utility)


def best_equal(world: Problem, utility: Utility) -> Places:
    """Return the best ranking for all types, shape (N, K), all rows the same."""
    ranking = solve(world, utility, time_limit=SOLVER_SECONDS).ranking
    return np.tile(np.asarray(ranking, dtype=np.intp), (world.n_user_types, 1))
