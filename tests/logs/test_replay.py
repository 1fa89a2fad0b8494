import json

import numpy as np
import pytest
from helpers.simulated_logs import make_log_problem, simulate_visits

from banditrank import InvalidInputError, UnknownNameError, replay, warm_start
from banditrank.counts._click_cube import ClickCube
from banditrank.policies import UniformRandom

PROBLEM = make_log_problem(7, n_items=6, n_positions=3)


@pytest.fixture(scope="module")
def cube() -> ClickCube:
    rng = np.random.default_rng(7)
    return simulate_visits(PROBLEM, "uniform", 40_000, "position-based", rng).cube()


def test_the_random_policy_earns_what_the_random_log_did(cube: ClickCube) -> None:
    """The difference has a spread of √(0.8 / 4,000): the bound fails with 1 in 10,000."""
    result = replay(cube, UniformRandom(), rounds=4000, seed=1)
    assert result.is_complete
    assert result.mean_clicks == pytest.approx(result.logged_clicks, abs=4 * (0.8 / 4000) ** 0.5)
    assert result.standard_error == pytest.approx(np.std(result.clicks) / 4000**0.5, rel=1e-3)
    assert f" ± {result.standard_error:.2g} (standard error) clicks per visit" in result.summary()


def test_a_learning_policy_earns_more_than_the_random_log(cube: ClickCube) -> None:
    result = replay(cube, "auto", rounds=3000, seed=1, click_model="position-based")
    assert result.is_complete
    assert result.clicks[1500:].mean() > 1.1 * result.logged_clicks


def test_a_replay_is_reproducible_by_its_seed(cube: ClickCube) -> None:
    one, same, other = (replay(cube, UniformRandom(), rounds=200, seed=seed) for seed in (1, 1, 2))
    assert (one.clicks == same.clicks).all()
    assert (one.arrivals == same.arrivals).all()
    assert (one.clicks != other.clicks).any()


def test_a_replay_stops_where_a_cell_runs_out_and_names_it() -> None:
    items, clicks = np.tile([[0, 1], [1, 0]], (5, 1)), np.zeros((10, 2))
    small = ClickCube.from_visits(np.zeros(10), items, clicks)
    stopped = replay(small, UniformRandom(), rounds=100)
    assert not stopped.is_complete
    assert stopped.exhausted is not None
    assert stopped.rounds == stopped.exhausted_after < 11
    assert "has no more displays" in stopped.summary()
    resampled = replay(small, UniformRandom(), rounds=100, when_exhausted="resample")
    assert resampled.rounds == 100
    assert resampled.exhausted_after == stopped.exhausted_after
    assert resampled.resampled == 200 - 20
    assert not resampled.is_complete


def test_a_cell_that_was_never_shown_ends_even_a_resampled_replay() -> None:
    fixed_layout = ClickCube.from_visits(np.zeros(10), np.tile([0, 1], (10, 1)), np.zeros((10, 2)))
    result = replay(fixed_layout, UniformRandom(), rounds=100, when_exhausted="resample", seed=3)
    assert result.rounds < 100
    assert result.exhausted in {("type-1", "item-2", 1), ("type-1", "item-1", 2)}


def test_each_display_is_used_once() -> None:
    """All clicks of a log that is replayed to its end are those of the log."""
    rng = np.random.default_rng(0)
    cube = ClickCube.from_visits(np.zeros(50), np.zeros((50, 1), dtype=int), rng.random((50, 1)) < 0.4)
    result = replay(cube, UniformRandom(), rounds=50)
    assert result.clicks.sum() == cube.cells.clicks.sum()
    assert result.is_complete


def test_frames_and_json_have_all_rounds(cube: ClickCube) -> None:
    result = replay(cube, UniformRandom(), rounds=500)
    frame = result.to_frame()
    assert list(frame) == ["round", "user_type", "clicks", "cumulative_clicks"]
    assert frame["cumulative_clicks"].iloc[-1] == result.clicks.sum()
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert document["rounds"] == 500
    assert document["curve"][-1]["round"] == 500


def test_invalid_arguments_are_refused(cube: ClickCube) -> None:
    with pytest.raises(UnknownNameError, match="when_exhausted"):
        replay(cube, when_exhausted="guess")
    with pytest.raises(InvalidInputError, match="must be left out if a policy is given"):
        replay(cube, UniformRandom(), treatment="equal")


def test_a_log_with_fewer_items_than_positions_is_refused() -> None:
    few = ClickCube.from_visits(np.zeros(2), np.array([[0, -1, 1], [1, 0, -1]]), np.zeros((2, 3)))
    for call in (lambda: replay(few, UniformRandom()), lambda: warm_start(few, "home")):
        with pytest.raises(
            InvalidInputError, match=r"^log must have as many items .*got '2 for 3 positions'$"
        ):
            call()
