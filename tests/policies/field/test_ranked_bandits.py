from collections.abc import Callable

import numpy as np
import pytest
from hand_play import Play
from numpy.typing import NDArray

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.policies.base import Treatment
from banditrank.policies.field.parts.kullback_leibler import kl_upper
from banditrank.policies.field.ranked_bandits import RankedBandits
from banditrank.statistics.counts import Counts
from banditrank.testing.policies import POLICY_CHECKS, MakePolicy

POLICIES = {
    "ucb1": RankedBandits(),
    "kl-ucb": RankedBandits(inner="kl-ucb"),
    "exp3": RankedBandits(inner="exp3", horizon=20_000),
}


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("treatment", ["personalized", "equal"])
def test_policy_conforms(policy: str, treatment: Treatment, check: Callable[[MakePolicy], None]) -> None:
    inner = POLICIES[policy]
    check(lambda _: RankedBandits(inner=inner.inner, horizon=inner.horizon, treatment=treatment))


def _two_tastes(ranking: NDArray[np.uintp], rng: np.random.Generator) -> NDArray[np.float64]:
    """60% of users like items 0 and 1, 40% like item 2; each clicks the first that she likes, if any."""
    likes = np.isin(ranking, [0, 1] if rng.random() < 0.6 else [2])
    return (likes & (np.cumsum(likes) == 1)).astype(np.float64)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_rankings_become_diverse(policy: RankedBandits) -> None:
    """What the paper is about: 0 and 1 are each liked by more than 2, but nobody needs both.

    Fixed seeds, 20,000 rounds. The best ranking shows 0 or 1 first and 2 second; of the last 5,000 rounds at
    least 70% must show two different tastes, of which 60% must have 0 or 1 first. The paper guarantees clicks
    in 1 − 1/e of rounds here.
    """
    play = Play(policy, n_items=5, n_positions=2)
    last = play.rounds(_two_tastes, 20_000, seed=4)[-5000:]
    both = np.isin(last, [0, 1]).any(axis=1) & (last == 2).any(axis=1)
    assert both.mean() > 0.7
    assert np.isin(last[both, 0], [0, 1]).mean() > 0.6


def test_a_choice_that_is_shown_above_is_replaced_and_earns_nothing() -> None:
    play = Play(RankedBandits(order=((1, 0),)), n_items=3, n_positions=2)
    bandits = play.state.bandits
    bandits.chosen[0] = 100
    bandits.earned[0, :, 2] = 90  # both ranks choose item 2
    seen = set()
    for seed in range(20):
        ranking = play.rank(np.random.default_rng(seed))
        seen.add(int(ranking[0]))
        assert ranking[1] == 2
        assert bandits.choices.tolist() == [[2, 2]]
    assert seen == {0, 1}
    play.observe(ranking, [1, 0])  # a click on what rank 2 did not choose
    assert bandits.chosen[0, :, 2].tolist() == [101, 101]
    assert bandits.earned[0].sum() == 180
    play.observe(ranking, [0, 1])
    assert bandits.earned[0, :, 2].tolist() == [91, 90]


def test_ucb1_by_hand() -> None:
    # n = 20: √(2 ln 20 / 4) = 1.2239, √(2 ln 20 / 16) = 0.6119. 4 choices without a click tie with 16 choices
    # and 9.79 clicks.
    for clicks, choice in ((9.0, 0), (10.0, 1)):
        play = Play(RankedBandits(), n_items=2, n_positions=1)
        play.state.bandits.chosen[0, 0] = [4, 16]
        play.state.bandits.earned[0, 0] = [0, clicks]
        assert play.rank(np.random.default_rng(0))[0] == choice


