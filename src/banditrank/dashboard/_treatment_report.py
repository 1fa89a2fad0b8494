"""Report of the values and exposures under personalized and equal treatment, by the estimates."""

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.dashboard._estimated_problem import EstimatedSurfaceProblem, estimated_problem
from banditrank.dashboard._lottery_report import LotteryReport, find_lottery, report_lottery
from banditrank.engine._counts_replica import SurfaceCounts
from banditrank.engine._surface import Surface
from banditrank.model._values import best_personalized_rankings
from banditrank.solvers._equality import equality_report
from banditrank.solvers._lottery.lottery import Lottery
from banditrank.solvers._solve import solve
from banditrank.utilities._utility import as_utility

SOLVER_TIMEOUT_SECONDS = 2.0
"""After which the best equal ranking so far is reported, with its gap."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class UserTypeTreatment:
    """Values of both treatments to a user type; values are estimated clicks per visit."""

    user_type: str
    arrival_rate: float
    personalized_ranking: list[str]  # in order of positions
    personalized_value: float
    equal_value: float
    share_lost: float  # by equal treatment


@dataclass(frozen=True, slots=True)
class Exposure:
    """An item's shares of all displays, and of all looks."""

    displays: float
    looks: float


@dataclass(frozen=True, slots=True)
class ItemTreatment:
    """Exposure of an item: so far, with the best rankings of either treatment, and with the best lottery."""

    item: str
    retired: bool
    so_far: Exposure
    personalized: Exposure
    equal: Exposure
    lottery: Exposure | None  # None if the report has no lottery


@dataclass(frozen=True, slots=True)
class TreatmentReport:
    """Values of both treatments, and the price of equality.

    Attributes
    ----------
    surface
        Name of the surface.
    version, rounds
        Version of the counts, and number of rankings counted in them.
    treatment
        The surface's own treatment.
    utility
        The utility that the equal ranking maximises: the surface's own, which is the utilitarian one under
        personalized treatment.
    personalized_total, equal_total
        Estimated clicks per visit over all users.
    price_of_equality
        Share of the personalized total that equal treatment loses.
    equal_ranking
        Item names, in order of positions.
    is_certified
        Whether the ranking is proven optimal for the estimates.
    gap
        Upper bound of the relative improvement by any other ranking; None if there is none.
    user_types, items
        In the surface's order; items include retired ones.
    lottery
        The best lottery over rankings, with the same odds for all users, and the surface's guarantees; under
        personalized treatment with guarantees, the lotteries of the user types. None for utilities by which
        no lottery can gain, unless it is the surface's treatment: the utilitarian one, and those that are not
        concave.
    """

    surface: str
    version: int
    rounds: int
    treatment: str
    utility: str
    personalized_total: float
    equal_total: float
    price_of_equality: float
    equal_ranking: list[str]
    is_certified: bool
    gap: float | None
    user_types: list[UserTypeTreatment]
    items: list[ItemTreatment]
    lottery: LotteryReport | None


