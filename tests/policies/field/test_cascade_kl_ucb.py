from collections.abc import Callable

import numpy as np
import pytest
from hand_play import Play, cascade

from banditrank.policies.base import Treatment
from banditrank.policies.field.cascade_kl_ucb import CascadeKLUCB
from banditrank.policies.field.parts.kullback_leibler import bernoulli_divergence
from banditrank.statistics.counts import Counts
from banditrank.testing.policies import POLICY_CHECKS, MakePolicy


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("treatment", ["personalized", "equal"])
def test_policy_conforms(treatment: Treatment, check: Callable[[MakePolicy], None]) -> None:
    check(lambda _: CascadeKLUCB(treatment=treatment))


def test_looks_end_at_the_first_click() -> None:
    play = Play(CascadeKLUCB(order=((2, 0, 1),)), n_items=4, n_positions=3)
    play.observe([3, 1, 0], [1, 1, 0])  # looked at in the order 0, 3, 1: the click at 1 is not the first
    assert play.state.looks.tolist() == [[1, 0, 0, 1]]
    assert play.state.clicks.tolist() == [[0, 0, 0, 1]]
    play.observe([3, 1, 0], [0, 0, 0])
    assert play.state.looks.tolist() == [[2, 1, 0, 2]]
    assert play.counts.displays[0, 3, 0] == play.counts.rounds + play.counts.arrivals[0] == 2


def test_items_without_a_look_come_first_and_all_are_looked_at_within_as_many_rounds() -> None:
    play = Play(CascadeKLUCB(), n_items=7, n_positions=3)
    play.rounds(cascade(np.full(7, 0.9)), 7, seed=3)  # the first position is always looked at
    assert (play.state.looks > 0).all()


def test_the_index_by_hand() -> None:
    # 5 looks, 1 click, in round 20: the bound solves 5 d(1/5, q) = ln 20 + 3 ln ln 20 = 6.287, q = 0.8855. An
    # item of 40 looks exceeds it from 27 clicks on: 40 d(27/40, 0.8855) = 6.23, 40 d(26/40, 0.8855) = 7.60.
    level = np.log(20) + 3 * np.log(np.log(20))
    assert 5 * bernoulli_divergence(0.2, 0.8855) == pytest.approx(level, abs=2e-3)
    for clicks, first in ((26, 0), (27, 1)):
        play = Play(CascadeKLUCB(), n_items=2, n_positions=2)
        play.counts.arrivals[0] = 19
        play.state.looks[0] = [5, 40]
        play.state.clicks[0] = [1, clicks]
        assert play.rank(np.random.default_rng(0)).tolist() == [first, 1 - first]


@pytest.mark.parametrize(("k", "reported"), [(2, 357.9), (4, 275.1)])
def test_the_regret_that_the_paper_reports(k: int, reported: float) -> None:
    """Table 1 of the paper, 16 items, Δ = 0.15, by its own decomposition of what regret is made of.

    Late in a run, what is left of the regret are the looks that keep suboptimal items in doubt. By the
    paper's theorem each of them is shown (ln n + 3 ln ln n) / d(0.05, 0.2) times, and the paper's table has
    ``reported`` after 100,000 rounds. After 10,000 rounds ours must lie within a third of what the theorem's
    growth makes of it; one run has a standard deviation of about 10%.
    """
    attraction = np.full(16, 0.05)
    attraction[:k] = 0.2
    play = Play(CascadeKLUCB(), n_items=16, n_positions=k)
    shown = play.rounds(cascade(attraction), 10_000, seed=1)
    regret = (np.prod(1 - attraction[shown], axis=1) - 0.8**k).sum()
    growth = (np.log(1e4) + 3 * np.log(np.log(1e4))) / (np.log(1e5) + 3 * np.log(np.log(1e5)))
    assert regret == pytest.approx(reported * growth, rel=1 / 3)


def test_statistics_survive_items_that_come_and_go() -> None:
    play = Play(CascadeKLUCB(), n_items=3, n_positions=2)
    play.observe([2, 0], [0, 1])
    counts = Counts.empty(n_user_types=1, n_items=4, n_positions=2)
    state = CascadeKLUCB().resume(play.state, counts, np.array([2, -1, -1, 0]))
    assert state.looks.tolist() == [[1, 0, 0, 1]]
    assert state.clicks.tolist() == [[0, 0, 0, 1]]
    assert state.displays is counts.displays_by_position
