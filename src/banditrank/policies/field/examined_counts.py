"""Counts and what follows from them where κ, how probably each position is looked at, is known."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.statistics.counts import Counts

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class ExaminedCounts(NamedTuple):
    """The counts of each copy, and their sums over positions."""

    displays: Floats  # (copies, K, M) N_jk
    rewards: Floats  # (copies, K, M) S_jk
    arrivals: Floats  # (copies,)
    display_totals: Floats  # (copies, M) N_j
    reward_totals: Floats  # (copies, M) S_j
    exposures: Floats  # (copies, M) Ñ_j = Σ_k κ_k N_jk
    examination: Floats  # (copies, K) κ
    positions: Indices  # (copies, K) by decreasing κ


def start_examined(counts: Counts, examination: Floats) -> ExaminedCounts:
    """Return what is known from the counts, whose arrays are shared, not copied.

    Parameters
    ----------
    examination
        κ, shape (copies, K).
    """
    displays, rewards = counts.displays_by_position, counts.rewards_by_position
    return ExaminedCounts(
        displays,
        rewards,
        counts.arrivals,
        displays.sum(axis=1),
        rewards.sum(axis=1),
        (displays * examination[:, :, None]).sum(axis=1),
        examination,
        np.argsort(-examination, axis=1, kind="stable").astype(np.uintp),
    )


@inlined
def learn_examined(known: ExaminedCounts, user_type: int, ranking: Indices, rewards: Floats) -> None:
    """Take in a round."""
    i = user_type
    known.arrivals[i] += 1.0
    for k in range(ranking.size):
        j = ranking[k]
        known.displays[i, k, j] += 1.0
        known.rewards[i, k, j] += rewards[k]
        known.display_totals[i, j] += 1.0
        known.reward_totals[i, j] += rewards[k]
        known.exposures[i, j] += known.examination[i, k]


@inlined
def place_items(known: ExaminedCounts, user_type: int, leaders: Indices, ranking: Indices) -> None:
    """Write the ranking that shows the first item where users look most, and so on."""
    for rank in range(ranking.size):
        ranking[known.positions[user_type, rank]] = leaders[rank]
