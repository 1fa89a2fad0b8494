"""The paper's Algorithms 2 and 3, line by line."""

import pickle

import numpy as np
import pytest

from banditrank import (
    Counts,
    GreedyRank,
    InvalidInputError,
    TypeBlindUCB,
    UCBRank,
    UnsolvableError,
    make_problem,
)
from banditrank.policies import schedules
from banditrank.policies._base import policy_label
from banditrank.policies._catalog import POLICY_NAMES, make_policy
from banditrank.testing._policies import dense_counts

RNG = np.random.default_rng(0)
ALL = [
    UCBRank(coefficient=1.0),
    GreedyRank(coefficient=1.0),
    UCBRank(coefficient=1.0, treatment="equal"),
    GreedyRank(coefficient=1.0, treatment="equal", utility="nash"),
    TypeBlindUCB(coefficient=1.0),
]


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy_label(policy.describe()))
def test_the_initial_phase_shows_items_in_turn(policy: UCBRank) -> None:
    counts = Counts.empty(n_user_types=2, n_items=5, n_positions=3)
    for t in range(1, 13):
        # The paper: [(t + k) mod M] + 1 → k for k = 1..K, items counted from 1.
        expected = [(t + k) % 5 for k in (1, 2, 3)]
        assert policy.rank(counts, 0, rng=RNG).tolist() == expected
        counts.record(t % 2, expected, rewards=[0, 0, 0])


@pytest.mark.parametrize("policy", ALL[:4], ids=lambda policy: policy_label(policy.describe()))
def test_the_initial_phase_lasts_until_every_cell_has_a_reward(policy: UCBRank) -> None:
    problem = make_problem("random", n_user_types=2, n_items=5, n_positions=2, seed=1)
    counts = dense_counts(problem)
    rewards = counts.rewards.copy()
    rewards[1, 3, 1] = 0
    waiting = Counts.from_arrays(counts.displays, rewards, counts.arrivals, 1001)
    expected = [(1002 + k) % 5 for k in (1, 2)]
    assert policy.rank(waiting, 0, rng=RNG).tolist() == expected


def test_the_type_blind_baseline_waits_for_anybody() -> None:
    displays, rewards = np.full((2, 2, 1), 10.0), np.array([[[4.0], [0.0]], [[0.0], [6.0]]])
    counts = Counts.from_arrays(displays, rewards, [10, 10], 20)
    assert TypeBlindUCB(coefficient=0.0).rank(counts, 0, rng=RNG).tolist() == [1]
    assert UCBRank(coefficient=0.0).rank(counts, 0, rng=RNG).tolist() == [(21 + 1) % 2]


@pytest.mark.parametrize("treatment", ["personalized", "equal"])
def test_greedy_explores_in_turn(treatment: str) -> None:
    problem = make_problem("random", n_user_types=2, n_items=4, n_positions=2, seed=1)
    policy = GreedyRank(schedule=schedules.constant(coefficient=1.0), treatment=treatment)
    scratch, counts = policy.new_scratch(), dense_counts(problem)
    shown = [policy.rank(counts, 0, rng=RNG, scratch=scratch).tolist() for _ in range(9)]
    # I_explore starts at 1 and runs 1, 2, …, M, 1, …
    turns = [1, 2, 3, 4, 1, 2, 3, 4, 1]
    assert shown == [[(turn + k) % 4 for k in (1, 2)] for turn in turns]


def test_personalized_ucb_ranks_by_mean_plus_bonus() -> None:
    problem = make_problem("random", n_user_types=2, n_items=6, n_positions=3, seed=3)
    counts = dense_counts(problem)
    t = counts.rounds + 1
    ratios = counts.rewards[1] / counts.displays[1]
    rho = (ratios / ratios.sum(axis=1, keepdims=True)).mean(axis=0)
    looks = counts.displays[1] @ rho
    index = counts.rewards[1].sum(axis=1) / looks + 40.0 * np.log(t) / looks
    expected = np.zeros(3, dtype=int)
    expected[np.argsort(-rho)] = np.argsort(-index)[:3]
    assert UCBRank(coefficient=40.0).rank(counts, 1, rng=RNG).tolist() == expected.tolist()


def test_schedules_of_the_theorems() -> None:
    problem = make_problem("random", n_user_types=3, n_items=6, n_positions=3, seed=3)
    smallest = problem.item_means.min()
    t = np.array([1, 100, 10**12])
    assert schedules.theorem_1(problem)(t) == pytest.approx(t**-0.5)
    assert schedules.theorem_1(problem, reading="proof")(t) == pytest.approx(3 * t**-0.5)
    assert schedules.theorem_3(problem)(t) == pytest.approx(3 * t**-0.5)
    assert schedules.theorem_2(problem)(t) == pytest.approx(2 / smallest)
    assert schedules.theorem_4(problem, lipschitz=5.0)(t) == pytest.approx(10 / smallest)
    assert schedules.theorem_4(problem, lipschitz=5.0, reading="proof")(t) == pytest.approx(20 / smallest)
    upper = schedules.theorem_2(problem, end="upper")(t)
    assert upper[2] == pytest.approx(np.sqrt(t[2] / np.log(t[2])))
    assert upper[0] == pytest.approx(2 / smallest)


