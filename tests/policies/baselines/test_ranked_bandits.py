from dataclasses import replace

import numpy as np
import pytest
from helpers.baseline_runs import ManualRun

from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model._click_models import CASCADE
from banditrank.model._problem import Problem
from banditrank.policies.baselines._components.kl_ucb import kl_ucb
from banditrank.policies.baselines._ranked_bandits import RankedBandits
from banditrank.simulation._simulate import simulate

POLICIES = {
    "ucb1": RankedBandits(),
    "kl-ucb": RankedBandits(bandit="kl-ucb"),
    "exp3": RankedBandits(bandit="exp3", horizon=20_000),
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_rankings_become_diverse(policy: RankedBandits) -> None:
    """The paper's motivation: 0 and 1 are each liked by more users than 2, but no user needs both.

    60% of users like items 0 and 1, 40% like item 2; each clicks the first that she likes, if any. Fixed
    seeds, 20,000 rounds. The best rankings show 0 or 1, and 2; of the last 5,000 rounds at least 70% must be
    such, and 0 and 1 must be shown first more often than 2. The paper guarantees clicks in 1 − 1/e of rounds.
    """
    tastes = Problem([0.6, 0.4], [[0.6, 0.4]] * 2, [[1, 1, 0, 0, 0], [0, 0, 1, 0, 0]])
    blind = replace(policy, treatment="equal")
    result = simulate(
        *(blind, tastes, 20_000, 2), seed=4, click_model=CASCADE, checkpoints=[15_000], keep_counts=True
    )
    optimal = result.optimal_rate * result.checkpoints
    assert (optimal[:, 1] - optimal[:, 0] > 0.7 * 5000).all()
    for counts in result.counts:
        first = counts.displays[:, :, 0].sum(axis=0)
        assert first[0] + first[1] > first[2]


def test_a_choice_that_is_shown_above_is_replaced_and_earns_nothing() -> None:
    run = ManualRun(RankedBandits(order=((1, 0),)), n_items=3, n_positions=2)
    bandits = run.state.bandits
    bandits.chosen[0] = 100
    bandits.earned[0, :, 2] = 90  # both ranks choose item 2
    seen = set()
    for _ in range(20):
        ranking = run.rank()
        seen.add(int(ranking[0]))
        assert ranking[1] == 2
        assert bandits.choices.tolist() == [[2, 2]]
    assert seen == {0, 1}
    run.observe([1, 0], ranking)  # a click on what rank 2 did not choose
    assert bandits.chosen[0, :, 2].tolist() == [101, 101]
    assert bandits.earned[0].sum() == 180
    run.observe([0, 1], ranking)
    assert bandits.earned[0, :, 2].tolist() == [91, 90]


def test_ucb1_by_hand() -> None:
    # n = 20: √(2 ln 20 / 4) = 1.2239, √(2 ln 20 / 16) = 0.6119. 4 choices without a click tie with 16 choices
    # and 9.79 clicks.
    for clicks, choice in ((9.0, 0), (10.0, 1)):
        run = ManualRun(RankedBandits(), n_items=2, n_positions=1)
        run.state.bandits.chosen[0, 0] = [4, 16]
        run.state.bandits.earned[0, 0] = [0, clicks]
        assert run.rank()[0] == choice


def test_kl_ucb_chooses_the_largest_bound() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        run = ManualRun(RankedBandits(bandit="kl-ucb"), n_items=6, n_positions=1)
        bandits = run.state.bandits
        bandits.chosen[0, 0] = rng.integers(1, 40, 6)
        bandits.earned[0, 0] = rng.integers(0, bandits.chosen[0, 0] + 1)
        bandits.choices[0, 0] = rng.integers(6)
        n = bandits.chosen.sum() + 1
        level = np.log(n) + 3 * np.log(np.log(n))
        bounds = [
            kl_ucb(earned / chosen, chosen, level)
            for earned, chosen in zip(bandits.earned[0, 0], bandits.chosen[0, 0], strict=True)
        ]
        assert bounds[run.rank()[0]] == pytest.approx(max(bounds))


def test_kl_ucb_breaks_ties_uniformly() -> None:
    chosen = np.zeros(4)
    run = ManualRun(RankedBandits(bandit="kl-ucb"), n_items=4, n_positions=1)
    run.state.bandits.chosen[0, 0] = [10, 10, 10, 10]
    run.state.bandits.earned[0, 0] = [3, 5, 5, 5]
    for _ in range(3000):
        chosen[run.rank()[0]] += 1 / 3000
    # A share of 3,000 draws is off by more than 0.05 with probability below 1e-6 (Hoeffding).
    assert chosen == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3], abs=0.05)


def test_exp3_by_hand() -> None:
    # γ = √(2 ln 2 / (e − 1) 8) = 0.31757. Weights 3 and 1: item 0 is drawn with (1 − γ) 3/4 + γ/2 = 0.67061.
    # A click on it multiplies its weight by exp(γ / 0.67061 / 2) = 1.26716.
    run = ManualRun(RankedBandits(bandit="exp3", horizon=8), n_items=2, n_positions=1)
    bandits = run.state.bandits
    bandits.weights[0, 0] = [3, 1]
    chosen = [int(run.rank()[0]) for _ in range(3000)]
    assert np.mean(chosen) == pytest.approx(1 - 0.67061, abs=0.05)  # fails with probability below 1e-6
    while run.rank()[0] != 0:
        pass
    assert bandits.probabilities[0, 0] == pytest.approx(0.67061, abs=1e-5)
    run.observe([1], [0])
    assert bandits.weights[0, 0] == pytest.approx([3 * 1.26716, 1], abs=1e-4)


def test_weights_never_overflow() -> None:
    run = ManualRun(RankedBandits(bandit="exp3", horizon=10), n_items=3, n_positions=1)
    weights = run.state.bandits.weights
    weights[0, 0] = [1e100, 1e100, 1e-150]
    while (ranking := run.rank())[0] != 0:
        pass
    run.observe([1], ranking)
    assert weights[0, 0] == pytest.approx([1.5, 1.0, 0], rel=0.5, abs=1e-50)
    assert (weights > 0).all()


def test_statistics_survive_items_that_come_and_go() -> None:
    policy = POLICIES["exp3"]
    run = ManualRun(policy, n_items=3, n_positions=1)
    run.state.bandits.chosen[0, 0] = [5, 6, 7]
    run.state.bandits.earned[0, 0] = [1, 2, 3]
    run.state.bandits.weights[0, 0] = [1, 3, 2]
    counts = Counts.empty(n_user_types=1, n_items=3, n_positions=1)
    bandits = policy.update_items(run.state, counts, np.array([2, -1, 1])).bandits
    assert bandits.chosen.tolist() == [[[7, 0, 6]]]
    assert bandits.earned.tolist() == [[[3, 0, 2]]]
    assert bandits.weights.tolist() == [[[1, 1, 1.5]]]  # a new item is as good as the others on average


def test_parameters_are_checked_and_described() -> None:
    with pytest.raises(UnknownNameError, match="bandit"):
        RankedBandits(bandit="ucb2")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="horizon"):
        RankedBandits(bandit="exp3")
    with pytest.raises(InvalidInputError, match="horizon"):
        RankedBandits(horizon=0)
    assert POLICIES["exp3"].describe()["horizon"] == 20_000
    assert POLICIES["kl-ucb"].describe()["bandit"] == "kl-ucb"
