"""What every exact solver must satisfy. A new method proves itself by going through `SOLVER_CHECKS`.

>>> from banditrank.utilities.utility import UTILITARIAN
>>> for check in SOLVER_CHECKS:
...     check(SolverUnderTest("assignment", (UTILITARIAN,)))
"""

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from banditrank.model.rankings import as_ranking
from banditrank.solvers.solution import Solution
from banditrank.solvers.solve import DEFAULT_GAP, SOLVERS, SolverName, solve
from banditrank.solvers.solver import SolverOptions, SolverResult
from banditrank.testing.honesty import ROUNDING, complaint, rounding
from banditrank.testing.leaks import assert_no_leaks
from banditrank.testing.worlds import World, draw_world, worlds
from banditrank.utilities.utility import Utility

PRECISION = 1e-9  # how close to the best a value must be, as a share of it, unless the target gap is larger


@dataclass(frozen=True, slots=True)
class SolverUnderTest:
    """A method by name, and what is asked of it.

    Parameters
    ----------
    name
        The method, as `banditrank.solvers.solve.solve` knows it.
    utilities
        Some that it solves.
    target_gap
        How close it must come; larger for methods that cannot prove the usual gap.
    """

    name: SolverName
    utilities: tuple[Utility, ...]
    target_gap: float = DEFAULT_GAP

    @property
    def precision(self) -> float:
        """How close to the best its values must be, as a share."""
        return max(PRECISION, self.target_gap)

    def __call__(self, world: World, utility: Utility, **options: Any) -> Solution:
        """Solve a world with its bonuses."""
        settings = {"target_gap": self.target_gap, "bonuses": world.bonuses, **options}
        return solve(world, utility, solver=self.name, **settings)

    def result(self, world: World, utility: Utility, *, seconds: float = np.inf) -> SolverResult:
        """Return what the method itself says: `solve` mends bounds, and lets no invalid ranking pass."""
        deadline = time.perf_counter() + seconds
        return SOLVERS[self.name].run(
            world.instance(), utility, SolverOptions(self.target_gap, deadline, None, share=1.0, seed=0)
        )


def check_rankings_are_valid(solver: SolverUnderTest) -> None:
    """Rankings hold K different items, with time enough and without."""
    for world in worlds():
        for utility in solver.utilities:
            for seconds in (np.inf, 0.0):
                ranking = solver.result(world, utility, seconds=seconds).ranking
                as_ranking(ranking, n_items=world.n_items, n_positions=world.n_positions)


def check_bounds_are_the_methods_own(solver: SolverUnderTest) -> None:
    """Bounds hold as the method gives them, with time enough and without."""
    for world in worlds():
        for utility in solver.utilities:
            best = world.best(utility)
            least = best - rounding(world, utility, best)
            for seconds in (np.inf, 0.0):
                bound = solver.result(world, utility, seconds=seconds).upper_bound
                assert bound >= least, f"{utility}: bound {bound!r} below the best {best!r}"


def check_value_is_that_of_the_ranking(solver: SolverUnderTest) -> None:
    """The value, and each type's, are those of the ranking."""
    for world in worlds():
        for utility in solver.utilities:
            solution = solver(world, utility)
            _assert_same(
                solution.value, world.total(utility, solution.ranking), ROUNDING, "value, recomputed"
            )
            off = np.abs(solution.user_type_values - world.values(solution.ranking)).max()
            assert off <= ROUNDING, f"values of the types are off by {off}"


def check_value_is_the_best(solver: SolverUnderTest) -> None:
    """With time enough no ranking is worth more than the one returned, and that is certified."""
    for world in worlds():
        for utility in solver.utilities:
            _assert_solved(solver, world, utility)


def check_nothing_is_changed(solver: SolverUnderTest) -> None:
    """Solving changes nothing that it is given, and solving again gives the same answer."""
    for world in worlds()[:4]:
        for utility in solver.utilities:
            copy = deepcopy(world)
            first, second = solver(copy, utility), solver(copy, utility)
            assert np.array_equal(first.ranking, second.ranking), "two answers to one question"
            for field in fields(World):
                before, after = getattr(world, field.name), getattr(copy, field.name)
                assert np.array_equal(before, after), f"solving changed the {field.name}"


