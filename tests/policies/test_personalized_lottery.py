"""Policies that keep guarantees under personalized treatment: a lottery for each user type."""

import numpy as np
import pytest

from banditrank import (
    GreedyRank,
    InvalidInputError,
    KeptShare,
    LeastExposure,
    Oracle,
    ThompsonRank,
    UCBRank,
    UnsolvableError,
    estimate,
    kdd2012,
    make_policy,
    make_problem,
    simulate,
    solve_lottery,
)
from banditrank.counts._counts import Counts
from banditrank.model._click_models import SINGLE_LOOK, compile_problem, draw_user_type
from banditrank.model._problem import Problem
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._drawn_lottery import DrawnLottery
from banditrank.simulation._replication import replication_generators
from banditrank.testing._policies import dense_counts, problems

FLOOR = (LeastExposure(0.1),)
POLICIES = {
    "thompson-rank": ThompsonRank(guarantees=FLOOR),
    "greedy-rank": GreedyRank(coefficient=0.0, guarantees=FLOOR),
    "ucb-rank": UCBRank(guarantees=FLOOR),
}


def conflict() -> Problem:
    return make_problem("conflict", n_user_types=3, n_items=20, n_positions=4, seed=1)


def lotteries_of(policy: CompiledPolicy, counts: Counts, seed: int) -> list[DrawnLottery]:
    """Return the lottery of each user type in a round."""
    drawn = []
    for user_type in range(counts.n_user_types):
        learner = policy.start(counts=counts, rng=seed)
        shown = learner.rank(user_type)
        assert learner.lottery is not None
        assert shown.tolist() in learner.lottery.rankings.tolist()
        drawn.append(learner.lottery)
    return drawn


def exposures_of(problem: Problem, lotteries: list[DrawnLottery]) -> np.ndarray:
    """Return the share of users who look at each item."""
    exposures = np.zeros(problem.item_means.shape[1])
    for rate, looks, lottery in zip(
        problem.arrival_rates, problem.position_preferences, lotteries, strict=True
    ):
        weights = rate * lottery.probabilities[:, None] * looks
        np.add.at(exposures, lottery.rankings, weights)
    return exposures


@pytest.mark.parametrize("name", POLICIES)
def test_each_type_has_a_lottery(name: str) -> None:
    problem = problems()[0]
    lotteries = lotteries_of(POLICIES[name], dense_counts(problem), seed=3)
    for lottery in lotteries:
        assert lottery.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
        assert lottery.probabilities.min() > 0.0
        assert lottery.kept_factor == pytest.approx(1.0)
    assert len({tuple(lottery.rankings[0]) for lottery in lotteries}) > 1


def test_the_lotteries_of_greedy_rank_are_the_best_for_its_estimates() -> None:
    problem = problems()[0]
    counts = dense_counts(problem)
    guarantees = (*FLOOR, KeptShare(0.9, user_types=[0]))
    policy = GreedyRank(coefficient=0.0, guarantees=guarantees)
    lotteries = lotteries_of(policy, counts, seed=3)
    estimates = estimate(counts)
    best = solve_lottery(estimates, guarantees=guarantees, treatment="personalized")
    values = [
        float(lottery.probabilities @ (estimates.item_means[i, lottery.rankings] @ looks))
        for i, (lottery, looks) in enumerate(zip(lotteries, estimates.position_preferences, strict=True))
    ]
    assert estimates.arrival_rates @ values == pytest.approx(best.value, rel=2e-3)  # the gap in the loop
    assert exposures_of(estimates, lotteries).min() >= 0.1 - 1e-9


def test_without_a_binding_guarantee_the_rankings_are_those_without_guarantees() -> None:
    problem = problems()[0]
    counts = dense_counts(problem)
    for kind in (GreedyRank, UCBRank):
        plain = kind(coefficient=0.5)
        kept = kind(coefficient=0.5, guarantees=[KeptShare(0.5)])
        for user_type in range(problem.n_user_types):
            rankings = [
                policy.start(counts=counts, rng=8).rank(user_type).tolist() for policy in (plain, kept)
            ]
            assert rankings[0] == rankings[1]


