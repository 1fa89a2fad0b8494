"""Policies learn from rewards that arrive late: each is attributed to what its ranking was made from."""

from functools import cache

import numpy as np
import pytest

from banditrank import Counts, InvalidInputError, Problem, make_policy, simulate
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._catalog import AUTO, ORDERED_POLICY_NAMES, POLICY_NAMES
from banditrank.policies._kernel import state_note
from banditrank.policies._uniform import UniformRandom
from banditrank.policies.baselines._ranked_bandits import RankedBandits, note_choice
from banditrank.policies.baselines._uni_rank import UniRank

PROBLEM = Problem(
    [0.5, 0.5], [[0.7, 0.3], [0.6, 0.4]], [[0.9, 0.6, 0.3, 0.1], [0.1, 0.9, 0.5, 0.3]]
)  # positions in the order of their numbers
HORIZON = 6_000
REPLICATIONS = 6
NAMES = [name for name in POLICY_NAMES if name not in (AUTO, "oracle", *ORDERED_POLICY_NAMES)]
OF_CASCADE = {"cascade-kl-ucb", "cascade-ts", "ranked-bandits"}

MAX_FACTOR = 1.5  # of mean regret to that without a delay, …
MAX_LOST_ROUNDS = {1: 20.0, 100: 200.0}  # … plus this many rounds of random rankings, by delay


@cache
def mean_regret(name: str, delay: int) -> float:
    model = "cascade" if name in OF_CASCADE else "position-based"
    policy = make_policy(name, PROBLEM, click_model=model, horizon=HORIZON)
    result = simulate(
        policy, PROBLEM, HORIZON, REPLICATIONS, seed=2, workers=1, click_model=model, delay=delay
    )
    return float(result.mean[-1])


@cache
def random_regret(name: str) -> float:
    model = "cascade" if name in OF_CASCADE else "position-based"
    result = simulate(UniformRandom(), PROBLEM, HORIZON, 2, seed=2, workers=1, click_model=model)
    return float(result.mean[-1])


# Regrets are means of a fixed seed; the factors have room for other machines' rounding, not for chance.
@pytest.mark.parametrize("delay", MAX_LOST_ROUNDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_delay_costs_a_factor_and_some_rounds(name: str, delay: int) -> None:
    prompt, late = mean_regret(name, 0), mean_regret(name, delay)
    lost = MAX_LOST_ROUNDS[delay] * random_regret(name) / HORIZON
    assert late <= MAX_FACTOR * prompt + lost
    if name != "random":
        assert late < 0.75 * random_regret(name)


LARGE = Problem(
    [0.4, 0.6],
    [[0.4, 0.3, 0.2, 0.1], [0.5, 0.25, 0.15, 0.1]],
    [np.linspace(0.9, 0.1, 10), np.roll(np.linspace(0.9, 0.1, 10), 4)],
)
# BubbleRank swaps neighbours one by one: it is nearly random for long, with a delay or without.
LARGE_HORIZONS = {"bubble-rank": 500_000}


@cache
def mean_regret_in_depth(name: str, delay: int) -> float:
    model = "cascade" if name in OF_CASCADE else "position-based"
    horizon = LARGE_HORIZONS.get(name, 50_000)
    policy = make_policy(name, LARGE, click_model=model, horizon=horizon)
    result = simulate(policy, LARGE, horizon, 10, seed=3, click_model=model, delay=delay)
    return float(result.mean[-1])


@pytest.mark.campaign
@pytest.mark.parametrize("delay", MAX_LOST_ROUNDS)
@pytest.mark.parametrize("name", [name for name in NAMES if name != "random"])
def test_a_delay_costs_as_little_in_depth(name: str, delay: int) -> None:
    """Ten items in four positions: a factor, some rounds, and never nearly random."""
    prompt, late = mean_regret_in_depth(name, 0), mean_regret_in_depth(name, delay)
    model = "cascade" if name in OF_CASCADE else "position-based"
    horizon = LARGE_HORIZONS.get(name, 50_000)
    random = float(simulate(UniformRandom(), LARGE, horizon, 2, seed=3, click_model=model).mean[-1])
    assert late <= MAX_FACTOR * prompt + MAX_LOST_ROUNDS[delay] * random / horizon
    assert late < 0.9 * random


WITH_NOTE = {"uni-rank", "bubble-rank", "batch-rank", "top-rank", "grab", "ranked-bandits", "ftrl-pbm"}


def test_policies_with_a_note() -> None:
    counts = Counts.empty_for(PROBLEM)
    found = set()
    for name in NAMES:
        policy = make_policy(name, PROBLEM, horizon=HORIZON)
        assert isinstance(policy, CompiledPolicy)
        note = state_note(policy.init_state(counts, policy.new_scratch()))
        assert note.dtype == np.int64
        if note.size > 0:
            found.add(name)
    assert found == WITH_NOTE


@pytest.mark.parametrize("name", sorted(WITH_NOTE))
def test_a_learner_accepts_feedback_late_and_in_any_order(name: str) -> None:
    """Two rankings, then their feedback in the other order, earn as much as prompt feedback."""
    policy = make_policy(name, PROBLEM, horizon=HORIZON)
    learner = policy.start(PROBLEM, rng=3)
    rng = np.random.default_rng(4)
    for _ in range(300):
        shown = [(user_type, learner.rank(user_type)) for user_type in (0, 1)]
        for user_type, ranking in reversed(shown):
            clicks = rng.random(2) < PROBLEM.item_means[user_type, ranking] * (1.0, 0.6)
            learner.update(user_type, ranking, rewards=clicks)
    assert learner.rounds == 600
    prompt = policy.start(PROBLEM, rng=3)
    rng = np.random.default_rng(4)
    for _ in range(300):
        for user_type in (1, 0):
            ranking = prompt.rank(user_type)
            clicks = rng.random(2) < PROBLEM.item_means[user_type, ranking] * (1.0, 0.6)
            prompt.update(user_type, ranking, rewards=clicks)
    gains = [(each.counts.rewards.sum(), each.counts.displays.sum()) for each in (learner, prompt)]
    assert gains[0][1] == gains[1][1]
    assert gains[0][0] == pytest.approx(gains[1][0], rel=0.1)


def test_the_note_of_exp3_has_probabilities_to_the_last_bit() -> None:
    counts = Counts.empty_for(PROBLEM)
    bandits = RankedBandits(bandit="exp3", horizon=HORIZON).init_state(counts, None).bandits
    for probability in (1.0, 0.1, 1 / 3, 1e-17):
        bandits.probabilities[0, 1] = probability
        note_choice(bandits, 0, 1)
        assert np.ldexp(float(bandits.note[3]), int(bandits.note[5]) - 53) == probability


class InOrder(UniRank):
    """A policy that must observe a ranking before it makes the next."""

    name = "in-order"
    supports_delay = False


def test_a_policy_that_cannot_learn_late_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"^delay must be 0 for policy in-order, .* got 5$"):
        simulate(InOrder(), PROBLEM, 10, 1, delay=5)
