"""Algorithm 1 of the paper: position preferences ρ from displays T and rewards S.

S_ijk / T_ijk tends to μ_ij ρ_ik. Dividing by its sum over positions cancels the item, v̄_ijk, and the average
over items estimates ρ_ik. The formula is undefined for an item with a position at which it was never shown
(0/0) or without any reward; such items are excluded from the average, and a type without items left has equal
preferences (1/K). Once every cell has a reward, as after the paper's initial phase, this is Algorithm 1
exactly. With one position the estimate is 1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, inlined
from banditrank.counts._counts import Counts

Floats = NDArray[np.float64]


class PositionEvidence(NamedTuple):
    """Intermediate results of Algorithm 1, kept for incremental updates."""

    ratios: Floats  # (N, M, K)  S / T
    shares: Floats  # (N, M, K)  v̄: the ratios over their sum; 0 for an excluded item
    sums: Floats  # (N, K)       Σ_j v̄
    preferences: Floats  # (N, K)  ρ̂


def empty_evidence(n_user_types: int, n_items: int, n_positions: int) -> PositionEvidence:
    """Return evidence of the given sizes, to be filled by `estimate_preferences`."""
    return PositionEvidence(
        np.zeros((n_user_types, n_items, n_positions)),
        np.zeros((n_user_types, n_items, n_positions)),
        np.zeros((n_user_types, n_positions)),
        np.full((n_user_types, n_positions), 1 / n_positions),
    )


@compiled
def estimate_preferences(
    displays: Floats, rewards: Floats, evidence: PositionEvidence, user_type: int
) -> None:
    """Run Algorithm 1 for one user type. Displays and rewards have shape (N, K, M)."""
    i = user_type
    n_positions, n_items = displays.shape[1:]
    for k in range(n_positions):
        evidence.sums[i, k] = 0.0
    informative = 0
    for j in range(n_items):
        total = 0.0
        for k in range(n_positions):
            if displays[i, k, j] <= 0.0:
                total = 0.0
                break
            ratio = rewards[i, k, j] / displays[i, k, j]
            evidence.ratios[i, j, k] = ratio
            total += ratio
        if total > 0.0:
            informative += 1
        for k in range(n_positions):
            share = evidence.ratios[i, j, k] / total if total > 0.0 else 0.0
            evidence.shares[i, j, k] = share
            evidence.sums[i, k] += share
    for k in range(n_positions):
        if informative > 0:
            evidence.preferences[i, k] = evidence.sums[i, k] / informative
        else:
            evidence.preferences[i, k] = 1.0 / n_positions


@inlined
def update_preferences(
    displays: Floats, rewards: Floats, evidence: PositionEvidence, user_type: int, ranking: NDArray[np.uintp]
) -> None:
    """Update Algorithm 1 in O(K²) after a round in which the ranking was shown.

    The row of v̄ of each shown item changes, because one of its ratios does. Valid only once every cell of the
    type has a reward. Rounding errors accumulate slowly until the next `estimate_preferences`: shares lie in
    [0, 1], however small the rewards.
    """
    i = user_type
    n_positions = ranking.size
    for k in range(n_positions):
        j = ranking[k]
        evidence.ratios[i, j, k] = rewards[i, k, j] / displays[i, k, j]
        total = 0.0
        for other in range(n_positions):
            total += evidence.ratios[i, j, other]
        scale = 1.0 / total
        for other in range(n_positions):
            share = evidence.ratios[i, j, other] * scale
            evidence.sums[i, other] += share - evidence.shares[i, j, other]
            evidence.shares[i, j, other] = share
    per_item = 1.0 / displays.shape[2]
    for k in range(n_positions):
        evidence.preferences[i, k] = evidence.sums[i, k] * per_item


def position_preferences(counts: Counts) -> Floats:
    """Return ρ̂ by Algorithm 1, shape (N, K).

    Examples
    --------
    An item clicked twice as often at the first position, for as many displays:

    >>> counts = Counts.from_arrays([[[100, 100], [100, 100]]], [[[20, 10], [40, 20]]], [200])
    >>> position_preferences(counts)
    array([[0.66666667, 0.33333333]])
    """
    evidence = empty_evidence(counts.n_user_types, counts.n_items, counts.n_positions)
    for user_type in range(counts.n_user_types):
        estimate_preferences(counts.displays_by_position, counts.rewards_by_position, evidence, user_type)
    return evidence.preferences
