import numpy as np
import pytest
from helpers.baseline_runs import EASY

from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.policies._catalog import make_policy
from banditrank.policies.baselines._pbm_ucb import PBMUCB
from banditrank.simulation._simulate import simulate


@pytest.mark.parametrize(
    ("epsilon", "arrivals", "first"),
    [(0.0, 29, 1), (0.0, 30, 0), (1.0, 4, 1), (1.0, 5, 0)],
)
def test_index_by_hand(epsilon: float, arrivals: int, first: int) -> None:
    # κ = (½, 1). Item 0: N = 30 + 10, Ñ = 25, S = 10, index .4 + √40/25 √(δ/2). Item 1: N = Ñ = 100, S = 60,
    # index .6 + .1 √(δ/2). They are equal at δ = 2 (.2 / .15298)² = 3.418: ln t passes it between 30 and 31,
    # and 2 ln t between 5 and 6.
    counts = Counts.from_arrays(
        [[[30, 10], [0, 100], [50, 50]]], [[[4, 6], [0, 60], [0, 0]]], [arrivals], rounds=1000
    )
    policy = PBMUCB(examination=((0.5, 1.0),), epsilon=epsilon)
    assert policy.rank(counts, 0, rng=np.random.default_rng(0)).tolist() == [1 - first, first]


def test_items_never_looked_at_come_first() -> None:
    counts = Counts.from_arrays([[[9, 0], [0, 9], [0, 0], [0, 5]]], [[[9, 0], [0, 0], [0, 0], [0, 0]]], [9])
    policy = PBMUCB(examination=((1.0, 0.0),))  # the second position is never examined
    assert policy.rank(counts, 0, rng=np.random.default_rng(0)).tolist() == [1, 2]


@pytest.mark.parametrize("level", [0.5, 1.0, 2.0])
def test_bound_holds_as_often_as_the_paper_proves(level: float) -> None:
    # For given displays P(U < θ) ≤ e^−δ (Hoeffding; the paper's Proposition for random ones adds a factor).
    # 4,000 items alike exceed the frequency by .05 with probability below e^−20 if it is right.
    rng = np.random.default_rng(1)
    examination, mean, displays = np.array([1.0, 0.2]), 0.5, 40
    n_items = 4000
    shown = np.full((1, n_items, 2), float(displays))
    clicks = rng.binomial(displays, examination * mean, (1, n_items, 2)).astype(float)
    counts = Counts.from_arrays(shown, clicks, [n_items * displays])
    state = PBMUCB(examination=(tuple(examination),)).init_state(counts, None)
    missed = float((state.means + state.widths * np.sqrt(level / 2) < mean).mean())
    assert missed <= np.exp(-level) + 0.05
    assert missed > 0  # the bound is not vacuous: Gaussian tails of about e^−2δ are seen


def test_regret_is_logarithmic() -> None:
    # The paper's theorem: O(ln T). Ten times the rounds multiply ln T by 1.25, √T by 3.16 and T by 10.
    policy = make_policy("pbm-ucb", EASY)
    result = simulate(policy, EASY, 100_000, 10, seed=1, checkpoints=[10_000, 100_000], workers=1)
    early, late = result.regret.mean(axis=0)
    assert early < late < 1.8 * early


def test_bad_epsilon_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="epsilon"):
        PBMUCB(examination=((1.0,),), epsilon=-0.1)
