"""The solver for each utility, and utilities in closed form."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from banditrank import NASH, Utility, alpha_fair
from banditrank.solvers._solution import Solution
from banditrank.solvers._solve import DEFAULT_GAP, SolverName, solve
from banditrank.testing._solvers import SolverUnderTest

Floats = NDArray[np.float64]

SMOOTH = Utility.from_function(
    lambda u: 1 - math.exp(-3 * u), derivative=lambda u: 3 * math.exp(-3 * u), shape="concave", name="smooth"
)
CONCAVE = [NASH, alpha_fair(0.5), alpha_fair(2), alpha_fair(5), SMOOTH]
SOLVER_FOR: dict[str, SolverName] = {
    "linear": "assignment",
    "concave": "branch-and-bound",
    "maximin": "branch-and-bound",
    "non-concave": "spatial",
}


def search(problem: object, utility: Utility, **options: object) -> Solution:
    """Solve with the solver for the utility's shape: ``auto`` would enumerate small problems."""
    return solve(problem, utility, solver=SOLVER_FOR[utility.shape], **options)


def solver_for(utility: Utility, target_gap: float = DEFAULT_GAP) -> SolverUnderTest:
    return SolverUnderTest(SOLVER_FOR[utility.shape], (utility,), target_gap)


def closed_form(utility: Utility, values: Floats) -> Floats:
    with np.errstate(divide="ignore"):  # at 0 the utility is −∞
        return FORMULAS[str(utility)](values)


FORMULAS: dict[str, Callable[[Floats], Floats]] = {
    "utilitarian": lambda u: u,
    "nash": np.log,
    "alpha:0.5": lambda u: 2 * np.sqrt(u),
    "alpha:2": lambda u: -1 / u,
    "alpha:5": lambda u: -0.25 / (u * u) ** 2,
    "smooth": lambda u: 1 - np.exp(-3 * u),
    "sigmoid:20:0.3": lambda u: 1 / (1 + np.exp(-20 * (u - 0.3))),
    "ramp:0.2:0.4": lambda u: np.clip((u - 0.2) / (0.4 - 0.2), 0.0, 1.0),
}
