"""UCB for Nash welfare: its lotteries are the best ones, and its regret against the best is sublinear."""

import numpy as np
import pytest
from helpers.baseline_runs import ManualRun
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.policies.baselines._nash_ucb import NashUCB, NashUCBState, nash_welfare

Floats = NDArray[np.float64]

TASTES = np.array([[0.9, 0.1, 0.4], [0.1, 0.8, 0.3]])  # two user types of opposite tastes, three items


def probabilities(state: NashUCBState, copy: int = 0) -> Floats:
    """Return the probability of each cell, shape (K, M)."""
    lottery = state.lottery
    k, m = lottery.scores.shape
    cells = np.zeros((k, m))
    for items, weight in zip(lottery.rankings[copy], lottery.weights[copy], strict=True):
        cells[np.arange(k), items] += weight
    return cells


def known(means: Floats, displays: float) -> Counts:
    """Return counts with the same displays of all cells, whose mean rewards are these, shape (N, K, M)."""
    shown = np.full(means.shape, displays).swapaxes(1, 2)
    arrivals = np.full(len(means), displays * means.shape[2])
    return Counts.from_arrays(shown, shown * means.swapaxes(1, 2), arrivals)


def test_the_best_lottery_of_arms_by_hand() -> None:
    # With p on the first item and 1 − p on the second, welfare is (.1 + .8p)(.8 − .7p), at its largest where
    # .8(.8 − .7p) = .7(.1 + .8p): p = .57/1.12 = .50893.
    counts = known(TASTES[:, None, :], 1e8)
    run = ManualRun(NashUCB(treatment="equal", exploration=0.0), 3, 1, counts=counts)
    run.rank()
    assert probabilities(run.state)[0] == pytest.approx([0.50893, 0.49107, 0], abs=1e-3)
    assert nash_welfare(TASTES @ probabilities(run.state)[0]) > 0.22 > TASTES.prod(axis=0).max()


def test_lotteries_over_rankings_satisfy_the_optimality_condition() -> None:
    # By concavity of Σ ln u, X is optimal if no ranking has Σ_i u_i(ranking) / u_i(X) above N.
    rng = np.random.default_rng(4)
    for n, m, k in ((2, 4, 2), (3, 6, 3), (5, 5, 1), (4, 3, 3)):
        means = rng.dirichlet(np.ones(k), n)[:, :, None] * rng.random((n, 1, m))  # (N, K, M)
        run = ManualRun(NashUCB(treatment="equal", exploration=0.0), m, k, counts=known(means, 1e8))
        for _ in range(100):
            run.rank()
        cells = probabilities(run.state)
        assert cells.sum(axis=1) == pytest.approx(1)
        values = (means * cells).sum(axis=(1, 2))
        slopes = (means / values[:, None, None]).sum(axis=0)  # (K, M)
        assert slopes[linear_sum_assignment(-slopes)].sum() <= n + 0.02


def test_bonus_by_hand() -> None:
    # With equal means of all, the item that one user type has seen less often has the larger bonus.
    displays = np.array([[[100.0], [100.0]], [[100.0], [25.0]]])
    counts = Counts.from_arrays(displays, 0.5 * displays, [200, 125])
    run = ManualRun(NashUCB(treatment="equal"), 2, 1, counts=counts)
    assert run.state.bonuses[0, 0] == pytest.approx([0.1 + 0.1, 0.1 + 0.2])
    assert run.rank().tolist() == [1]
    assert probabilities(run.state)[0].tolist() == [0, 1]


def test_welfare_lost_against_the_best_lottery_is_sublinear() -> None:
    # The theorem's order is √(T ln T): four times the rounds multiply it by 2.2, and a linear loss by 4. One
    # position; user types arrive in turn, so that one of them observes each arm. Of four runs 2.55 is seen;
    # of single ones over 16 seeds 2.6 on average, with a standard deviation of 0.2: four reach 3.0 with a
    # probability below 1e-3, and a linear loss always.
    policy, rounds = NashUCB(treatment="equal"), 12_000
    best = nash_welfare(TASTES @ np.array([0.57 / 1.12, 0.55 / 1.12, 0]))
    lost = np.zeros((4, rounds))
    for seed, losses in enumerate(lost):
        rng = np.random.default_rng(seed)
        counts = Counts.empty(n_user_types=2, n_items=3, n_positions=1)
        kernel = policy.bind(counts, np.random.default_rng(100 + seed))
        for t, click in enumerate(rng.random(rounds)):
            item = int(kernel.rank(t % 2, t + 1, np.zeros(0))[0])
            losses[t] = best - nash_welfare(TASTES @ probabilities(kernel.state)[0])
            clicked = np.array([float(click < TASTES[t % 2, item])])
            kernel.observe(t % 2, t + 1, kernel.ranking, clicked)
    assert lost.min() >= -1e-9
    total = lost.cumsum(axis=1).mean(axis=0)
    assert total[-1] < 3.0 * total[rounds // 4 - 1]
    assert total[-1] < 0.5 * rounds * (best - TASTES.prod(axis=0).max())  # any fixed arm loses more


def test_personalized_lotteries_are_rankings() -> None:
    counts = known(TASTES[:, None, :], 1e4)
    policy = NashUCB()
    shown = [policy.rank(counts, user_type, rng=np.random.default_rng(0)).tolist() for user_type in (0, 1)]
    assert shown == [[0], [1]]


def test_the_factor_of_the_bonus_is_not_negative() -> None:
    with pytest.raises(InvalidInputError, match="exploration must be"):
        NashUCB(exploration=-1.0)