def test_kl_ucb_chooses_the_largest_bound() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        play = Play(RankedBandits(inner="kl-ucb"), n_items=6, n_positions=1)
        bandits = play.state.bandits
        bandits.chosen[0, 0] = rng.integers(1, 40, 6)
        bandits.earned[0, 0] = rng.integers(0, bandits.chosen[0, 0] + 1)
        bandits.choices[0, 0] = rng.integers(6)
        n = bandits.chosen.sum() + 1
        level = np.log(n) + 3 * np.log(np.log(n))
        bounds = [
            kl_upper(earned / chosen, chosen, level)
            for earned, chosen in zip(bandits.earned[0, 0], bandits.chosen[0, 0], strict=True)
        ]
        assert bounds[play.rank(rng)[0]] == pytest.approx(max(bounds))


def test_kl_ucb_breaks_ties_uniformly() -> None:
    rng, chosen = np.random.default_rng(0), np.zeros(4)
    play = Play(RankedBandits(inner="kl-ucb"), n_items=4, n_positions=1)
    play.state.bandits.chosen[0, 0] = [10, 10, 10, 10]
    play.state.bandits.earned[0, 0] = [3, 5, 5, 5]
    for _ in range(3000):
        chosen[play.rank(rng)[0]] += 1 / 3000
    # A share of 3,000 draws is off by more than 0.05 with probability below 1e-6 (Hoeffding).
    assert chosen == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3], abs=0.05)


def test_exp3_by_hand() -> None:
    # γ = √(2 ln 2 / (e − 1) 8) = 0.31757. Weights 3 and 1: item 0 is drawn with (1 − γ) 3/4 + γ/2 = 0.67061.
    # A click on it multiplies its weight by exp(γ / 0.67061 / 2) = 1.26716.
    play = Play(RankedBandits(inner="exp3", horizon=8), n_items=2, n_positions=1)
    bandits, rng = play.state.bandits, np.random.default_rng(0)
    bandits.weights[0, 0] = [3, 1]
    chosen = [int(play.rank(rng)[0]) for _ in range(3000)]
    assert np.mean(chosen) == pytest.approx(1 - 0.67061, abs=0.05)  # fails with probability below 1e-6
    while play.rank(rng)[0] != 0:
        pass
    assert bandits.probabilities[0, 0] == pytest.approx(0.67061, abs=1e-5)
    play.observe([0], [1])
    assert bandits.weights[0, 0] == pytest.approx([3 * 1.26716, 1], abs=1e-4)


def test_weights_never_overflow() -> None:
    play = Play(RankedBandits(inner="exp3", horizon=10), n_items=3, n_positions=1)
    weights, rng = play.state.bandits.weights, np.random.default_rng(0)
    weights[0, 0] = [1e100, 1e100, 1e-150]
    while (ranking := play.rank(rng))[0] != 0:
        pass
    play.observe(ranking, [1])
    assert weights[0, 0] == pytest.approx([1.5, 1.0, 0], rel=0.5, abs=1e-50)
    assert (weights > 0).all()


def test_statistics_survive_items_that_come_and_go() -> None:
    policy = POLICIES["exp3"]
    play = Play(policy, n_items=3, n_positions=1)
    play.state.bandits.chosen[0, 0] = [5, 6, 7]
    play.state.bandits.earned[0, 0] = [1, 2, 3]
    play.state.bandits.weights[0, 0] = [1, 3, 2]
    counts = Counts.empty(n_user_types=1, n_items=3, n_positions=1)
    bandits = policy.resume(play.state, counts, np.array([2, -1, 1])).bandits
    assert bandits.chosen.tolist() == [[[7, 0, 6]]]
    assert bandits.earned.tolist() == [[[3, 0, 2]]]
    assert bandits.weights.tolist() == [[[1, 1, 1.5]]]  # a new item is as good as the others on average


def test_parameters_are_checked_and_described() -> None:
    with pytest.raises(UnknownNameError, match="inner"):
        RankedBandits(inner="ucb2")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="horizon"):
        RankedBandits(inner="exp3")
    with pytest.raises(InvalidInputError, match="horizon"):
        RankedBandits(horizon=10)
    assert POLICIES["exp3"].describe()["horizon"] == 20_000
    assert POLICIES["kl-ucb"].describe()["inner"] == "kl-ucb"
