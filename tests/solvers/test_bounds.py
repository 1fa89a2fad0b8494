"""Bounds of branch and bound against rankings and bounds found without it."""

import numpy as np
import pytest
from helpers.searches import CONCAVE, SMOOTH, closed_form, search, solver_for
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from banditrank import MAXIMIN, NASH, UTILITARIAN, Problem, alpha_fair, make_problem
from banditrank.model._generators import exponential_bonuses
from banditrank.solvers._assignment import assign, best_assignment, new_assignment_workspace
from banditrank.solvers._solve import solve
from banditrank.testing._certificates import rounding_error
from banditrank.testing._solver_problems import SolverProblem, generate_solver_problem
from banditrank.utilities._utility import Utility, sigmoid

Floats = NDArray[np.float64]

IN_DEPTH = pytest.mark.campaign
# Every utility with or without bonuses; with the other of the two in depth.
CASES = [
    pytest.param(utility, bonuses, id=f"{utility}-{'bonuses' if bonuses else 'plain'}", marks=marks)
    for number, utility in enumerate([*CONCAVE, MAXIMIN, sigmoid()])
    for bonuses in (False, True)
    for marks in [() if bonuses == bool(number % 2) else IN_DEPTH]
]


def price_bound(scores: Floats, prices: Floats) -> float:
    """Return Σ_k max_j (V_kj − v_j) + Σ_j v_j, which no assignment exceeds if no price is negative."""
    return float((scores - prices).max(axis=1).sum() + prices.sum())


@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 5),
    extra=st.integers(0, 8),
    rounded=st.booleans(),
    repeats=st.integers(1, 6),
    drift=st.sampled_from([0.1, 1.0]),
)
@example(seed=0, k=3, extra=0, rounded=True, repeats=4, drift=1.0)
def test_the_prices_of_an_assignment_prove_optimality(
    seed: int,
    k: int,
    extra: int,
    rounded: bool,  # noqa: FBT001
    repeats: int,
    drift: float,
) -> None:
    rng = np.random.default_rng(seed)
    n_items = k + extra
    workspace, ranking = new_assignment_workspace(n_items, k), np.zeros(k, dtype=np.uintp)
    scores = rng.normal(size=(k, n_items))
    for _ in range(repeats):  # from the second on it starts from older prices
        scores = scores + drift * rng.normal(size=(k, n_items))
        scores = scores.round(0) if rounded else scores
        total = assign(scores, n_items, workspace, ranking)
        assert (workspace.prices >= 0).all()
        assert total == pytest.approx(price_bound(scores, workspace.prices), abs=1e-12)
        assert total == pytest.approx(scores[np.arange(k), ranking.astype(np.intp)].sum(), abs=1e-12)
        anything = rng.exponential(size=n_items) * rng.integers(2, size=n_items)
        assert total <= price_bound(scores, anything) + 1e-12


def tangent_bound(problem: Problem, utility: Utility, values: Floats, bonuses: Floats) -> float:
    """Return F + t − G at a tangent point, t being proved by prices found here by an auction."""
    slopes = problem.arrival_rates * slope(utility, values)
    scores = np.einsum("i,ik,ij->kj", slopes, problem.position_preferences, problem.item_means) + bonuses
    height = float(problem.arrival_rates @ utility.evaluate(values))
    return height + price_bound(scores, auction_prices(scores)) - float(slopes @ values)


def slope(utility: Utility, values: Floats) -> Floats:
    if utility is SMOOTH:
        return 3 * np.exp(-3 * values)
    alpha = 1.0 if utility is NASH else utility.parameter
    return values**-alpha


def auction_prices(scores: Floats) -> Floats:
    """Return prices at which the positions want different items, nearly; any prices make a bound."""
    prices, holder = np.zeros(scores.shape[1]), np.full(scores.shape[1], -1)
    step = 1e-6 * float(np.abs(scores).max())
    waiting = list(range(scores.shape[0]))
    while waiting:
        k = waiting.pop()
        gains = scores[k] - prices
        best = int(gains.argmax())
        second = np.delete(gains, best).max()
        prices[best] += gains[best] - second + step
        if holder[best] >= 0:
            waiting.append(int(holder[best]))
        holder[best] = k
    return prices


