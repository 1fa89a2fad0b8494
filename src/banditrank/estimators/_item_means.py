"""Section 4.1 of the paper: the exposure N_ij and the item means μ̂_ij = ‖S_ij‖₁ / N_ij.

N_ij = Σ_k T_ijk ρ̂_ik estimates how often users of type i examined item j. It is computed with the current ρ̂,
as in the body of the paper (the appendix accumulates earlier ones). An item of exposure 0 has mean 0 and an
infinite confidence radius.
"""

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, inlined
from banditrank.counts._counts import Counts
from banditrank.estimators._position_preferences import position_preferences

Floats = NDArray[np.float64]


@inlined
def exposure_of(displays: Floats, preferences: Floats, user_type: int, item: int, n_positions: int) -> float:
    """Return N_ij for one item. Displays have shape (N, K, M), preferences (N, K).

    K is an argument because callers may know it at compile time.
    """
    exposure = 0.0
    for k in range(n_positions):
        exposure += displays[user_type, k, item] * preferences[user_type, k]
    return exposure


@compiled
def exposures_of(displays: Floats, preferences: Floats, user_type: int, exposures: Floats) -> None:
    """Write N_ij for all items, shape (M,); the inner loop iterates over items, which are contiguous."""
    for j in range(exposures.size):
        exposures[j] = 0.0
    for k in range(preferences.shape[1]):
        preference = preferences[user_type, k]
        for j in range(exposures.size):
            exposures[j] += displays[user_type, k, j] * preference


def exposure(counts: Counts, preferences: Floats | None = None) -> Floats:
    """Return the exposure N_ij, shape (N, M), for given position preferences or those of Algorithm 1.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[100, 100], [100, 100]]], [[[20, 10], [40, 20]]], [200])
    >>> exposure(counts)
    array([[100., 100.]])
    """
    rho = position_preferences(counts) if preferences is None else preferences
    result = np.zeros((counts.n_user_types, counts.n_items))
    for user_type in range(counts.n_user_types):
        exposures_of(counts.displays_by_position, rho, user_type, result[user_type])
    return result


def item_means(counts: Counts, exposures: Floats | None = None) -> Floats:
    """Return μ̂, shape (N, M): rewards per exposure. As in the paper, it may exceed 1 when data are few.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[100, 100], [100, 100]]], [[[20, 10], [40, 20]]], [200])
    >>> item_means(counts)
    array([[0.3, 0.6]])
    """
    exposed = exposure(counts) if exposures is None else exposures
    rewards = counts.rewards_by_position.sum(axis=1)  # (N, M)
    means: Floats = np.divide(rewards, exposed, out=np.zeros_like(rewards), where=exposed > 0)
    return means