def check_bonuses_are_honoured(solver: SolverUnderTest) -> None:
    """Items with large bonuses are shown."""
    world = draw_world("conflict", (3, 6, 2), 0, bonuses=False)
    for utility in solver.utilities:
        for items in ((0, 1), (2, 5), (4, 3)):
            bonuses = np.zeros(6)
            bonuses[list(items)] = 1e5  # more than α = 5 takes away from anybody
            shown = solver(replace(world, bonuses=bonuses), utility).ranking
            assert set(shown.tolist()) == set(items), f"{utility}: bonuses for {items}, shown {shown}"


def check_relabelling_changes_no_value(solver: SolverUnderTest) -> None:
    """Relabelling items or types changes nothing of what the best ranking is worth."""
    rng = np.random.default_rng(0)
    for world in worlds():
        types, items = rng.permutation(world.n_user_types), rng.permutation(world.n_items)
        relabelled = World(
            world.arrival_rates[types],
            world.position_preferences[types],
            world.item_means[types][:, items],
            None if world.bonuses is None else world.bonuses[items],
        )
        for utility in solver.utilities:
            before, after = solver(world, utility).value, solver(relabelled, utility).value
            _assert_same(after, before, solver.precision, f"{utility}: value of the relabelled world")


def check_warm_start_changes_no_value(solver: SolverUnderTest) -> None:
    """Where the search starts makes no difference to what it finds."""
    for world in worlds():
        for utility in solver.utilities:
            cold = solver(world, utility)
            backwards = np.arange(world.n_items)[::-1][: world.n_positions]
            for start in (backwards, cold.ranking):
                warm = solver(world, utility, warm_start=start)
                _assert_same(warm.value, cold.value, solver.precision, f"{utility}: value from {start}")
                assert warm.is_certified, f"{utility}: not certified from {start}"


def check_ties_and_duplicates(solver: SolverUnderTest) -> None:
    """Equal items, positions and types are no obstacle."""
    rng = np.random.default_rng(1)
    means = rng.uniform(0.1, 0.9, (3, 2))
    for world in (
        World(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), np.repeat(means, 3, axis=1)),
        World(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), np.full((3, 5), 0.5)),
        World(np.full(3, 1 / 3), rng.dirichlet(np.ones(3), 3), np.full((3, 5), 1.0)),
        World(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), np.tile(rng.uniform(0.1, 0.9, 5), (3, 1))),
        World(np.full(3, 1 / 3), np.full((3, 2), 0.5), 0.1 + 0.8 * np.eye(3)[:, [0, 1, 2, 0, 1]]),
        World(np.full(2, 1 / 2), np.full((2, 2), 0.5), np.full((2, 4), 0.5), np.full(4, 0.25)),
    ):
        for utility in solver.utilities:
            _assert_solved(solver, world, utility)


def check_extreme_sizes(solver: SolverUnderTest) -> None:
    """K = M, K = 1, M = 1 and N = 1 are solved as well."""
    for seed, size in enumerate(
        [(1, 1, 1), (3, 1, 1), (1, 4, 4), (4, 4, 4), (4, 5, 1), (1, 6, 1), (1, 5, 3)]
    ):
        for bonuses in (False, True):
            for utility in solver.utilities:
                _assert_solved(solver, draw_world("random", size, seed, bonuses=bonuses), utility)


def check_types_that_never_arrive_do_not_count(solver: SolverUnderTest) -> None:
    """A type with rate 0 changes nothing, whatever it would get."""
    for world in worlds():
        for mean in (0.0, 1.0):
            more = World(
                np.append(world.arrival_rates, 0.0),
                np.vstack([world.position_preferences, np.full(world.n_positions, 1 / world.n_positions)]),
                np.vstack([world.item_means, np.full(world.n_items, mean)]),
                world.bonuses,
            )
            for utility in solver.utilities:
                solution = solver(more, utility)
                _assert_same(solution.value, world.best(utility), solver.precision, f"{utility}: value")
                assert solution.is_certified, f"{utility}: not certified"
                assert solution.user_type_values.shape == (world.n_user_types + 1,)