def climb(problem: SolverProblem, utility: Utility, rng: np.random.Generator) -> float:
    """Return what a ranking is worth that no swap or replacement improves, found from a random one."""
    rates, preferences, means = problem.arrival_rates, problem.position_preferences, problem.item_means
    bonuses = np.zeros(problem.n_items) if problem.bonuses is None else problem.bonuses
    order = rng.permutation(problem.n_items)
    k = problem.n_positions

    def worth(order: NDArray[np.intp]) -> float:
        values = (preferences * means[:, order[:k]]).sum(axis=1)
        total = values.min() if utility is MAXIMIN else rates @ closed_form(utility, values)
        return float(total + bonuses[order[:k]].sum())

    best, improved = worth(order), True
    while improved:
        improved = False
        for place in range(k):
            for other in range(place + 1, problem.n_items):
                order[[place, other]] = order[[other, place]]
                total = worth(order)
                if total > best + 1e-12:
                    best, improved = total, True
                else:
                    order[[place, other]] = order[[other, place]]
    return best


@pytest.mark.parametrize(("utility", "bonuses"), CASES)
def test_no_ranking_exceeds_a_bound(utility: Utility, bonuses: bool) -> None:  # noqa: FBT001
    for family, seed in (("conflict", 0), ("random", 1)):
        problem = generate_solver_problem(family, (10, 100, 10), seed, bonuses=bonuses)
        solver = solver_for(utility, 1e-3)
        answers = [solver.result(problem, utility, seconds=seconds) for seconds in (0.0, 3.0)]
        rng = np.random.default_rng(seed)
        found = [climb(problem, utility, rng) for _ in range(2)]
        best = max(*found, *(problem.total(utility, answer.ranking) for answer in answers))
        for answer in answers:
            assert answer.upper_bound >= best - rounding_error(problem, utility, best)


@pytest.mark.parametrize(("utility", "bonuses"), CASES[: 2 * len(CONCAVE)])
def test_a_search_is_at_least_as_tight_as_its_first_tangent(utility: Utility, bonuses: bool) -> None:  # noqa: FBT001
    for family in ("conflict", "random"):
        problem = make_problem(family, n_user_types=10, n_items=100, n_positions=10, seed=3)
        extra = exponential_bonuses(100, seed=3) if bonuses else np.zeros(100)
        solution = search(problem, utility, bonuses=extra, target_gap=1e-3, time_limit=3.0)
        proved = tangent_bound(problem, utility, solution.user_type_values, extra)
        again = search(problem, utility, bonuses=extra, warm_start=solution.ranking, time_limit=0.0)
        assert solution.value <= proved + 1e-12 * abs(proved)
        assert again.upper_bound <= proved + 1e-12 * abs(proved)


INDEPENDENTLY_SOLVED = (NASH, alpha_fair(2), MAXIMIN, SMOOTH)


@pytest.mark.parametrize(
    ("utility", "bonuses"), [case for case in CASES if case.values[0] in INDEPENDENTLY_SOLVED]
)
def test_an_independent_solver_agrees(utility: Utility, bonuses: bool) -> None:  # noqa: FBT001
    for seed in range(2):
        problem = make_problem("conflict", n_user_types=5, n_items=20, n_positions=5, seed=seed)
        extra = exponential_bonuses(20, seed=seed) if bonuses else None
        solution = search(problem, utility, bonuses=extra)
        other = solve(problem, utility, solver="outer-approximation", bonuses=extra, target_gap=1e-7)
        assert solution.is_certified
        assert other.is_certified
        assert solution.value == pytest.approx(other.value, rel=2e-7)
        assert other.upper_bound >= solution.value - 1e-12
        assert solution.upper_bound >= other.value - 1e-12


def test_the_optimal_assignment_is_the_bound_of_a_linear_utility() -> None:
    problem = make_problem("random", n_user_types=4, n_items=30, n_positions=6, seed=0)
    solution = search(problem, UTILITARIAN)
    weighted = problem.arrival_rates[:, None] * problem.position_preferences
    assert solution.upper_bound == pytest.approx(best_assignment(weighted.T @ problem.item_means)[1])
