from itertools import permutations

import numpy as np
from helpers.baseline_runs import EASY, EXAMINED, ManualRun
from scipy import stats

from banditrank.counts._counts import Counts
from banditrank.policies.baselines._cts import CTS
from banditrank.policies.baselines._cucb import CUCB
from banditrank.simulation._simulate import simulate


def test_samples_have_beta_posteriors_and_the_best_ranking_for_them_is_shown() -> None:
    # Kolmogorov and Smirnov's distance of n draws exceeds 2.5/√n with probability 2e^−12.5 = 7e-6; 6 cells.
    n_draws = 4_000
    displays, clicks = np.array([[0, 3], [50, 9], [4, 400]]), np.array([[0, 1], [20, 0], [4, 100]])
    counts = Counts.from_arrays([displays], [clicks], [500])
    run = ManualRun(CTS(), 3, 2, counts=counts)
    draws = np.zeros((n_draws, 3, 2))
    for draw in draws:
        shown = run.rank()
        draw[:] = run.state.scores.T
        best = max(permutations(range(3), 2), key=lambda items: draw[items, range(2)].sum())
        assert shown.tolist() == list(best)
    grid = (np.arange(n_draws) + 0.5) / n_draws
    for j, k in np.ndindex(3, 2):
        expected = stats.beta(1 + clicks[j, k], 1 + displays[j, k] - clicks[j, k]).cdf(
            np.sort(draws[:, j, k])
        )
        assert np.abs(expected - grid).max() < 2.5 / np.sqrt(n_draws)


def test_regret_is_logarithmic() -> None:
    # Its theorem: O(ln T). Ten times the rounds multiply ln T by 1.25, √T by 3.16 and T by 10.
    result = simulate(CTS(), EASY, 100_000, 5, seed=1, checkpoints=[10_000, 100_000], workers=1)
    early, late = result.regret.mean(axis=0)
    assert early < late < 2.0 * early


def test_regret_is_less_than_that_of_cucb() -> None:
    # As in the paper's experiments. Six seeds each; the largest of one is below the least of the other.
    ours, theirs = (
        simulate(policy, EXAMINED, 20_000, 6, seed=1, workers=1).final_regret for policy in (CTS(), CUCB())
    )
    assert ours.max() < theirs.min()
