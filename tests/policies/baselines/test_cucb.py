from itertools import permutations

import numpy as np
import pytest
from helpers.baseline_runs import EASY

from banditrank.counts._counts import Counts
from banditrank.policies.baselines._cucb import CUCB
from banditrank.simulation._simulate import simulate


@pytest.mark.parametrize(("arrivals", "first"), [(13, 1), (14, 0)])
def test_index_by_hand(arrivals: int, first: int) -> None:
    # Means .4 of 25 displays and .6 of 100: .4 + .2c and .6 + .1c, c = √(1.5 ln t), are equal at c = 2,
    # t = e^(8/3) = 14.39, and the next round is t = arrivals + 1.
    counts = Counts.from_arrays([[[25], [100]]], [[[10], [60]]], [arrivals], rounds=1000)
    assert CUCB().rank(counts, 0, rng=np.random.default_rng(0)).tolist() == [first]


def test_shows_the_best_of_all_rankings_by_capped_index() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        displays = rng.integers(0, 40, (1, 5, 3)).astype(float)
        clicks = rng.binomial(displays.astype(int), 0.4).astype(float)
        counts = Counts.from_arrays(displays, clicks, [199])
        with np.errstate(divide="ignore", invalid="ignore"):
            index = np.minimum(clicks[0] / displays[0] + np.sqrt(1.5 * np.log(200) / displays[0]), 1)
        index[displays[0] == 0] = 1  # never shown
        best = max(index[items, range(3)].sum() for items in permutations(range(5), 3))
        shown = CUCB().rank(counts, 0, rng=rng)
        assert index[shown, range(3)].sum() == pytest.approx(best)


def test_regret_is_logarithmic() -> None:
    # Its theorem: O(ln T). Ten times the rounds multiply ln T by 1.25, √T by 3.16 and T by 10.
    result = simulate(CUCB(), EASY, 100_000, 5, seed=1, checkpoints=[10_000, 100_000], workers=1)
    early, late = result.regret.mean(axis=0)
    assert early < late < 2.2 * early
