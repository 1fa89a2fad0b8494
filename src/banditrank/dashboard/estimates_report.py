"""What was learned: how much positions and items are worth to each user type, and how sure that is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditrank.engine.counts_replica import SurfaceCounts
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.estimators.estimates import arrival_rates
from banditrank.estimators.intervals import confidence_intervals
from banditrank.estimators.maximum_likelihood import likelihood_estimate


@dataclass(frozen=True, slots=True)
class PositionEstimate:
    """How probably users of a type look at a position."""

    position: int  # 1 is the first
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ItemEstimate:
    """How probably users of a type click an item that they look at."""

    item: str
    retired: bool
    estimate: float
    low: float
    high: float
    displays: int
    rewards: float  # clicks, each weighed with what it was worth


@dataclass(frozen=True, slots=True)
class TypeEstimates:
    """What was learned of a user type."""

    user_type: str
    arrivals: int
    share: float  # of all arrivals
    positions: list[PositionEstimate]
    items: list[ItemEstimate]


@dataclass(frozen=True, slots=True)
class EstimatesReport:
    """What was learned on a surface.

    Attributes
    ----------
    surface
        Its name.
    version, rounds
        Of the counts that all this follows from, and how many rankings were counted.
    level
        How probably each interval holds the truth, about, once there are some tens of clicks.
    user_types
        Each type's estimates, in the surface's order. Items include those that were retired.
    """

    surface: str
    version: int
    rounds: int
    level: float
    user_types: list[TypeEstimates]


def report_estimates(live: SurfaceRuntime, *, level: float = 0.95) -> EstimatesReport:
    """Return the estimates of largest likelihood and their intervals, by the latest counts.

    Parameters
    ----------
    live
        The surface.
    level
        Of the intervals.
    """
    return estimates_of(live.known(), level=level)


def estimates_of(known: SurfaceCounts, *, level: float = 0.95) -> EstimatesReport:
    """Return the estimates and intervals by what is known of a surface."""
    surface, counts = known.surface, known.counts
    intervals = confidence_intervals(counts, level=level)
    estimates = likelihood_estimate(counts)
    shares = arrival_rates(counts).tolist()
    retired = set(surface.retired)
    displays = counts.displays.sum(axis=2).tolist()  # (N, M)
    rewards = counts.rewards.sum(axis=2).tolist()
    user_types = []
    for i, name in enumerate(surface.user_types):
        positions = [
            PositionEstimate(k, *ends)
            for k, ends in enumerate(
                _with_ends(estimates.position_preferences[i], intervals.position_preferences[i]), start=1
            )
        ]
        means = _with_ends(estimates.item_means[i], intervals.item_means[i])
        items = [
            ItemEstimate(item, item in retired, *means[j], int(displays[i][j]), rewards[i][j])
            for j, item in enumerate(surface.items)
        ]
        user_types.append(TypeEstimates(name, int(counts.arrivals[i]), shares[i], positions, items))
    return EstimatesReport(surface.name, known.version, counts.rounds, intervals.level, user_types)


def _with_ends(
    estimates: NDArray[np.float64], intervals: NDArray[np.float64]
) -> list[tuple[float, float, float]]:
    """Return estimates, each with the ends of its interval; chances are at most 1, and within their own."""
    chances = estimates.clip(0.0, 1.0).tolist()
    return [
        (chance, min(low, chance), max(high, chance))
        for chance, (low, high) in zip(chances, intervals.tolist(), strict=True)
    ]
