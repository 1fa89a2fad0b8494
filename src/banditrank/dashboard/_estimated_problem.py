"""The problem that counts estimate, and its best rankings."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.engine._surface import Surface
from banditrank.estimators._estimates import estimate
from banditrank.model._problem import ProblemLike
from banditrank.model._values import best_personalized_rankings
from banditrank.solvers._solve import solve
from banditrank.utilities._utility import Utility

_SOLVER_TIMEOUT_SECONDS = 0.5  # after which the best equal ranking so far is used

Rankings = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedSurfaceProblem:
    """The estimates of a problem under the click model of its surface.

    Attributes
    ----------
    arrival_rates, item_means
        Shapes (N,) and (N, M).
    position_preferences
        Probabilities that positions are looked at, shape (N, K). Under single looks the rows sum to 1; under
        the position-based model their maximum is 1, and values of rankings may exceed 1.
    """

    arrival_rates: NDArray[np.float64]
    position_preferences: NDArray[np.float64]
    item_means: NDArray[np.float64]

    @property
    def n_user_types(self) -> int:
        """N."""
        return len(self.arrival_rates)


def estimated_problem(
    surface: Surface, counts: Counts, *, max_iterations: int = 10_000
) -> EstimatedSurfaceProblem:
    """Return the maximum likelihood estimate of the problem, with the active items.

    Item means are at most 1. Arrivals are smoothed by adding one for each user type, so that user types
    without any arrival have a positive rate.

    Parameters
    ----------
    surface
        The definition.
    counts
        Counts of all items of the surface, retired ones included.
    max_iterations
        Maximum number of iterations of the estimator; a few are enough to find the best items.
    """
    estimates = estimate(
        counts, method="likelihood", click_model=surface.click_model, max_iterations=max_iterations
    )
    arrivals = counts.arrivals + 1.0
    return EstimatedSurfaceProblem(
        arrivals / arrivals.sum(),
        estimates.position_preferences,
        estimates.item_means[:, surface.active_numbers].clip(0.0, 1.0),
    )


def random_values(problem: ProblemLike) -> NDArray[np.float64]:
    """Return the value of a random order of all items to each user type, shape (N,)."""
    return np.asarray(problem.position_preferences.sum(axis=1) * problem.item_means.mean(axis=1))


def ranking_value(problem: ProblemLike, ranking: Rankings) -> NDArray[np.float64]:
    """Return the value of a ranking of shape (K,) to each user type, shape (N,)."""
    return np.asarray((problem.position_preferences * problem.item_means[:, ranking]).sum(axis=1))


def best_rankings(surface: Surface, problem: EstimatedSurfaceProblem) -> Rankings:
    """Return the best ranking for each user type under the surface's treatment, shape (N, K)."""
    if surface.treatment == "personalized":
        return best_personalized_rankings(problem)
    return best_equal_rankings(problem, surface.compiled_policy.utility)


def best_equal_rankings(problem: EstimatedSurfaceProblem, utility: Utility) -> Rankings:
    """Return the best ranking for all user types as equal rows, shape (N, K)."""
    ranking = solve(problem, utility, time_limit=_SOLVER_TIMEOUT_SECONDS).ranking
    return np.tile(np.asarray(ranking, dtype=np.intp), (problem.n_user_types, 1))
