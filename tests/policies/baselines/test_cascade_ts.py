import numpy as np
import pytest
from helpers.baseline_runs import ManualRun

from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.policies.baselines._cascade_ts import CascadeTS


def test_looks_end_at_the_first_click() -> None:
    run = ManualRun(CascadeTS(order=((2, 0, 1),)), n_items=4, n_positions=3)
    run.observe([1, 1, 0], [3, 1, 0])  # looked at in the order 0, 3, 1: the click at 1 is not the first
    assert run.state.clicks.tolist() == [[1, 1, 1, 2]]
    assert (run.state.looks - run.state.clicks).tolist() == [[2, 1, 1, 1]]
    run.observe([0, 0, 0], [3, 1, 0])
    assert run.state.clicks.tolist() == [[1, 1, 1, 2]]
    assert (run.state.looks - run.state.clicks).tolist() == [[3, 2, 1, 2]]


def test_users_without_a_click_have_looked_at_visible_positions() -> None:
    run = ManualRun(CascadeTS(prior=(1, 99), n_visible=2), n_items=5, n_positions=4)
    run.observe([0, 0, 0, 0], [0, 1, 2, 3])
    assert (run.state.looks - run.state.clicks).tolist() == [[100, 100, 99, 99, 99]]
    run.observe([0, 0, 0, 1], [0, 1, 2, 3])  # a click behind the swipe: everything above was looked at
    assert (run.state.looks - run.state.clicks).tolist() == [[101, 101, 100, 99, 99]]
    assert run.state.clicks.tolist() == [[1, 1, 1, 2, 1]]


def test_the_largest_samples_are_in_the_order_of_looks() -> None:
    run = ManualRun(CascadeTS(order=((1, 0),)), n_items=4, n_positions=2)
    run.state.clicks[0] = [1, 9e5, 1, 5e5]
    run.state.looks[0] = [1e6 + 1, 1e6, 1e6 + 1, 1e6]  # posterior means of 0, .9, 0 and .5
    assert run.rank().tolist() == [3, 1]


def test_more_visible_positions_than_there_are_count_as_all() -> None:
    run = ManualRun(CascadeTS(n_visible=10**30), n_items=3, n_positions=2)
    run.observe([0, 0], [2, 0])
    assert (run.state.looks - run.state.clicks).tolist() == [[2, 1, 2]]


def test_priors_that_are_no_numbers_of_clicks_and_misses_are_refused() -> None:
    for prior in (5, None, (1,), (1, 2, 3), 1.5):
        with pytest.raises(InvalidInputError, match=r"^prior must be a number of clicks and a number of "):
            CascadeTS(prior=prior)  # type: ignore[arg-type]
    for pair in ((0, 1), (1, float("nan")), (1, float("inf"))):
        with pytest.raises(InvalidInputError, match=r"^prior must be a number from "):
            CascadeTS(prior=pair)


def test_statistics_survive_items_that_come_and_go() -> None:
    policy = CascadeTS(prior=(2, 3))
    run = ManualRun(policy, n_items=3, n_positions=2)
    run.observe([0, 1], [2, 0])
    counts = Counts.empty(n_user_types=1, n_items=4, n_positions=2)
    state = policy.update_items(run.state, counts, np.array([2, -1, -1, 0]))
    assert (state.looks - state.clicks).tolist() == [[4, 3, 3, 3]]
    assert state.clicks.tolist() == [[2, 2, 2, 3]]
    assert state.displays is counts.displays_by_position
