"""Conformance suite for exact solvers: every method must pass all `SOLVER_CHECKS`.

>>> from banditrank.utilities._utility import UTILITARIAN
>>> for check in SOLVER_CHECKS:
...     check(SolverUnderTest("assignment", (UTILITARIAN,)))
"""

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from banditrank.model._rankings import as_ranking
from banditrank.solvers._solution import Solution
from banditrank.solvers._solve import DEFAULT_GAP, SOLVERS, SolverName, solve
from banditrank.solvers._solver import SolverOptions, SolverResult
from banditrank.testing._certificates import ROUNDING, find_certificate_error, rounding_error
from banditrank.testing._leaks import assert_no_leaks
from banditrank.testing._solver_problems import (
    SolverProblem,
    generate_solver_problem,
    random_allowed_cells,
    small_solver_problems,
)
from banditrank.utilities._utility import Utility

PRECISION = 1e-9  # maximum relative distance of a value from the best, unless the target gap is larger


@dataclass(frozen=True, slots=True)
class SolverUnderTest:
    """Solver method with the utilities and the gap to test.

    Parameters
    ----------
    name
        Name of the method, as for `banditrank.solvers._solve.solve`.
    utilities
        Utilities that it solves.
    target_gap
        Gap to certify; larger for methods that cannot certify the default.
    """

    name: SolverName
    utilities: tuple[Utility, ...]
    target_gap: float = DEFAULT_GAP

    @property
    def precision(self) -> float:
        """Maximum relative distance of its values from the best."""
        return max(PRECISION, self.target_gap)

    def __call__(self, problem: SolverProblem, utility: Utility, **options: Any) -> Solution:
        """Solve a problem with its bonuses."""
        settings = {"target_gap": self.target_gap, "bonuses": problem.bonuses, **options}
        return solve(problem, utility, solver=self.name, **settings)

    def result(self, problem: SolverProblem, utility: Utility, *, seconds: float = np.inf) -> SolverResult:
        """Return the result of the method itself, without the corrections and checks of `solve`."""
        deadline = time.perf_counter() + seconds
        return SOLVERS[self.name].run(
            problem.instance(), utility, SolverOptions(self.target_gap, deadline, None, share=1.0, seed=0)
        )


def check_rankings_are_valid(solver: SolverUnderTest) -> None:
    """Check that rankings hold K different items, with and without enough time."""
    for problem in small_solver_problems():
        for utility in solver.utilities:
            for seconds in (np.inf, 0.0):
                ranking = solver.result(problem, utility, seconds=seconds).ranking
                as_ranking(ranking, n_items=problem.n_items, n_positions=problem.n_positions)


def check_bounds_hold(solver: SolverUnderTest) -> None:
    """Check that bounds of the method itself hold, with and without enough time."""
    for problem in small_solver_problems():
        for utility in solver.utilities:
            best = problem.best(utility)
            lowest = best - rounding_error(problem, utility, best)
            for seconds in (np.inf, 0.0):
                bound = solver.result(problem, utility, seconds=seconds).upper_bound
                assert bound >= lowest, f"{utility}: bound {bound!r} is below the best {best!r}"


def check_value_matches_ranking(solver: SolverUnderTest) -> None:
    """Check that the value and the values of the types are those of the ranking."""
    for problem in small_solver_problems():
        for utility in solver.utilities:
            solution = solver(problem, utility)
            _assert_same(
                solution.value, problem.total(utility, solution.ranking), ROUNDING, "value, recomputed"
            )
            error = np.abs(solution.user_type_values - problem.values(solution.ranking)).max()
            assert error <= ROUNDING, f"values of the types differ by {error}"


def check_value_is_optimal(solver: SolverUnderTest) -> None:
    """Check that with enough time the best ranking is returned and certified."""
    for problem in small_solver_problems():
        for utility in solver.utilities:
            _assert_solved(solver, problem, utility)


def check_inputs_are_unchanged(solver: SolverUnderTest) -> None:
    """Check that solving does not change its inputs, and is reproducible."""
    for problem in small_solver_problems()[:4]:
        for utility in solver.utilities:
            copy = deepcopy(problem)
            first, second = solver(copy, utility), solver(copy, utility)
            assert np.array_equal(first.ranking, second.ranking), "two results for the same problem"
            for field in fields(SolverProblem):
                before, after = getattr(problem, field.name), getattr(copy, field.name)
                assert np.array_equal(before, after), f"solving changed the {field.name}"


