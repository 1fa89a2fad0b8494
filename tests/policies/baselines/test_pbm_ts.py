import numpy as np
import pytest
from helpers.baseline_runs import EXAMINED
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.policies._catalog import make_policy
from banditrank.policies.baselines._pbm_ts import PBMTS, sample_item_mean
from banditrank.simulation._simulate import simulate

Floats = NDArray[np.float64]


def test_envelope_by_hand() -> None:
    # One click, three misses, κ = ½: h' = 1/θ − 3·½/(1 − θ/2) = 0 at θ = ½, where h = ln ½ + 3 ln ¾ and
    # −h'' = 4 + 3 (½ / ¾)² = 16/3. Tangents touch at ½ ± √(2 / (16/3)) = ½ ± .61237: outside [0, 1].
    state = PBMTS(examination=((0.5,),)).init_state(Counts.from_arrays([[[4]]], [[[1]]], [4]), None)
    assert state.posterior.heights[0, 0] == pytest.approx(np.log(0.5) + 3 * np.log(0.75))
    assert state.posterior.plateaus[0, 0].tolist() == [0, 1]
    assert state.posterior.tails[0, 0].tolist() == [0, 0]
    # Four times as much of both: they touch at ½ ± .30619, and reach the height of the mode
    # a fall / steepness nearer to it.
    state = PBMTS(examination=((0.5,),)).init_state(Counts.from_arrays([[[16]]], [[[4]]], [16]), None)
    touch = 0.5 + np.sqrt(2 / (4 * 16 / 3))
    steepness = 6 / (1 - touch / 2) - 4 / touch
    fall = 4 * np.log(0.5 / touch) + 12 * np.log(0.75 / (1 - touch / 2))
    assert state.posterior.plateaus[0, 0, 1] == pytest.approx(touch - fall / steepness)
    assert state.posterior.tails[0, 0, 1] == pytest.approx(1 / steepness)


def distribution(
    displays: NDArray[np.float64], clicks: NDArray[np.float64], kappa: NDArray[np.float64]
) -> tuple:
    """Return a grid where the density is, and the distribution function on it, by quadrature."""
    grid = np.linspace(0, 1, 400_001)[1:-1]
    log_density = clicks.sum() * np.log(grid)
    for n, s, k in zip(displays, clicks, kappa, strict=True):
        log_density += (n - s) * np.log1p(-k * grid)
    density = np.exp(log_density - log_density.max())
    return grid, np.cumsum(density) / density.sum()


POSTERIORS = {
    "the prior": ([0, 0], [0, 0], [0.9, 0.3]),
    "no click": ([3, 8], [0, 0], [0.9, 0.3]),
    "no click where hardly anybody looks": ([0, 5], [0, 0], [0.9, 0.01]),
    "clicks only": ([4, 0], [4, 0], [1.0, 0.3]),
    "more clicks than there can be looks": ([10, 20], [2, 9], [0.5, 0.1]),
    "one click": ([6, 5], [1, 0], [0.9, 0.3]),
    "a miss where everybody looks": ([9, 40], [8, 20], [1.0, 0.4]),
    "a BetaRewards distribution": ([30, 0], [12, 0], [1.0, 0.3]),
    "much": ([900, 7000], [300, 800], [0.9, 0.3]),
    "much and rare": ([20000, 300], [12, 0], [0.6, 0.4]),
}


@pytest.mark.parametrize(("displays", "clicks", "kappa"), POSTERIORS.values(), ids=POSTERIORS)
def test_draws_have_the_posterior_of_the_paper(
    displays: list[int], clicks: list[int], kappa: list[float]
) -> None:
    # Kolmogorov and Smirnov's distance of n draws exceeds 2.5/√n with probability 2e^−12.5 = 7e-6.
    n_draws = 20_000
    shown, clicked = np.array(displays, float), np.array(clicks, float)
    counts = Counts.from_arrays([[shown, [0, 0]]], [[clicked, [0, 0]]], [shown.sum()])
    state = PBMTS(examination=(tuple(kappa),)).init_state(counts, None)
    rng = np.random.default_rng(6)
    draws = np.sort(
        [sample_item_mean(state.posterior, state.statistics.examination, 0, 0, rng) for _ in range(n_draws)]
    )
    grid, cumulative = distribution(shown, clicked, np.array(kappa))
    expected = np.interp(draws, grid, cumulative)
    assert np.abs(expected - (np.arange(n_draws) + 0.5) / n_draws).max() < 2.5 / np.sqrt(n_draws)


def test_regret_is_less_than_that_of_pbm_ucb() -> None:
    # As in the paper's experiments. Ten seeds each; the means differ by more than ten standard errors.
    ours, theirs = (
        simulate(policy, EXAMINED, 30_000, 10, seed=1, workers=1).final_regret
        for policy in (make_policy("pbm-ts", EXAMINED), make_policy("pbm-ucb", EXAMINED))
    )
    assert ours.max() < theirs.mean()