def report_treatments(
    surface_counts: SurfaceCounts, *, time_limit: float = SOLVER_TIMEOUT_SECONDS
) -> TreatmentReport:
    """Return the values of both treatments by the estimates of a surface.

    Parameters
    ----------
    surface_counts
        The counts.
    time_limit
        Seconds for finding the best equal ranking.

    Raises
    ------
    InvalidInputError
        If the time limit is negative.
    """
    surface, counts = surface_counts.surface, surface_counts.counts
    problem = estimated_problem(surface, counts)
    utility = as_utility(surface.utility)
    solution = solve(problem, utility, time_limit=time_limit)
    found = find_lottery(surface, problem, utility)
    lottery = None if found is None else found.lottery
    report = equality_report(problem, solution.ranking)
    personalized = best_personalized_rankings(problem)  # (N, K)
    user_types = [
        UserTypeTreatment(name, *values)
        for name, *values in zip(
            surface.user_types,
            report.arrival_rates.tolist(),
            [_item_names(surface, ranking) for ranking in personalized],
            report.personalized_values.tolist(),
            report.user_type_values.tolist(),
            report.shares_lost.tolist(),
            strict=True,
        )
    ]
    equal = np.broadcast_to(solution.ranking, personalized.shape)
    return TreatmentReport(
        surface=surface.name,
        version=surface_counts.version,
        rounds=counts.rounds,
        treatment=surface.treatment,
        utility=str(utility),
        personalized_total=report.personalized_total,
        equal_total=report.total,
        price_of_equality=report.price_of_equality,
        equal_ranking=_item_names(surface, solution.ranking),
        is_certified=bool(solution.is_certified),
        gap=float(solution.gap) if isfinite(solution.gap) else None,
        user_types=user_types,
        items=_item_treatments(surface, counts, problem, personalized, equal, lottery),
        lottery=None
        if found is None
        else report_lottery(surface_counts, problem, found, utility, report.user_type_values),
    )


def _item_treatments(
    surface: Surface,
    counts: Counts,
    problem: EstimatedSurfaceProblem,
    personalized_rankings: NDArray[np.intp],
    equal_rankings: NDArray[np.intp],
    lottery: Lottery | None,
) -> list[ItemTreatment]:
    looks = np.einsum("ijk,ik->j", counts.displays, problem.position_preferences)
    so_far = _exposures(counts.displays.sum(axis=(0, 2)), looks)
    personalized = _expected_exposures(surface, problem, personalized_rankings)
    equal = _expected_exposures(surface, problem, equal_rankings)
    of_lottery = None if lottery is None else _lottery_exposures(surface, problem, lottery)
    retired = set(surface.retired)
    return [
        ItemTreatment(
            *(item, item in retired, so_far[j], personalized[j], equal[j]),
            lottery=None if of_lottery is None else of_lottery[j],
        )
        for j, item in enumerate(surface.items)
    ]


def _expected_exposures(
    surface: Surface, problem: EstimatedSurfaceProblem, rankings: NDArray[np.intp]
) -> list[Exposure]:
    """Return the exposure of each item if every user type is shown its row of rankings, shape (N, K)."""
    numbers = np.asarray(surface.active_numbers, dtype=np.intp)[rankings]  # (N, K)
    weights = np.repeat(problem.arrival_rates[:, None], numbers.shape[1], axis=1)
    displays, looks = np.zeros(len(surface.items)), np.zeros(len(surface.items))
    np.add.at(displays, numbers, weights)
    np.add.at(looks, numbers, weights * problem.position_preferences)
    return _exposures(displays, looks)


def _lottery_exposures(
    surface: Surface, problem: EstimatedSurfaceProblem, lottery: Lottery
) -> list[Exposure]:
    """Return the expected exposure of each item under a lottery of the active items."""
    displays, looks = np.zeros(len(surface.items)), np.zeros(len(surface.items))
    numbers = np.asarray(surface.active_numbers, dtype=np.intp)
    shown = lottery.matrix.sum(axis=-1)  # (M,), or (N, M) under personalized treatment
    displays[numbers] = shown if shown.ndim == 1 else problem.arrival_rates @ shown
    looks[numbers] = lottery.exposures
    return _exposures(displays, looks)


def _exposures(displays: Floats, looks: Floats) -> list[Exposure]:
    return [Exposure(*shares) for shares in zip(_shares(displays), _shares(looks), strict=True)]


def _shares(amounts: Floats) -> list[float]:
    """Return the shares of a sum; zeros if the sum is 0."""
    total = amounts.sum()
    shares: list[float] = (amounts / total if total > 0 else np.zeros_like(amounts)).tolist()
    return shares


def _item_names(surface: Surface, ranking: NDArray[np.integer]) -> list[str]:
    items = surface.active_items
    return [items[index] for index in ranking]