def check_bonuses(solver: SolverUnderTest) -> None:
    """Check that items with large bonuses are in the ranking."""
    problem = generate_solver_problem("conflict", (3, 6, 2), 0, bonuses=False)
    for utility in solver.utilities:
        for items in ((0, 1), (2, 5), (4, 3)):
            bonuses = np.zeros(6)
            bonuses[list(items)] = 1e5  # more than the largest loss of utility with α = 5
            shown = solver(replace(problem, bonuses=bonuses), utility).ranking
            assert set(shown.tolist()) == set(items), f"{utility}: bonuses for {items}, shown {shown}"


def check_relabelling(solver: SolverUnderTest) -> None:
    """Check that relabelling items or types does not change the best value."""
    rng = np.random.default_rng(0)
    for problem in small_solver_problems():
        types, items = rng.permutation(problem.n_user_types), rng.permutation(problem.n_items)
        relabelled = SolverProblem(
            problem.arrival_rates[types],
            problem.position_preferences[types],
            problem.item_means[types][:, items],
            None if problem.bonuses is None else problem.bonuses[items],
        )
        for utility in solver.utilities:
            before, after = solver(problem, utility).value, solver(relabelled, utility).value
            _assert_same(after, before, solver.precision, f"{utility}: value of the relabelled problem")


def check_warm_start(solver: SolverUnderTest) -> None:
    """Check that the warm start does not change the value."""
    for problem in small_solver_problems():
        for utility in solver.utilities:
            cold = solver(problem, utility)
            backwards = np.arange(problem.n_items)[::-1][: problem.n_positions]
            for start in (backwards, cold.ranking):
                warm = solver(problem, utility, warm_start=start)
                _assert_same(warm.value, cold.value, solver.precision, f"{utility}: value from {start}")
                assert warm.is_certified, f"{utility}: not certified from {start}"


def check_allowed_cells(solver: SolverUnderTest) -> None:
    """Check that with restricted cells the best allowed ranking is returned and certified."""
    rng = np.random.default_rng(2)
    for problem in small_solver_problems():
        for utility in solver.utilities:
            allowed = random_allowed_cells(problem, rng)
            solution, best = solver(problem, utility, allowed=allowed), problem.best(utility, allowed)
            assert allowed[np.arange(problem.n_positions), solution.ranking].all(), "a cell is not allowed"
            _assert_same(solution.value, best, solver.precision, f"{utility}: value of {solution.ranking}")
            assert solution.is_certified, f"{utility}: not certified, gap {solution.gap}"
            _assert_certificate(solution, problem, utility, best, solver.target_gap)


def check_ties_and_duplicates(solver: SolverUnderTest) -> None:
    """Check that problems with equal items, positions and types are solved."""
    rng = np.random.default_rng(1)
    means = rng.uniform(0.1, 0.9, (3, 2))
    for problem in (
        SolverProblem(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), np.repeat(means, 3, axis=1)),
        SolverProblem(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), np.full((3, 5), 0.5)),
        SolverProblem(np.full(3, 1 / 3), rng.dirichlet(np.ones(3), 3), np.full((3, 5), 1.0)),
        SolverProblem(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), np.tile(rng.uniform(0.1, 0.9, 5), (3, 1))),
        SolverProblem(np.full(3, 1 / 3), np.full((3, 2), 0.5), 0.1 + 0.8 * np.eye(3)[:, [0, 1, 2, 0, 1]]),
        SolverProblem(np.full(2, 1 / 2), np.full((2, 2), 0.5), np.full((2, 4), 0.5), np.full(4, 0.25)),
    ):
        for utility in solver.utilities:
            _assert_solved(solver, problem, utility)


def check_extreme_sizes(solver: SolverUnderTest) -> None:
    """Check that problems with K = M, K = 1, M = 1 and N = 1 are solved."""
    for seed, size in enumerate(
        [(1, 1, 1), (3, 1, 1), (1, 4, 4), (4, 4, 4), (4, 5, 1), (1, 6, 1), (1, 5, 3)]
    ):
        for bonuses in (False, True):
            for utility in solver.utilities:
                _assert_solved(
                    solver, generate_solver_problem("random", size, seed, bonuses=bonuses), utility
                )


def check_types_with_arrival_rate_zero(solver: SolverUnderTest) -> None:
    """Check that a type with arrival rate 0 does not change the value."""
    for problem in small_solver_problems():
        for mean in (0.0, 1.0):
            more = SolverProblem(
                np.append(problem.arrival_rates, 0.0),
                np.vstack(
                    [problem.position_preferences, np.full(problem.n_positions, 1 / problem.n_positions)]
                ),
                np.vstack([problem.item_means, np.full(problem.n_items, mean)]),
                problem.bonuses,
            )
            for utility in solver.utilities:
                solution = solver(more, utility)
                _assert_same(solution.value, problem.best(utility), solver.precision, f"{utility}: value")
                assert solution.is_certified, f"{utility}: not certified"
                assert solution.user_type_values.shape == (problem.n_user_types + 1,)


