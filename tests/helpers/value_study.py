"""Estimated values of rankings on simulated logs beside the truth: bias and coverage of each estimator."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import product
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from banditrank import Problem
from banditrank.counts._click_cube import ClickCube
from banditrank.evaluation import TargetEvaluation, evaluate
from helpers.simulated_logs import (
    Activity,
    LogClickModel,
    Logging,
    browsing_examination,
    draw_activity,
    make_log_problem,
    simulate_visits,
)

FIXED, CROSS_FITTED, NAIVE = "fixed", "cross-fitted", "naive"
ESTIMATORS = ("cells", "ips", "snips", "model")


class ValueRecord(NamedTuple):
    """An estimate beside the truth."""

    kind: str  # FIXED, CROSS_FITTED or NAIVE
    estimator: str
    estimate: float
    low: float
    high: float
    truth: float


class ValueFigures(NamedTuple):
    """Figures of many estimates of one kind."""

    bias: float  # mean error, relative to the mean truth
    spread: float  # root of the mean squared relative error
    coverage: float  # share of the intervals that contain the truth
    n_estimates: int


def true_values(
    problem: Problem, click_model: LogClickModel, rankings: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the expected clicks of each user type with its ranking, shape (N,), by enumeration.

    Parameters
    ----------
    problem, click_model
        As for `simulate_visits`.
    rankings
        Ranking of each type, shape (N, K).
    """
    n_positions = problem.n_positions
    means = np.take_along_axis(problem.item_means, rankings, axis=1)
    preferences = problem.position_preferences
    if click_model == "single-look":
        return cast("NDArray[np.float64]", (preferences * means).sum(axis=1))
    if click_model == "position-based":
        looks = preferences / preferences.max(axis=1, keepdims=True)
        return cast("NDArray[np.float64]", (looks * means).sum(axis=1))
    assert click_model == "user-browsing"
    gamma = browsing_examination(n_positions)
    values = np.zeros(len(means))
    for clicks in product((0, 1), repeat=n_positions):
        chance, above = np.ones(len(means)), 0
        for k, click in enumerate(clicks):
            clicked = means[:, k] * gamma[above, k]
            chance = chance * (clicked if click else 1 - clicked)
            above = k + 1 if click else above
        values += chance * sum(clicks)
    return values


def study_log(
    problem: Problem, cube: ClickCube, click_model: LogClickModel, *, utility: str = "utilitarian"
) -> Iterator[ValueRecord]:
    """Yield estimates of two fixed rankings and of learned ones, cross-fitted and naive, with their truth."""
    evaluation = evaluate(
        cube,
        {
            "first": list(range(problem.n_positions)),
            "last": list(range(problem.n_items - problem.n_positions, problem.n_items)),
            "personalized": "personalized",
            "equal": f"equal:{utility}",
        },
    )
    learned = {
        name: dict(zip(evaluation.user_types, evaluation[name].rankings, strict=True))
        for name in ("personalized", "equal")
    }
    naive = evaluate(cube, learned, click_model=evaluation.model.model)
    for target in evaluation:
        kind = CROSS_FITTED if target.is_cross_fitted else FIXED
        yield from _records(kind, problem, target, click_model)
    for target in naive:
        yield from _records(NAIVE, problem, target, click_model)


def _records(
    kind: str, problem: Problem, target: TargetEvaluation, click_model: LogClickModel
) -> Iterator[ValueRecord]:
    rankings = np.array([[int(item.split("-")[1]) - 1 for item in one] for one in target.rankings])
    truth = true_values(problem, click_model, rankings)
    rates = problem.arrival_rates
    for name, estimate in target.estimates.items():
        names = (name, "headline") if name == target.headline else (name,)
        for label in names:
            for value, ends, u in zip(estimate.values, estimate.intervals, truth, strict=True):
                yield ValueRecord(kind, label, float(value), *map(float, ends), float(u))
            yield ValueRecord(f"{kind} total", label, *estimate.total, float(rates @ truth))


def study(
    seeds: Iterable[int],
    logging: Logging,
    click_model: LogClickModel,
    *,
    n_visits: int,
    n_items: int = 12,
    n_positions: int = 4,
    means: tuple[float, float] = (0.1, 0.5),
    utility: str = "utilitarian",
    activity: Activity | None = None,
    visits_per_user: int = 1,
) -> dict[tuple[str, str], ValueFigures]:
    """Return the figures of each kind and estimator over many simulated logs, each of another problem.

    Users of each user type differ in ``activity``, if it is given; each has as many visits on average.
    """
    records: dict[tuple[str, str], list[ValueRecord]] = defaultdict(list)
    for seed in seeds:
        problem = make_log_problem(seed, n_items=n_items, n_positions=n_positions, means=means)
        rng = np.random.default_rng([seed, n_visits])
        n_users = n_visits // visits_per_user
        users = np.arange(n_visits) if visits_per_user == 1 else rng.integers(0, n_users, n_visits)
        factors = 1.0 if activity is None else draw_activity(activity, n_users, rng)[users]
        visits = simulate_visits(problem, logging, n_visits, click_model, rng, activity=factors)
        cube = visits.cube(has_propensities=visits.propensities is not None, users=users)
        for record in study_log(problem, cube, click_model, utility=utility):
            records[record.kind, record.estimator].append(record)
    return {key: figures(of_kind) for key, of_kind in records.items()}


def figures(records: Iterable[ValueRecord]) -> ValueFigures:
    """Return the figures of estimates; those that are not identified are left out."""
    table = np.array([record[2:] for record in records])
    table = table[np.isfinite(table[:, 0])]
    if not table.size:
        return ValueFigures(np.nan, np.nan, np.nan, 0)
    estimate, low, high, truth = table.T
    return ValueFigures(
        float((estimate - truth).mean() / truth.mean()),
        float(np.sqrt(((estimate / truth - 1) ** 2).mean())),
        float(((low <= truth) & (truth <= high)).mean()),
        len(table),
    )
