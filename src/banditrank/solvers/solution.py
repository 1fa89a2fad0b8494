"""What a solver answers: a ranking, and how far from the best it can be at most."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.model.rankings import Ranking
from banditrank.utilities.formulas import LINEAR, MINIMUM, POWER, RAMP, SIGMOID, CompiledUtility


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A ranking for everybody, with a certificate.

    Attributes
    ----------
    ranking
        The item at each position.
    value
        Γ(σ) plus bonuses, recomputed from the ranking; −∞ if a type gets nothing and its utility has a pole,
        or if the value is beyond double precision, as powers with a large α are.
    upper_bound
        No ranking is worth more.
    gap
        How far the value may be from the best, as a share of it: see `gap_unit`.
    certified
        Whether the gap is at most the one that was asked for.
    solver
        The method.
    nodes
        How many subproblems (or rankings, for the paper's methods) it looked at.
    seconds
        How long that took.
    user_type_values
        u, shape (N,): what the ranking is worth to each type.
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
    """Return what gaps are a share of: the value, where doubling all click rates multiplies it.

    The logarithm turns ratios into differences, and functions of your own may be shifted at will: for those
    the unit is at least 1, and for the sigmoid and the ramp, which go from 0 to 1, at least 0.1.
    """
    if utility.code in (LINEAR, POWER, MINIMUM):
        return abs(value)
    if utility.code in (SIGMOID, RAMP):
        return max(0.1, abs(value))
    return max(1.0, abs(value))