def test_the_oracle_has_no_regret_and_keeps_the_guarantees() -> None:
    problem = conflict()
    oracle = make_policy("oracle", problem, guarantees=[LeastExposure(0.02)])
    result = simulate(oracle, problem, 500, 1, seed=3, workers=1)
    assert result.final_regret == pytest.approx(0.0, abs=1e-6)
    lotteries = lotteries_of(oracle, Counts.empty_for(problem), seed=1)
    assert exposures_of(problem, lotteries).min() >= 0.02 - 1e-9


def test_regret_is_that_of_the_lotteries_in_force() -> None:
    """The regret of a simulation is that of the lotteries of a learner with the same generators."""
    problem, policy, rounds = kdd2012(), POLICIES["thompson-rank"], 40
    result = simulate(policy, problem, rounds, 1, seed=4, checkpoints=list(range(1, rounds + 1)), workers=1)
    arrivals, clicks, rng = replication_generators(4, 0)
    learner, compiled = policy.start(problem, rng=rng), compile_problem(problem, None, SINGLE_LOOK)
    best = solve_lottery(problem, guarantees=FLOOR, treatment="personalized")
    rewards, gaps = np.zeros(problem.n_positions), []
    for uniform in arrivals.random(rounds):
        user_type = int(draw_user_type(compiled, uniform))
        ranking = learner.rank(user_type)
        buffer = learner._compiled._kernel.state.solver.lottery  # lotteries of all types
        size = int(buffer.size[0])
        shown = buffer.rankings[:size].astype(int)
        value = sum(
            problem.arrival_rates[i] * p * (problem.item_means[i, one] @ problem.position_preferences[i])
            for i, p, one in zip(buffer.owners, buffer.probabilities, shown, strict=False)
        )
        gaps.append(best.value - value)
        SINGLE_LOOK.draw(compiled, user_type, ranking.astype(np.uintp), clicks, rewards)
        learner.update(user_type, ranking, rewards=rewards)
    assert result.regret[0] == pytest.approx(np.cumsum(gaps), rel=1e-9, abs=1e-9)


def test_regret_is_sub_linear_and_exposure_is_kept() -> None:
    """In both runs; 5 standard errors of a share have an error rate below 1e-4 for 40 shares."""
    problem, level, horizon = conflict(), 0.02, 10_000
    policy = ThompsonRank(guarantees=(LeastExposure(level),))
    checkpoints = [horizon // 4, horizon]
    result = simulate(
        policy, problem, horizon, 2, seed=2, checkpoints=checkpoints, keep_counts=True, workers=1
    )
    assert (result.regret[:, 1] < 2.8 * result.regret[:, 0]).all()  # 4 if linear, 2 if of order √t
    for counts in result.counts:
        looks = np.einsum("ijk,ik->j", counts.displays, problem.position_preferences) / horizon
        assert (looks >= level - 5.0 * np.sqrt(level * (1 - level) / horizon)).all()


def test_invalid_arguments_are_rejected_in_one_line() -> None:
    learner = POLICIES["thompson-rank"].start(kdd2012(), rng=1)
    with pytest.raises(InvalidInputError, match="candidates must be left out if there are guarantees"):
        learner.rank(0, candidates=[0, 1, 2])
    with pytest.raises(UnsolvableError, match="guarantees cannot all be kept: the largest common factor"):
        Oracle(kdd2012(), guarantees=(LeastExposure(0.9, items=[0]),))
    with pytest.raises(InvalidInputError, match="guarantees must be left out for policy type-blind-grab"):
        make_policy("type-blind-grab", guarantees=FLOOR)


def test_exploration_has_no_lottery() -> None:
    learner = GreedyRank(guarantees=FLOOR).start(kdd2012(), rng=1)
    learner.rank(0)  # of the initial phase
    assert learner.lottery is None
