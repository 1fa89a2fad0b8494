"""The likelihood's estimator: ρ and μ for which the rewards that were seen are the most probable.

The rewards of a cell are taken for a Poisson count of mean T_ijk ρ_ik μ_ij, the limit of many displays of a
small click rate. The logarithm of their probability is Σ S_ijk ln(ρ_ik μ_ij) − T_ijk ρ_ik μ_ij, plus what
does not depend on ρ and μ. It is raised by turns,

    ρ_ik ← Σ_j S_ijk / Σ_j T_ijk μ_ij, normalised over k,    μ_ij ← Σ_k S_ijk / Σ_k T_ijk ρ_ik,

each of which is the best choice while the other stands still, until the preferences settle. Unlike Algorithm
1, which gives the ratio of a cell shown ten times the weight of one shown ten million times, it weighs cells
by what they can tell, and it needs no cell to be positive.

Where rewards cannot tell:

* A position at which no item of positive mean was ever shown gets 1/K, and the others share the rest. A type
  without any reward looks everywhere alike.
* A position at which items of positive mean were shown and never rewarded gets 0.
* An item that was never rewarded, or shown only where nobody looks, has mean 0.
* Positions that no chain of items ties together, each shown at two of them, keep the ratio they start with:
  the first pass starts from 1/K everywhere.
"""

import numpy as np
from numpy.typing import NDArray

from banditrank.checks import check_number, check_integer
from banditrank.compilation import compiled
from banditrank.estimators.estimates import Estimates, arrival_rates
from banditrank.estimators.item_means import exposure
from banditrank.counts.counts import Counts, check_counts

Floats = NDArray[np.float64]


@compiled
def update_means(
    displays: Floats, rewards: Floats, preferences: Floats, means: Floats, user_type: int
) -> None:
    """Write the best means for given preferences. Displays and rewards have shape (N, K, M)."""
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
    """Write the best preferences for given means, normalised; return the largest change.

    Parameters
    ----------
    displays, rewards
        Shape (N, K, M).
    preferences, means
        Shapes (N, K) and (N, M).
    raw
        Scratch, shape (K,): the preferences before they are normalised, −1 where nothing is known.
    user_type
        Whose.
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
    """Alternate until no preference changes by more than the tolerance; return the number of passes.

    Starts from the given preferences, and leaves the means that are best for the last of them.
    """
    update_means(displays, rewards, preferences, means, user_type)
    for made in range(max_iterations):
        change = update_preferences_by_likelihood(displays, rewards, preferences, means, raw, user_type)
        update_means(displays, rewards, preferences, means, user_type)
        if change <= tolerance:
            return made + 1
    return max_iterations


def likelihood_estimate(counts: Counts, *, tolerance: float = 1e-12, max_iterations: int = 10_000) -> Estimates:
    """Return the estimates of largest likelihood for the counts.

    Parameters
    ----------
    counts
        T, S and arrivals.
    tolerance
        The preferences have settled once none changes by more than this in a pass.
    max_passes
        Stop after so many in any case: where the best preference of a position is 0 although it was rewarded
        there, it is only ever approached.

    Examples
    --------
    The second item was shown too rarely to tell, and weighs accordingly:

    >>> counts = Counts.from_arrays([[[900, 900], [10, 10]]], [[[60, 30], [1, 3]]], [910])
    >>> likelihood_estimate(counts).position_preferences.round(2)
    array([[0.65, 0.35]])
    >>> from banditrank import estimate
    >>> estimate(counts).position_preferences.round(2)
    array([[0.46, 0.54]])
    """
    check_counts(counts)
    tolerance = check_number("tolerance", tolerance, 0.0, 1.0)
    max_iterations = check_integer("max_passes", max_iterations, 1)
    preferences = np.full((counts.n_user_types, counts.n_positions), 1 / counts.n_positions)
    means = np.zeros((counts.n_user_types, counts.n_items))
    raw = np.zeros(counts.n_positions)
    displays, rewards = counts.displays_by_position, counts.rewards_by_position
    for i in range(counts.n_user_types):
        alternate(displays, rewards, preferences, means, raw, i, tolerance, max_iterations)
    return Estimates(arrival_rates(counts), preferences, exposure(counts, preferences), means)
