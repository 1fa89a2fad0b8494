"""Branch and bound against trying all rankings, and its bounds against checks that share no code with it."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from banditrank import MAXIMIN, NASH, UTILITARIAN, Problem, alpha_fair, custom, generate
from banditrank.model.generators import FAMILIES, exponential_bonuses
from banditrank.solvers.assignment import assign, assignment_room, best_assignment
from banditrank.solvers.solution import Solution, gap_unit
from banditrank.solvers.solve import DEFAULT_GAP, SolverName, solve
from banditrank.testing.honesty import complaint
from banditrank.testing.worlds import World, draw_world
from banditrank.utilities.utility import Utility, ramp, sigmoid

Floats = NDArray[np.float64]

SMOOTH = custom(
    lambda u: 1 - math.exp(-3 * u), derivative=lambda u: 3 * math.exp(-3 * u), shape="concave", name="smooth"
)
STAIRS = custom(
    lambda u: 0.5 * min(1.0, max(0.0, 50 * (u - 0.2))) + 0.5 * min(1.0, max(0.0, 50 * (u - 0.5))),
    shape="non-concave",
    lipschitz=25.0,
    name="stairs",
)
SWITCH = custom(
    lambda u: 1 / (1 + math.exp(-40 * (u - 0.4))), shape="non-concave", lipschitz=10.0, name="switch"
)
REQUIRED = [UTILITARIAN, NASH, alpha_fair(0.5), alpha_fair(2), alpha_fair(5), MAXIMIN, sigmoid(), ramp()]
CONCAVE = [NASH, alpha_fair(0.5), alpha_fair(2), alpha_fair(5), SMOOTH]
METHOD_FOR: dict[str, SolverName] = {
    "linear": "assignment",
    "concave": "branch-and-bound",
    "maximin": "branch-and-bound",
    "non-concave": "spatial",
}
SEEDS = 50


def search(known: object, utility: Utility, **options: object) -> Solution:
    """Solve by the method for the utility's shape: ``auto`` would try all rankings of small worlds."""
    return solve(known, utility, solver=METHOD_FOR[utility.shape], **options)


def try_all(world: World, utility: Utility) -> float:
    return solve(world, utility, solver="enumeration", bonuses=world.bonuses).value


def check(
    solution: Solution, world: World, utility: Utility, best: float, target_gap: float = DEFAULT_GAP
) -> None:
    """Check that an answer is certified, and rightly so."""
    assert solution.certified
    assert complaint(solution, world, utility, best=best, target_gap=target_gap) is None


@cache
def all_rankings(n_items: int, n_positions: int) -> NDArray[np.intp]:
    return np.array(list(permutations(range(n_items), n_positions))).T.copy()  # (K, R)


def worth_of_all(world: World) -> list[Floats]:
    """Return what each ranking is worth by each required utility, in NumPy: faster for all at once."""
    rankings = all_rankings(world.n_items, world.n_positions)
    values = [
        sum(rho * mean[items] for rho, items in zip(preferences, rankings, strict=True))
        for preferences, mean in zip(world.position_preferences, world.item_means, strict=True)
    ]
    return [
        np.minimum.reduce(values)
        if utility is MAXIMIN
        else sum(rate * closed_form(utility, u) for rate, u in zip(world.arrival_rates, values, strict=True))
        for utility in REQUIRED
    ]


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


@pytest.mark.parametrize("size", [(2, 5, 2), (3, 20, 4)], ids=str)
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_answer_is_certified_and_the_best(family: str, size: tuple[int, int, int]) -> None:
    _, m, k = size
    for seed in range(SEEDS):
        with_bonuses = draw_world(family, size, seed, bonuses=True)
        plain = replace(with_bonuses, bonuses=None)
        extra = with_bonuses.bonuses[all_rankings(m, k)].sum(axis=0)
        for utility, worth in zip(REQUIRED, worth_of_all(plain), strict=True):
            for world, totals in ((plain, worth), (with_bonuses, worth + extra)):
                solution, best = search(world, utility, bonuses=world.bonuses), float(totals.max())
                check(solution, world, utility, best)
                assert solution.value == pytest.approx(best, rel=1e-9, abs=0.0), (seed, utility)


# Degenerate worlds, drawn by Hypothesis.

LEVELS = st.sampled_from([0.0, 0.0, 0.1, 0.25, 0.5, 0.5, 1.0])


@st.composite
def worlds(draw: st.DrawFn) -> World:
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
    return World(rates, preferences, means, None if bonuses is None else table(1, n_items, bonuses)[0])


@pytest.mark.parametrize("utility", [*REQUIRED, SMOOTH, STAIRS, SWITCH, sigmoid(200, 0.5)], ids=str)
@settings(max_examples=150)
@given(world=worlds(), gap=st.sampled_from([DEFAULT_GAP, DEFAULT_GAP, 1e-3, 0.1]))
def test_no_world_is_certified_wrongly(utility: Utility, world: World, gap: float) -> None:
    best = try_all(world, utility)
    check(search(world, utility, bonuses=world.bonuses, target_gap=gap), world, utility, best, gap)


@pytest.mark.parametrize("utility", [*REQUIRED, SMOOTH, STAIRS, SWITCH], ids=str)
@given(world=worlds())
def test_out_of_time_the_bound_still_holds(utility: Utility, world: World) -> None:
    best = try_all(world, utility)
    solution = search(world, utility, bonuses=world.bonuses, time_limit=0.0)
    assert len(set(solution.ranking.tolist())) == world.n_positions
    assert complaint(solution, world, utility, best=best, target_gap=DEFAULT_GAP) is None


# Bounds, checked by what holds for any prices of items.