def check_types_with_value_zero(solver: SolverUnderTest) -> None:
    """Check that the result is certified −∞ or that of the other types if one has value 0 in all rankings."""
    for bonuses in (False, True):
        problem = generate_solver_problem("random", (3, 5, 2), 1, bonuses=bonuses)
        means, preferences = problem.item_means.copy(), problem.position_preferences.copy()
        means[1] = 0.0
        preferences[2] = 0.0
        for unserved in (
            replace(problem, item_means=means),
            replace(problem, position_preferences=preferences),
            replace(problem, item_means=means, position_preferences=preferences),
            replace(problem, item_means=np.zeros((3, 5))),
            replace(
                problem, item_means=np.eye(3, 5)
            ),  # each type likes one item, and there are two positions
        ):
            for utility in solver.utilities:
                solution = _assert_solved(solver, unserved, utility)
                if solution.value == -np.inf:
                    assert solution.upper_bound == -np.inf, f"{utility}: bound {solution.upper_bound}"


def check_scaled_values(solver: SolverUnderTest) -> None:
    """Check that precision is relative: small values are solved like large ones."""
    for problem in small_solver_problems()[:6]:
        for factor in (1e-4, 10.0):
            for utility in solver.utilities:
                _assert_solved(solver, replace(problem, item_means=factor * problem.item_means), utility)


def check_time_limit(solver: SolverUnderTest) -> None:
    """Check that without time the bound holds and the gap is not understated."""
    for problem in small_solver_problems():
        for utility in solver.utilities:
            solution = solver(problem, utility, time_limit=0.0)
            _assert_certificate(solution, problem, utility, problem.best(utility), solver.target_gap)


def check_target_gap(solver: SolverUnderTest) -> None:
    """Check that a solution certified to a target gap is within it."""
    for problem in small_solver_problems():
        for utility in solver.utilities:
            best = problem.best(utility)
            for target_gap in (0.3, 1e-2, 1e-4):
                solution = solver(problem, utility, target_gap=target_gap)
                assert solution.is_certified, f"{utility}: not certified to {target_gap}"
                _assert_certificate(solution, problem, utility, best, target_gap)


def check_no_leaks(solver: SolverUnderTest) -> None:
    """Check that solving leaks neither references to its inputs nor memory."""
    instance = generate_solver_problem("conflict", (3, 5, 3), 0, bonuses=True).instance()
    options = SolverOptions(solver.target_gap, np.inf, None, share=1.0, seed=0)

    def solve_all() -> None:
        for utility in solver.utilities:
            SOLVERS[solver.name].run(instance, utility, options)

    compiled = tuple(utility.compiled() for utility in solver.utilities)
    assert_no_leaks(solve_all, instance, compiled, calls=10)  # a search takes milliseconds


def _assert_solved(solver: SolverUnderTest, problem: SolverProblem, utility: Utility) -> Solution:
    solution, best = solver(problem, utility), problem.best(utility)
    _assert_same(solution.value, best, solver.precision, f"{utility}: value of {solution.ranking}")
    assert solution.is_certified, f"{utility}: not certified, gap {solution.gap}"
    _assert_certificate(solution, problem, utility, best, solver.target_gap)
    return solution


def _assert_certificate(
    solution: Solution, problem: SolverProblem, utility: Utility, best: float, target_gap: float
) -> None:
    error = find_certificate_error(solution, problem, utility, best=best, target_gap=target_gap)
    assert error is None, error


def _assert_same(value: float, expected: float, tolerance: float, what: str) -> None:
    same = value == expected or abs(value - expected) <= tolerance * abs(expected)
    assert same, f"{what}: {value!r} instead of {expected!r}"


SOLVER_CHECKS: tuple[Callable[[SolverUnderTest], None], ...] = (
    check_rankings_are_valid,
    check_value_matches_ranking,
    check_value_is_optimal,
    check_bounds_hold,
    check_inputs_are_unchanged,
    check_bonuses,
    check_relabelling,
    check_warm_start,
    check_allowed_cells,
    check_ties_and_duplicates,
    check_extreme_sizes,
    check_types_with_arrival_rate_zero,
    check_types_with_value_zero,
    check_scaled_values,
    check_time_limit,
    check_target_gap,
    check_no_leaks,
)
"""Checks that every solver must pass; each takes a `SolverUnderTest`."""
