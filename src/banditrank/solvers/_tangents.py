"""Tangents of concave utilities: upper bounds on the value of rankings and of lotteries over rankings.

For a concave f and any point u⁰ > 0, Σ_i λ_i f(u_i) ≤ F + g·u − G with the slopes g_i = λ_i f'(u⁰_i), the
height F = Σ_i λ_i f(u⁰_i) and the lift G = g·u⁰. Over rankings, and over lotteries of them, g·u plus bonuses
is at most the optimal assignment at the slopes. Branch and bound and the lottery solver both rest on it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank.utilities._formulas import LOGARITHM, POWER, CompiledUtility, slope_of, utility_of

Floats = NDArray[np.float64]

ROUNDING = 2.3e-16  # relative rounding error of a sum, per term
_MAX_LOG_SLOPE = 500.0  # the logarithm of the largest slope of a power
_FLOOR = 1e-7  # minimum tangent point as a share of a type's largest value: f' may be infinite at 0


class Tangent(NamedTuple):
    """An upper bound as a function of t, the optimal assignment at its slopes."""

    height: float  # F
    lift: float  # G
    is_scalable: bool  # whether all multiples of the slopes yield bounds


@inlined
def bound_at(utility: CompiledUtility, tangent: Tangent, total: float, terms: int) -> float:
    """Return the upper bound that an optimal assignment of value ``total`` proves.

    The bound includes the rounding error of the height and the lift, which are sums of ``terms`` numbers. For
    steep slopes both are large and their difference is small: the bound is then weak.
    """
    if not tangent.is_scalable:
        size = abs(tangent.height) + abs(tangent.lift) + abs(total)
        return tangent.height + total - tangent.lift + (terms + 8) * ROUNDING * size
    if utility.code == LOGARITHM:
        bound = tangent.height + tangent.lift * float(np.log(total / tangent.lift))
        return bound + (terms + 8) * ROUNDING * (abs(tangent.height) + tangent.lift)
    bound = float(tangent.height * (total / tangent.lift) ** (1.0 - utility.parameter))
    return bound + (terms + 8) * (1.0 + utility.parameter) * ROUNDING * abs(bound)


@inlined
def total_at(utility: CompiledUtility, tangent: Tangent, bound: float, terms: int) -> float:
    """Return the total at which `bound_at` equals a bound: a smaller total proves the bound."""
    if bound == -np.inf:
        return -np.inf
    if not tangent.is_scalable:
        size = abs(tangent.height) + abs(tangent.lift) + abs(bound)
        return bound - tangent.height + tangent.lift - (terms + 8) * ROUNDING * size
    if utility.code == LOGARITHM:
        exponent = (bound - tangent.height) / tangent.lift
        size = 1.0 + abs(exponent) + abs(tangent.height) / tangent.lift
        return tangent.lift * float(np.exp(exponent)) * (1.0 - (terms + 8) * ROUNDING * size)
    if bound * tangent.height <= 0.0:  # only with α < 1, whose values are not negative
        return 0.0
    total = float(tangent.lift * (bound / tangent.height) ** (1.0 / (1.0 - utility.parameter)))
    return total * (1.0 - (terms + 8) * (1.0 + 1.0 / abs(1.0 - utility.parameter)) * ROUNDING)


@inlined
def lowest_point(utility: CompiledUtility, looks: float, appeal: float) -> float:
    """Return the minimum tangent point of a type, whose value is at most ``looks * appeal``."""
    floor = _FLOOR * looks * appeal
    if utility.code == POWER:  # a tangent may touch anywhere, but must have finite slopes
        floor = max(floor, np.exp(-_MAX_LOG_SLOPE / utility.parameter))
    return floor


@internal
def take_tangent(
    utility: CompiledUtility, weights: Floats, points: Floats, is_plain: int, slopes: Floats
) -> Tangent:
    """Write the slopes at a point, and return the tangent; ``is_plain`` says that only values count."""
    height, lift = 0.0, 0.0
    for i in range(weights.size):
        slope = weights[i] * slope_of(utility, points[i])
        slopes[i] = slope
        height += weights[i] * utility_of(utility, points[i])
        lift += slope * points[i]
    if not (-np.inf < height < np.inf and -np.inf < lift < np.inf):  # a user function failed
        for i in range(weights.size):
            slopes[i] = 0.0
        return Tangent(np.inf, 0.0, False)
    return Tangent(height, lift, is_plain == 1 and utility.code in (LOGARITHM, POWER))
