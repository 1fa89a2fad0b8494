import numpy as np
import pytest
from helpers.baseline_runs import EXAMINED, play
from scipy.optimize import brentq, minimize_scalar
from scipy.special import rel_entr

from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.model._generators import make_problem
from banditrank.policies._catalog import make_policy
from banditrank.policies._sorting import top_k
from banditrank.policies.baselines._components.kl_ucb import bernoulli_kl
from banditrank.policies.baselines._pbm_pie import PBMPIE, _find_rivals
from banditrank.simulation._simulate import simulate


def upper_bound(displays: np.ndarray, clicks: np.ndarray, examination: np.ndarray, level: float) -> float:
    """Return U_j as the paper defines it, by searching for the lowest point and for the level beyond it."""

    def divergence(q: float) -> float:
        p, other = clicks / displays, examination * q
        return float((displays * (rel_entr(p, other) + rel_entr(1 - p, 1 - other))).sum())

    lowest = float(minimize_scalar(divergence, bounds=(0, 1), method="bounded", options={"xatol": 1e-12}).x)
    if divergence(1 - 1e-12) <= level or divergence(lowest) > level:
        return 1.0 if divergence(1 - 1e-12) <= level else lowest
    return float(brentq(lambda q: divergence(q) - level, lowest, 1 - 1e-12, xtol=1e-13))


def test_rivals_are_the_items_whose_bound_reaches_the_last_leader() -> None:
    rng = np.random.default_rng(3)
    found, n_items = 0, 12
    for _ in range(25):
        examination = rng.uniform(0.1, 1.0, 3)
        means = rng.uniform(0.1, 0.9, n_items)
        displays = rng.integers(1, 60, (1, n_items, 3)).astype(float)
        clicks = rng.binomial(displays.astype(int), means[:, None] * examination).astype(float)
        state = PBMPIE(examination=(tuple(examination),)).init_state(
            Counts.from_arrays(displays, clicks, [100]), None
        )
        top_k(state.estimates[0], state.leaders)
        leaders = state.leaders.astype(int)
        assert leaders.tolist() == np.argsort(-state.estimates[0], kind="stable")[:3].tolist()
        last = state.estimates[0, leaders[-1]]
        for level in (0.2, 1.0, 4.0):
            expected = {
                j
                for j in set(range(n_items)) - set(leaders.tolist())
                if upper_bound(displays[0, j], clicks[0, j], examination, level) >= last
            }
            n_rivals = _find_rivals(state, 0, level)
            assert set(state.rivals[:n_rivals].astype(int).tolist()) == expected
            found += len(expected)
    assert 50 < found < 25 * 3 * 9 - 50  # both answers occur


def test_level_by_hand() -> None:
    # κ = 1. Leader: item 0, 60 clicks in 100 looks, .6. Item 1: 2 clicks in 10 looks: 10 d(.2, .6) =
    # 10 (.2 ln ⅓ + .8 ln 2) = 3.348: it is a rival from T = e^3.348 = 28.4 on; with ε = 1 from √28.4 = 5.3.
    counts = Counts.from_arrays([[[100], [10]]], [[[60], [2]]], [10])
    for epsilon, horizon, shown in ((0, 28, {0}), (0, 29, {0, 1}), (1, 5, {0}), (1, 6, {0, 1})):
        policy = PBMPIE(examination=((1.0,),), epsilon=epsilon, horizon=horizon)
        rng = np.random.default_rng(0)
        assert {int(policy.rank(counts, 0, rng=rng)[0]) for _ in range(60)} == shown  # ½⁶⁰ to miss one
    anytime = PBMPIE(examination=((1.0,),))
    for arrivals, shown in ((27, {0}), (28, {0, 1})):  # t = arrivals + 1
        later = Counts.from_arrays(counts.displays, counts.rewards, [arrivals], rounds=1000)
        rng = np.random.default_rng(0)
        assert {int(anytime.rank(later, 0, rng=rng)[0]) for _ in range(60)} == shown


