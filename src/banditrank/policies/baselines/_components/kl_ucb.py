"""KL-UCB: confidence bounds of Bernoulli means by Kullback–Leibler divergence (Garivier and Cappé 2011)."""

import math

from banditrank._compilation import compiled, inlined

_TOLERANCE = 1e-13  # of the last Newton step
_MAX_NEWTON_STEPS = 60  # never reached: four steps are typical, fifteen the worst case


@compiled
def bernoulli_kl(mean: float, other: float) -> float:
    """Return d(p, q) = p ln(p/q) + (1−p) ln((1−p)/(1−q)); infinite if q is 0 or 1 and p is not.

    Examples
    --------
    >>> round(bernoulli_kl(0.25, 0.5), 6), bernoulli_kl(0.5, 1.0)
    (0.130812, inf)
    """
    return max(0.0, _weighted_log(mean, other) + _weighted_log(1.0 - mean, 1.0 - other))


@inlined
def _weighted_log(weight: float, other: float) -> float:
    """Return w ln(w/v), without cancellation where w and v are close."""
    if weight <= 0.0:
        return 0.0
    if other <= 0.0:
        return math.inf
    gap = (other - weight) / weight
    return -weight * (math.log1p(gap) if abs(gap) < 0.5 else math.log(other / weight))


@compiled
def kl_ucb(mean: float, displays: float, level: float) -> float:
    """Return the KL-UCB of a mean: sup {q ≤ 1 : displays · d(mean, q) ≤ level}, to twelve digits.

    Without displays it is 1. Newton's method on the gap q − mean: the divergence is convex, so from a start
    beyond the solution the steps converge from above without a safeguard.

    Parameters
    ----------
    mean
        p in [0, 1].
    displays
        Number of observations.
    level
        Exploration level, such as ln t.

    Examples
    --------
    >>> round(kl_ucb(0.25, 10.0, 1.30812035941137), 9), kl_ucb(0.25, 0.0, 1.0)
    (0.5, 1.0)
    """
    if displays <= 0.0 or mean >= 1.0:
        return 1.0
    if level <= 0.0:
        return mean
    target = level / displays
    if mean <= 0.0:
        return -math.expm1(-target)
    rest = 1.0 - mean
    # Three lower bounds of d give gaps of at least the solution: d ≥ 2 gap² (Pinsker's inequality),
    # d ≥ gap² / 2q (better near 0) and d ≥ p ln p + (1−p) ln((1−p)/(1−q)) (better near 1).
    gap = min(math.sqrt(0.5 * target), target + math.sqrt(target * (target + 2.0 * mean)))
    gap = min(gap, -rest * math.expm1((mean * math.log(mean) - target) / rest))
    for _ in range(_MAX_NEWTON_STEPS):
        left = rest - gap  # 1 − q
        if left <= 0.0:
            return 1.0  # in double precision
        excess = -mean * math.log1p(gap / mean) - rest * math.log1p(-gap / rest) - target
        step = excess * (mean + gap) * left / gap  # d' = gap / q(1−q)
        gap -= max(0.0, step)
        if step <= _TOLERANCE:
            break
    return mean + gap


@compiled
def exploration_level(times: float) -> float:
    """Return ln n + 3 ln ln n, the level of KL-UCB in its regret bounds, or 0 if that is negative.

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
def kl_ucb_exceeds(mean: float, displays: float, level: float, bound: float) -> bool:
    """Return whether `kl_ucb` exceeds a bound, without computing it.

    Examples
    --------
    >>> kl_ucb_exceeds(0.25, 10.0, 1.4, 0.5), kl_ucb_exceeds(0.25, 10.0, 1.2, 0.5)
    (True, False)
    >>> kl_ucb_exceeds(0.25, 0.0, 0.0, 0.5)
    True
    """
    if bound >= 1.0 or displays <= 0.0 or mean > bound:
        return bound < 1.0
    return displays * bernoulli_kl(mean, bound) < level
