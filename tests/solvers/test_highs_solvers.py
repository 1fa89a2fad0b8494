"""The two solvers based on HiGHS, against enumeration."""

import sys
import time

import numpy as np
import pytest
from numpy.typing import NDArray

from banditrank import (
    MAXIMIN,
    NASH,
    UTILITARIAN,
    InvalidInputError,
    MissingDependencyError,
    Utility,
    alpha_fair,
)
from banditrank.model._generators import FAMILIES
from banditrank.solvers import _enumeration as enumeration
from banditrank.solvers._highs import outer_approximation, permutation_lp
from banditrank.solvers._instance import Instance, total_value
from banditrank.solvers._solver import Solver, SolverOptions, SolverResult
from banditrank.testing._solver_problems import generate_solver_problem

SMOOTH = Utility.from_function(
    lambda u: 1 - np.exp(-3 * u), derivative=lambda u: 3 * np.exp(-3 * u), shape="concave", name="smooth"
)
STRAIGHT = Utility.from_function(lambda u: 3 * u + 1, shape="linear", name="straight")
UTILITIES = [
    UTILITARIAN,
    NASH,
    alpha_fair(0.5),
    alpha_fair(2),
    alpha_fair(5),
    MAXIMIN,
    SMOOTH,
    STRAIGHT,
]
SOLVERS = {"permutation-lp": permutation_lp.SOLVER, "outer-approximation": outer_approximation.SOLVER}
SIZES = [(3, 6, 3), (2, 4, 4), (4, 5, 1), (1, 5, 2)]  # N, M, K: ordinary, K = M, K = 1, one type
PRECISION = 2e-8  # HiGHS' tolerance of 1e-10 for each variable that matters, in units up to 4 times too large


def draw(family: str, size: tuple[int, int, int], seed: int, *, bonuses: bool) -> Instance:
    return generate_solver_problem(family, size, seed, bonuses=bonuses).instance()


def options(seconds: float = np.inf, warm_start: NDArray[np.intp] | None = None) -> SolverOptions:
    return SolverOptions(1e-10, time.perf_counter() + seconds, warm_start, 1.0, 0)


def best_of_all(instance: Instance, utility: Utility) -> float:
    return enumeration.SOLVER.run(instance, utility, options()).upper_bound


def check(instance: Instance, utility: Utility, result: SolverResult) -> None:
    """Check that a ranking is the best, and that its bound holds and is tight."""
    best = best_of_all(instance, utility)
    value = total_value(instance, utility.compiled(), result.ranking)
    assert len(set(result.ranking.tolist())) == instance.n_positions
    if best == -np.inf:
        assert result.upper_bound == -np.inf
    else:
        unit = max(1.0, abs(best))
        assert best - value <= 1e-9 * unit
        assert -1e-14 * unit <= result.upper_bound - best <= PRECISION * unit


# Every solver and utility with or without bonuses, and every family with two of the four sizes; in depth with
# all of them.
@pytest.mark.parametrize(
    ("utility", "bonuses"),
    [
        pytest.param(
            utility,
            bonuses,
            id=f"{utility}-{'bonuses' if bonuses else 'plain'}",
            marks=() if bonuses == bool(number % 2) else pytest.mark.campaign,
        )
        for number, utility in enumerate(UTILITIES)
        for bonuses in (False, True)
    ],
)
@pytest.mark.parametrize("name", SOLVERS)
def test_it_agrees_with_enumeration(
    pytestconfig: pytest.Config,
    name: str,
    utility: Utility,
    bonuses: bool,  # noqa: FBT001
) -> None:
    for seed, family in enumerate(sorted(FAMILIES)):
        for size in SIZES if pytestconfig.getoption("--campaign") else SIZES[seed % 2 :: 2]:
            instance = draw(family, size, seed, bonuses=bonuses)
            check(instance, utility, SOLVERS[name].run(instance, utility, options()))


@pytest.mark.parametrize("utility", [NASH, alpha_fair(5), MAXIMIN], ids=str)
def test_outer_approximation_is_exact_where_the_relaxation_is_not(utility: Utility) -> None:
    instance = draw("conflict", (5, 9, 5), 1, bonuses=False)
    result = outer_approximation.SOLVER.run(instance, utility, options())
    check(instance, utility, result)
    assert result.nodes > 2


@pytest.mark.parametrize("utility", [*UTILITIES, alpha_fair(1000)], ids=str)
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_at_the_deadline_it_returns_a_ranking_and_a_valid_bound(solver: Solver, utility: Utility) -> None:
    for seed in range(5):
        instance = draw("conflict", (3, 6, 3), seed, bonuses=seed % 2 == 1)
        result = solver.run(instance, utility, options(0.0))
        assert len(set(result.ranking.tolist())) == 3
        assert result.upper_bound >= best_of_all(instance, utility)


