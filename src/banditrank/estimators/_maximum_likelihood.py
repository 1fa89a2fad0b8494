"""Maximum-likelihood estimation of position preferences ρ and item means μ.

The rewards of a cell are modelled as a Poisson count of mean T_ijk ρ_ik μ_ij, the limit of many displays with
a small click rate. Up to a constant the log-likelihood is Σ S_ijk ln(ρ_ik μ_ij) − T_ijk ρ_ik μ_ij. It is
maximised by coordinate ascent,

    ρ_ik ← Σ_j S_ijk / Σ_j T_ijk μ_ij, normalised over k,    μ_ij ← Σ_k S_ijk / Σ_k T_ijk ρ_ik,

each step of which is the maximum for fixed values of the other, until the preferences converge. Algorithm 1
gives the ratio of a cell with ten displays the weight of one with ten million; the likelihood weights cells
by their information, and no cell has to be positive.

Where the likelihood is flat:

* A position at which no item of positive mean was ever shown gets 1/K, and the others share the rest. A type
  without any reward has equal preferences.
* A position at which items of positive mean were shown and never rewarded gets 0.
* An item that was never rewarded, or shown only at positions of preference 0, has mean 0.
* The ratio of two positions is identified only if a chain of items, each shown at two positions, connects
  them. Otherwise it keeps its initial value of 1.
"""

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled
from banditrank.counts._counts import Counts

Floats = NDArray[np.float64]


@compiled
def update_means(
    displays: Floats, rewards: Floats, preferences: Floats, means: Floats, user_type: int
) -> None:
    """Write the maximising means for fixed preferences. Displays and rewards have shape (N, K, M)."""
    i = user_type
    n_positions, n_items = displays.shape[1:]
    for j in range(n_items):
        reward = 0.0
        looks = 0.0
        for k in range(n_positions):
            reward += rewards[i, k, j]
            looks += displays[i, k, j] * preferences[i, k]
        means[i, j] = reward / looks if looks > 0.0 else 0.0


@compiled
def update_preferences_by_likelihood(
    displays: Floats, rewards: Floats, preferences: Floats, means: Floats, raw: Floats, user_type: int
) -> float:
    """Write the maximising preferences for fixed means, normalised; return the largest change.

    Parameters
    ----------
    displays, rewards
        Shape (N, K, M).
    preferences, means
        Shapes (N, K) and (N, M).
    raw
        Scratch, shape (K,): the preferences before normalisation, −1 where they are unknown.
    user_type
        Index of the user type.
    """
    i = user_type
    n_positions, n_items = displays.shape[1:]
    total = 0.0
    unknown = 0
    for k in range(n_positions):
        reward = 0.0
        expected = 0.0
        for j in range(n_items):
            reward += rewards[i, k, j]
            expected += displays[i, k, j] * means[i, j]
        if expected > 0.0:
            raw[k] = reward / expected
            total += raw[k]
        else:
            raw[k] = -1.0
            unknown += 1
    known_share = 1.0 - unknown / n_positions
    change = 0.0
    for k in range(n_positions):
        preference = 1.0 / n_positions
        if raw[k] >= 0.0 and total > 0.0:
            preference = raw[k] / total * known_share
        change = max(change, abs(preference - preferences[i, k]))
        preferences[i, k] = preference
    return change


@compiled
def alternate(
    displays: Floats,
    rewards: Floats,
    preferences: Floats,
    means: Floats,
    raw: Floats,
    user_type: int,
    tolerance: float,
    max_iterations: int,
) -> int:
    """Iterate until no preference changes by more than the tolerance; return the number of iterations.

    Starts from the given preferences; the means are those that maximise the likelihood at the last ones.
    """
    update_means(displays, rewards, preferences, means, user_type)
    for made in range(max_iterations):
        change = update_preferences_by_likelihood(displays, rewards, preferences, means, raw, user_type)
        update_means(displays, rewards, preferences, means, user_type)
        if change <= tolerance:
            return made + 1
    return max_iterations


def maximize_likelihood(counts: Counts, *, tolerance: float, max_iterations: int) -> tuple[Floats, Floats]:
    """Return the position preferences, shape (N, K), and item means, shape (N, M), of maximum likelihood.

    Parameters
    ----------
    counts
        T and S.
    tolerance
        Stop when no preference changes by more than this in an iteration.
    max_iterations
        Stop after this number of iterations: where the best preference of a rewarded position is 0, the
        iteration converges to it slowly.
    """
    preferences = np.full((counts.n_user_types, counts.n_positions), 1 / counts.n_positions)
    means = np.zeros((counts.n_user_types, counts.n_items))
    raw = np.zeros(counts.n_positions)
    displays, rewards = counts.displays_by_position, counts.rewards_by_position
    for i in range(counts.n_user_types):
        alternate(displays, rewards, preferences, means, raw, i, tolerance, max_iterations)
    return preferences, means
