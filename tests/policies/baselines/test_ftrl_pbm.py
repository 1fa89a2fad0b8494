"""FTRL-PBM: the lottery is the regularized leader, draws have its probabilities, losses are unbiased."""

import numpy as np
import pytest
from helpers.baseline_runs import EASY, ManualRun
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.model._problem import Problem
from banditrank.model._timeline import Timeline
from banditrank.policies.baselines._components.dependent_rounding import (
    draw_from_lottery,
    init_lottery_workspace,
)
from banditrank.policies.baselines._cucb import CUCB
from banditrank.policies.baselines._ftrl_pbm import FTRLPBM
from banditrank.simulation._simulate import simulate

Floats = NDArray[np.float64]


def leader(losses: Floats, rounds: int) -> Floats:
    """Return the lottery of the round after some rounds with these losses, shape (K, M)."""
    k, m = losses.shape
    run = ManualRun(FTRLPBM(), m, k)
    run.state.losses[0] = losses
    run.state.arrivals[0] = rounds - 1
    run.rank()
    return run.state.leader.lottery.copy()


@pytest.mark.parametrize(("n_items", "n_positions"), [(2, 1), (5, 3), (4, 4), (20, 4), (1, 1)])
def test_the_lottery_is_the_regularized_leader(n_items: int, n_positions: int) -> None:
    # Frank and Wolfe's certificate: a convex objective is at most the gap Σ ∇ (X − Y) above its least value.
    rng = np.random.default_rng(n_items)
    for rounds in (1, 30, 10_000):
        for spread in (0.0, 1.0, 100.0, float(rounds)):
            losses = spread * rng.random((n_positions, n_items)) + 1e4 * rng.random((n_positions, 1))
            lottery = leader(losses, rounds)
            assert lottery.sum(axis=1) == pytest.approx(1, abs=1e-8)
            assert lottery.sum(axis=0).max() <= 1 + 1e-8
            gradient = losses - losses.min(axis=1, keepdims=True) - np.sqrt(rounds) / (2 * np.sqrt(lottery))
            best = gradient[linear_sum_assignment(gradient)].sum()
            assert (gradient * lottery).sum() - best <= 1e-6 * np.sqrt(rounds) * n_items


def test_draws_have_the_probabilities_of_the_lottery() -> None:
    # A frequency of n draws is more than 4.9 standard errors away with probability 1e-6; 4 × 12 cells.
    rng, n_draws = np.random.default_rng(3), 20_000
    for case in range(4):
        if case < 3:  # mixtures of rankings; the last is exactly square
            m, k = ((6, 3), (8, 2), (4, 4))[case]
            weights = rng.dirichlet(np.full(7, 0.6))
            lottery = np.zeros((k, m))
            for weight in weights:
                lottery[np.arange(k), rng.permutation(m)[:k]] += weight
        else:
            m, k = 6, 2
            lottery = leader(rng.random((k, m)) * 40, 400)
        ranking, shown = np.zeros(k, dtype=np.uintp), np.zeros((k, m))
        workspace = init_lottery_workspace(m, k)
        for _ in range(n_draws):
            draw_from_lottery(lottery, workspace, rng, ranking)
            assert len(set(ranking.tolist())) == k
            shown[np.arange(k), ranking] += 1
        error = np.sqrt(lottery * (1 - lottery) / n_draws)
        assert (np.abs(shown / n_draws - lottery) <= 4.9 * np.maximum(error, 1e-9) + 1e-7).all()


def test_estimates_of_losses_are_unbiased() -> None:
    # Rewards .25 at all cells but one: the mean of the estimates is 1 − reward. Their standard error is
    # √(1/X) of a few probabilities above .05, over 4,000 draws: 5 of them are .36.
    rewards = np.array([[0.25, 0.25, 1.0], [0.25, 0.25, 0.25]])
    run = ManualRun(FTRLPBM(), 3, 2)
    run.state.losses[0] = [[3.0, 0.0, 1.0], [0.0, 2.0, 1.0]]
    run.state.arrivals[0] = 10
    before, total = run.state.losses[0].copy(), np.zeros((2, 3))
    for _ in range(4_000):
        shown = run.rank()
        run.observe(rewards[np.arange(2), shown])
        total += run.state.losses[0] - before
        run.state.losses[0] = before
        run.state.arrivals[0] = 10
    assert run.state.leader.lottery.min() > 0.05
    assert total / 4_000 == pytest.approx(1 - rewards, abs=0.36)


def test_regret_is_logarithmic_if_the_problem_stays_the_same() -> None:
    # Its theorem: O(ln T). Ten times the rounds multiply ln T by 1.25, √T by 3.16 and T by 10.
    result = simulate(FTRLPBM(), EASY, 100_000, 5, seed=1, checkpoints=[10_000, 100_000], workers=1)
    early, late = result.regret.mean(axis=0)
    assert early < late < 2.2 * early


def constrained_adversary(horizon: int) -> Timeline:
    """Return a problem with the same best ranking throughout, whose level jumps in ever longer phases.

    Zimmert and Seldin (2021) use it against policies that average rewards.
    """
    levels = [Problem([1.0], [[1.0]], [means]) for means in ([0.1, 0.0, 0.0], [1.0, 0.9, 0.9])]
    starts, length = [1], 20.0
    while starts[-1] + length < horizon:
        starts.append(int(starts[-1] + length))
        length *= 1.6
    return Timeline([levels[index % 2] for index in range(len(starts))], starts)


def test_regret_is_at_most_a_square_root_where_the_problem_changes() -> None:
    # The theorem's order is √(M T): 387 at T = 50,000. Averages are fooled in most runs: CUCB's mean regret
    # is 25 times as large. Five seeds each; in the longest of them the policy's is 4% of CUCB's mean.
    horizon = 50_000
    problem, checkpoints = constrained_adversary(horizon), [5_000, horizon]
    ours, theirs = (
        simulate(policy, problem, horizon, 5, seed=1, checkpoints=checkpoints, workers=1).regret
        for policy in (FTRLPBM(), CUCB())
    )
    early, late = ours.mean(axis=0)
    assert late < np.sqrt(3 * horizon)
    assert late < 3.5 * early  # 3.16 for a square root
    assert 5 * ours[:, -1].max() < theirs[:, -1].mean()


def test_new_items_start_as_good_as_the_best() -> None:
    run = ManualRun(FTRLPBM(), 3, 1)
    run.state.losses[0] = [[5.0, 2.0, 9.0]]
    kept = np.array([2, -1, 1])
    state = FTRLPBM().update_items(run.state, Counts.empty(n_user_types=1, n_items=3, n_positions=1), kept)
    assert state.losses[0].tolist() == [[7.0, 0.0, 0.0]]


def test_the_learning_rate_is_positive() -> None:
    with pytest.raises(InvalidInputError, match="learning_rate must be"):
        FTRLPBM(learning_rate=0.0)
