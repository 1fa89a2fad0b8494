"""Policies that draw rankings from one lottery for all user types."""

import numpy as np
import pytest

from banditrank import (
    Forgetful,
    GreedyRank,
    InvalidInputError,
    KeptShare,
    LeastExposure,
    Oracle,
    ThompsonRank,
    UCBRank,
    UniformRandom,
    UnsolvableError,
    as_utility,
    estimate,
    kdd2012,
    make_policy,
    make_problem,
    simulate,
    solve,
    solve_lottery,
)
from banditrank.counts._counts import Counts
from banditrank.model._click_models import SINGLE_LOOK, compile_problem, draw_user_type
from banditrank.model._problem import Problem
from banditrank.policies._base import CompiledPolicy
from banditrank.simulation._replication import replication_generators
from banditrank.testing._policies import dense_counts, problems

POLICIES = {
    "thompson-rank": ThompsonRank(treatment="equal-lottery", utility="maximin"),
    "greedy-rank": GreedyRank(treatment="equal-lottery", utility="maximin", coefficient=0.0),
    "ucb-rank": UCBRank(treatment="equal-lottery", utility="maximin"),
}


def conflict(seed: int = 1) -> Problem:
    return make_problem("conflict", n_user_types=3, n_items=20, n_positions=4, seed=seed)