def price_bound(scores: Floats, prices: Floats) -> float:
    """Return Σ_k max_j (V_kj − v_j) + Σ_j v_j, which no assignment exceeds if no price is negative."""
    return float((scores - prices).max(axis=1).sum() + prices.sum())


@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 5),
    extra=st.integers(0, 8),
    rounded=st.booleans(),
    repeats=st.integers(1, 4),
)
@example(seed=0, k=3, extra=0, rounded=True, repeats=4)
def test_the_prices_of_an_assignment_prove_that_it_is_the_best(
    seed: int,
    k: int,
    extra: int,
    rounded: bool,  # noqa: FBT001
    repeats: int,
) -> None:
    rng = np.random.default_rng(seed)
    n_items = k + extra
    room, ranking = assignment_room(n_items, k), np.zeros(k, dtype=np.uintp)
    for _ in range(repeats):  # from the second on it starts from older prices
        scores = rng.normal(size=(k, n_items))
        scores = scores.round(0) if rounded else scores
        total = assign(scores, n_items, room, ranking)
        assert (room.prices >= 0).all()
        assert total == pytest.approx(price_bound(scores, room.prices), abs=1e-12)
        assert total == pytest.approx(scores[np.arange(k), ranking.astype(np.intp)].sum(), abs=1e-12)
        anything = rng.exponential(size=n_items) * rng.integers(2, size=n_items)
        assert total <= price_bound(scores, anything) + 1e-12


def tangent_bound(problem: Problem, utility: Utility, values: Floats, bonuses: Floats) -> float:
    """Return F + t − G at a tangent point, t being proved by prices found here by an auction."""
    slopes = problem.arrival_rates * slope(utility, values)
    scores = np.einsum("i,ik,ij->kj", slopes, problem.position_preferences, problem.item_means) + bonuses
    height = float(problem.arrival_rates @ utility.of(values))
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


def climb(problem: Problem, utility: Utility, bonuses: Floats, rng: np.random.Generator) -> float:
    """Return what a ranking is worth that no swap or replacement improves, found from a random one."""
    rates, preferences, means = problem.arrival_rates, problem.position_preferences, problem.item_means
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


@pytest.mark.parametrize("bonuses", [False, True], ids=["plain", "bonuses"])
@pytest.mark.parametrize("utility", [*CONCAVE, MAXIMIN, sigmoid()], ids=str)
def test_no_ranking_found_otherwise_exceeds_the_bound(utility: Utility, bonuses: bool) -> None:  # noqa: FBT001
    for family, seed in (("conflict", 0), ("random", 1)):
        problem = generate(family, n_user_types=10, n_items=100, n_positions=10, seed=seed)
        extra = exponential_bonuses(100, seed=seed) if bonuses else np.zeros(100)
        rushed = search(problem, utility, bonuses=extra, time_limit=0.0)
        solution = search(problem, utility, bonuses=extra, target_gap=1e-3, time_limit=3.0)
        rng = np.random.default_rng(seed)
        found = max(climb(problem, utility, extra, rng) for _ in range(2))
        for answer in (rushed, solution):
            assert answer.upper_bound >= found - 1e-12 * abs(found)
            assert answer.value <= answer.upper_bound
        # One bound holds for what the other found.
        assert rushed.upper_bound >= solution.value - 1e-12 * abs(solution.value)
        if solution.certified:
            assert found - solution.value <= 1e-3 * gap_unit(utility.compiled(), solution.value) * (1 + 1e-9)


@pytest.mark.parametrize("bonuses", [False, True], ids=["plain", "bonuses"])
@pytest.mark.parametrize("utility", CONCAVE, ids=str)
def test_a_tangent_at_the_answer_proves_no_less_than_the_answer(utility: Utility, bonuses: bool) -> None:  # noqa: FBT001
    for family in ("conflict", "random"):
        problem = generate(family, n_user_types=10, n_items=100, n_positions=10, seed=3)
        extra = exponential_bonuses(100, seed=3) if bonuses else np.zeros(100)
        solution = search(problem, utility, bonuses=extra, target_gap=1e-3, time_limit=3.0)
        proved = tangent_bound(problem, utility, solution.user_type_values, extra)
        assert solution.value <= proved + 1e-12 * abs(proved)
        # The solver's bound is at least as good as the plain one at the ranking that it returns.
        assert solution.upper_bound <= proved + 1e-3 * gap_unit(utility.compiled(), solution.value)


@pytest.mark.parametrize("bonuses", [False, True], ids=["plain", "bonuses"])
@pytest.mark.parametrize("utility", [NASH, alpha_fair(2), MAXIMIN, SMOOTH], ids=str)
def test_a_solver_that_shares_no_code_agrees(utility: Utility, bonuses: bool) -> None:  # noqa: FBT001
    for seed in range(2):
        problem = generate("conflict", n_user_types=5, n_items=20, n_positions=5, seed=seed)
        extra = exponential_bonuses(20, seed=seed) if bonuses else None
        solution = search(problem, utility, bonuses=extra)
        other = solve(problem, utility, solver="outer-approximation", bonuses=extra, target_gap=1e-7)
        assert solution.certified
        assert other.certified
        assert solution.value == pytest.approx(other.value, rel=2e-7)
        assert other.upper_bound >= solution.value - 1e-12
        assert solution.upper_bound >= other.value - 1e-12


def test_the_best_assignment_at_the_optimum_of_a_linear_utility_is_its_bound() -> None:
    problem = generate("random", n_user_types=4, n_items=30, n_positions=6, seed=0)
    solution = search(problem, UTILITARIAN)
    weighted = problem.arrival_rates[:, None] * problem.position_preferences
    assert solution.upper_bound == pytest.approx(best_assignment(weighted.T @ problem.item_means)[1])
