"""The compiled loop makes the choices of a full recomputation, round by round."""

import numpy as np
import pytest

from banditrank import (
    BetaRewards,
    GreedyRank,
    Oracle,
    Policy,
    Problem,
    TypeBlindUCB,
    UCBRank,
    UniformRandom,
    Utility,
    estimate,
    kdd2012,
    make_problem,
    simulate,
    solve,
)
from banditrank.policies._base import CompiledPolicy
from banditrank.simulation import _run as run
from banditrank.testing._policies import dense_counts


class Recomputed(Policy):
    """A policy that forgets everything but the counts after each round."""

    def __init__(self, policy: CompiledPolicy) -> None:
        self.policy = policy
        self.treatment = policy.treatment
        self.utility = policy.utility

    def new_scratch(self) -> object:
        return self.policy.new_scratch()

    def rank(self, counts, user_type, *, rng, scratch=None):  # noqa: ANN001, ANN201
        return self.policy.rank(counts, user_type, rng=rng, scratch=scratch)


SMALL = make_problem("random", n_user_types=2, n_items=4, n_positions=2, seed=2)
MANY_ITEMS = make_problem("random", n_user_types=2, n_items=30, n_positions=4, seed=5)
ALL_SHOWN = make_problem("random", n_user_types=1, n_items=3, n_positions=3, seed=1)
ONE_POSITION = make_problem("random", n_user_types=2, n_items=5, n_positions=1, seed=1)
SIGMOID = Utility.from_function(
    lambda u: 1 / (1 + np.exp(-12 * (u - 0.4))), shape="non-concave", name="sigmoid"
)
STEEPER = Utility.from_function(lambda u: 3 * u, shape="linear", name="steeper")

POLICIES = [
    UCBRank(coefficient=0.25),
    UCBRank(coefficient=20.0),
    UCBRank(schedule=lambda t: 3.0 if t % 500 < 250 else 0.0),  # a bonus that comes and goes
    GreedyRank(coefficient=0.25),
    GreedyRank(coefficient=20.0),
    UCBRank(coefficient=0.5, treatment="equal"),
    UCBRank(coefficient=5.0, treatment="equal", utility=STEEPER),
    GreedyRank(coefficient=2.0, treatment="equal"),
    TypeBlindUCB(coefficient=1.0),
    UniformRandom(),
]
PROBLEMS = [SMALL, MANY_ITEMS, ALL_SHOWN, ONE_POSITION]
IN_DEPTH = pytest.mark.campaign

# Full recomputation takes most of the time. Short runs leave the initial phase where long ones do.
run_lengths = pytest.mark.parametrize("horizon", [600, pytest.param(1500, marks=IN_DEPTH)])


# Every policy with one problem in turn, with the others in depth.
@run_lengths
@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        pytest.param(
            policy,
            problem,
            id=f"{policy.name}-{policy.treatment}-{problem.name}",
            marks=() if column == row % len(PROBLEMS) else IN_DEPTH,
        )
        for row, policy in enumerate(POLICIES)
        for column, problem in enumerate(PROBLEMS)
    ],
)
def test_the_loop_equals_full_recomputation(policy: CompiledPolicy, problem: Problem, horizon: int) -> None:
    settings = {"horizon": horizon, "replications": 1, "seed": 3, "rewards": BetaRewards(3.0)}
    fast = simulate(policy, problem, **settings)
    full = simulate(Recomputed(policy), problem, **settings)
    assert fast.regret == pytest.approx(full.regret, abs=1e-9)
    assert np.array_equal(fast.optimal_rate, full.optimal_rate)


SMALL_REWARDS = Problem(
    [0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]], [[1e-3, 0.5, 0.1], [0.2, 0.3, 0.8]], name="small-rewards"
)


SEEDS = [0, *(pytest.param(seed, marks=IN_DEPTH) for seed in (1, 2, 3))]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_loop_keeps_its_digits_when_first_rewards_are_tiny(seed: int) -> None:
    # Beta rewards with a mean of 0.001 are often below 1e-100: differences of their inverses say nothing.
    settings = {"horizon": 600, "replications": 1, "seed": seed, "rewards": BetaRewards(3.0)}
    for policy in (
        UCBRank(coefficient=0.5, treatment="equal"),
        UCBRank(coefficient=0.5),
        GreedyRank(coefficient=0.5, treatment="equal"),
    ):
        fast, full = (simulate(each, SMALL_REWARDS, **settings) for each in (policy, Recomputed(policy)))
        assert fast.regret == pytest.approx(full.regret, abs=1e-9)


@run_lengths
@pytest.mark.parametrize("seed", SEEDS)
def test_the_loop_settles_ties_as_a_full_recomputation_does(seed: int, horizon: int) -> None:
    # Clicks are whole numbers, so that few of them make exact ties.
    settings = {"horizon": horizon, "replications": 1, "seed": seed}
    for policy in (TypeBlindUCB(coefficient=1.0), UCBRank(coefficient=0.5), GreedyRank(coefficient=0.5)):
        fast, full = (simulate(each, SMALL_REWARDS, **settings) for each in (policy, Recomputed(policy)))
        assert fast.regret == pytest.approx(full.regret, abs=1e-9)


