"""Problem with the estimates of a log, which solvers and simulations take."""

from typing import NamedTuple

import numpy as np

from banditrank.counts._click_cube import ClickCube
from banditrank.errors import InvalidInputError
from banditrank.estimators._click_models._fit import ClickModelFit, fit_click_model
from banditrank.logs._diagnosis import LogDiagnosis, diagnose
from banditrank.logs._withholding import check_estimates, withhold_estimates
from banditrank.model._problem import Problem

PROBLEM_MODELS = ("single-look", "position-based")
"""Click models whose estimates make a problem: a click rate is a product of position and item."""


class LogProblem(NamedTuple):
    """Problem with the estimates of a log, and its click model.

    Attributes
    ----------
    problem
        The problem.
    model
        Click model of the estimates.
    """

    problem: Problem
    model: str


def estimate_problem(
    cube: ClickCube,
    fit: ClickModelFit | None = None,
    diagnosis: LogDiagnosis | None = None,
    *,
    name: str = "log",
) -> Problem:
    """Return the problem with the estimates of a log.

    Preferences of a problem sum to 1. Relative examination does not: under ``position-based`` it is divided
    by its sum, and the means of each user type are multiplied by it, so that the click rates of rankings keep
    their proportions between user types. The common factor is the click scale of the problem, so that solvers
    return clicks per visit of the log.

    Parameters
    ----------
    cube
        Counts of the log.
    fit
        A fit of it; of another model than `PROBLEM_MODELS`, a position-based model is fitted instead.
    diagnosis
        The diagnosis of the log; made here by default.
    name
        Name of the problem.

    Raises
    ------
    InvalidInputError
        If the log does not tell the worth of a position or the appeal of an item.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> items = np.argsort(rng.random((20_000, 3)), axis=1)
    >>> chances = np.array([0.5, 0.3, 0.2])[items] * [1.0, 0.6, 0.4]
    >>> cube = ClickCube.from_visits(np.zeros(20_000), items, rng.random((20_000, 3)) < chances)
    >>> estimate_problem(cube).position_preferences.round(1)
    array([[0.5, 0.3, 0.2]])
    """
    return estimate_with_model(cube, fit, diagnosis, name=name).problem


def estimate_with_model(
    cube: ClickCube,
    fit: ClickModelFit | None = None,
    diagnosis: LogDiagnosis | None = None,
    *,
    name: str = "log",
) -> LogProblem:
    """Return the problem of `estimate_problem`, with its click model.

    Raises
    ------
    InvalidInputError
        As for `estimate_problem`.
    """
    diagnosis = diagnose(cube) if diagnosis is None else diagnosis
    if fit is None or fit.model not in PROBLEM_MODELS:
        fit = fit_click_model(cube, "position-based", held_out=False)
    fit = withhold_estimates(fit, diagnosis)
    check_estimates(fit, diagnosis)
    arrivals = cube.counts().arrivals
    if (arrivals <= 0).any():
        missing = fit.user_types[int(arrivals.argmin())]
        raise InvalidInputError("log", "must have visits of each user type to make a problem", missing)
    sums = fit.position_worth.sum(axis=1, keepdims=True)
    scale = 1.0 if fit.model == "single-look" else float(sums.max())
    means = fit.item_appeal * (1.0 if fit.model == "single-look" else sums / scale)
    problem = Problem(
        arrivals / arrivals.sum(),
        fit.position_worth / sums,
        np.clip(means, 0.0, 1.0),
        user_types=fit.user_types,
        items=fit.items,
        name=name,
        click_scale=scale,
    )
    return LogProblem(problem, fit.model)
