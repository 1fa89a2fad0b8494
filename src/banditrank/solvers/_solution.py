"""Solutions: a ranking, its value, and a bound on its distance from the optimum."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.model._rankings import Ranking
from banditrank.utilities._formulas import LINEAR, MINIMUM, POWER, RAMP, SIGMOID, CompiledUtility


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A ranking for all user types, with a certificate.

    Attributes
    ----------
    ranking
        The item at each position.
    value
        Γ(σ) plus bonuses, recomputed from the ranking; −∞ if a type's value is 0 and the utility has a pole
        there, or if the value exceeds double precision, as powers with a large α do.
    upper_bound
        An upper bound on the value of any ranking.
    gap
        Upper bound on the distance from the optimum, relative to `gap_unit`.
    is_certified
        Whether the gap is at most the target gap.
    solver
        Name of the solver.
    nodes
        Number of subproblems (or rankings, for the paper's methods) explored.
    seconds
        Elapsed time.
    user_type_values
        u, shape (N,): the ranking's value to each type.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> from banditrank.solvers._solve import solve
    >>> solution = solve(kdd2012(), "utilitarian")
    >>> solution.ranking, round(solution.value, 6), solution.is_certified
    (array([2, 3]), 0.621296, True)
    """

    ranking: Ranking
    value: float
    upper_bound: float
    gap: float
    is_certified: bool
    solver: str
    nodes: int
    seconds: float
    user_type_values: NDArray[np.float64]


@inlined
def gap_unit(utility: CompiledUtility, value: float) -> float:
    """Return the unit of gaps: the absolute value, for utilities that scale with the click rates.

    The logarithm turns ratios into differences, and a function of the user's may have any offset: for those
    the unit is at least 1. For the sigmoid and the ramp, which go from 0 to 1, it is at least 0.1.
    """
    if utility.code in (LINEAR, POWER, MINIMUM):
        return abs(value)
    if utility.code in (SIGMOID, RAMP):
        return max(0.1, abs(value))
    return max(1.0, abs(value))
