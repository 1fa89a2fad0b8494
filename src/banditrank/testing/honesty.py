"""Whether what a solver says of its answer is true, given what the best ranking is worth."""

import numpy as np

from banditrank.solvers.solution import Solution, gap_unit
from banditrank.testing.worlds import World
from banditrank.utilities.utility import Utility

ROUNDING = 1e-12  # adding the same numbers in another order changes less, as a share of their sum


def complaint(
    solution: Solution, world: World, utility: Utility, *, best: float, target_gap: float
) -> str | None:
    """Return what is untrue of an answer, or nothing.

    Its value and its bound must lie on either side of the best, its gap must not understate how far either
    is from the value, and it is certified if and only if the gap is no more than was asked for.

    Parameters
    ----------
    solution
        The answer.
    world, utility, target_gap
        The question.
    best
        What the best ranking is worth, found in some other way: that is put to the test as well.

    Examples
    --------
    >>> from banditrank.solvers.solve import solve
    >>> from banditrank.utilities.utility import UTILITARIAN
    >>> world = World(np.ones(1), np.ones((1, 1)), np.array([[0.25, 0.5]]))
    >>> solution = solve(world, UTILITARIAN)
    >>> complaint(solution, world, UTILITARIAN, best=0.5, target_gap=1e-10)
    >>> complaint(solution, world, UTILITARIAN, best=1.0, target_gap=1e-10)
    'utilitarian: bound 0.5 below the best 1.0'
    """
    value, bound, gap = solution.value, solution.upper_bound, solution.gap
    slack = rounding(world, utility, best)
    most = max(best, bound)
    missing = most - value if most > value else 0.0  # equal infinities included
    unit = gap_unit(utility.compiled(), value)
    # Comparisons are such that one with a number that is none makes a complaint.
    if not value <= best + slack:
        return f"{utility}: value {value!r} above the best {best!r}"
    if not bound >= best - slack:
        return f"{utility}: bound {bound!r} below the best {best!r}"
    if not missing <= _amount(gap, unit) + slack:
        return f"{utility}: gap {gap!r} for a value {value!r} that may miss {missing!r}"
    if solution.is_certified != (gap <= target_gap):
        return f"{utility}: certified is {solution.is_certified} with gap {gap!r}, asked for {target_gap!r}"
    return None


def rounding(world: World, utility: Utility, value: float) -> float:
    """Return by how much two ways of computing a value may differ.

    Bonuses may outweigh what remains of a sum, so they count apart.
    """
    if not np.isfinite(value):
        return 0.0
    shown = 0.0 if world.bonuses is None else float(np.sort(world.bonuses)[-world.n_positions :].sum())
    return ROUNDING * (float(gap_unit(utility.compiled(), value)) + shown)


def _amount(gap: float, unit: float) -> float:
    """Return what a gap amounts to; none is none, even of a value that is infinite."""
    return gap * unit if 0.0 < gap < np.inf else gap
