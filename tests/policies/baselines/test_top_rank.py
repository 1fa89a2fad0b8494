import numpy as np
import pytest
from helpers.baseline_runs import ManualRun, play

from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.model._problem import Problem
from banditrank.policies.baselines._top_rank import SCALE, TopRank, init_blocks, is_better
from banditrank.simulation._simulate import simulate

DECREASING = Problem(
    [0.5, 0.5], [[0.5, 0.3, 0.2]] * 2, [[0.1, 0.9, 0.3, 0.7, 0.5], [0.7, 0.3, 0.5, 0.1, 0.9]]
)


def test_one_is_better_once_the_lead_reaches_the_bound() -> None:
    """All of n differences in favour: n² ≥ n (2 ln(3343.7) + ln n), 19.23 for n = 20 and 19.17 for n = 19."""
    assert pytest.approx(3.3437, abs=1e-4) == SCALE
    log_odds = np.log(SCALE * 1000)
    assert is_better(20.0, 0.0, log_odds)
    assert not is_better(19.0, 0.0, log_odds)
    assert not is_better(0.0, 20.0, log_odds)
    assert not is_better(0.0, 0.0, log_odds)


@pytest.mark.parametrize(
    ("won", "lost"), [(3.0, 0.0), (40.0, 11.0), (40.0, 12.0), (900.0, 700.0), (900.0, 730.0)]
)
def test_the_bound_is_the_papers(won: float, lost: float) -> None:
    lead, contests, delta = won - lost, won + lost, 1e-3
    bound = np.sqrt(2 * contests * np.log(SCALE * np.sqrt(contests) / delta))
    assert is_better(won, lost, np.log(SCALE / delta)) == (lead >= bound)


def test_items_part_when_one_is_known_to_be_better_and_learn_no_more_of_each_other() -> None:
    run = ManualRun(TopRank(horizon=1000), n_items=3, n_positions=2)
    for clicks in range(40):
        if clicks < 20:
            # Missed with probability 6 (5/6)^60 ≈ 1e-4 each, and a fixed seed.
            assert len(run.possible_rankings()) == 6
        run.show([2, 0])
        run.observe([1.0, 0.0])
    assert run.possible_rankings() == {(2, 0), (2, 1)}
    assert run.state.wins[0].tolist() == [[0, 0, 0], [0, 0, 0], [20, 20, 0]]  # also over 1, not shown
    run.show([2, 1])
    run.observe([0.0, 1.0])
    assert run.state.wins[0].tolist() == [[0, 0, 0], [1, 0, 0], [20, 20, 0]]


def test_items_clicked_together_do_not_differ() -> None:
    run = ManualRun(TopRank(), n_items=4, n_positions=3)
    run.show([3, 1, 0])
    run.observe([1.0, 0.0, 1.0])
    expected = np.zeros((4, 4))
    expected[[3, 3, 0, 0], [1, 2, 1, 2]] = 1
    assert run.state.wins[0].tolist() == expected.tolist()
    assert run.counts.rewards[0].sum() == 2


def test_a_circle_is_one_block() -> None:
    better = np.zeros((1, 5, 5), dtype=np.bool_)
    for winner, loser in ((4, 0), (0, 1), (1, 2), (2, 0), (2, 3)):
        better[0, winner, loser] = True
    blocks = init_blocks(better)
    assert blocks.starts[0].tolist() == [1, 1, 1, 1, 0]
    assert blocks.ends[0, :2].tolist() == [1, 5]


def test_what_it_takes_for_better_is_better() -> None:
    """The paper's good event, which fails with probability δ M²: here 25/30,000 for each user type."""
    better = play(TopRank(horizon=30_000), DECREASING, 30_000).state.better
    means = DECREASING.item_means
    assert better.sum() >= 2 * 7  # of 10 pairs for each of 2 user types
    assert (means[:, :, None] > means[:, None, :])[better].all()


def test_regret_stops_growing() -> None:
    """Theorem 1: it grows with the logarithm of the rounds; so less in the second half than in the first."""
    result = simulate(
        TopRank(horizon=100_000), DECREASING, horizon=100_000, replications=2, workers=1, seed=3
    )
    half = np.searchsorted(result.checkpoints, 50_000)
    regret = np.asarray(result.regret)  # (replications, checkpoints)
    assert (regret[:, -1] - regret[:, half] < 0.1 * regret[:, half]).all()


def test_the_first_block_takes_the_positions_looked_at_most() -> None:
    run = ManualRun(TopRank(horizon=1000, order=((1, 2, 0),)), n_items=3, n_positions=3)
    for _ in range(20):
        run.show([0, 1, 2])
        run.observe([1.0, 0.0, 0.0])
    assert run.possible_rankings() == {(1, 0, 2), (2, 0, 1)}


def test_what_is_known_survives_items_that_come_and_go() -> None:
    policy = TopRank(horizon=1000)
    run = ManualRun(policy, n_items=3, n_positions=1)
    for _ in range(20):
        run.show([2])
        run.observe([1.0])
    kept = np.array([-1, 2, 0])
    state = policy.update_items(run.state, Counts.empty(n_user_types=1, n_items=3, n_positions=1), kept)
    assert state.wins[0].tolist() == [[0, 0, 0], [0, 0, 20], [0, 0, 0]]
    assert state.blocks.starts[0].tolist() == [0, 0, 2]  # the new one is not known to be worse


def test_a_horizon_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="horizon"):
        TopRank(horizon=0)
    assert TopRank(horizon=7).describe()["horizon"] == 7
