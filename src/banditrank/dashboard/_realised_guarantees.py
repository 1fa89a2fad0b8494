"""Realised exposures and values of guarantees, with intervals, from counts since they took effect."""

from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.dashboard._posterior_samples import Interval, PosteriorSamples
from banditrank.engine._counts_replica import SurfaceCounts

Floats = NDArray[np.float64]


def realised_exposure(
    surface_counts: SurfaceCounts,
    items: NDArray[np.intp],
    preferences: Floats,
    samples: PosteriorSamples,
    level: float,
) -> Interval | None:
    """Return the realised exposure of items together: the share of visits in which users look at them.

    Visits are those since the guarantees took effect. Looks are not observed: visits are weighted by the
    estimated position preferences. The interval covers the chance of the draws and the uncertainty of the
    preferences. The variance of the draws of several items is an upper bound, because counts do not tell
    which items were shown together.

    Parameters
    ----------
    surface_counts
        The counts.
    items
        Numbers of the items.
    preferences
        Estimated position preferences, shape (N, K).
    samples
        Posterior samples of the preferences.
    level
        Confidence level.

    Returns
    -------
    Interval
        None without visits.
    """
    counts = counts_since_guarantees(surface_counts)
    n_visits = counts.rounds
    if n_visits == 0:
        return None
    displays = counts.displays[:, items].sum(axis=1)  # (N, K)
    exposure = float((displays * preferences).sum() / n_visits)
    n_together = min(len(items), counts.n_positions)
    squares = n_together * float((displays * preferences**2).sum() / n_visits)
    most = float(np.sort(preferences, axis=1)[:, ::-1][:, :n_together].sum(axis=1).max())
    variance = max(0.0, min(squares - exposure**2, exposure * (most - exposure))) / n_visits
    sampled = sum(
        samples.of_user_type(i).position_preferences @ displays[i] for i in range(counts.n_user_types)
    )  # (S,) looks
    variance += float(np.var(np.asarray(sampled) / n_visits))
    return _normal_interval(exposure, variance, level)


def realised_value(
    surface_counts: SurfaceCounts, user_type: int, max_reward: float, level: float
) -> Interval | None:
    """Return the clicks per visit of a user type since the guarantees took effect; None without visits.

    Parameters
    ----------
    surface_counts
        The counts.
    user_type
        Number of the user type.
    max_reward
        Upper bound of the reward of a visit.
    level
        Confidence level.
    """
    counts = counts_since_guarantees(surface_counts)
    n_visits = float(counts.arrivals[user_type])
    if n_visits == 0:
        return None
    value = float(counts.rewards[user_type].sum() / n_visits)
    variance = max(0.0, value * (max_reward - value)) / n_visits
    return _normal_interval(value, variance, level)


def counts_since_guarantees(surface_counts: SurfaceCounts) -> Counts:
    """Return the counts of the visits since the guarantees took effect."""
    counts, before = surface_counts.counts, surface_counts.before_guarantees
    if before is None:
        return counts
    return Counts.from_arrays(
        counts.displays - before.displays, counts.rewards - before.rewards, counts.arrivals - before.arrivals
    )


def _normal_interval(estimate: float, variance: float, level: float) -> Interval:
    margin = NormalDist().inv_cdf((1 + level) / 2) * sqrt(variance)
    return Interval(estimate, max(0.0, estimate - margin), estimate + margin)
