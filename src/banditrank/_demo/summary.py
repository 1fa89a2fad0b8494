"""Summary of a demo: what each surface learned, beside the true values."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from banditrank._demo.regret_tracker import UNKNOWN_ITEM, RegretTracker
from banditrank.client._asynchronous import AsyncClient
from banditrank.engine._guarantees import guarantee_from_dict
from banditrank.policies._base import draws_lotteries
from banditrank.solvers._optimum import best_feasible_lottery


@dataclass(frozen=True, slots=True)
class EstimatedValue:
    """Estimated position preference or item mean, with its interval and true value."""

    user_type: str
    name: str  # of the position or item, such as "position 1"
    estimate: float | None  # None for an item that the type was never shown
    low: float
    high: float
    true_value: float


@dataclass(frozen=True, slots=True)
class LearnedRanking:
    """Learned ranking of a user type beside the best one, with their true click rates."""

    user_type: str | None  # None under equal treatment
    learned_ranking: tuple[str, ...]
    best_ranking: tuple[str, ...]
    learned_click_rate: float
    best_click_rate: float


@dataclass(frozen=True, slots=True)
class DrawnRanking:
    """A ranking of a lottery."""

    ranking: tuple[str, ...]
    probability: float


@dataclass(frozen=True, slots=True)
class LearnedLottery:
    """Learned lottery beside the best one, with their true click rates.

    The best one keeps the guarantees, unless the problem cannot keep them.
    """

    user_type: str | None  # None if it is the same for all
    learned: tuple[DrawnRanking, ...]
    best: tuple[DrawnRanking, ...]
    learned_click_rate: float
    best_click_rate: float


@dataclass(frozen=True, slots=True)
class SurfaceSummary:
    """Summary of one surface.

    Attributes
    ----------
    name, treatment, utility
        Settings of the surface: those at the end if it then has lotteries, otherwise those at the start.
    visits, clicks
        Numbers of visits and clicks.
    late_reports, lost_reports
        Numbers of late and of missing feedback reports.
    click_rate, optimal_click_rate, random_click_rate
        Clicks per visit: measured, and expected of the best rankings or the best lottery, and of random
        rankings.
    regret
        Regret in clicks, or in collective utility under equal treatment; None under a lottery, whose draws
        have no regret of their own.
    level
        Probability that an interval contains the true value.
    positions, items
        Estimated position preferences and item means.
    rankings
        Learned rankings beside the best; none under a lottery.
    lotteries
        Learned lotteries beside the best, if rankings are drawn from them.
    """

    name: str
    treatment: str
    utility: str
    visits: int
    clicks: int
    late_reports: int
    lost_reports: int
    click_rate: float
    optimal_click_rate: float
    random_click_rate: float
    regret: float | None
    level: float
    positions: tuple[EstimatedValue, ...]
    items: tuple[EstimatedValue, ...]
    rankings: tuple[LearnedRanking, ...]
    lotteries: tuple[LearnedLottery, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain values."""
        return asdict(self)


async def summarise(client: AsyncClient, tracker: RegretTracker) -> SurfaceSummary:
    """Request the estimates and rankings of a surface, and return them beside the true values.

    Raises
    ------
    ServiceError
        If the service cannot be reached or responds with an error.
    """
    surface = tracker.surface
    estimates = await client.estimates(surface.name)
    treatments = await client.equality(surface.name)
    settings = await client.surface(surface.name)
    lotteries: tuple[LearnedLottery, ...] = ()
    if draws_lotteries(settings["treatment"], settings["guarantees"]):
        lotteries = _lotteries(tracker, settings, treatments["lottery"])
    optimal_click_rate = tracker.optimal_click_rate
    if lotteries:
        rates = [1.0] if len(lotteries) == 1 else surface.problem.arrival_rates.tolist()
        optimal_click_rate = sum(
            rate * one.best_click_rate for rate, one in zip(rates, lotteries, strict=True)
        )
    return SurfaceSummary(
        name=surface.name,
        treatment=settings["treatment"] if lotteries else surface.treatment,
        utility=settings["utility"] if lotteries else surface.utility,
        visits=tracker.visits,
        clicks=tracker.clicks,
        late_reports=tracker.late_reports,
        lost_reports=tracker.lost_reports,
        click_rate=tracker.clicks / tracker.visits,
        optimal_click_rate=optimal_click_rate,
        random_click_rate=tracker.random_click_rate,
        regret=None if lotteries else tracker.regret,
        level=estimates["level"],
        positions=_positions(tracker, estimates),
        items=_items(tracker, estimates),
        rankings=() if lotteries else _rankings(tracker, treatments),
        lotteries=lotteries,
    )


