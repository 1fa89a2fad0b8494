"""Learning one round at a time: the rankings of the simulator, for every policy."""

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from banditrank import (
    Counts,
    Forgetful,
    GreedyRank,
    InvalidInputError,
    Oracle,
    Policy,
    Problem,
    Smoothing,
    ThompsonRank,
    TypeBlindUCB,
    UCBRank,
    UnsolvableError,
    Utility,
    kdd2012,
    make_problem,
    simulate,
)
from banditrank.model._click_models import SINGLE_LOOK, compile_problem, draw_user_type
from banditrank.model._rankings import as_ranking
from banditrank.model._rewards import BernoulliRewards
from banditrank.policies._catalog import POLICY_NAMES, make_policy
from banditrank.policies._learner import Learner
from banditrank.policies._type_blind import TypeBlind
from banditrank.simulation._regret import equal_regret, personalized_regret
from banditrank.simulation._replication import Experiment

SMALL = make_problem("random", n_user_types=2, n_items=5, n_positions=3, seed=1)
SEED, ROUNDS = 5, 400


class MostClicked(Policy):
    """A policy in plain Python."""

    def rank(self, counts, user_type, *, rng, scratch=None):  # noqa: ANN001, ANN201, ARG002
        clicks = counts.rewards[user_type].sum(axis=1) + rng.uniform(0, 0.1, counts.n_items)
        return np.argsort(-clicks)[: counts.n_positions]


class Rounds(NamedTuple):
    user_types: list[int]
    rankings: list[NDArray[np.intp]]
    learner: Learner


def learn_as_the_simulator_does(policy: Policy, problem: Problem, rounds: int) -> Rounds:
    """Run a learner on the arrivals, clicks and generator of the first replication of a simulation."""
    experiment = Experiment(
        policy,
        problem,
        BernoulliRewards(),
        SINGLE_LOOK,
        rounds,
        np.array([rounds]),
        SEED,
        1,
        keep_counts=True,
    )
    arrivals_rng, clicks_rng, policy_rng = experiment.generators(0)
    learner = policy.start(problem, rng=policy_rng)
    compiled, rewards = compile_problem(problem), np.zeros(problem.n_positions)
    user_types, rankings = [], []
    for _ in range(rounds):
        user_type = int(draw_user_type(compiled, arrivals_rng.random()))
        ranking = learner.rank(user_type)
        SINGLE_LOOK.draw(compiled, user_type, ranking.astype(np.uintp), clicks_rng, rewards)
        learner.update(user_type, ranking, rewards=rewards)
        user_types.append(user_type)
        rankings.append(ranking)
    return Rounds(user_types, rankings, learner)


SIMULATED = {
    "ucb": UCBRank(coefficient=0.5),
    "greedy": GreedyRank(coefficient=2.0),
    "greedy equal nash": GreedyRank(coefficient=2.0, treatment="equal", utility="nash"),
    "smoothed likelihood": UCBRank(coefficient=0.5, estimator="likelihood", smoothing=Smoothing()),
    "type-blind": TypeBlindUCB(coefficient=0.5),
    "thompson": ThompsonRank(),
    "thompson equal": ThompsonRank(treatment="equal"),
    "window": Forgetful(GreedyRank(coefficient=2.0), "window:100"),
    "discount": Forgetful(ThompsonRank(), "discount:100"),
    "window, own statistics": Forgetful(make_policy("uni-rank"), "window:100"),
    "own statistics": make_policy("top-rank", horizon=50),
    "own statistics, equal": make_policy("bubble-rank", treatment="equal", horizon=2),
    "scratch": make_policy("pb-mhb"),
    "examination": make_policy("pbm-ts", SMALL),
    "random": make_policy("random"),
    "oracle": Oracle(SMALL),
    "plain Python": MostClicked(),
}