@run_lengths
@pytest.mark.parametrize(
    ("solver", "utility"),
    [
        ("enumeration", "nash"),
        ("enumeration", SIGMOID),
        ("sampling", "maximin"),
        ("sampling", "alpha:2"),
        pytest.param("enumeration", "maximin", marks=IN_DEPTH),
        pytest.param("enumeration", "alpha:2", marks=IN_DEPTH),
        pytest.param("sampling", "nash", marks=IN_DEPTH),
        pytest.param("sampling", SIGMOID, marks=IN_DEPTH),
    ],
    ids=str,
)
def test_enumeration_in_the_loop_equals_full_recomputation(utility: str, solver: str, horizon: int) -> None:
    policy = UCBRank(coefficient=0.5, treatment="equal", utility=utility, solver=solver)
    settings = {"horizon": horizon, "replications": 1, "seed": 3}
    fast = simulate(policy, kdd2012(), **settings)
    full = simulate(Recomputed(policy), kdd2012(), **settings)
    assert fast.regret == pytest.approx(full.regret, abs=1e-9)


@pytest.mark.parametrize("utility", ["nash", "maximin", "alpha:2", "sigmoid:20:0.3"])
@pytest.mark.parametrize("kind", [UCBRank, GreedyRank])
def test_a_searched_ranking_is_within_delta_of_the_best(utility: str, kind: type) -> None:
    for family in ("random", "conflict"):
        problem = make_problem(family, n_user_types=3, n_items=20, n_positions=4, seed=3)
        counts = dense_counts(problem)
        policy = kind(coefficient=0.0 if kind is GreedyRank else 0.5, treatment="equal", utility=utility)
        _, bonus, delta = policy.parameters(np.array([counts.rounds + 1]))[0]
        known = estimate(counts)
        bonuses = (bonus / known.exposure).sum(axis=0)
        ranking = policy.rank(counts, 0, rng=np.random.default_rng(0))
        value = known.collective_utility(ranking, policy.utility) + bonuses[ranking].sum()
        best = solve(known, utility, bonuses=bonuses, solver="enumeration").value
        assert best - value <= delta * max(1.0, abs(value))


@pytest.mark.parametrize(
    "policy",
    [
        UCBRank(coefficient=0.25),
        # Each is a loop of its own to compile.
        pytest.param(GreedyRank(coefficient=0.25), marks=IN_DEPTH),
        pytest.param(UCBRank(coefficient=0.5, treatment="equal"), marks=IN_DEPTH),
    ],
)
def test_fused_loops_have_the_results_of_the_shared_loop(
    policy: CompiledPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = simulate(policy, kdd2012(), 30_000, 2, 1)
    monkeypatch.setattr(run, "MIN_FUSED_ROUNDS", 0)
    fused = simulate(policy, kdd2012(), 30_000, 2, 1)
    assert np.array_equal(shared.regret, fused.regret)


def test_assignment_and_enumeration_show_the_same() -> None:
    settings = {"horizon": 20_000, "replications": 3, "seed": 2}
    by_assignment = simulate(UCBRank(coefficient=0.5, treatment="equal"), kdd2012(), **settings)
    tried = simulate(UCBRank(coefficient=0.5, treatment="equal", solver="enumeration"), kdd2012(), **settings)
    assert by_assignment.regret == pytest.approx(tried.regret, abs=1e-9)


@pytest.mark.parametrize("treatment", ["personalized", "equal"])
def test_the_oracle_has_no_regret(treatment: str) -> None:
    for utility in ("utilitarian", "nash", "maximin")[: 1 if treatment == "personalized" else 3]:
        oracle = Oracle(
            MANY_ITEMS if utility == "utilitarian" else SMALL, treatment=treatment, utility=utility
        )
        result = simulate(oracle, oracle.problem, 2000, 2, 0)
        assert (result.regret == 0).all()
        assert (result.optimal_rate == 1).all()


def test_the_oracle_knows_the_rewards() -> None:
    problem = make_problem("conflict", n_user_types=3, n_items=6, n_positions=2, seed=1)
    oracle = Oracle(problem, treatment="equal", utility=SIGMOID, rewards=BetaRewards(4.0, 10.0))
    result = simulate(oracle, problem, 500, 1, 0, rewards=BetaRewards(4.0, 10.0))
    assert (result.regret == 0).all()


def test_random_rankings_have_linear_regret() -> None:
    # Error rate: the mean of 20,000 gaps is off by 5% with probability below 1e-9.
    result = simulate(UniformRandom(), kdd2012(), 20_000, 1, 0)
    half = result.regret[0, np.searchsorted(result.checkpoints, 10_000)]
    assert result.final_regret[0] == pytest.approx(2 * half, rel=0.05)