@pytest.mark.parametrize("utility", [NASH, MAXIMIN], ids=str)
def test_it_stops_in_time_with_a_valid_bound(utility: Utility) -> None:
    instance = draw("conflict", (10, 200, 20), 0, bonuses=False)
    start = time.process_time()
    result = outer_approximation.SOLVER.run(instance, utility, options(0.3))
    assert time.process_time() - start < 5  # a deadline is HiGHS' to keep
    assert result.upper_bound >= total_value(instance, utility.compiled(), result.ranking)
    assert np.isfinite(result.upper_bound)


def test_a_warm_start_is_never_made_worse() -> None:
    instance = draw("conflict", (3, 6, 3), 4, bonuses=False)
    best = enumeration.SOLVER.run(instance, NASH, options())
    result = outer_approximation.SOLVER.run(instance, NASH, options(0.0, best.ranking))
    assert total_value(instance, NASH.compiled(), result.ranking) == best.upper_bound


@pytest.mark.parametrize("utility", UTILITIES, ids=str)
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_a_type_without_weight_does_not_count(solver: Solver, utility: Utility) -> None:
    instance = draw("random", (3, 5, 2), 0, bonuses=False)
    means = instance.means.copy()
    means[1] = 0.0
    unweighted = instance._replace(weights=np.array([0.5, 0.0, 0.5]), means=means)
    check(unweighted, utility, solver.run(unweighted, utility, options()))


@pytest.mark.parametrize("utility", UTILITIES, ids=str)
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_a_type_whose_value_is_always_zero(solver: Solver, utility: Utility) -> None:
    instance = draw("random", (3, 5, 2), 0, bonuses=True)
    instance.means[1] = 0.0
    check(instance, utility, solver.run(instance, utility, options()))


@pytest.mark.parametrize("utility", UTILITIES, ids=str)
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_types_that_cannot_all_have_positive_values(solver: Solver, utility: Utility) -> None:
    # Each of three types likes one item only, and there is room for two.
    apart = Instance(np.full(3, 1 / 3), np.full((3, 2), 0.5), np.eye(3, 4), np.zeros(4))
    # Two rings of three types and items, each type liking two items of its ring: halves of all six items
    # would please everybody with three positions, but whole items take four.
    likes = np.kron(np.eye(2), 1.0 - np.eye(3))
    in_rings = Instance(np.full(6, 1 / 6), np.full((6, 3), 1 / 3), likes, np.zeros(6))
    for instance in (apart, in_rings):
        check(instance, utility, solver.run(instance, utility, options()))


@pytest.mark.parametrize("utility", UTILITIES, ids=str)
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_values_of_very_different_size(solver: Solver, utility: Utility) -> None:
    rng = np.random.default_rng(5)
    means = 10.0 ** rng.uniform(-5, 0, (3, 6))
    instance = Instance(rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3), means, np.zeros(6))
    check(instance, utility, solver.run(instance, utility, options()))


def test_unsupported_reasons() -> None:
    crooked = Utility.from_function(lambda u: u * u, shape="non-concave")
    bare = Utility.from_function(np.sqrt, shape="concave", name="bare")
    unsupported_reason = outer_approximation.SOLVER.unsupported_reason
    assert unsupported_reason(NASH, 1000, 20) is None
    assert (
        unsupported_reason(crooked, 5, 2)
        == "needs a linear or concave utility or maximin, got custom (non-concave)"
    )
    assert (
        unsupported_reason(bare, 5, 2) == "needs the derivative of a concave function, got bare without one"
    )
    assert permutation_lp.SOLVER.unsupported_reason(crooked, 20, 4) is None
    reason = permutation_lp.SOLVER.unsupported_reason(UTILITARIAN, 100, 10)
    assert reason is not None
    assert reason.startswith("supports at most 200,000 rankings, got 100 items in 10")


def test_the_permutation_lp_supports_utilities_of_any_shape() -> None:
    crooked = Utility.from_function(lambda u: u * u, shape="non-concave")
    instance = draw("conflict", (3, 6, 3), 0, bonuses=True)
    check(instance, crooked, permutation_lp.SOLVER.run(instance, crooked, options()))


def test_a_derivative_of_nan_is_rejected() -> None:
    def only_where_it_is_checked(u: float) -> float:
        return 0.5 / np.sqrt(u) if abs(20 * u - round(20 * u)) < 1e-9 else np.nan

    broken = Utility.from_function(np.sqrt, derivative=only_where_it_is_checked, shape="concave")
    with pytest.raises(InvalidInputError, match="utility derivative must be finite"):
        outer_approximation.SOLVER.run(draw("random", (2, 4, 2), 0, bonuses=False), broken, options())


@pytest.mark.parametrize("name", SOLVERS)
def test_without_highs_the_error_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    instance = draw("random", (2, 4, 2), 0, bonuses=False)
    with pytest.raises(
        MissingDependencyError,
        match=rf"^highspy is required for solver {name}: pip install 'banditrank\[highs\]'$",
    ):
        SOLVERS[name].run(instance, NASH, options())
