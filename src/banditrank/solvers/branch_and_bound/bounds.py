"""Upper bounds that hold for any ranking.

For any slopes g, Σ_i λ_i f(u_i) ≤ Σ_i max_v (λ_i f(v) − g_i v) + g·u, and g·u plus bonuses is at most the
best assignment t for the scores V_kj = Σ_i g_i ρ_ik μ_ij + b_j. Where f is concave and g_i = λ_i f'(u⁰_i),
the maximum is at the tangent point: with F = Σ_i λ_i f(u⁰_i) and G = g·u⁰ the bound is F + t − G. Without
bonuses the logarithm and the powers allow a tighter one, the best over all multiples of g. The minimum over
types is at most g·u for any g that sums to 1.

What else a certificate rests on: that t is proved by prices (`_solve_assignment` in relaxation.py); where f is not
concave, that the maxima over v, on the interval that a type's value is confined to, are not underestimated
(`conjugate` and `upper_bound_between` in envelope.py, `confine_values` in node.py); and that cells are ruled out, intervals
cut and nodes closed only where one of these bounds is at most TARGET, the incumbent's value plus the gap that
does not matter, or where no ranking is left. What a search proves is therefore the largest of TARGET and the
bounds of the nodes still open.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.utilities.formulas import LOGARITHM, CompiledUtility

Floats = NDArray[np.float64]


ROUNDING = 2.3e-16  # a sum of n numbers is off by less than n times this share of their sizes


class Tangent(NamedTuple):
    """A bound as a function of t, the best assignment at its slopes."""

    height: float  # F
    lift: float  # G
    is_scalable: bool  # whether multiples of the slopes are bounds too


@inlined
def bound_at(utility: CompiledUtility, tangent: Tangent, total: float, terms: int) -> float:
    """Return the upper bound that an assignment worth ``total`` proves.

    It allows for rounding, ``terms`` being how many numbers the height and the lift are sums of: where steep
    slopes make them large and the bound is their small difference, it is as good as none.
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
    """Return the total at which `bound_at` is a bound: a smaller total proves that nothing exceeds it."""
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
