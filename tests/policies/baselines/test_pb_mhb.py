from typing import Any

import numpy as np
import pytest
from scipy import stats

from banditrank import UniformRandom, simulate
from banditrank.counts._counts import Counts
from banditrank.errors import BanditRankError
from banditrank.model._catalog import kdd2012
from banditrank.policies.baselines._pb_mhb import PBMHB, proposal_mass, propose, sweep
from banditrank.testing._policies import dense_counts, problems


def test_steps_stay_inside_with_the_mass_worked_out_by_hand() -> None:
    # Φ(2/3) − Φ(−8/3) = 0.747507 − 0.003830
    assert proposal_mass(0.8, 0.3) == pytest.approx(0.743677, abs=1e-6)
    assert proposal_mass(0.0, 0.01) == pytest.approx(0.5)


@pytest.mark.parametrize("width", [0.1, 0.39, 0.41, 3.0, 1000.0])
def test_steps_are_truncated_normal_on_both_sides_of_the_switch(width: float) -> None:
    rng = np.random.default_rng(3)
    old = 0.85
    steps = [propose(old, width, rng) for _ in range(4000)]
    law = stats.truncnorm((0 - old) / width, (1 - old) / width, loc=old, scale=width)
    assert stats.kstest(steps, law.cdf).pvalue > 1e-4  # the chance of a false alarm is 1e-4, the seed fixed


def test_the_walk_visits_models_as_often_as_the_posterior_says() -> None:
    # Two items, one position: the posterior of (θ_1, θ_2, κ) by brute force on a grid.
    displays, rewards = np.array([[[12.0, 9.0]]]), np.array([[[7.0, 2.0]]])
    grid = (np.arange(80) + 0.5) / 80
    first, second, position = np.meshgrid(grid, grid, grid, indexing="ij")
    density = (first * position) ** 7 * (1 - first * position) ** 5
    density *= (second * position) ** 2 * (1 - second * position) ** 7
    density /= density.sum()
    rng = np.random.default_rng(0)
    items, positions = np.array([[0.5, 0.5]]), np.array([[0.5]])
    visits = np.zeros((40_000, 3))
    for visit in visits:
        sweep(displays, rewards, items, positions, 0, 0.3, rng)
        visit[:] = *items[0], positions[0, 0]
    for coordinate, axis in enumerate((first, second, position)):
        exact = float((density * axis).sum())
        batches = visits[:, coordinate].reshape(40, 1000).mean(axis=1)  # long enough to be independent
        error = float(batches.std(ddof=1)) / 40**0.5
        assert abs(batches.mean() - exact) < 4.5 * error  # a false alarm in 1e-4 of three such tests
        assert error < 0.005


def test_a_cold_start_finds_what_a_warm_walk_knows() -> None:
    # Losing the sample costs a warm-up and nothing else: both show the best item first just as often.
    problem = problems()[0]
    counts = dense_counts(problem)
    policy, rng = PBMHB(width=1.0), np.random.default_rng(1)
    scratch = policy.new_scratch()
    cold = [policy.rank(counts, 0, rng=rng) for _ in range(1000)]
    warm = [policy.rank(counts, 0, rng=rng, scratch=scratch) for _ in range(3000)]
    best_position = int(problem.position_preferences[0].argmax())
    shares = [
        np.bincount([shown[best_position] for shown in rankings], minlength=8) / len(rankings)
        for rankings in (cold, warm)
    ]
    assert np.abs(shares[0] - shares[1]).max() < 0.15


def test_the_scratch_keeps_the_walk() -> None:
    policy, counts = PBMHB(), Counts.empty(n_user_types=1, n_items=4, n_positions=2)
    scratch = policy.new_scratch()
    policy.rank(counts, 0, rng=np.random.default_rng(0), scratch=scratch)
    sample = scratch["sample"]
    policy.rank(counts, 0, rng=np.random.default_rng(1), scratch=scratch)
    assert scratch["sample"] is sample
    assert (sample.items > 0).all()


def test_regret_flattens_though_neither_positions_nor_their_order_are_known() -> None:
    # The paper's report: it learns the best item and the best position at once. Position 2 is the best here.
    result = simulate(PBMHB(), kdd2012(), horizon=40_000, replications=4, workers=1, seed=5)
    early, late = (result.regret[:, np.searchsorted(result.checkpoints, t)] for t in (10_000, 40_000))
    assert ((late - early) < early).all()  # three times as many rounds cost less than the first did
    blind = simulate(UniformRandom(), kdd2012(), horizon=40_000, replications=1, workers=1, seed=5)
    assert late.max() < 0.05 * blind.final_regret.min()


@pytest.mark.parametrize("wrong", [{"width": 0.0}, {"width": "wide"}, {"steps": 0}, {"steps": 1.5}])
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BanditRankError):
        PBMHB(**wrong)
