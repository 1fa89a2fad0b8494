"""Counts with totals and exposures, for known examination probabilities κ."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.counts._counts import Counts
from banditrank.policies._count_arrays import arrays_of, record_round

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class ExposureCounts(NamedTuple):
    """The counts of each copy, and their totals over positions."""

    displays: Floats  # (copies, K, M) N_jk
    rewards: Floats  # (copies, K, M) S_jk
    arrivals: Floats  # (copies,)
    display_totals: Floats  # (copies, M) N_j
    reward_totals: Floats  # (copies, M) S_j
    exposures: Floats  # (copies, M) Ñ_j = Σ_k κ_k N_jk
    examination: Floats  # (copies, K) κ
    positions: Indices  # (copies, K) by decreasing κ


def init_exposure_counts(counts: Counts, examination: Floats) -> ExposureCounts:
    """Return counts with totals; the arrays of counts are not copied.

    Parameters
    ----------
    counts
        Counts of each copy.
    examination
        κ, shape (copies, K).
    """
    displays, rewards, _ = arrays = arrays_of(counts)
    return ExposureCounts(
        *arrays,
        displays.sum(axis=1),
        rewards.sum(axis=1),
        (displays * examination[:, :, None]).sum(axis=1),
        examination,
        np.argsort(-examination, axis=1, kind="stable").astype(np.uintp),
    )


@inlined
def update_exposure_counts(
    statistics: ExposureCounts, user_type: int, ranking: Indices, rewards: Floats
) -> None:
    """Update counts and totals with a round."""
    i = user_type
    record_round(statistics, i, ranking, rewards)
    for k in range(ranking.size):
        j = ranking[k]
        statistics.display_totals[i, j] += 1.0
        statistics.reward_totals[i, j] += rewards[k]
        statistics.exposures[i, j] += statistics.examination[i, k]
