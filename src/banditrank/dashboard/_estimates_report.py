"""Report of the estimated position preferences and item means of each user type, with intervals."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditrank.engine._counts_replica import SurfaceCounts
from banditrank.estimators._estimates import arrival_rates, estimate
from banditrank.estimators._intervals import confidence_intervals
from banditrank.model._click_models import RankOneClickModel


@dataclass(frozen=True, slots=True)
class PositionEstimate:
    """Probability that users of a type look at a position.

    Under single looks the estimates of a type sum to 1. Under the position-based model they are relative to
    the most looked-at position, whose estimate is 1.
    """

    position: int  # 1 is the first
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ItemEstimate:
    """Probability that users of a type click an item that they look at.

    The estimate is None for an item that the type was never shown.
    """

    item: str
    retired: bool
    estimate: float | None
    low: float
    high: float
    displays: int
    rewards: float  # sum over clicks


@dataclass(frozen=True, slots=True)
class UserTypeEstimates:
    """Estimates of a user type."""

    user_type: str
    arrivals: int
    share: float  # of all arrivals
    positions: list[PositionEstimate]
    items: list[ItemEstimate]


@dataclass(frozen=True, slots=True)
class EstimatesReport:
    """Estimates of a surface.

    Attributes
    ----------
    surface
        Name of the surface.
    version, rounds
        Version of the counts, and number of rankings counted in them.
    level
        Confidence level of the intervals; approximate, and reliable from some tens of clicks on.
    click_model
        ``single-look`` or ``position-based``: how users look at positions.
    user_types
        Estimates of each user type, in the surface's order. Items include retired ones.
    """

    surface: str
    version: int
    rounds: int
    level: float
    click_model: RankOneClickModel
    user_types: list[UserTypeEstimates]


def report_estimates(surface_counts: SurfaceCounts, *, level: float = 0.95) -> EstimatesReport:
    """Return the maximum likelihood estimates of a surface with their intervals.

    Parameters
    ----------
    surface_counts
        The counts.
    level
        Confidence level of the intervals.

    Raises
    ------
    InvalidInputError
        If the level is out of range.
    """
    surface, counts = surface_counts.surface, surface_counts.counts
    click_model = surface.click_model
    intervals = confidence_intervals(counts, level=level, click_model=click_model)
    estimates = estimate(counts, method="likelihood", click_model=click_model)
    shares = arrival_rates(counts).tolist()
    retired = set(surface.retired)
    displays = counts.displays.sum(axis=2).tolist()  # (N, M)
    rewards = counts.rewards.sum(axis=2).tolist()
    user_types = []
    for i, name in enumerate(surface.user_types):
        preferences = _with_intervals(estimates.position_preferences[i], intervals.position_preferences[i])
        means = _with_intervals(estimates.item_means[i], intervals.item_means[i])
        positions = [PositionEstimate(k, *estimate) for k, estimate in enumerate(preferences, start=1)]
        items = [
            ItemEstimate(
                *(item, item in retired, means[j][0] if displays[i][j] else None, *means[j][1:]),
                *(int(displays[i][j]), rewards[i][j]),
            )
            for j, item in enumerate(surface.items)
        ]
        user_types.append(UserTypeEstimates(name, int(counts.arrivals[i]), shares[i], positions, items))
    return EstimatesReport(
        surface.name, surface_counts.version, counts.rounds, intervals.level, click_model, user_types
    )


def _with_intervals(
    estimates: NDArray[np.float64], intervals: NDArray[np.float64]
) -> list[tuple[float, float, float]]:
    """Return (estimate, low, high) of probabilities; estimates are at most 1, and in their intervals."""
    return [
        (estimate, min(low, estimate), max(high, estimate))
        for estimate, (low, high) in zip(estimates.clip(0.0, 1.0).tolist(), intervals.tolist(), strict=True)
    ]
