"""Maximum-likelihood estimation under the position-based model: look probabilities κ and item means μ.

Each position is looked at independently of the others, so the clicks of a cell are binomial: T_ijk displays
with click probability κ_ik μ_ij each. Up to a constant the log-likelihood is

    Σ S_ijk ln(κ_ik μ_ij) + (T_ijk − S_ijk) ln(1 − κ_ik μ_ij),

concave in the logarithms of κ and μ. It is maximised over [0, 1] by coordinate ascent, from κ = 1.

Only products of κ and μ are identifiable. The scale is fixed by the largest κ of a user type, which is 1: the
most looked-at position is always looked at, and μ is the click probability of an item there. As both factors
are at most 1 before they are scaled, both are afterwards.

Where the likelihood is flat:

* A position at which no item of positive mean was ever shown has κ = 1, as have all positions of a type
  without any reward.
* A position at which items of positive mean were shown and never rewarded has κ = 0.
* An item that was never rewarded, or shown only at positions of κ = 0, has mean 0.
* The ratio of two positions is identified only if a chain of items, each shown at two positions, connects
  them.
"""

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled
from banditrank.counts._counts import Counts

Floats = NDArray[np.float64]

_MAX_NEWTON_STEPS = 60
_NEWTON_TOLERANCE = 1e-14  # of a factor, relative
_MIN_MISS = 1e-150  # in place of 0 where a miss is lost to rounding


@compiled
def maximize_factor(rewards: float, misses: Floats, others: Floats) -> float:
    """Return the x in [0, 1] that maximises S ln x + Σ_l F_l ln(1 − f_l x).

    It solves x Σ_l F_l f_l / (1 − f_l x) = S. The left side is convex and increasing, so that Newton's method
    converges from above: from the smallest of 1, the solutions with one term alone, and the solution with all
    terms at the mean f (Jensen's inequality).

    Parameters
    ----------
    rewards
        S.
    misses, others
        F and f, of equal length.
    """
    if rewards <= 0.0:
        return 0.0
    x, first, second = 1.0, 0.0, 0.0
    for index in range(misses.size):
        weight = misses[index] * others[index]
        if weight > 0.0:
            first += weight
            second += weight * others[index]
            x = min(x, rewards / (others[index] * (misses[index] + rewards)))
    if first > 0.0:
        x = min(x, rewards / (first + rewards * second / first))
    for _ in range(_MAX_NEWTON_STEPS):
        value, slope = -rewards, 0.0
        for index in range(misses.size):
            weight = misses[index] * others[index]
            if weight > 0.0:
                share = 1.0 / max(1.0 - others[index] * x, _MIN_MISS)
                value += weight * share * x
                slope += weight * share * share
        if value <= 0.0:
            break
        step = value / slope
        x -= step
        if step <= _NEWTON_TOLERANCE * x:
            break
    return x


@compiled
def ascend(
    misses: Floats,
    by_item: Floats,
    item_rewards: Floats,
    position_rewards: Floats,
    looks: Floats,
    means: Floats,
    tolerance: float,
    max_iterations: int,
) -> int:
    """Maximise the likelihood of one user type from the given κ; return the number of iterations.

    Parameters
    ----------
    misses
        T − S, shape (K, M).
    by_item
        The same, shape (M, K).
    item_rewards, position_rewards
        Sums of S, shapes (M,) and (K,).
    looks, means
        κ and μ, shapes (K,) and (M,), written.
    tolerance, max_iterations
        Stop when no κ changes by more than the tolerance, or after this number of iterations.
    """
    n_positions, n_items = misses.shape
    for j in range(n_items):
        means[j] = maximize_factor(item_rewards[j], by_item[j], looks)
    for made in range(max_iterations):
        change = 0.0
        for k in range(n_positions):
            look = maximize_factor(position_rewards[k], misses[k], means)
            change = max(change, abs(look - looks[k]))
            looks[k] = look
        for j in range(n_items):
            means[j] = maximize_factor(item_rewards[j], by_item[j], looks)
        if change <= tolerance:
            return made + 1
    return max_iterations


def maximize_rank_one(
    displays: Floats,
    rewards: Floats,
    *,
    tolerance: float,
    max_iterations: int,
    initial_looks: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return κ, shape (C,), and the means, shape (M,), of maximum likelihood for one table of cells.

    The scale is that of the ascent: no factor exceeds 1.

    Parameters
    ----------
    displays, rewards
        T and S, shape (C, M): a row for each position, or each context in which an item is displayed.
        Rewards above the number of displays count as that number.
    tolerance, max_iterations
        As for `maximize_binomial_likelihood`.
    initial_looks
        κ that the ascent starts from, shape (C,); ones by default.
    """
    looks = np.ones(displays.shape[0]) if initial_looks is None else initial_looks.copy()
    means = np.zeros(displays.shape[1])
    counted = np.minimum(rewards, displays)
    misses = np.ascontiguousarray(displays - counted)
    by_item = np.ascontiguousarray(misses.T)
    item_rewards, position_rewards = counted.sum(axis=0), counted.sum(axis=1)
    ascend(misses, by_item, item_rewards, position_rewards, looks, means, tolerance, max_iterations)
    return looks, means


def maximize_binomial_likelihood(
    counts: Counts, *, tolerance: float, max_iterations: int
) -> tuple[Floats, Floats]:
    """Return κ, shape (N, K), and the item means, shape (N, M), of maximum likelihood.

    Parameters
    ----------
    counts
        T and S. Rewards above the number of displays count as that number.
    tolerance, max_iterations
        Stop when no κ changes by more than the tolerance in an iteration, or after this number of iterations.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[100, 100], [100, 100]]], [[[80, 40], [40, 20]]], [200])
    >>> looks, means = maximize_binomial_likelihood(counts, tolerance=1e-12, max_iterations=1000)
    >>> looks.round(6), means.round(6)
    (array([[1. , 0.5]]), array([[0.8, 0.4]]))
    """
    looks = np.ones((counts.n_user_types, counts.n_positions))
    means = np.zeros((counts.n_user_types, counts.n_items))
    for i in range(counts.n_user_types):
        looks[i], means[i] = maximize_rank_one(
            counts.displays_by_position[i],
            counts.rewards_by_position[i],
            tolerance=tolerance,
            max_iterations=max_iterations,
        )
        is_known = counts.displays_by_position[i] @ means[i] > 0
        largest = looks[i, is_known].max(initial=0.0)
        if largest > 0:
            looks[i] /= largest
            means[i] *= largest
        looks[i, ~is_known] = 1.0
    return looks, means
