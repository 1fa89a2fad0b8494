import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from banditrank import (
    MAXIMIN,
    NASH,
    UTILITARIAN,
    InvalidInputError,
    UnsolvableError,
    Utility,
    alpha_fair,
    best_equal_ranking,
    estimate,
    kdd2012,
    make_problem,
    solve,
)
from banditrank.model._generators import FAMILIES
from banditrank.solvers._assignment import assign, best_assignment, new_assignment_workspace
from banditrank.solvers._enumeration import (
    count_rankings,
    draw_uniform_ranking,
    enumerate_rankings,
    new_enumeration_workspace,
)
from banditrank.solvers._instance import as_instance
from banditrank.solvers._solve import choose_solver, equal_value
from banditrank.testing._policies import dense_counts

UTILITIES = [
    UTILITARIAN,
    NASH,
    MAXIMIN,
    alpha_fair(0.5),
    alpha_fair(2),
    Utility.from_function(lambda u: 3 * u + 1, shape="linear"),
    Utility.from_function(lambda u: 1 / (1 + np.exp(-12 * (u - 0.5))), shape="non-concave"),
]


@given(seed=st.integers(0, 10**6), k=st.integers(1, 8), extra=st.integers(0, 30), rounded=st.booleans())
def test_assignment_is_optimal(seed: int, k: int, extra: int, rounded: bool) -> None:  # noqa: FBT001
    scores = np.random.default_rng(seed).normal(size=(k, k + extra))
    scores = scores.round(0) if rounded else scores  # many ties
    ranking, total = best_assignment(scores)
    rows, columns = linear_sum_assignment(scores, maximize=True)
    assert len(set(ranking.tolist())) == k
    assert total == pytest.approx(scores[rows, columns].sum(), abs=1e-9)
    assert total == pytest.approx(scores[np.arange(k), ranking].sum(), abs=1e-9)


@given(seed=st.integers(0, 10**6), drift=st.sampled_from([1e-3, 0.1, 3.0]))
def test_assignment_is_optimal_from_earlier_prices(seed: int, drift: float) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(4, 12))
    workspace = new_assignment_workspace(12, 4)
    ranking = np.zeros(4, dtype=np.uintp)
    for _ in range(25):
        scores = scores + drift * rng.normal(size=scores.shape)
        total = assign(scores, 12, workspace, ranking)
        rows, columns = linear_sum_assignment(scores, maximize=True)
        assert total == pytest.approx(scores[rows, columns].sum(), abs=1e-9)


@pytest.mark.parametrize("scores", [[[1.0], [2.0]], [1.0, 2.0], [[np.nan, 1.0]], [[np.inf, 1.0]], [[]]])
def test_invalid_scores_are_rejected(scores: list) -> None:
    with pytest.raises(InvalidInputError, match="scores must"):
        best_assignment(scores)


@pytest.mark.parametrize("utility", UTILITIES, ids=str)
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_best_equal_ranking_is_optimal(family: str, utility: object) -> None:
    for seed in range(8):
        problem = make_problem(family, n_user_types=3, n_items=6, n_positions=3, seed=seed)
        best = max(equal_value(problem, np.array(ranking), utility) for ranking in permutations(range(6), 3))
        found = equal_value(problem, best_equal_ranking(problem, utility), utility)
        assert found == pytest.approx(best, rel=1e-12)


def test_enumeration_adds_bonuses_and_agrees_with_assignment() -> None:
    for seed in range(20):
        problem = make_problem("conflict", n_user_types=3, n_items=6, n_positions=3, seed=seed)
        bonuses = np.random.default_rng(seed).exponential(0.1, 6)
        ranking = np.zeros(3, dtype=np.uintp)
        total = enumerate_rankings(
            as_instance(problem, bonuses=bonuses),
            UTILITARIAN.compiled(),
            1.0,
            np.random.default_rng(0),
            new_enumeration_workspace(3, 6, 3),
            ranking,
        )
        weighted = problem.arrival_rates[:, None] * problem.position_preferences
        assert total == pytest.approx(best_assignment(weighted.T @ problem.item_means + bonuses)[1])


