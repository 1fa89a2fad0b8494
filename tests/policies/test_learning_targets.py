"""What ThompsonRank must reach at 300,000 rounds, on Table 1 and on types with tastes that are alike or not.

The problems with correlated tastes are those of `helpers.taste_problems`: the design states regrets of such
problems, but not their random numbers. Its bars are therefore taken relative to unpooled ThompsonRank, over
several problems; they are the design's bars over its regrets without pooling. Seeds are fixed: bounds have
room for other machines' rounding, not for chance.
"""

import numpy as np
import pytest
from helpers.taste_problems import correlated_problem, joining_regret, visit_regret
from numpy.typing import NDArray

from banditrank import Counts, Problem, ThompsonRank, kdd2012, make_problem, simulate

pytestmark = pytest.mark.campaign

HORIZON = 300_000
PROBLEM_SEEDS = range(4)


def final_regrets(
    policy: ThompsonRank, problem: Problem, replications: int, seed: int = 11
) -> NDArray[np.float64]:
    return simulate(policy, problem, HORIZON, replications, seed=seed).final_regret


def pooled_over_unpooled(problem: Problem, replications: int) -> float:
    # The design's policy without pooling, which explores as if visits never ended.
    alone = final_regrets(ThompsonRank(pooling=False, horizon=10**9), problem, replications).mean()
    return float(final_regrets(ThompsonRank(), problem, replications).mean() / alone)


def test_table_1() -> None:
    regrets = final_regrets(ThompsonRank(), kdd2012(), 300)
    assert regrets.mean() <= 210
    assert regrets.max() <= 800


def test_slow_runs_on_table_1_are_as_rare_as_without_pooling() -> None:
    # 1,000 runs each: shares of 1 in 200 to 1,200, of more than 3 times the median.
    shares = []
    for pooling in (True, False):
        regrets = final_regrets(ThompsonRank(pooling=pooling), kdd2012(), 1_000, seed=12)
        shares.append(float(np.mean(regrets > 3 * np.median(regrets))))
    assert shares[0] <= max(shares[1], 1 / 200)


def test_identical_types() -> None:
    problem = correlated_problem(3, deviation=0.0)
    assert final_regrets(ThompsonRank(), problem, 40).mean() <= 1_450


@pytest.mark.parametrize(
    ("n_user_types", "deviation", "clicks", "most"),
    [(3, 0.2, 1.0, 900 / 1260), (10, 0.5, 1.0, 1600 / 2738), (10, 0.5, 0.05, 550 / 1292)],
)
def test_correlated_types(n_user_types: int, deviation: float, clicks: float, most: float) -> None:
    ratios = [
        pooled_over_unpooled(
            correlated_problem(n_user_types, deviation=deviation, clicks=clicks, seed=seed), replications=10
        )
        for seed in PROBLEM_SEEDS
    ]
    assert np.mean(ratios) <= most


def test_50_correlated_types() -> None:
    problem = correlated_problem(50, 50, 5, deviation=0.4)
    pooled = final_regrets(ThompsonRank(), problem, 40).mean()
    assert pooled <= 8000 / 23402 * final_regrets(ThompsonRank(pooling=False), problem, 8).mean()


@pytest.mark.parametrize(
    ("family", "n_user_types", "seed"), [("synthetic", 3, 0), ("synthetic", 10, 0), ("conflict", 3, 1)]
)
def test_types_with_tastes_of_their_own_lose_little(family: str, n_user_types: int, seed: int) -> None:
    problem = make_problem(family, n_user_types=n_user_types, n_items=20, n_positions=4, seed=seed)
    assert pooled_over_unpooled(problem, replications=80) <= 1.05


def test_50_independent_types_with_a_horizon() -> None:
    problem = make_problem("synthetic", n_user_types=50, n_items=50, n_positions=5, seed=0)
    policy = ThompsonRank(horizon=HORIZON // 50)
    assert final_regrets(policy, problem, 40).mean() <= 18_000


def test_a_type_that_joins_late_starts_from_what_others_like() -> None:
    problem, policy = correlated_problem(5, deviation=0.2), ThompsonRank()
    joined, alone = [], []
    for seed in range(40):
        joined.append(joining_regret(policy, problem, rounds=HORIZON // 2, visits=2_000, seed=seed))
        alone.append(visit_regret(policy, problem, Counts.empty_for(problem), visits=2_000, seed=seed))
    assert np.mean(joined) <= 0.6 * np.mean(alone)
