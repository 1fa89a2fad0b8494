"""Branch and bound against enumeration."""

import math
from dataclasses import replace
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from helpers.searches import SMOOTH, closed_form, search, solver_for
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from banditrank import MAXIMIN, NASH, UTILITARIAN, Utility, alpha_fair
from banditrank.model._generators import FAMILIES
from banditrank.solvers._solution import Solution
from banditrank.solvers._solve import DEFAULT_GAP, solve
from banditrank.testing._certificates import find_certificate_error, rounding_error
from banditrank.testing._solver_problems import SolverProblem, generate_solver_problem
from banditrank.utilities._utility import ramp, sigmoid

Floats = NDArray[np.float64]

STAIRS = Utility.from_function(
    lambda u: 0.5 * min(1.0, max(0.0, 50 * (u - 0.2))) + 0.5 * min(1.0, max(0.0, 50 * (u - 0.5))),
    shape="non-concave",
    lipschitz=25.0,
    name="stairs",
)
SWITCH = Utility.from_function(
    lambda u: 1 / (1 + math.exp(-40 * (u - 0.4))), shape="non-concave", lipschitz=10.0, name="switch"
)
REQUIRED = [UTILITARIAN, NASH, alpha_fair(0.5), alpha_fair(2), alpha_fair(5), MAXIMIN, sigmoid(), ramp()]
IN_DEPTH = pytest.mark.campaign


def try_all(problem: SolverProblem, utility: Utility) -> float:
    return solve(problem, utility, solver="enumeration", bonuses=problem.bonuses).value


def check(
    solution: Solution, problem: SolverProblem, utility: Utility, best: float, target_gap: float = DEFAULT_GAP
) -> None:
    """Check that a solution is certified, and correctly so."""
    assert solution.is_certified
    assert find_certificate_error(solution, problem, utility, best=best, target_gap=target_gap) is None


@cache
def all_rankings(n_items: int, n_positions: int) -> NDArray[np.intp]:
    return np.array(list(permutations(range(n_items), n_positions))).T.copy()  # (K, R)


def worth_of_all(problem: SolverProblem) -> list[Floats]:
    """Return what each ranking is worth by each required utility, in NumPy: faster for all at once."""
    rankings = all_rankings(problem.n_items, problem.n_positions)
    values = [
        sum(rho * mean[items] for rho, items in zip(preferences, rankings, strict=True))
        for preferences, mean in zip(problem.position_preferences, problem.item_means, strict=True)
    ]
    return [
        np.minimum.reduce(values)
        if utility is MAXIMIN
        else sum(
            rate * closed_form(utility, u) for rate, u in zip(problem.arrival_rates, values, strict=True)
        )
        for utility in REQUIRED
    ]


@pytest.mark.parametrize("size", [(2, 5, 2), (3, 20, 4)], ids=str)
@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 20), marks=IN_DEPTH)], ids=str)
def test_every_solution_is_certified_and_optimal(
    family: str, size: tuple[int, int, int], seeds: range
) -> None:
    _, m, k = size
    for seed in seeds:
        with_bonuses = generate_solver_problem(family, size, seed, bonuses=True)
        plain = replace(with_bonuses, bonuses=None)
        extra = with_bonuses.bonuses[all_rankings(m, k)].sum(axis=0)
        for utility, worth in zip(REQUIRED, worth_of_all(plain), strict=True):
            for problem, totals in ((plain, worth), (with_bonuses, worth + extra)):
                solution, best = search(problem, utility, bonuses=problem.bonuses), float(totals.max())
                check(solution, problem, utility, best)
                assert solution.value == pytest.approx(best, rel=1e-9, abs=0.0), (seed, utility)


# Degenerate problems, drawn by Hypothesis.

LEVELS = st.sampled_from([0.0, 0.0, 0.1, 0.25, 0.5, 0.5, 1.0])


@st.composite
def problems(draw: st.DrawFn) -> SolverProblem:
    n_user_types, n_items = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    n_positions = draw(st.integers(1, min(n_items, 4) if n_items > 5 else n_items))

    def table(rows: int, columns: int, entries: st.SearchStrategy[float]) -> Floats:
        row = st.lists(entries, min_size=columns, max_size=columns)
        return np.array(draw(st.lists(row, min_size=rows, max_size=rows)))

    numbers = st.floats(0.0, 1.0, width=16)
    means = table(n_user_types, n_items, draw(st.sampled_from([LEVELS, LEVELS, numbers])))
    if draw(st.booleans()):
        means = means[:, draw(st.lists(st.integers(0, n_items - 1), min_size=n_items, max_size=n_items))]
    preferences = table(n_user_types, n_positions, draw(st.sampled_from([LEVELS, numbers])))
    rates = table(1, n_user_types, st.sampled_from([0.0, 0.2, 0.2, 0.5, 1.0]))[0]
    if not rates.any():
        rates[0] = 1.0
    bonuses = draw(st.sampled_from([None, st.sampled_from([0.0, 0.1, 1.0]), st.floats(0.0, 2.0, width=16)]))
    return SolverProblem(
        rates, preferences, means, None if bonuses is None else table(1, n_items, bonuses)[0]
    )


@pytest.mark.parametrize("utility", [*REQUIRED, SMOOTH, STAIRS, SWITCH, sigmoid(200, 0.5)], ids=str)
@settings(max_examples=settings.default.max_examples // 2)  # for each of twelve utilities
@given(problem=problems(), gap=st.sampled_from([DEFAULT_GAP, DEFAULT_GAP, 1e-3, 0.1]))
def test_no_problem_is_certified_wrongly(utility: Utility, problem: SolverProblem, gap: float) -> None:
    best = try_all(problem, utility)
    check(search(problem, utility, bonuses=problem.bonuses, target_gap=gap), problem, utility, best, gap)


@pytest.mark.parametrize("utility", [*REQUIRED, SMOOTH, STAIRS, SWITCH], ids=str)
@settings(max_examples=settings.default.max_examples // 3)
@given(problem=problems())
def test_the_bound_holds_at_the_deadline(utility: Utility, problem: SolverProblem) -> None:
    best = try_all(problem, utility)
    result = solver_for(utility).result(problem, utility, seconds=0.0)
    assert len(set(result.ranking.tolist())) == problem.n_positions
    assert result.upper_bound >= best - rounding_error(problem, utility, best)
    solution = search(problem, utility, bonuses=problem.bonuses, time_limit=0.0)
    assert find_certificate_error(solution, problem, utility, best=best, target_gap=DEFAULT_GAP) is None


@pytest.mark.parametrize(
    ("means", "alpha"),
    [
        ([[1e-4, 0.5]], 100),
        ([[1.0, 1e-3], [1e-4, 1e-3]], 100),
        ([[1e-4, 1e-4, 0.5]], 100),
        ([[1e-4, 0.5]], 1000),
    ],
)
def test_powers_that_overflow_lose_to_those_that_do_not(means: list[list[float]], alpha: float) -> None:
    n = len(means)
    problem = SolverProblem(np.full(n, 1 / n), np.ones((n, 1)), np.array(means))
    found = solve(problem, alpha_fair(alpha), solver="branch-and-bound")
    best = solve(problem, alpha_fair(alpha), solver="enumeration")
    assert found.value == best.value > -np.inf
    assert found.is_certified
