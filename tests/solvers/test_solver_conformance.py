from collections.abc import Callable

import numpy as np
import pytest

from banditrank import MAXIMIN, NASH, UTILITARIAN, Utility, alpha_fair
from banditrank.testing._solvers import (
    SOLVER_CHECKS,
    SolverUnderTest,
    check_bounds_hold,
    check_scaled_values,
    check_types_with_value_zero,
    check_value_is_optimal,
)
from banditrank.utilities._utility import ramp, sigmoid

STRAIGHT = Utility.from_function(lambda u: 3 * u + 1, shape="linear", name="straight")
SMOOTH = Utility.from_function(
    lambda u: 1 - np.exp(-3 * u), derivative=lambda u: 3 * np.exp(-3 * u), shape="concave", name="smooth"
)
SQUARES = Utility.from_function(lambda u: min(1.0, u * u), shape="non-concave", lipschitz=2.0, name="squares")
CONCAVE = (NASH, MAXIMIN)
MORE_CONCAVE = (alpha_fair(0.5), alpha_fair(2), alpha_fair(5), SMOOTH)
CROOKED = (sigmoid(),)
MORE_CROOKED = (ramp(), SQUARES)

# More utilities of the two searches are in depth; in short they are in test_branch_and_bound.py.
IN_DEPTH = [SolverUnderTest("branch-and-bound", MORE_CONCAVE), SolverUnderTest("spatial", MORE_CROOKED)]
SOLVERS = [
    SolverUnderTest("assignment", (UTILITARIAN, STRAIGHT)),
    SolverUnderTest("branch-and-bound", CONCAVE),
    SolverUnderTest("spatial", CROOKED),
    *IN_DEPTH,
    SolverUnderTest("enumeration", (UTILITARIAN, *CONCAVE, *MORE_CONCAVE, *CROOKED, *MORE_CROOKED)),
    SolverUnderTest("permutation-lp", (UTILITARIAN, NASH, alpha_fair(2), MAXIMIN, sigmoid())),
    # HiGHS' tolerances allow no closer gap. It takes its time: more utilities are in test_highs_solvers.py.
    SolverUnderTest("outer-approximation", (NASH,), target_gap=1e-7),
    SolverUnderTest("outer-approximation", (UTILITARIAN, MAXIMIN), target_gap=1e-7),
]
SLOW = SOLVERS[-2]
# What depends on the utility; the solver with others is checked in full.
SHORT = {check_value_is_optimal, check_bounds_hold, check_scaled_values, check_types_with_value_zero}
# Nor, being absolute, do they allow proof that nothing exceeds 0, or about values far below 1.
OPEN = {check_types_with_value_zero, check_scaled_values}


def marks(solver: SolverUnderTest, check: Callable[[SolverUnderTest], None]) -> list[pytest.MarkDecorator]:
    is_in_depth = solver in IN_DEPTH or (solver is SLOW and check not in SHORT)
    return [pytest.mark.campaign] if is_in_depth else []


@pytest.mark.parametrize(
    ("solver", "check"),
    [
        pytest.param(
            solver,
            check,
            id=f"{solver.name}-{solver.utilities[0]}-{check.__name__}",
            marks=marks(solver, check),
        )
        for solver in SOLVERS
        for check in SOLVER_CHECKS
    ],
)
def test_solver_conforms(
    solver: SolverUnderTest, check: Callable[[SolverUnderTest], None], request: pytest.FixtureRequest
) -> None:
    if solver is SOLVERS[-1] and check in OPEN:
        request.applymarker(pytest.mark.xfail(raises=AssertionError, strict=True))
    check(solver)
