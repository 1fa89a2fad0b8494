from itertools import permutations

import numpy as np
import pytest
from helpers.baseline_runs import EASY, play

from banditrank.counts._counts import Counts
from banditrank.model._generators import make_problem
from banditrank.policies.baselines._comb_ucb1 import CombUCB1
from banditrank.simulation._simulate import simulate


@pytest.mark.parametrize(("arrivals", "first"), [(14, 1), (15, 0)])
def test_index_by_hand(arrivals: int, first: int) -> None:
    # Means .4 of 25 displays and .6 of 100: .4 + .2c and .6 + .1c, c = √(1.5 ln(t − 1)), are equal at c = 2,
    # t − 1 = e^(8/3) = 14.39.
    counts = Counts.from_arrays([[[25], [100]]], [[[10], [60]]], [arrivals], rounds=1000)
    assert CombUCB1().rank(counts, 0, rng=np.random.default_rng(0)).tolist() == [first]


def test_shows_the_best_of_all_rankings_by_index() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        displays = rng.integers(1, 40, (1, 5, 3)).astype(float)
        clicks = rng.binomial(displays.astype(int), 0.4).astype(float)
        counts = Counts.from_arrays(displays, clicks, [200])
        index = clicks[0] / displays[0] + np.sqrt(1.5 * np.log(200) / displays[0])  # (M, K)
        best = max(permutations(range(5), 3), key=lambda items: index[items, range(3)].sum())
        assert CombUCB1().rank(counts, 0, rng=rng).tolist() == list(best)


def test_every_cell_is_shown_before_any_is_chosen() -> None:
    # Shown cells are left out while a ranking of others exists: K M cells take no more than M + K rounds.
    for n_items, n_positions in ((6, 3), (4, 4), (20, 4)):
        problem = make_problem("random", n_user_types=1, n_items=n_items, n_positions=n_positions, seed=0)
        _, counts = play(CombUCB1(), problem, n_items + n_positions)
        assert counts.displays.min() >= 1


def test_bound_holds_as_often_as_the_paper_proves() -> None:
    # P(mean + √(1.5 ln t / s) < w) ≤ t^−3 for s rewards (the event F of its proof): at t = e^½ that is .22.
    # 4,000 cells alike exceed the frequency by .05 with probability below e^−20 if it is right.
    rng = np.random.default_rng(1)
    n_items, displays, log_t = 4000, 50, 0.5
    clicks = rng.binomial(displays, 0.5, (1, n_items, 1)).astype(float)
    counts = Counts.from_arrays(np.full((1, n_items, 1), float(displays)), clicks, [n_items * displays])
    state = CombUCB1().init_state(counts, None)
    missed = float((state.means + state.widths * np.sqrt(1.5 * log_t) < 0.5).mean())
    assert 0 < missed <= np.exp(-3 * log_t) + 0.05


def test_regret_is_logarithmic() -> None:
    # Its theorem: O(ln T). Ten times the rounds multiply ln T by 1.25, √T by 3.16 and T by 10; 1.8 is seen.
    result = simulate(CombUCB1(), EASY, 100_000, 5, seed=1, checkpoints=[10_000, 100_000], workers=1)
    early, late = result.regret.mean(axis=0)
    assert early < late < 2.2 * early
