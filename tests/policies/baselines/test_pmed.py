from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from banditrank import UniformRandom, simulate
from banditrank.errors import BanditRankError
from banditrank.model._catalog import kdd2012
from banditrank.model._problem import Problem
from banditrank.policies.baselines._components.pmed.alternatives import (
    bernoulli_kl_interior,
    find_closest,
    set_beliefs,
)
from banditrank.policies.baselines._components.pmed.plan import scoring_step
from banditrank.policies.baselines._components.pmed.program import SLACK, Program, init_program, solve_program
from banditrank.policies.baselines._pmed import PMED

Floats = NDArray[np.float64]


def solved(items: list[float], positions: list[float]) -> tuple[float, Program, NDArray[np.uintp]]:
    """Return the loss of the least displays, for items and positions that are in order already."""
    program = init_program(len(items), len(positions))
    leaders = np.arange(len(positions), dtype=np.uintp)
    set_beliefs(program.alternatives, np.array(items), np.array(positions), leaders, leaders)
    return solve_program(program, leaders), program, leaders


def kl(mean: Floats, other: Floats) -> Floats:
    return mean * np.log(mean / other) + (1 - mean) * np.log((1 - mean) / (1 - other))


def test_one_position_is_the_ordinary_bandit() -> None:
    # Lai and Robbins: an item is shown ln t / d(θ_j, θ_1) times.
    # d(.4, .5) = .4 ln .8 + .6 ln 1.2 = .020136, d(.2, .5) = .2 ln .4 + .8 ln 1.6 = .192745 by hand.
    loss, program, _ = solved([0.5, 0.4, 0.2], [1.0])
    assert program.displays[0, 1:] == pytest.approx([1 / 0.020136, 1 / 0.192745], rel=1e-4)
    assert loss == pytest.approx(0.1 / 0.020136 + 0.3 / 0.192745, rel=1e-4)


@pytest.mark.parametrize(
    ("items", "positions"),
    [
        ([0.5, 0.4, 0.2], [1.0, 0.6]),
        ([0.7, 0.35, 0.3], [1.0, 0.9]),
        ([0.6, 0.5, 0.3], [1.0, 0.7, 0.4]),
        ([0.3, 0.2, 0.15, 0.1], [1.0, 0.5]),  # where two leading items are equal nothing holds the others
    ],
)
def test_the_least_displays_are_those_of_brute_force(items: list[float], positions: list[float]) -> None:
    # All rankings, and all other models on a fine grid of shifts, in one linear program.
    loss, program, _ = solved(items, positions)
    m, k = len(items), len(positions)
    means = np.outer(positions, items)
    grid = np.linspace(-1.5, 1.5, 121 if m == 3 else 31)
    axes = np.meshgrid(*[grid] * (m - 1), indexing="ij")
    shifts = np.stack([np.zeros(axes[0].size), *(axis.ravel() for axis in axes)], axis=1)
    shifted = np.exp(shifts)
    rows = []
    for equation in range(len(program.alternatives.gaps)):
        raised, lowered = program.alternatives.raised[equation], program.alternatives.lowered[equation]
        tied = shifted.copy()
        ratio = np.exp(program.alternatives.gaps[equation])
        if raised == 0:
            tied[:, lowered] = tied[:, raised] / ratio
        else:
            tied[:, raised] = tied[:, lowered] * ratio
        others = means[None] * tied[:, None, :] / tied[:, :k, None]  # (models, K, M)
        rows.append(kl(means[None], others[(others < 1).all(axis=(1, 2))]))
    told = np.concatenate(rows)
    rankings = [list(ranking) for ranking in permutations(range(m), k)]
    slots = np.arange(k)
    gains = np.stack([told[:, slots, ranking].sum(axis=1) for ranking in rankings], axis=1)
    losses = [float((means[slots, slots] - means[slots, ranking]).sum()) for ranking in rankings]
    best = linprog(losses, A_ub=-gains, b_ub=-np.ones(len(gains)))
    assert 0.995 * best.fun <= loss <= 1.01 * best.fun / (1 - SLACK)  # the grid leaves some models out


def test_the_closest_model_is_closer_than_any_other() -> None:
    items, positions = [0.5, 0.45, 0.3, 0.2, 0.1], [1.0, 0.6, 0.5]
    _, program, leaders = solved(items, positions)
    rng = np.random.default_rng(2)
    displays = rng.uniform(0, 5, (3, 5))
    cut = np.zeros((3, 5))
    for equation, gap in enumerate(program.alternatives.gaps):
        least = find_closest(program.alternatives, equation, displays, leaders, cut)
        best = program.alternatives.newton.shifts.copy()
        raised, lowered = program.alternatives.raised[equation], program.alternatives.lowered[equation]
        assert best[raised] - best[lowered] == pytest.approx(gap)
        means = np.outer(positions, items)
        for _ in range(200):
            shifts = best + rng.normal(0, 0.05, 5)
            shifts[raised] = shifts[lowered] + gap
            others = means * np.exp(shifts[None, :] - shifts[:3, None])
            if (others < 1).all():
                assert (displays * kl(means, others)).sum() >= least - 1e-6


def test_estimates_solve_the_likelihood_equations() -> None:
    rng = np.random.default_rng(4)
    displays = rng.integers(50, 100, (1, 3, 6)).astype(np.float64)
    rewards = np.floor(displays * rng.uniform(0.1, 0.6, (1, 3, 6)))
    items, positions = np.full((1, 6), 0.1), np.ones((1, 3))
    for _ in range(200):
        scoring_step(displays, rewards, items, positions, 0)
    means = positions[0][:, None] * items[0][None, :]
    score = (rewards[0] - displays[0] * means) / (1 - means)
    assert np.abs(score.sum(axis=0)).max() < 1e-6  # of the logarithms of θ, then of κ
    assert np.abs(score.sum(axis=1)).max() < 1e-6


def test_displays_in_the_long_run_are_the_least_that_rule_other_models_out() -> None:
    # What the paper proves of its variant: exploration approaches the lower bound. One position, five items.
    means = [0.5, 0.4, 0.35, 0.3, 0.25]
    problem = Problem([1.0], [[1.0]], [means])
    result = simulate(PMED(), problem, horizon=50_000, replications=4, workers=1, seed=1, keep_counts=True)
    ratios = np.zeros((4, 4))  # replications, items
    for ratio, counts in zip(ratios, result.counts, strict=True):
        shown = counts.displays[0, :, 0]
        seen = counts.rewards[0, :, 0] / shown
        assert seen.argmax() == 0
        ratio[:] = shown[1:] * [bernoulli_kl_interior(mean, seen[0]) for mean in seen[1:]] / np.log(50_000)
    assert (ratios > 0.95).all()  # by what was seen it is never less than the bound, but for a tenth of t
    assert ratios.mean() < 1.5  # more where an item had looked better once


def test_regret_flattens_though_neither_positions_nor_their_order_are_known() -> None:
    result = simulate(PMED(), kdd2012(), horizon=100_000, replications=4, workers=1, seed=5)
    early, late = (result.regret[:, np.searchsorted(result.checkpoints, t)] for t in (20_000, 100_000))
    assert (late - early).mean() < 0.75 * early.mean()  # four times as many rounds
    blind = simulate(UniformRandom(), kdd2012(), horizon=100_000, replications=1, workers=1, seed=5)
    assert late.max() < 0.1 * blind.final_regret.min()


@pytest.mark.parametrize("wrong", [{"alpha": 0.0}, {"alpha": float("nan")}, {"treatment": "none"}])
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BanditRankError):
        PMED(**wrong)
