"""A problem estimated from an extraction, by either estimator."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.estimators._estimates import Estimates, estimate
from banditrank.logs.kdd2012._extraction import USER_TYPES, Extraction
from banditrank.model._problem import Problem

ESTIMATORS: dict[str, Callable[[Counts], Estimates]] = {
    "paper": estimate,
    "likelihood": partial(estimate, method="likelihood"),
}
"""Estimators by name: the paper's Algorithm 1 with μ̂ = S / N, and maximum likelihood."""


@dataclass(frozen=True, slots=True)
class EstimatedProblem:
    """An estimated problem, with what was clipped and excluded.

    Attributes
    ----------
    estimator
        ``paper`` or ``likelihood``.
    problem
        User types male and female, an item for each ad.
    clipped
        User type, item and estimate of each mean above 1; it is 1 in the problem.
    excluded
        User type and item of each ad that Algorithm 1 cannot use for position preferences: with an empty
        cell or without a click. Always empty for maximum likelihood.
    """

    estimator: str
    problem: Problem
    clipped: tuple[tuple[str, str, float], ...]
    excluded: tuple[tuple[str, str], ...]


def estimated_problem(
    extraction: Extraction, estimator: str = "paper", *, name: str = "kdd2012-log"
) -> EstimatedProblem:
    """Estimate arrival rates, position preferences and item means.

    Parameters
    ----------
    extraction
        Counts of the two files.
    estimator
        ``paper`` or ``likelihood``.
    name
        Name of the problem.

    Raises
    ------
    InvalidInputError
        If a user type has no impressions.
    UnknownNameError
        If the estimator is not in `ESTIMATORS`.
    """
    if estimator not in ESTIMATORS:
        raise UnknownNameError("estimator", estimator, ESTIMATORS)
    counts = extraction.counts
    for i, user_type in enumerate(USER_TYPES):
        if counts.arrivals[i] == 0:
            rule = f"must have impressions of the chosen ads and positions by {user_type} users"
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
    excluded = tuple((USER_TYPES[i], extraction.items[j]) for i, j in np.argwhere(silent))
    return EstimatedProblem(estimator, problem, clipped, excluded if estimator == "paper" else ())
