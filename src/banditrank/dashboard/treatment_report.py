"""What personalized and equal treatment give each user type and each item, by what was learned so far."""

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard.estimated_problem import estimated_problem
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.engine.surface import Surface
from banditrank.model.problem import Problem
from banditrank.model.values import best_personalized_rankings
from banditrank.solvers.equality import equality_report
from banditrank.solvers.solve import solve
from banditrank.counts.counts import Counts

SOLVER_SECONDS = 2.0
"""After which the best equal ranking so far is reported, with its gap."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TypeTreatment:
    """What both treatments give a user type: values are estimated click rates."""

    user_type: str
    arrival_rate: float
    personalized_ranking: list[str]  # first position first
    personalized_value: float
    equal_value: float
    share_lost: float  # by equal treatment


@dataclass(frozen=True, slots=True)
class Exposure:
    """How much of all displays, and of all looks, an item gets."""

    displays: float
    looks: float


@dataclass(frozen=True, slots=True)
class ItemTreatment:
    """How much an item is shown and looked at: so far, and if users were treated as estimates say is best."""

    item: str
    retired: bool
    so_far: Exposure
    personalized: Exposure
    equal: Exposure


@dataclass(frozen=True, slots=True)
class TreatmentReport:
    """What equality costs, and whom.

    Attributes
    ----------
    surface, version, rounds
        Whose, and of which counts it follows.
    treatment
        The one in force.
    utility
        What the equal ranking maximises: the surface's utility, utilitarian if its treatment is personalized.
    personalized_total, equal_total
        The estimated click rates over all users.
    price_of_equality
        The share of the personalized total that equal treatment does not give.
    equal_ranking
        First position first.
    certified
        Whether no ranking is better, by the estimates.
    gap
        By how much another ranking could be better at most, as a share; None if that is not known.
    user_types, items
        In the surface's order; items include those that were retired.
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
    certified: bool
    gap: float | None
    user_types: list[TypeTreatment]
    items: list[ItemTreatment]


def report_treatments(live: SurfaceRuntime, *, time_limit: float = SOLVER_SECONDS) -> TreatmentReport:
    """Return what both treatments give, by the latest counts.

    Parameters
    ----------
    live
        The surface.
    time_limit
        Seconds for finding the best equal ranking.
    """
    known = live.known()
    surface, counts = known.surface, known.counts
    world = estimated_problem(surface, counts)
    utility = surface.utility if surface.treatment == "equal" else "utilitarian"
    solution = solve(world, utility, time_limit=time_limit)
    report = equality_report(world, solution.ranking)
    own = best_personalized_rankings(world)  # (N, K)
    user_types = [
        TypeTreatment(name, *numbers)
        for name, *numbers in zip(
            surface.user_types,
            report.arrival_rates.tolist(),
            [_named(surface, ranking) for ranking in own],
            report.personalized_values.tolist(),
            report.user_type_values.tolist(),
            report.shares_lost.tolist(),
            strict=True,
        )
    ]
    return TreatmentReport(
        surface=surface.name,
        version=known.version,
        rounds=counts.rounds,
        treatment=surface.treatment,
        utility=utility,
        personalized_total=report.personalized_total,
        equal_total=report.total,
        price_of_equality=report.price_of_equality,
        equal_ranking=_named(surface, solution.ranking),
        certified=bool(solution.certified),
        gap=float(solution.gap) if isfinite(solution.gap) else None,
        user_types=user_types,
        items=_items(surface, counts, world, own, np.broadcast_to(solution.ranking, own.shape)),
    )


def _items(
    surface: Surface, counts: Counts, world: Problem, own: NDArray[np.intp], equal: NDArray[np.intp]
) -> list[ItemTreatment]:
    looks = np.einsum("ijk,ik->j", counts.displays, world.position_preferences)
    so_far = zip(_shares(counts.displays.sum(axis=(0, 2))), _shares(looks), strict=True)
    personalized, alike = _given(surface, world, own), _given(surface, world, equal)
    retired = set(surface.retired)
    return [
        ItemTreatment(item, item in retired, Exposure(*given), personalized[j], alike[j])
        for j, (item, given) in enumerate(zip(surface.items, so_far, strict=True))
    ]


def _given(surface: Surface, world: Problem, rankings: NDArray[np.intp]) -> list[Exposure]:
    """Return what each item of the surface gets if each type is shown its row of rankings."""
    numbers = np.asarray(surface.active_numbers, dtype=np.intp)[rankings]  # (N, K)
    weights = np.repeat(world.arrival_rates[:, None], numbers.shape[1], axis=1)
    displays, looks = np.zeros(len(surface.items)), np.zeros(len(surface.items))
    np.add.at(displays, numbers, weights)
    np.add.at(looks, numbers, weights * world.position_preferences)
    return [Exposure(*shares) for shares in zip(_shares(displays), _shares(looks), strict=True)]


def _shares(amounts: Floats) -> list[float]:
    """Return shares of the sum; zeros if there is nothing to share."""
    total = amounts.sum()
    shares: list[float] = (amounts / total if total > 0 else np.zeros_like(amounts)).tolist()
    return shares


def _named(surface: Surface, ranking: NDArray[np.integer]) -> list[str]:
    numbers = surface.active_numbers
    return [surface.items[numbers[place]] for place in ranking]
