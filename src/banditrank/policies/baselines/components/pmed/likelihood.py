"""θ and κ for which clicks of probability θ_j κ_k are the most probable, found by turns."""

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled

Floats = NDArray[np.float64]

MIN_ESTIMATE, MAX_ESTIMATE = 1e-4, 0.999  # what estimates are kept between: an item never clicked may yet be


@compiled
def scoring_step(
    displays: Floats, rewards: Floats, items: Floats, positions: Floats, user_type: int
) -> float:
    """Improve θ given κ, then κ given θ, the largest κ being 1; return the largest change, relative to θ.

    Where the likelihood is largest Σ_k (S_jk − T_jk θ_j κ_k) / (1 − θ_j κ_k) = 0. Each turn solves this for
    θ_j, and likewise for κ_k, with denominators as they were: Fisher's scoring.

    Parameters
    ----------
    displays, rewards
        Shape (N, K, M). Every item has been displayed somewhere, and something at every position.
    items, positions
        Shapes (N, M) and (N, K).
    user_type
        Whose.
    """
    i = user_type
    n_positions, n_items = displays.shape[1:]
    largest = 0.0
    for k in range(n_positions):
        clicks, looks = 0.0, 0.0
        for j in range(n_items):
            weight = 1.0 / (1.0 - items[i, j] * positions[i, k])
            clicks += weight * rewards[i, k, j]
            looks += weight * displays[i, k, j] * items[i, j]
        positions[i, k] = clicks / looks
        largest = max(largest, positions[i, k])
    for k in range(n_positions):
        positions[i, k] = max(MIN_ESTIMATE, positions[i, k] / largest) if largest > 0.0 else 1.0
    change = 0.0
    for j in range(n_items):
        clicks, looks = 0.0, 0.0
        for k in range(n_positions):
            weight = 1.0 / (1.0 - items[i, j] * positions[i, k])
            clicks += weight * rewards[i, k, j]
            looks += weight * displays[i, k, j] * positions[i, k]
        improved = min(MAX_ESTIMATE, max(MIN_ESTIMATE, clicks / looks))
        change = max(change, abs(improved - items[i, j]) / improved)
        items[i, j] = improved
    return change
