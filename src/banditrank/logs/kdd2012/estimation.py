"""From an extraction to a problem, by either estimator."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.estimators.estimates import Estimates, estimate
from banditrank.estimators.maximum_likelihood import likelihood_estimate
from banditrank.logs.kdd2012.extraction import USER_TYPES, Extraction
from banditrank.model.problem import Problem
from banditrank.counts.counts import Counts

ESTIMATORS: dict[str, Callable[[Counts], Estimates]] = {
    "paper": estimate,
    "likelihood": likelihood_estimate,
}
"""The paper's Algorithm 1 with μ̂ = S / N, and the likelihood's."""


@dataclass(frozen=True, slots=True)
class EstimatedProblem:
    """A problem, and what had to be done to make it one.

    Attributes
    ----------
    estimator
        ``paper`` or ``likelihood``.
    problem
        User types male and female, an item for each ad.
    clipped
        User type, item and estimate of each mean that was above 1, and is 1 in the problem.
    left_out
        User type and item of each ad that says nothing about where users look: with an empty cell or without
        a click. Always empty for the likelihood's estimator, which uses what there is.
    """

    estimator: str
    problem: Problem
    clipped: tuple[tuple[str, str, float], ...]
    left_out: tuple[tuple[str, str], ...]


def estimated_problem(
    extraction: Extraction, estimator: str = "paper", *, name: str = "kdd2012-log"
) -> EstimatedProblem:
    """Estimate arrival rates, position preferences and item means.

    Parameters
    ----------
    extraction
        What the files hold.
    estimator
        ``paper`` or ``likelihood``.
    name
        What to call the problem.
    """
    if estimator not in ESTIMATORS:
        raise UnknownNameError("estimator", estimator, ESTIMATORS)
    counts = extraction.counts
    for i, user_type in enumerate(USER_TYPES):
        if counts.arrivals[i] == 0:
            rule = f"must have impressions of the chosen ads and positions before {user_type} users"
            raise InvalidInputError("training file", rule, 0)
    found = ESTIMATORS[estimator](counts)
    means = found.item_means
    problem = Problem(
        found.arrival_rates,
        found.position_preferences,
        np.minimum(means, 1.0),
        user_types=USER_TYPES,
        items=extraction.items,
        name=name,
    )
    clipped = tuple(
        (USER_TYPES[i], extraction.items[j], float(means[i, j])) for i, j in np.argwhere(means > 1)
    )
    silent = (counts.displays == 0).any(axis=2) | (counts.rewards.sum(axis=2) == 0)  # (N, M)
    left_out = tuple((USER_TYPES[i], extraction.items[j]) for i, j in np.argwhere(silent))
    return EstimatedProblem(estimator, problem, clipped, left_out if estimator == "paper" else ())