@pytest.mark.parametrize("policy", SIMULATED.values(), ids=SIMULATED)
def test_the_rankings_are_those_of_the_simulator(policy: Policy) -> None:
    result = simulate(policy, SMALL, ROUNDS, 1, SEED, checkpoints=range(1, ROUNDS + 1), keep_counts=True)
    user_types, rankings, learner = learn_as_the_simulator_does(policy, SMALL, ROUNDS)
    if policy.treatment == "equal":
        regret = equal_regret(SMALL, rankings, policy.utility)
    else:
        regret = personalized_regret(SMALL, user_types, rankings)
    assert regret == pytest.approx(result.regret[0], abs=1e-9)
    assert learner.rounds == ROUNDS
    (counts,) = result.counts
    if policy.name not in ("random", "oracle"):  # in the simulator they count nothing
        own = learner.counts if counts.n_user_types == 2 else learner.counts.pooled()
        assert np.allclose(own.displays, counts.displays)
        assert np.allclose(own.rewards, counts.rewards)


@pytest.mark.parametrize("treatment", ["personalized", "equal"])
@pytest.mark.parametrize("name", POLICY_NAMES)
def test_every_policy_learns_one_round_at_a_time(name: str, treatment: Any) -> None:
    policy = make_policy(name, SMALL, treatment=treatment, horizon=100)
    learner, rng = policy.start(SMALL, rng=3), np.random.default_rng(4)
    for t in range(1, 31):
        user_type = int(rng.integers(2))
        ranking = learner.rank(user_type)
        as_ranking(ranking, n_items=5, n_positions=3)
        learner.update(user_type, ranking, position=int(rng.integers(3)) if rng.random() < 0.7 else None)
        assert learner.rounds == t
    counts = learner.counts
    assert counts.rounds == counts.arrivals.sum() == 30
    assert (counts.displays.sum(axis=1) == counts.arrivals[:, None]).all()
    assert counts.rewards.sum() > 0


@pytest.mark.parametrize("coefficient", [0.0, 0.5])
def test_late_feedback_counts_as_it_does_from_the_start(coefficient: float) -> None:
    problem = make_problem("random", n_user_types=2, n_items=8, n_positions=3, seed=2)
    policy, rng = UCBRank(coefficient=coefficient), np.random.default_rng(3)
    displays = np.full((2, 8, 3), 5.0)
    learner = policy.start(counts=Counts.from_arrays(displays, displays * 0.1, [40, 40]), rng=1)
    pending: list[tuple[int, NDArray[np.intp]]] = []
    for _ in range(400):
        user_type = int(rng.integers(2))
        ranking = learner.rank(user_type)
        expected = policy.rank(learner.counts, user_type, rng=rng)
        assert ranking.tolist() == expected.tolist()
        explored = rng.permutation(8)[:3]
        pending.append((user_type, explored if rng.random() < 0.3 else ranking))
        if len(pending) > 25:
            late_type, shown = pending.pop(0)
            chances = problem.position_preferences[late_type] * problem.item_means[late_type, shown]
            learner.update(late_type, shown, rewards=rng.random(3) < chances)


def test_the_same_seed_gives_the_same_rankings() -> None:
    def rankings(rng: Any) -> list[list[int]]:
        learner = ThompsonRank().start(n_user_types=2, n_items=6, n_positions=3, rng=rng)
        return [learner.rank(t % 2).tolist() for t in range(20)]

    assert rankings(7) == rankings(np.random.default_rng(7)) == rankings(np.int64(7))
    assert rankings(7) != rankings(8)
    assert len(rankings(None)) == 20


def test_learning_resumes_from_counts() -> None:
    counts = Counts.from_arrays([[[900], [9]]], [[[450], [3]]], [909])
    before = counts.copy()
    learner = UCBRank(coefficient=0.0).start(counts=counts, rng=1)
    assert learner.rounds == 909
    assert learner.rank(0).tolist() == [0]
    learner.update(0, [1], position=0)
    assert learner.rounds == learner.counts.rounds == 910
    assert counts == before, "the counts at the start are copied"
    learner.counts.record(0, [0], rewards=[1])
    assert learner.counts.rounds == 910, "counts are copied when read"


