"""Algorithm 1 of the paper: where users look, from displays T and rewards S.

S_ijk / T_ijk tends to μ_ij ρ_ik. Dividing by its sum over positions removes the item, v̄_ijk, and the average
over items estimates ρ_ik. The formula is undefined for an item that has a never-shown position (0/0) or that
was never clicked at any position; such items are left out of the average, and a type with no item left looks
everywhere alike (1/K). Once every cell has a reward, as after the paper's initial phase, this is Algorithm 1
to the letter. With one position the estimate is 1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, inlined
from banditrank.statistics.counts import Counts

Floats = NDArray[np.float64]


class PositionEvidence(NamedTuple):
    """Algorithm 1's intermediate figures, kept so that a round need not compute them all again."""

    ratios: Floats  # (N, M, K)  S / T
    scales: Floats  # (N, M)     1 / Σ_k S / T, 0 for an item left out: v̄ = ratios · scales
    sums: Floats  # (N, K)       Σ_j v̄
    preferences: Floats  # (N, K)  ρ̂
    before: Floats  # (2, K)     room for the changed ratios and scales of a round


def empty_evidence(n_user_types: int, n_items: int, n_positions: int) -> PositionEvidence:
    """Return evidence to be filled by `estimate_preferences`."""
    return PositionEvidence(
        np.zeros((n_user_types, n_items, n_positions)),
        np.zeros((n_user_types, n_items)),
        np.zeros((n_user_types, n_positions)),
        np.full((n_user_types, n_positions), 1 / n_positions),
        np.zeros((2, n_positions)),
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
            evidence.scales[i, j] = 1.0 / total
            for k in range(n_positions):
                evidence.sums[i, k] += evidence.ratios[i, j, k] * evidence.scales[i, j]
        else:
            evidence.scales[i, j] = 0.0
    for k in range(n_positions):
        if informative > 0:
            evidence.preferences[i, k] = evidence.sums[i, k] / informative
        else:
            evidence.preferences[i, k] = 1.0 / n_positions


@inlined
def update_preferences(
    displays: Floats, rewards: Floats, evidence: PositionEvidence, user_type: int, ranking: NDArray[np.uintp]
) -> None:
    """Bring Algorithm 1 up to date in O(K²) after a round that showed the ranking.

    Each shown item's row of v̄ changes, because one of its ratios does. Holds only once every cell of the type
    has a reward. Rounding errors accumulate until the next `estimate_preferences`.
    """
    i = user_type
    n_positions = ranking.size
    n_items = displays.shape[2]
    for k in range(n_positions):
        j = ranking[k]
        before = evidence.ratios[i, j, k]
        scale_before = evidence.scales[i, j]
        ratio = rewards[i, k, j] / displays[i, k, j]
        evidence.ratios[i, j, k] = ratio
        total = 0.0
        for other in range(n_positions):
            total += evidence.ratios[i, j, other]
        scale = 1.0 / total
        evidence.scales[i, j] = scale
        evidence.before[0, k] = before
        evidence.before[1, k] = scale_before
    for k in range(n_positions):
        total = evidence.sums[i, k]
        for other in range(n_positions):
            # v̄ now less v̄ before, each within [0, 1]: a difference of scales could lose all digits
            j = ranking[other]
            ratio = evidence.ratios[i, j, k]
            before = evidence.before[0, other] if other == k else ratio
            total += ratio * evidence.scales[i, j] - before * evidence.before[1, other]
        evidence.sums[i, k] = total
    per_item = 1.0 / n_items
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