def draw(policy: CompiledPolicy, counts: Counts, user_type: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rankings and the probabilities of the lottery of a round."""
    learner = policy.start(counts=counts, rng=seed)
    learner.rank(user_type)
    assert learner.lottery is not None
    return learner.lottery.rankings, learner.lottery.probabilities


@pytest.mark.parametrize("name", POLICIES)
def test_the_lottery_is_the_same_for_all_user_types(name: str) -> None:
    problem = problems()[0]
    counts = dense_counts(problem)
    first = draw(POLICIES[name], counts, 0, seed=3)
    assert first[1].sum() == pytest.approx(1.0, abs=1e-12)
    assert first[1].min() > 0.0
    for user_type in range(1, problem.n_user_types):
        for mine, other in zip(first, draw(POLICIES[name], counts, user_type, seed=3), strict=True):
            assert np.array_equal(mine, other)


@pytest.mark.parametrize("name", POLICIES)
def test_rankings_are_drawn_with_the_odds_of_the_lottery(name: str) -> None:
    """Rankings of one state; a test of 5 standard errors has an error rate below 1e-5 for ≤ 8 rankings."""
    problem = problems()[0]
    learner = POLICIES[name].start(counts=dense_counts(problem), rng=5)
    expected, seen, n_draws = {}, {}, 3_000
    for _ in range(n_draws):
        shown = tuple(learner.rank(0).tolist())
        lottery = learner.lottery
        assert lottery is not None
        for ranking, probability in zip(lottery.rankings.tolist(), lottery.probabilities, strict=True):
            expected[tuple(ranking)] = expected.get(tuple(ranking), 0.0) + probability
        seen[shown] = seen.get(shown, 0) + 1
    assert set(seen) <= set(expected)
    for ranking, total in expected.items():
        rate = total / n_draws
        assert abs(seen.get(ranking, 0) - total) <= 5.0 * np.sqrt(n_draws * rate * (1 - rate)) + 5.0


def test_the_oracle_has_no_regret_and_others_are_measured_against_its_lottery() -> None:
    problem = conflict()
    best, fixed = solve_lottery(problem, "maximin").value, solve(problem, "maximin").value
    oracle = Oracle(problem, treatment="equal-lottery", utility="maximin")
    assert simulate(oracle, problem, 500, 2, workers=1).final_regret == pytest.approx(0.0, abs=1e-9)
    lottery = simulate(
        UniformRandom(treatment="equal-lottery", utility="maximin"), problem, 500, 2, workers=1
    )
    ranking = simulate(UniformRandom(treatment="equal", utility="maximin"), problem, 500, 2, workers=1)
    assert lottery.final_regret - ranking.final_regret == pytest.approx(500 * (best - fixed), rel=1e-6)


def test_regret_is_that_of_the_lottery_in_force() -> None:
    """The regret of a simulation is that of the lotteries of a learner with the same generators."""
    problem, policy, rounds = kdd2012(), POLICIES["thompson-rank"], 60
    result = simulate(policy, problem, rounds, 1, seed=4, checkpoints=list(range(1, rounds + 1)), workers=1)
    arrivals, clicks, rng = replication_generators(4, 0)
    learner, compiled = policy.start(problem, rng=rng), compile_problem(problem, None, SINGLE_LOOK)
    best, rewards = solve_lottery(problem, "maximin").value, np.zeros(problem.n_positions)
    gaps = []
    for uniform in arrivals.random(rounds):
        user_type = int(draw_user_type(compiled, uniform))
        ranking = learner.rank(user_type)
        lottery = learner.lottery
        assert lottery is not None
        shown = problem.item_means[:, lottery.rankings] * problem.position_preferences[:, None, :]
        gaps.append(best - (shown.sum(axis=2) @ lottery.probabilities).min())
        SINGLE_LOOK.draw(compiled, user_type, ranking.astype(np.uintp), clicks, rewards)
        learner.update(user_type, ranking, rewards=rewards)
    assert result.regret[0] == pytest.approx(np.cumsum(gaps), rel=1e-9, abs=1e-12)


def test_regret_is_sub_linear() -> None:
    problem, horizon = conflict(), 10_000
    policy = POLICIES["thompson-rank"]
    result = simulate(policy, problem, horizon, 4, seed=2, checkpoints=[horizon // 4, horizon], workers=1)
    assert (result.regret[:, 1] < 2.8 * result.regret[:, 0]).all()  # 4 if linear, 2 if of order √t


@pytest.mark.campaign
@pytest.mark.parametrize("utility", ["nash", "maximin"])
def test_learned_lotteries_beat_every_ranking_in_long_runs(utility: str) -> None:
    """In 40 runs of 100,000 rounds.

    Regret is sub-linear in every run: after ten times the rounds it is less than five times as large. The
    lottery that the counts teach is better than the best ranking in at least 90% of runs.
    """
    problem, horizon = conflict(), 100_000
    policy = ThompsonRank(treatment="equal-lottery", utility=utility)
    result = simulate(
        policy, problem, horizon, 40, seed=1, checkpoints=[horizon // 10, horizon], keep_counts=True
    )
    assert (result.regret[:, 1] < 5.0 * result.regret[:, 0]).all()
    fixed, rates = solve(problem, utility), problem.arrival_rates
    above = 0
    for counts in result.counts:
        learned = solve_lottery(estimate(counts, method="likelihood"), utility)
        shown = problem.item_means[:, learned.rankings] * problem.position_preferences[:, None, :]
        values = shown.sum(axis=2) @ learned.probabilities
        above += as_utility(utility).collective(rates, values) > fixed.value
    assert above >= 36


def test_exposure_guarantees_are_kept() -> None:
    """Realised exposures of 20 items; 5 standard errors of a share have an error rate below 1e-5 in all."""
    problem, level, rounds = conflict(), 0.02, 10_000
    policy = ThompsonRank(treatment="equal-lottery", utility="maximin", guarantees=(LeastExposure(level),))
    [counts] = simulate(policy, problem, rounds, 1, seed=6, keep_counts=True, workers=1).counts
    shown = counts.displays_by_position.sum(axis=0) / rounds  # (K, M)
    exposures = problem.arrival_rates @ problem.position_preferences @ shown
    assert (exposures >= level - 5.0 * np.sqrt(level * (1 - level) / rounds)).all()
    unguaranteed = simulate(
        POLICIES["thompson-rank"], problem, rounds, 1, seed=6, keep_counts=True, workers=1
    ).counts[0]
    shown = unguaranteed.displays_by_position.sum(axis=0) / rounds
    assert (problem.arrival_rates @ problem.position_preferences @ shown).min() < level / 2


@pytest.mark.campaign
def test_exposure_guarantees_are_kept_in_every_run() -> None:
    """As above in 40 runs under Nash: 800 shares, an error rate below 1e-3 in all."""
    problem, level, rounds = conflict(), 0.02, 5_000
    policy = ThompsonRank(treatment="equal-lottery", utility="nash", guarantees=(LeastExposure(level),))
    result = simulate(policy, problem, rounds, 40, seed=6, keep_counts=True)
    for counts in result.counts:
        shown = counts.displays_by_position.sum(axis=0) / rounds  # (K, M)
        exposures = problem.arrival_rates @ problem.position_preferences @ shown
        assert (exposures >= level - 5.0 * np.sqrt(level * (1 - level) / rounds)).all()


def test_lotteries_keep_guarantees_by_the_estimates() -> None:
    problem = problems()[0]
    n = problem.n_user_types
    policy = GreedyRank(
        treatment="equal-lottery",
        utility="maximin",
        coefficient=0.0,
        guarantees=[LeastExposure(0.05), KeptShare(0.3, user_types=[n - 1])],
    )
    learner = policy.start(counts=dense_counts(problem), rng=1)
    learner.rank(0)
    assert learner.lottery is not None
    assert learner.lottery.kept_factor == pytest.approx(1.0)
    assert len(np.unique(learner.lottery.rankings)) == problem.n_items


def test_exploration_has_no_lottery() -> None:
    learner = GreedyRank(treatment="equal-lottery", utility="nash").start(kdd2012(), rng=1)
    assert learner.lottery is None
    learner.rank(0)  # of the initial phase
    assert learner.lottery is None
    assert ThompsonRank().start(kdd2012(), rng=1).lottery is None


def test_invalid_arguments_are_rejected_in_one_line() -> None:
    lottery = {"treatment": "equal-lottery", "utility": "nash"}
    with pytest.raises(InvalidInputError, match="solver must be auto under equal-lottery treatment, got"):
        ThompsonRank(solver="branch-and-bound", **lottery)
    with pytest.raises(UnsolvableError, match="a lottery needs a concave utility or maximin, got sigmoid"):
        UCBRank(treatment="equal-lottery", utility="sigmoid:20:0.3")
    with pytest.raises(
        InvalidInputError, match="guarantees must be left out under equal treatment: one ranking"
    ):
        ThompsonRank(treatment="equal", guarantees=(LeastExposure(0.1),))
    with pytest.raises(InvalidInputError, match="guarantees must be of LeastExposure and KeptShare, got 0"):
        UCBRank(guarantees=[0.1], **lottery)
    with pytest.raises(InvalidInputError, match="must hold indices of items and user types"):
        UCBRank(guarantees=[LeastExposure(0.1, items=["item-1"])], **lottery)
    with pytest.raises(InvalidInputError, match="item must be a name, or a number from 0 to 4, got 5"):
        ThompsonRank(guarantees=(LeastExposure(0.1, items=[5]),), **lottery).start(kdd2012())
    with pytest.raises(InvalidInputError, match="guarantees must have least exposures that sum to at most 1"):
        ThompsonRank(guarantees=(LeastExposure(0.3),), **lottery).start(kdd2012())
    with pytest.raises(InvalidInputError, match="guarantees must be left out for policy random"):
        make_policy("random", guarantees=[LeastExposure(0.1)], **lottery)
    learner = ThompsonRank(**lottery).start(kdd2012(), rng=1)
    with pytest.raises(InvalidInputError, match="candidates must be left out under equal-lottery treatment"):
        learner.rank(0, candidates=[0, 1, 2])
    with pytest.raises(UnsolvableError, match="guarantees cannot all be kept: the largest common factor"):
        simulate(
            ThompsonRank(guarantees=(LeastExposure(0.9, items=[0]),), **lottery), kdd2012(), 10, 1, workers=1
        )
    with pytest.raises(UnsolvableError, match="a lottery needs clicks that depend on an item"):
        simulate(ThompsonRank(**lottery), kdd2012(), 10, 1, workers=1, click_model="cascade")


def test_descriptions_name_the_treatment_and_the_guarantees() -> None:
    policy = Forgetful(make_policy("auto", treatment="equal-lottery", utility="nash"), "window:100")
    assert policy.describe()["treatment"] == "equal-lottery"
    assert policy.describe()["utility"] == "nash"
    kept = make_policy("ucb-rank", treatment="equal-lottery", guarantees=[LeastExposure(0.1)])
    assert "LeastExposure(level=0.1" in kept.describe()["guarantees"]
    assert "guarantees" not in UCBRank().describe()