def test_an_item_likelier_to_be_better_is_a_rival_however_badly_it_fits() -> None:
    # κ = (1, .2), leaders at .9 and .5. Item 2 was clicked in 10 of 10 displays and 2 of 100: S/Ñ = .4,
    # yet Φ is lowest at .545 (12/θ = 98·.2/(1 − .2θ)), with Φ(.545) = 12 > 1: no mean explains both cells.
    counts = Counts.from_arrays(
        [[[100, 0], [100, 0], [10, 100]]], [[[90, 0], [50, 0], [10, 2]]], [210], rounds=210
    )
    state = PBMPIE(examination=((1.0, 0.2),)).init_state(counts, None)
    top_k(state.estimates[0], state.leaders)
    assert state.leaders.tolist() == [0, 1]
    assert _find_rivals(state, 0, 1.0) == 1
    assert state.rivals[0] == 2


def test_explores_in_the_last_position_every_other_round() -> None:
    # Rivals 3 and 4 are as likely as each other. 4,000 rounds: a frequency is off by .05 with probability
    # below 5e-9 (Hoeffding).
    displays = [[[50, 50, 50]], [[50, 50, 50]], [[50, 50, 50]], [[2, 2, 2]], [[2, 2, 2]], [[900, 900, 900]]]
    clicks = [[[30, 20, 10]], [[20, 15, 8]], [[12, 9, 4]], [[0, 0, 0]], [[0, 0, 0]], [[0, 0, 0]]]
    counts = Counts.from_arrays(np.swapaxes(displays, 0, 1), np.swapaxes(clicks, 0, 1), [1056])
    policy = PBMPIE(examination=((0.8, 0.5, 0.3),))
    rng = np.random.default_rng(2)
    shown = np.array([policy.rank(counts, 0, rng=rng) for _ in range(4000)])
    assert (shown[:, :2] == [0, 1]).all()
    frequencies = np.bincount(shown[:, 2], minlength=6) / 4000
    np.testing.assert_allclose(frequencies, [0, 0, 0.5, 0.25, 0.25, 0], atol=0.05)
    assert frequencies[5] == 0


def test_first_rounds_show_every_item_in_each_position() -> None:
    problem = make_problem("random", n_user_types=1, n_items=7, n_positions=3, seed=0)
    _, counts = play(make_policy("pbm-pie", problem), problem, 7)
    assert (counts.displays == 1).all()


def test_explores_as_little_as_any_good_policy_must() -> None:
    # The paper's lower bound and PBM-PIE's theorem: item k outside the best three is shown about
    # ln T / d(κ_3 θ_k, κ_3 θ_3) times, in the last position. A finite T leaves terms of smaller order: the
    # ratio must be near 1, here within a factor of 1.5. Twenty seeds: its standard error is below .1.
    horizon = 100_000
    policy = make_policy("pbm-pie", EXAMINED, horizon=horizon)
    result = simulate(policy, EXAMINED, horizon, 20, seed=3, workers=1, keep_counts=True)
    assert result.counts is not None
    displays = np.mean([counts.displays[0] for counts in result.counts], axis=0)  # (M, K)
    for item in (0, 2):  # of means .15 and .05
        mean = float(EXAMINED.item_means[0, item])
        least = np.log(horizon) / bernoulli_kl(mean / 6, 0.25 / 6)
        assert 1 / 1.5 < displays[item, 0] / least < 1.5
        assert displays[item, 1:].sum() < 0.1 * displays[item, 0]


def test_regret_is_less_than_that_of_pbm_ucb() -> None:
    # As in the paper's experiments. Ten seeds each; the means differ by more than ten standard errors.
    ours, theirs = (
        simulate(policy, EXAMINED, 30_000, 10, seed=1, workers=1).final_regret
        for policy in (make_policy("pbm-pie", EXAMINED), make_policy("pbm-ucb", EXAMINED))
    )
    assert ours.max() < theirs.mean()


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="epsilon"):
        PBMPIE(examination=((1.0,),), epsilon=-0.1)
    with pytest.raises(InvalidInputError, match="horizon"):
        PBMPIE(examination=((1.0,),), horizon=0)
