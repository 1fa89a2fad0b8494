"""The unit of gaps: solver and solution agree on whether a ranking is certified."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from banditrank import InvalidInputError, Utility, alpha_fair, make_problem, solve
from banditrank.solvers._solve import DEFAULT_GAP
from banditrank.solvers._solver import Progress
from banditrank.testing._certificates import find_certificate_error
from banditrank.testing._solver_problems import SolverProblem

BELOW = Utility.from_function(
    lambda u: 20 * math.sqrt(u + 0.0625) - 10,
    derivative=lambda u: 10 / math.sqrt(u + 0.0625),
    shape="concave",
    name="from −5",
)
ABOVE = Utility.from_function(
    lambda u: 3 + math.sqrt(u + 1e-3),
    derivative=lambda u: 0.5 / math.sqrt(u + 1e-3),
    shape="concave",
    name="from 3",
)
STEEP = Utility.from_function(
    lambda u: 40 * min(u, 0.25) - 5, shape="non-concave", lipschitz=40.0, name="steep"
)


@pytest.mark.parametrize("gap", [1e-10, 1e-3, 0.05])
@pytest.mark.parametrize("utility", [BELOW, ABOVE, STEEP], ids=str)
def test_gaps_are_relative_to_the_whole_value_when_a_type_has_value_zero(
    utility: Utility, gap: float
) -> None:
    # Without the fourth type, which no ranking helps, the value is of another size: 2 instead of −0.1.
    for seed in range(5):
        problem = make_problem("conflict", n_user_types=3, n_items=12, n_positions=4, seed=seed)
        known = SimpleNamespace(
            arrival_rates=np.array([0.2, 0.2, 0.2, 0.4]),
            position_preferences=np.vstack([problem.position_preferences, np.ones(4)]),
            item_means=np.vstack([problem.item_means, np.zeros(12)]),
        )
        solver = "spatial" if utility is STEEP else "branch-and-bound"
        solution = solve(known, utility, solver=solver, target_gap=gap)
        best = solve(known, utility, solver="enumeration").value
        assert solution.is_certified
        assert best - gap * max(1.0, abs(best)) <= solution.value <= best <= solution.upper_bound + 1e-12


def test_a_utility_of_nan_is_rejected() -> None:
    utility = Utility.from_function(
        lambda u: math.log(u) if u > 0 else math.nan,
        derivative=lambda u: 1 / u if u > 0 else math.inf,
        shape="concave",
        name="hole",
    )
    problem = SolverProblem(
        np.array([0.5, 0.5]), np.full((2, 2), 0.5), np.array([[0.0, 0.0, 0.0], [0.2, 0.4, 0.6]])
    )
    with pytest.raises(InvalidInputError, match="must be finite or −∞ for every ranking, got nan"):
        solve(problem, utility)


def test_a_stopped_search_returns_its_gap() -> None:
    problem = make_problem("random", n_user_types=6, n_items=60, n_positions=8, seed=1)
    seen: list[Progress] = []

    def stop_at_the_third(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) < 3

    stopped = solve(problem, "maximin", on_progress=stop_at_the_third)
    finished = solve(problem, "maximin")
    assert len(seen) == 3
    assert stopped.value == seen[-1].value < finished.value + 1e-12
    assert stopped.upper_bound == pytest.approx(seen[-1].upper_bound, rel=1e-9)
    assert stopped.upper_bound > finished.value > stopped.value - 1e-12
    assert not stopped.is_certified
    assert finished.is_certified


STEEP_PROBLEMS = {
    "few likes": SolverProblem(
        np.array([0.4, 0.3, 0.3]),
        np.tile([0.4, 0.3, 0.2, 0.1], (3, 1)),
        np.array(
            [
                [0, 0.59, 0.36, 0, 0.63, 0.36, 0.35, 0],
                [0, 0, 0, 0, 0, 0, 0.42, 0],
                [0.98, 0, 0.42, 0.2, 0, 0.86, 0.03, 0.78],
            ]
        ),
    ),
    "one like": SolverProblem(
        np.array([0.6, 0.4]),
        np.array([[0.4, 0.5, 0.1], [0.5, 0.5, 0.0]]),
        np.array([[0.0, 0.0, 0.5], [0.0, 0.0, 0.3]]),
    ),
}


def check(problem: SolverProblem, utility: Utility) -> None:
    solution = solve(problem, utility, solver="branch-and-bound", bonuses=problem.bonuses)
    best = problem.best(utility)
    assert find_certificate_error(solution, problem, utility, best=best, target_gap=DEFAULT_GAP) is None


@pytest.mark.parametrize("problem", STEEP_PROBLEMS.values(), ids=STEEP_PROBLEMS)
@pytest.mark.parametrize("alpha", [3, 5, 10, 20])
def test_prices_from_steep_slopes_prove_nothing_of_flat_ones(problem: SolverProblem, alpha: float) -> None:
    # Where a type gets almost nothing the slopes are as large as 1e36, and so are the prices found there.
    check(problem, alpha_fair(alpha))


@pytest.mark.parametrize(
    "alpha", [5, 100, *(pytest.param(alpha, marks=pytest.mark.campaign) for alpha in (3, 10, 30))]
)
def test_no_problem_with_many_zeros_is_certified_wrongly_by_a_steep_utility(alpha: float) -> None:
    rng = np.random.default_rng(7)
    for number in range(150):
        means = np.where(rng.random((3, 6)) < 0.5, 0.0, rng.uniform(0, 1, (3, 6)))
        if number % 3 == 0:
            means = 10.0 ** rng.uniform(-6, 0, (3, 6))
        bonuses = rng.exponential(0.05, 6) if number % 4 == 0 else None
        check(
            SolverProblem(rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3), means, bonuses),
            alpha_fair(alpha),
        )


def test_an_error_of_a_function_is_raised_even_if_it_compiles() -> None:
    def hole(u: float) -> float:
        if 0.56 < u < 0.59:
            raise ValueError("a hole")
        return u

    utility = Utility.from_function(hole, derivative=lambda _: 1.0, shape="concave", name="hole")
    problem = make_problem("conflict", n_user_types=3, n_items=20, n_positions=4, seed=1)
    with pytest.raises(InvalidInputError, match=r"must return a number \("):
        solve(problem, utility, warm_start=[3, 17, 19, 14])


def test_an_interrupt_in_a_function_is_raised() -> None:
    calls = []

    def interrupted(u: float) -> float:
        calls.append(u)
        if len(calls) > 2000:
            raise KeyboardInterrupt
        return u

    utility = Utility.from_function(
        interrupted, derivative=lambda _: 1.0, shape="concave", name="interrupted"
    )
    problem = make_problem("conflict", n_user_types=3, n_items=9, n_positions=4, seed=1)
    with pytest.raises(KeyboardInterrupt):
        solve(problem, utility, solver="enumeration")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"position_preferences": [[0.5, 0.5]]}, "position_preferences must have a row for each of the 2"),
        (
            {"item_means": [[0.3, 0.2, 0.1]]},
            "item_means must have a row for each of the 2",
        ),
        (
            {"position_preferences": np.full((2, 4), 0.25)},
            "must have from 1 to 3 columns",
        ),
        ({"position_preferences": np.zeros((2, 0))}, "must have from 1 to 3 columns"),
        ({"item_means": np.full((2, 3), 1e200)}, "item_means must be numbers from 0 to 1e.100, got 1e.200"),
    ],
)
def test_arrays_of_different_shapes_are_rejected(changes: dict, message: str) -> None:
    tables = {
        "arrival_rates": [0.5, 0.5],
        "position_preferences": [[0.5, 0.5], [0.5, 0.5]],
        "item_means": [[0.3, 0.2, 0.1], [0.1, 0.2, 0.3]],
    }
    with pytest.raises(InvalidInputError, match=message):
        solve(SimpleNamespace(**{**tables, **changes}), "nash")


@pytest.mark.parametrize("scale", [-1.0, math.inf, math.nan, "x"])
def test_an_invalid_scale_is_rejected(scale: float) -> None:
    with pytest.raises(InvalidInputError, match="scale must be a number from 0 to"):
        solve(STEEP_PROBLEMS["one like"], "nash", scale=scale)


def test_an_object_that_is_not_a_problem_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="problem must have arrival_rates, got None"):
        solve(None, "nash")