def test_any_function_is_a_schedule() -> None:
    t = np.array([1, 20])
    assert GreedyRank(schedule=lambda t: min(1.0, 10 / t)).parameters(t)[:, :2].tolist() == [
        [1.0, 0.0],
        [0.5, 0.0],
    ]
    roots = schedules.Schedule("roots", np.sqrt)
    bonuses = [[0, 0], [0, np.sqrt(20) * np.log(20)]]
    assert UCBRank(schedule=roots).parameters(t)[:, :2] == pytest.approx(np.array(bonuses))
    assert GreedyRank(coefficient=5.0).parameters(np.array([4, 100]))[:, 0] == pytest.approx([1.0, 0.5])


def test_the_solvers_gap_shrinks_as_the_theorems_allow() -> None:
    t = np.array([1, 10, 10_000, 1_000_000])
    assert GreedyRank(coefficient=1.0).parameters(t)[:, 2] == pytest.approx([0.01, 0.01, 1e-4, 1e-6])
    late = 0.3 * np.sqrt(np.log(t[2:]) / t[2:])
    assert UCBRank(coefficient=1.0).parameters(t)[:, 2] == pytest.approx([0.0, 0.01, *late])


def test_policies_are_values() -> None:
    problem = make_problem("random", n_user_types=2, n_items=4, n_positions=2, seed=1)
    for make in (
        lambda: UCBRank(coefficient=0.5),
        lambda: GreedyRank(schedule=schedules.theorem_1(problem), treatment="equal", utility="nash"),
        lambda: TypeBlindUCB(coefficient=2.0),
    ):
        assert make() == make()
    assert UCBRank(coefficient=0.5) != UCBRank(coefficient=0.25)
    assert pickle.loads(pickle.dumps(UCBRank(coefficient=0.5))) == UCBRank(coefficient=0.5)  # noqa: S301 - our own bytes


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "x", True])
def test_a_bad_coefficient_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError, match="coefficient must be a number from 0 to 1,000,000,000, got"):
        UCBRank(coefficient=value)


def test_a_schedule_that_leaves_its_range_is_refused() -> None:
    with pytest.raises(
        InvalidInputError, match=r"schedule custom must be finite and not negative, got '-1\.0 at"
    ):
        GreedyRank(schedule=lambda t: 1.0 - t).parameters(np.array([1, 2]))


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="solver must be auto under personalized"):
        UCBRank(coefficient=1.0, solver="assignment")
    with pytest.raises(UnsolvableError, match="needs a linear utility"):
        UCBRank(coefficient=1.0, treatment="equal", utility="nash", solver="assignment")
    with pytest.raises(InvalidInputError, match=r"did you mean equal\?"):
        UCBRank(coefficient=1.0, treatment="equals")
    zero_mean = make_problem("ties", n_user_types=3, n_items=40, n_positions=3, seed=3)
    means = zero_mean.item_means.copy()
    means[0, 0] = 0.0
    broken = type(zero_mean)(zero_mean.arrival_rates, zero_mean.position_preferences, means)
    with pytest.raises(InvalidInputError, match="item_means must all be positive"):
        schedules.theorem_2(broken)


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_every_policy_is_found_by_its_name(name: str) -> None:
    problem = make_problem("random", n_user_types=2, n_items=4, n_positions=2, seed=1)
    for treatment in ("personalized", "equal"):
        policy = make_policy(name, problem, treatment=treatment)
        assert policy.name == ("thompson-rank" if name == "auto" else name.removesuffix("-ordered"))
        assert (getattr(policy, "order", None) is not None) == name.endswith("-ordered")
        assert policy.treatment == treatment


def test_an_unknown_policy_suggests_the_nearest() -> None:
    problem = make_problem("random", n_user_types=2, n_items=4, n_positions=2, seed=1)
    with pytest.raises(InvalidInputError, match=r"did you mean greedy-rank\?"):
        make_policy("greedyrank", problem)
    with pytest.raises(InvalidInputError, match="solver must be left out for policy random"):
        make_policy("random", problem, solver="sampling")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ucb-rank", {"estimator": "bayes"}, "estimator must be one of paper, likelihood, got 'bayes'"),
        ("auto", {"estimator": "likelihood"}, "estimator must be left out for policy auto"),
        ("oracle", {"coefficient": 1.0}, "coefficient must be left out for policy oracle, got 1.0"),
        ("random", {"smoothed": True}, "smoothed must be left out for policy random, got True"),
    ],
)
def test_an_option_that_does_not_apply_is_refused(name: str, options: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make_policy(name, make_problem("random", n_user_types=2, n_items=4, n_positions=2, seed=1), **options)
