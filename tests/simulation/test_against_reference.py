"""The simulator's distributions are those of a second, plain implementation of the paper.

Error rate: each test compares two samples by Kolmogorov and Smirnov and fails, if both come from one
distribution, with probability 0.001; there are 26 comparisons, so 3% for new seeds. The seeds are fixed.
Power: a coefficient of 0.6 instead of 0.5 is noticed (the last test).
"""

from functools import cache
from itertools import product

import numpy as np
import pytest
from helpers.reference import reference_runs
from scipy.stats import ks_2samp

from banditrank import GreedyRank, Problem, UCBRank, kdd2012, make_problem, simulate

LEVEL = 0.001
RUNS = 195  # of each
SKEWED = Problem(
    [0.85, 0.1, 0.05],
    [[0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.1, 0.8, 0.1]],
    [[0.9, 0.7, 0.5, 0.3], [0.4, 0.8, 0.6, 0.5], [0.5, 0.6, 0.7, 0.9]],
    name="skewed",
)
ONE_TYPE = make_problem("random", n_user_types=1, n_items=6, n_positions=2, seed=8)
PROBLEMS = [kdd2012(), SKEWED, ONE_TYPE]
POLICIES = {"ucb": UCBRank, "greedy": GreedyRank}
TREATMENTS = ["personalized", "equal"]
IN_SHORT = [
    (PROBLEMS[0], "equal", "ucb"),
    (PROBLEMS[0], "personalized", "greedy"),
    (SKEWED, "equal", "greedy"),
    (ONE_TYPE, "personalized", "ucb"),
]
IN_DEPTH = [case for case in product(PROBLEMS, TREATMENTS, POLICIES) if case not in IN_SHORT]
run_reference = cache(reference_runs)


@pytest.mark.parametrize(
    ("problem", "treatment", "name"),
    [*IN_SHORT, *(pytest.param(*case, marks=pytest.mark.campaign) for case in IN_DEPTH)],
    ids=lambda value: value.name if isinstance(value, Problem) else value,
)
def test_distributions_agree(problem: Problem, treatment: str, name: str) -> None:
    horizon, c = 5_000, 0.5
    regrets, initial = run_reference(
        problem,
        greedy=name == "greedy",
        equal=treatment == "equal",
        c=c,
        horizon=horizon,
        seeds=RUNS,
    )
    policy = POLICIES[name](coefficient=c, treatment=treatment)
    result = simulate(policy, problem, horizon, RUNS, 11)
    assert ks_2samp(result.final_regret, regrets).pvalue > LEVEL
    assert ks_2samp(result.initial_rounds, initial).pvalue > LEVEL


@pytest.mark.parametrize(
    "greedy", [False, pytest.param(True, marks=pytest.mark.campaign)], ids=["ucb", "greedy"]
)
def test_distributions_agree_under_nash(greedy: bool) -> None:  # noqa: FBT001
    regrets, _ = run_reference(
        kdd2012(), greedy=greedy, equal=True, nash=True, c=0.5, horizon=5_000, seeds=RUNS
    )
    policy = (GreedyRank if greedy else UCBRank)(coefficient=0.5, treatment="equal", utility="nash")
    result = simulate(policy, kdd2012(), 5_000, RUNS, 12)
    assert ks_2samp(result.final_regret, regrets).pvalue > LEVEL


def test_a_different_coefficient_would_be_noticed() -> None:
    regrets, _ = run_reference(kdd2012(), greedy=False, equal=True, c=0.5, horizon=5_000, seeds=RUNS)
    result = simulate(UCBRank(coefficient=0.6, treatment="equal"), kdd2012(), 5_000, RUNS, 11)
    assert ks_2samp(result.final_regret, regrets).pvalue < LEVEL
    assert np.median(result.final_regret) > np.median(regrets)
