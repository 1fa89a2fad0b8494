"""What the formulas of several field policies share: fair choices, the level of KL-UCB."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled
from banditrank.policies.field.kullback_leibler import bernoulli_divergence

Floats = NDArray[np.float64]


@compiled
def exploration_level(times: float) -> float:
    """Return ln n + 3 ln ln n, the level of KL-UCB in its regret bounds, and 0 where that is negative.

    Examples
    --------
    >>> round(exploration_level(100.0), 6), exploration_level(1.0)
    (9.186709, 0.0)
    """
    if times <= 1.0:
        return 0.0
    logarithm = math.log(times)
    return max(0.0, logarithm + 3.0 * math.log(logarithm))


@compiled
def exceeds(mean: float, displays: float, level: float, bound: float) -> bool:
    """Return whether `kl_upper` exceeds a bound, at a fraction of its cost.

    Examples
    --------
    >>> exceeds(0.25, 10.0, 1.4, 0.5), exceeds(0.25, 10.0, 1.2, 0.5), exceeds(0.25, 0.0, 0.0, 0.5)
    (True, False, True)
    """
    if bound >= 1.0 or displays <= 0.0 or mean > bound:
        return bound < 1.0
    return displays * bernoulli_divergence(mean, bound) < level


@compiled
def largest(values: Floats, rng: np.random.Generator) -> int:
    """Return where the largest value is, drawn uniformly if it is in several places.

    Examples
    --------
    >>> largest(np.array([0.2, 0.7, 0.5]), np.random.default_rng(0))
    1
    """
    best, ties = 0, 1
    for place in range(1, values.size):
        if values[place] > values[best]:
            best, ties = place, 1
        elif values[place] == values[best]:
            ties += 1
            if rng.random() * ties < 1.0:
                best = place
    return best


def carried_over(values: NDArray[Any], kept: NDArray[np.intp], fill: float = 0.0) -> NDArray[Any]:
    """Return statistics of items, on the last axis, after items came and went.

    Parameters
    ----------
    values
        The statistics until now.
    kept
        For each item its number until now, −1 for a new one.
    fill
        The statistic of a new item.

    Examples
    --------
    >>> carried_over(np.array([[5.0, 6.0, 7.0]]), np.array([2, -1, 0]))
    array([[7., 0., 5.]])
    """
    return np.ascontiguousarray(np.where(kept >= 0, values[..., np.maximum(kept, 0)], fill))
