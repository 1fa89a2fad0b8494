"""The best equal ranking of a known problem: which method serves which utility."""

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from banditrank.errors import UnknownNameError, UnsolvableError
from banditrank.model.problem import Problem
from banditrank.model.rankings import Ranking
from banditrank.model.values import user_type_values
from banditrank.solvers.assignment import best_assignment
from banditrank.solvers.enumeration import (
    ENUMERATION_LIMIT,
    enumerate_rankings,
    enumeration_room,
    number_of_rankings,
)
from banditrank.utilities.utility import UTILITARIAN, Utility

Solver: TypeAlias = Literal["auto", "assignment", "enumeration", "sampling"]


def choose_solver(solver: Solver, utility: Utility, *, n_items: int, n_positions: int) -> Solver:
    """Return the method to use: the one asked for, or for ``auto`` the one that fits the utility's shape.

    Examples
    --------
    >>> choose_solver("auto", UTILITARIAN, n_items=1000, n_positions=20)
    'assignment'
    """
    if solver not in get_args(Solver):
        raise UnknownNameError("solver", solver, get_args(Solver))
    if solver == "auto":
        solver = "assignment" if utility.shape == "linear" else "enumeration"
    if solver == "assignment" and utility.shape != "linear":
        raise UnsolvableError(f"solver assignment needs a linear utility, got {utility} ({utility.shape})")
    if solver in ("enumeration", "sampling"):
        rankings = number_of_rankings(n_items, n_positions)
        if rankings > ENUMERATION_LIMIT:
            size = f"{n_items} items in {n_positions} positions make {rankings:,} rankings"
            raise UnsolvableError(f"solver {solver} tries at most {ENUMERATION_LIMIT:,} rankings, got {size}")
    return solver


def slope(utility: Utility) -> float:
    """Return the slope of a linear utility: what a unit of value weighs against a unit of bonus."""
    return float(utility.of(1.0) - utility.of(0.0))


def best_equal_ranking(problem: Problem, utility: Utility = UTILITARIAN, *, scale: float = 1.0) -> Ranking:
    """Return a ranking that maximises the collective utility of a known problem.

    Parameters
    ----------
    problem
        The world.
    utility
        What to maximise.
    scale
        What a look at an item with mean 1 earns (see `banditrank.model.rewards`).

    Examples
    --------
    >>> from banditrank.model.catalog import kdd2012
    >>> best_equal_ranking(kdd2012())
    array([2, 3])
    """
    means = problem.item_means * scale
    size = {"n_items": problem.n_items, "n_positions": problem.n_positions}
    if choose_solver("auto", utility, **size) == "assignment":
        weighted = problem.arrival_rates[:, None] * problem.position_preferences
        return best_assignment(weighted.T @ means)[0]
    ranking = np.zeros(problem.n_positions, dtype=np.uintp)
    enumerate_rankings(
        problem.arrival_rates,
        problem.position_preferences,
        means,
        np.zeros(problem.n_items),
        utility.compiled(),
        1.0,
        np.random.default_rng(0),  # not drawn from: every ranking is tried
        enumeration_room(problem.n_user_types, problem.n_items, problem.n_positions),
        ranking,
    )
    return ranking.astype(np.intp)


def equal_value(
    problem: Problem, ranking: ArrayLike, utility: Utility = UTILITARIAN, *, scale: float = 1.0
) -> float:
    """Return Γ(σ) of a ranking in a known problem."""
    return utility.collective(problem.arrival_rates, scale * user_type_values(problem, ranking))
