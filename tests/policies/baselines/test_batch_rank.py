import numpy as np
import pytest
from helpers.baseline_runs import ManualRun, play

from banditrank.model._problem import Problem
from banditrank.policies.baselines._batch_rank import BatchRank
from banditrank.simulation._simulate import simulate


def test_a_stage_takes_as_long_as_the_paper_says() -> None:
    """n_ℓ = ⌈16 · 4^ℓ · ln 1000⌉: ⌈110.5⌉, ⌈442.1⌉, ⌈1768.4⌉; every round shows both items."""
    run = ManualRun(BatchRank(horizon=1000), n_items=2, n_positions=2)
    batches = run.state.batches
    for stage, rounds in enumerate((111, 443, 1769)):
        assert (batches.stages[0, 0], batches.quotas[0, 0]) == (stage, rounds)
        for _ in range(rounds):
            assert batches.stages[0, 0] == stage
            run.rank()
            run.observe([1.0, 1.0])
    assert batches.stages[0, 0] == 3


def _play_clear_winner(n_items: int, n_positions: int) -> ManualRun:
    """Show until the first stage ends; item 1 is always clicked, others never."""
    run = ManualRun(BatchRank(horizon=1000), n_items, n_positions)
    while run.state.batches.stages[0, 0] == 0 and run.state.batches.lengths[0, 0] == n_positions:
        run.observe(run.rank() == 1)
    return run


def test_a_batch_is_split_where_bounds_come_apart() -> None:
    """111 of 111 clicks: q ≥ exp(−12.706 / 111) = 0.892; none: q ≤ 0.108. So item 1 goes first."""
    batches = _play_clear_winner(n_items=4, n_positions=3).state.batches
    assert batches.lengths[0].tolist()[:2] == [1, 2]
    assert batches.sizes[0].tolist()[:2] == [1, 3]
    assert batches.quotas[0].tolist()[:2] == [111, 111]  # both start anew
    assert batches.items[0, 0] == 1
    assert not batches.clicks.any()
    assert not batches.views.any()
    assert batches.lower[:2] == pytest.approx([0.892, 0.0], abs=5e-4)
    assert batches.upper[:2] == pytest.approx([1.0, 0.108], abs=5e-4)


def test_items_too_bad_for_the_batch_are_dropped() -> None:
    run = _play_clear_winner(n_items=4, n_positions=1)
    batches = run.state.batches
    assert (batches.lengths[0, 0], batches.sizes[0, 0], batches.stages[0, 0]) == (1, 1, 1)
    assert run.possible_rankings() == {(1,)}


def test_items_that_are_not_separated_stay() -> None:
    run = ManualRun(BatchRank(horizon=10), n_items=5, n_positions=3)
    for _ in range(5000):
        run.rank()
        run.observe([0.0, 0.0, 0.0])
    assert (run.state.batches.lengths[0, 0], run.state.batches.sizes[0, 0]) == (3, 5)
    assert run.state.batches.stages[0, 0] > 2


def test_items_are_observed_equally_often_and_in_all_places() -> None:
    """Five items do not fit evenly into three ranks: some fill up, and are not observed then.

    Each is observed 2,500 times, a third at each rank; off by 0.06 with probability below 15 · 4e-8
    (Hoeffding).
    """
    run = ManualRun(BatchRank(), n_items=5, n_positions=3)
    views = run.state.batches.views[0]
    observed = np.zeros((5, 3))
    for _ in range(5000):  # in two rounds all are observed, and one item fills up
        shown = run.rank()
        before = views.copy()
        run.observe([0.0, 0.0, 0.0])
        assert views.max() - views.min() <= 1
        if views.sum() > before.sum():  # else a new stage has begun
            observed[shown, np.arange(3)] += (views - before)[shown]
    assert np.ptp(observed.sum(axis=1)) <= 5
    assert np.abs(observed / observed.sum(axis=1, keepdims=True) - 1 / 3).max() < 0.06


def test_clicks_on_items_that_fill_up_are_not_collected() -> None:
    run = ManualRun(BatchRank(), n_items=3, n_positions=2)
    run.rank()
    run.observe([1.0, 1.0])
    run.rank()  # one item is left to observe; the other has been
    run.observe([1.0, 1.0])
    assert run.state.batches.clicks[0].tolist() == [1, 1, 1]
    assert run.counts.rewards.sum() == 4


def test_splits_are_right_and_regret_stops_growing() -> None:
    """Theorem 1: with probability near 1 no split or drop is wrong, and regret grows with ln T only."""
    problem = Problem([1.0], [[0.5, 0.3, 0.2]], [[0.1, 0.95, 0.05, 0.65, 0.35]])
    policy = BatchRank(horizon=200_000)
    batches = play(policy, problem, 200_000).state.batches
    assert batches.lengths[0].tolist() == [1, 1, 1]
    assert batches.items[0, :3].tolist() == [1, 3, 4]
    result = simulate(policy, problem, horizon=200_000, replications=2, workers=1, seed=3)
    half = np.searchsorted(result.checkpoints, 100_000)
    regret = np.asarray(result.regret)  # (replications, checkpoints)
    assert (regret[:, -1] - regret[:, half] < 0.1 * regret[:, half]).all()


def test_the_better_batch_takes_the_positions_looked_at_most() -> None:
    run = ManualRun(BatchRank(horizon=1000, order=((2, 0, 1),)), n_items=3, n_positions=3)
    while run.state.batches.lengths[0, 0] == 3:
        run.observe(run.rank() == 1)
    assert run.possible_rankings() == {(0, 2, 1), (2, 0, 1)}
