"""Verification of solver certificates against a known optimum."""

import numpy as np

from banditrank.solvers._solution import Solution, gap_unit
from banditrank.testing._solver_problems import SolverProblem
from banditrank.utilities._utility import Utility

ROUNDING = 1e-12  # relative error of summing the same numbers in another order


def find_certificate_error(
    solution: Solution, problem: SolverProblem, utility: Utility, *, best: float, target_gap: float
) -> str | None:
    """Return the first error of a solution's certificate, or None.

    The value must not exceed the optimum nor the bound be below it, the gap must not understate the distance
    from the value to either, and the solution must be certified if and only if the gap is within the target.

    Parameters
    ----------
    solution
        Solution to verify.
    problem, utility, target_gap
        Problem that was solved, and the requested gap.
    best
        Value of the best ranking, from another method.

    Examples
    --------
    >>> from banditrank.solvers._solve import solve
    >>> from banditrank.utilities._utility import UTILITARIAN
    >>> problem = SolverProblem(np.ones(1), np.ones((1, 1)), np.array([[0.25, 0.5]]))
    >>> solution = solve(problem, UTILITARIAN)
    >>> find_certificate_error(solution, problem, UTILITARIAN, best=0.5, target_gap=1e-10)
    >>> find_certificate_error(solution, problem, UTILITARIAN, best=1.0, target_gap=1e-10)
    'utilitarian: bound 0.5 is below the best 1.0'
    """
    value, bound, gap = solution.value, solution.upper_bound, solution.gap
    slack = rounding_error(problem, utility, best)
    upper = max(best, bound)
    missing = upper - value if upper > value else 0.0  # also 0 for equal infinities
    unit = gap_unit(utility.compiled(), value)
    # Written so that a comparison with NaN is an error.
    if not value <= best + slack:
        return f"{utility}: value {value!r} is above the best {best!r}"
    if not bound >= best - slack:
        return f"{utility}: bound {bound!r} is below the best {best!r}"
    if not missing <= _amount(gap, unit) + slack:
        return f"{utility}: gap {gap!r} of value {value!r} understates the distance {missing!r}"
    if solution.is_certified != (gap <= target_gap):
        return (
            f"{utility}: certified is {solution.is_certified} with gap {gap!r} and target gap {target_gap!r}"
        )
    return None


def rounding_error(problem: SolverProblem, utility: Utility, value: float) -> float:
    """Return the maximum difference between two ways of computing a value.

    Bonuses may be much larger than the rest of the sum, so they are added separately.
    """
    if not np.isfinite(value):
        return 0.0
    bonuses = (
        0.0 if problem.bonuses is None else float(np.sort(problem.bonuses)[-problem.n_positions :].sum())
    )
    return ROUNDING * (float(gap_unit(utility.compiled(), value)) + bonuses)


def _amount(gap: float, unit: float) -> float:
    """Return a relative gap as an absolute one; 0 stays 0, also for an infinite value."""
    return gap * unit if 0.0 < gap < np.inf else gap