def check_types_that_get_nothing(solver: SolverUnderTest) -> None:
    """Where a type gets nothing from any ranking, the answer is that of the others, or certainly −∞."""
    for bonuses in (False, True):
        world = draw_world("random", (3, 5, 2), 1, bonuses=bonuses)
        means, preferences = world.item_means.copy(), world.position_preferences.copy()
        means[1] = 0.0
        preferences[2] = 0.0
        for unserved in (
            replace(world, item_means=means),
            replace(world, position_preferences=preferences),
            replace(world, item_means=means, position_preferences=preferences),
            replace(world, item_means=np.zeros((3, 5))),
            replace(world, item_means=np.eye(3, 5)),  # each likes one item, and there is room for two
        ):
            for utility in solver.utilities:
                solution = _assert_solved(solver, unserved, utility)
                if solution.value == -np.inf:
                    assert solution.upper_bound == -np.inf, f"{utility}: bound {solution.upper_bound}"


def check_values_of_different_size(solver: SolverUnderTest) -> None:
    """Precision is relative: small values are solved like large ones."""
    for world in worlds()[:6]:
        for factor in (1e-4, 10.0):
            for utility in solver.utilities:
                _assert_solved(solver, replace(world, item_means=factor * world.item_means), utility)


def check_out_of_time(solver: SolverUnderTest) -> None:
    """Without time the bound holds, and the gap is not understated."""
    for world in worlds():
        for utility in solver.utilities:
            solution = solver(world, utility, time_limit=0.0)
            _assert_honest(solution, world, utility, world.best(utility), solver.target_gap)


def check_target_gap_is_kept(solver: SolverUnderTest) -> None:
    """What is said to be close enough to the best is."""
    for world in worlds():
        for utility in solver.utilities:
            best = world.best(utility)
            for target_gap in (0.3, 1e-2, 1e-4):
                solution = solver(world, utility, target_gap=target_gap)
                assert solution.is_certified, f"{utility}: not certified to {target_gap}"
                _assert_honest(solution, world, utility, best, target_gap)


def check_calls_leak_nothing(solver: SolverUnderTest) -> None:
    """Solving leaves references to what it is given and memory as they were."""
    instance = draw_world("conflict", (3, 5, 3), 0, bonuses=True).instance()
    options = SolverOptions(solver.target_gap, np.inf, None, share=1.0, seed=0)

    def solve_all() -> None:
        for utility in solver.utilities:
            SOLVERS[solver.name].run(instance, utility, options)

    compiled = tuple(utility.compiled() for utility in solver.utilities)
    assert_no_leaks(solve_all, instance, compiled, calls=50)


def _assert_solved(solver: SolverUnderTest, world: World, utility: Utility) -> Solution:
    solution, best = solver(world, utility), world.best(utility)
    _assert_same(solution.value, best, solver.precision, f"{utility}: value of {solution.ranking}")
    assert solution.is_certified, f"{utility}: not certified, gap {solution.gap}"
    _assert_honest(solution, world, utility, best, solver.target_gap)
    return solution


def _assert_honest(
    solution: Solution, world: World, utility: Utility, best: float, target_gap: float
) -> None:
    untrue = complaint(solution, world, utility, best=best, target_gap=target_gap)
    assert untrue is None, untrue


def _assert_same(value: float, expected: float, tolerance: float, what: str) -> None:
    same = value == expected or abs(value - expected) <= tolerance * abs(expected)
    assert same, f"{what}: {value!r} instead of {expected!r}"


SOLVER_CHECKS: tuple[Callable[[SolverUnderTest], None], ...] = (
    check_rankings_are_valid,
    check_value_is_that_of_the_ranking,
    check_value_is_the_best,
    check_bounds_are_the_methods_own,
    check_nothing_is_changed,
    check_bonuses_are_honoured,
    check_relabelling_changes_no_value,
    check_warm_start_changes_no_value,
    check_ties_and_duplicates,
    check_extreme_sizes,
    check_types_that_never_arrive_do_not_count,
    check_types_that_get_nothing,
    check_values_of_different_size,
    check_out_of_time,
    check_target_gap_is_kept,
    check_calls_leak_nothing,
)