def test_a_forgetting_policy_forgets_the_counts_at_the_start() -> None:
    counts = Counts.from_arrays([[[500.0], [500.0]]], [[[300.0], [100.0]]], [1000])
    learner = Forgetful(UCBRank(), "window:20").start(counts=counts, rng=1)
    for _ in range(40):
        learner.update(0, learner.rank(0), position=0)
    assert learner.rounds == 1040
    assert learner.counts.rounds <= 20


def test_rewards_of_one_position_or_of_all() -> None:
    learner = ThompsonRank(max_reward=5.0).start(n_items=3, n_positions=2, rng=0)
    learner.update(0, [2, 0], 1)
    learner.update(0, [2, 0], position=0, reward=4.5)
    learner.update(0, np.array([2, 0]), rewards=[0.5, 2.0])
    learner.update(0, [2, 0])
    assert learner.counts.rewards[0].tolist() == [[0, 3], [0, 0], [5, 0]]
    assert learner.counts.displays[0, 2, 0] == 4


REFUSED = [
    ({"user_type": 2}, "user_type must be a whole number from 0 to 1, got 2"),
    ({"ranking": [0, 0]}, "ranking must not contain an item twice"),
    ({"ranking": [0, 1, 2]}, "ranking must hold 2 item numbers"),
    ({"ranking": [[0, 1], [2]]}, "ranking must hold 2 item numbers"),
    ({"position": 2}, "position must be a whole number from 0 to 1, got 2"),
    ({"position": -1}, "position must be a whole number from 0 to 1, got -1"),
    ({"position": 0, "reward": -1.0}, "reward must be a number from 0 to 1,000,000,000, got -1.0"),
    ({"reward": 1.0}, "reward must be left out if no position is given, got 1.0"),
    ({"position": 1, "rewards": [0, 1]}, "position must be left out if rewards are given, got 1"),
    ({"reward": 1, "rewards": [0, 1]}, "reward must be left out if rewards are given, got 1"),
    ({"rewards": [0, 1, 0]}, "rewards must have 2 entries"),
    ({"rewards": [0, np.nan]}, "rewards must be finite and not negative"),
    ({"rewards": ["x", 1]}, "rewards must hold numbers only"),
]