# Types and items that were added while the demo ran come last and are left out: zip stops at the shortest.
def _positions(tracker: RegretTracker, estimates: dict[str, Any]) -> tuple[EstimatedValue, ...]:
    preferences = tracker.surface.problem.position_preferences.tolist()
    return tuple(
        _value(of_type["user_type"], f"position {found['position']}", found, true_value)
        for of_type, row in zip(estimates["user_types"], preferences, strict=False)
        for found, true_value in zip(of_type["positions"], row, strict=True)
    )


def _items(tracker: RegretTracker, estimates: dict[str, Any]) -> tuple[EstimatedValue, ...]:
    means = tracker.surface.problem.item_means.tolist()
    return tuple(
        _value(of_type["user_type"], found["item"], found, true_value)
        for of_type, row in zip(estimates["user_types"], means, strict=False)
        for found, true_value in zip(of_type["items"], row, strict=False)
    )


def _value(user_type: str, name: str, found: dict[str, Any], true_value: float) -> EstimatedValue:
    return EstimatedValue(user_type, name, found["estimate"], found["low"], found["high"], true_value)


def _rankings(tracker: RegretTracker, treatments: dict[str, Any]) -> tuple[LearnedRanking, ...]:
    problem = tracker.surface.problem
    if tracker.surface.treatment == "equal":
        learned = treatments["equal_ranking"]
        values = tracker.true_values(_item_indices(tracker, learned))
        click_rate = float(problem.arrival_rates @ values)
        best = _best_ranking(tracker, 0)
        return (LearnedRanking(None, tuple(learned), best, click_rate, tracker.optimal_click_rate),)
    rankings = []
    for i, of_type in enumerate(treatments["user_types"][: problem.n_user_types]):
        learned = of_type["personalized_ranking"]
        click_rate = float(tracker.true_values(_item_indices(tracker, learned))[i])
        rankings.append(
            LearnedRanking(
                problem.user_types[i],
                tuple(learned),
                _best_ranking(tracker, i),
                click_rate,
                float(tracker.best_values[i]),
            )
        )
    return tuple(rankings)


def _lotteries(
    tracker: RegretTracker, settings: dict[str, Any], report: dict[str, Any]
) -> tuple[LearnedLottery, ...]:
    """Return the learned lotteries beside the best by the true values: of each user type, or one for all."""
    problem, is_personalized = tracker.surface.problem, settings["treatment"] == "personalized"
    guarantees = [guarantee_from_dict(one, number) for number, one in enumerate(settings["guarantees"])]
    # Guarantees may be of items that were added while the demo ran.
    best = best_feasible_lottery(problem, settings["utility"], guarantees, treatment=settings["treatment"])
    lotteries = []
    for i, user_type in enumerate(problem.user_types if is_personalized else (None,)):
        learned = [one for one in report["rankings"] if one["user_type"] == user_type]
        weights = np.eye(problem.n_user_types)[i] if is_personalized else problem.arrival_rates
        values = sum(
            one["probability"] * tracker.true_values(_item_indices(tracker, one["ranking"]))
            for one in learned
        )
        shares = np.atleast_2d(best.probabilities)[i]
        lotteries.append(
            LearnedLottery(
                user_type,
                tuple(DrawnRanking(tuple(one["ranking"]), one["probability"]) for one in learned),
                tuple(
                    DrawnRanking(tuple(problem.items[item] for item in best.rankings[s]), float(shares[s]))
                    for s in np.argsort(-shares, kind="stable")
                    if shares[s] > 0.0
                ),
                float(weights @ values),
                float(weights @ best.user_type_values),
            )
        )
    return tuple(lotteries)


def _best_ranking(tracker: RegretTracker, user_type: int) -> tuple[str, ...]:
    return tuple(tracker.surface.problem.items[index] for index in tracker.best_rankings[user_type])


def _item_indices(tracker: RegretTracker, ranking: Sequence[str]) -> list[int]:
    items = tracker.surface.problem.items
    return [items.index(item) if item in items else UNKNOWN_ITEM for item in ranking]