def test_a_share_of_one_half_finds_the_best_half_the_time() -> None:
    # Error rate: 2,000 draws stray from one half by 0.08 with probability below 6e-12 (Hoeffding).
    problem = make_problem("random", n_user_types=2, n_items=5, n_positions=2, seed=1)
    best = best_equal_ranking(problem)
    rng = np.random.default_rng(3)
    ranking, workspace = np.zeros(2, dtype=np.uintp), new_enumeration_workspace(2, 5, 2)
    hits = 0
    for _ in range(2000):
        enumerate_rankings(
            as_instance(problem),
            UTILITARIAN.compiled(),
            0.5,
            rng,
            workspace,
            ranking,
        )
        hits += np.array_equal(ranking, best)
    assert hits / 2000 == pytest.approx(0.5, abs=0.08)


def test_evaluated_rankings_are_counted() -> None:
    # Error rate: of 6,840 rankings a share of 0.3 strays by 0.05 with probability below 3e-15 (Hoeffding).
    problem = make_problem("random", n_user_types=2, n_items=20, n_positions=3, seed=1)
    assert solve(problem, NASH, solver="enumeration").nodes == 6840
    assert solve(problem, NASH, solver="sampling", share=1.0).nodes == 6840
    assert solve(problem, NASH, solver="sampling", share=0.3).nodes == pytest.approx(0.3 * 6840, abs=342)
    assert solve(problem, NASH, solver="sampling", share=0.0).nodes == 0


def test_drawn_rankings_are_uniform() -> None:
    # Error rate: each of 12 shares of 24,000 draws is off by 0.02 with probability below 2e-8 (Hoeffding).
    rng = np.random.default_rng(0)
    items, ranking = np.zeros(4, dtype=np.intp), np.zeros(2, dtype=np.uintp)
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(24_000):
        draw_uniform_ranking(rng, items, ranking)
        seen[tuple(ranking.tolist())] = seen.get(tuple(ranking.tolist()), 0) + 1
    assert len(seen) == 12
    assert np.array(list(seen.values())) / 24_000 == pytest.approx(1 / 12, abs=0.02)


def test_too_many_rankings_are_rejected_with_the_limit() -> None:
    assert count_rankings(1000, 20) > 10**50
    with pytest.raises(UnsolvableError, match="supports at most 1,000,000 rankings, got 1000 items"):
        choose_solver("enumeration", NASH, n_items=1000, n_positions=20)
    unknown = Utility.from_function(
        math.sqrt, shape="concave"
    )  # without its derivative there is no other way
    with pytest.raises(
        UnsolvableError, match=r"needs the derivative of a concave function.*at most 1,000,000"
    ):
        choose_solver("auto", unknown, n_items=1000, n_positions=20)


def test_an_unsupported_solver_is_rejected() -> None:
    with pytest.raises(UnsolvableError, match=r"needs a linear utility, got nash \(concave\)"):
        choose_solver("assignment", NASH, n_items=5, n_positions=2)
    with pytest.raises(InvalidInputError, match=r"did you mean sampling\?"):
        choose_solver("samplin", NASH, n_items=5, n_positions=2)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"target_gap": 0.0}, "target_gap must be a number from 1e-12 to 1, got 0.0"),
        ({"time_limit": -1.0}, "time_limit must be a number from 0 to 1,000,000,000, got -1.0"),
        ({"bonuses": [0.1]}, "bonuses must hold a number for each of the 5 items, got 1"),
        ({"bonuses": [0.1, 0.2, -0.3, 0.0, 0.0]}, "bonuses must be numbers from 0 to 1e\\+100, got -0.3"),
        ({"warm_start": [1, 1]}, "ranking must"),
        ({"share": 2}, "share must be a number from 0 to 1, got 2"),
    ],
)
def test_invalid_arguments_are_rejected(keywords: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        solve(kdd2012(), NASH, **keywords)


def test_estimates_are_solved_like_problems() -> None:
    problem = make_problem("random", n_user_types=2, n_items=6, n_positions=2, seed=1)
    found = estimate(dense_counts(problem))
    best = max(found.collective_utility(ranking, NASH) for ranking in permutations(range(6), 2))
    assert solve(found, NASH).value == pytest.approx(best, rel=1e-12)