@pytest.mark.parametrize(("wrong", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_a_wrong_update_is_refused_and_changes_nothing(wrong: dict[str, Any], message: str) -> None:
    learner = UCBRank().start(n_user_types=2, n_items=4, n_positions=2, rng=0)
    learner.update(1, [3, 1], position=0)
    before = learner.counts
    with pytest.raises(InvalidInputError, match=message):
        learner.update(**{"user_type": 0, "ranking": [0, 1], **wrong})
    assert learner.counts == before
    assert learner.rounds == 1


STARTS = [
    ({}, "n_items must be given unless a problem or counts are, got None"),
    ({"n_items": 3}, "n_positions must be given unless a problem or counts are, got None"),
    ({"n_items": 3, "n_positions": 4}, "counts must have at least one user type and 1 ≤ positions ≤ items"),
    ({"n_items": 3, "n_positions": 0}, "n_positions must be a whole number of at least 1, got 0"),
    ({"problem": "kdd2012"}, "problem must be a Problem, got 'kdd2012'"),
    ({"problem": SMALL, "n_items": 5}, "n_items must be left out if a problem is given, got 5"),
    ({"problem": SMALL, "counts": Counts.empty_for(kdd2012())}, r"counts must have shape \(2, 5, 3\)"),
    ({"counts": [[1]]}, "counts must be a Counts"),
    ({"problem": SMALL, "rng": "x"}, "rng must be a numpy.random.Generator or a seed, got 'x'"),
    ({"problem": SMALL, "rng": -1}, "rng must be a numpy.random.Generator or a seed, got -1"),
]


@pytest.mark.parametrize(("wrong", "message"), STARTS, ids=[message for _, message in STARTS])
def test_a_wrong_start_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        UCBRank().start(**wrong)


def test_an_unknown_user_type_is_refused() -> None:
    for policy in (UCBRank(), MostClicked()):
        with pytest.raises(InvalidInputError, match="user_type must be a whole number from 0 to 1, got 2"):
            policy.start(SMALL).rank(2)


def test_a_size_that_the_solver_cannot_solve_is_refused() -> None:
    policy = UCBRank(treatment="equal", utility="nash", solver="enumeration")
    with pytest.raises(UnsolvableError):
        policy.start(n_items=100, n_positions=20)


def test_an_oracle_learns_problems_of_its_size_only() -> None:
    with pytest.raises(InvalidInputError, match="counts must have the shape of the oracle's problem"):
        Oracle(SMALL).start(kdd2012())


def test_a_utility_that_fails_is_reported() -> None:
    fails = False

    def failing(value: float) -> float:
        if fails:
            raise ZeroDivisionError("beyond")
        return value

    policy = ThompsonRank(treatment="equal", utility=Utility.from_function(failing, shape="non-concave"))
    learner, fails = policy.start(SMALL, rng=1), True
    with pytest.raises(InvalidInputError, match="ZeroDivisionError: beyond"):
        learner.rank(0)


# Copies have addresses of their own.


def play_some(learner: Learner, rounds: int) -> list[list[int]]:
    rankings = []
    for _ in range(rounds):
        rankings.append(learner.rank(0).tolist())
        learner.update(0, rankings[-1], position=0)
    return rankings


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])  # noqa: S301
def test_a_copied_learner_learns_on_its_own(copied: Callable[[Learner], Learner]) -> None:
    learner = ThompsonRank().start(kdd2012(), rng=1)
    play_some(learner, 20)
    same, other = copied(learner), copied(learner)
    expected = play_some(same, 50)
    del same
    gc.collect()
    assert play_some(other, 50) == expected
    assert play_some(learner, 50) == expected, "the copies changed the original"


def test_a_search_is_not_copied_with_its_addresses() -> None:
    problem = make_problem("random", n_user_types=3, n_items=20, n_positions=4, seed=0)
    learner = UCBRank(coefficient=1.0, treatment="equal", utility="nash").start(problem, rng=1)
    with pytest.raises((TypeError, ValueError), match=r"cannot be (copied|pickled)"):
        copy.deepcopy(learner)


@pytest.mark.parametrize(
    ("policy", "limit"),
    [
        (ThompsonRank(), 1.0),
        (ThompsonRank(max_reward=2.5), 2.5),
        (Forgetful(ThompsonRank(max_reward=2.5), "window:9"), 2.5),
        (TypeBlind(ThompsonRank()), 1.0),
        (UCBRank(), 1e9),
    ],
)
def test_rewards_above_the_maximum_are_refused(policy: Policy, limit: float) -> None:
    """Finding 9: a learner refuses rewards that its policy takes for impossible, and learns nothing."""
    learner = policy.start(SMALL, rng=1)
    shown = learner.rank(0)
    wrong: list[dict[str, Any]] = [{"position": 0, "reward": each} for each in (2 * limit, -0.5, np.nan)]
    wrong += [{"rewards": [0.0, 0.0, each]} for each in (2 * limit, -0.5, np.nan)]
    for feedback in wrong:
        with pytest.raises(InvalidInputError, match=r"^rewards? must be"):
            learner.update(0, shown, **feedback)
    assert learner.rounds == learner.counts.rounds == 0
    learner.update(0, shown, position=0, reward=limit)
    learner.update(0, shown, rewards=[0.0, limit, 0.0])
    assert learner.rounds == 2
