import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from banditrank import Counts, InvalidInputError, ThompsonRank, estimate
from banditrank.estimators._intervals import confidence_intervals

READERS = (
    estimate,
    lambda counts: estimate(counts, method="likelihood"),
    confidence_intervals,
    lambda counts: ThompsonRank().rank(counts, 0, rng=np.random.default_rng(0)),
)


def drawn(seed: int) -> Counts:
    rng = np.random.default_rng(seed)
    counts = Counts.empty(n_user_types=2, n_items=4, n_positions=3)
    for _ in range(rng.integers(0, 12)):
        rewards = np.eye(3)[rng.integers(3)] * rng.integers(2)
        counts.record(int(rng.integers(2)), rng.permutation(4)[:3], rewards=rewards)
    return counts


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_merging_is_commutative_associative_and_has_a_zero(a: int, b: int, c: int) -> None:
    x, y, z = drawn(a), drawn(b), drawn(c)
    assert x + y == y + x
    assert (x + y) + z == x + (y + z)
    assert x + Counts.empty(n_user_types=2, n_items=4, n_positions=3) == x


@given(st.integers(0, 10**6))
def test_counts_are_consistent(seed: int) -> None:
    counts = drawn(seed)
    assert counts.displays.sum() == counts.rounds * 3
    assert counts.arrivals.sum() == counts.rounds
    assert (counts.rewards <= counts.displays).all()
    assert counts.pooled().displays[0].sum() == counts.displays.sum()


@given(st.integers(0, 10**6))
def test_arrays_and_dictionaries_round_trip(seed: int) -> None:
    counts = drawn(seed)
    assert Counts.from_arrays(**counts.to_dict()) == counts


def test_a_copy_is_independent() -> None:
    counts = drawn(3)
    copy = counts.copy()
    copy.record(0, [0, 1, 2], rewards=[1, 0, 0])
    assert copy.rounds == counts.rounds + 1
    assert copy != counts


@pytest.mark.parametrize(
    ("user_type", "ranking", "rewards", "message"),
    [
        (2, [0, 1, 2], [0, 0, 0], "user_type must be a whole number from 0 to 1, got 2"),
        (0, [0, 0, 1], [0, 0, 0], "ranking must not contain an item twice"),
        (0, [0, 1, 2], [0, 0], "rewards must have 3 entries"),
        (0, [0, 1, 2], [0, -1, 0], "rewards must be finite and not negative, got -1.0"),
        (0, [0, 1, 2], [0, np.nan, 0], "rewards must be finite and not negative, got nan"),
    ],
)
def test_an_invalid_round_is_rejected_and_changes_nothing(
    user_type: int, ranking: list, rewards: list, message: str
) -> None:
    counts = drawn(5)
    before = counts.copy()
    with pytest.raises(InvalidInputError, match=message):
        counts.record(user_type, ranking, rewards=rewards)
    assert counts == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ([[[1, 1]]], [[[1, 1]]], [1]),
            r"displays must have shape \(N, M, K\) with 1 ≤ K ≤ M, got \(1, 1, 2\)",
        ),
        (([[[1]]], [[[1], [1]]], [1]), "must have the same shape"),
        (([[[20]]], [[[100]]], [1]), r"rewards\[0\]\[0\]\[0\] must be at most the displays, 20, got 100.0"),
        (([[[0]]], [[[1]]], [1]), r"rewards\[0\]\[0\]\[0\] must be 0 where nothing was displayed, got 1.0"),
        (([[[1]]], [[[1]]], [1, 2]), "arrivals must have one entry for each of 1"),
        (([[1]], [[1]], [1]), "displays must have 3 axes"),
        (([[[1]]], [[[1]]], ["x"]), "arrivals must hold numbers only"),
        (
            ([[[1]]], [[[1]]], [1], -1),
            "rounds must be a whole number from 0 to 1,000,000,000,000,000, got -1",
        ),
    ],
)
def test_invalid_arrays_are_rejected(arguments: tuple, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Counts.from_arrays(*arguments)


def test_rewards_of_another_scale_need_its_maximum() -> None:
    rounded = sum([0.1] * 30)
    assert rounded > 3
    assert Counts.from_arrays([[[3]]], [[[rounded]]], [3]).rewards[0, 0, 0] == rounded
    assert Counts.from_arrays([[[3]]], [[[12]]], [3], max_reward=4).rewards[0, 0, 0] == 12
    with pytest.raises(InvalidInputError, match=r"must be at most 4 times the displays, 3, got 13\.0"):
        Counts.from_arrays([[[3]]], [[[13]]], [3], max_reward=4)


def test_counts_of_different_shapes_do_not_merge() -> None:
    with pytest.raises(InvalidInputError, match="counts must have the same shape"):
        drawn(1) + Counts.empty(n_user_types=1, n_items=1, n_positions=1)


def _made(**changes: object) -> Counts:
    sound = {
        "displays_by_position": np.ones((2, 2, 3)),
        "rewards_by_position": np.ones((2, 2, 3)),
        "arrivals": np.ones(2),
        "rounds": 2,
    }
    return Counts(**{**sound, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"rewards_by_position": np.ones((2, 2, 2))},
            r"rewards_by_position must have shape \(2, 2, 3\), got",
        ),
        ({"arrivals": np.ones(1)}, r"arrivals must have shape \(2,\), got \(1,\)"),
        ({"displays_by_position": np.ones((2, 3, 2))}, r"with 1 ≤ K ≤ M, got \(2, 3, 2\)"),
        ({"displays_by_position": np.ones((2, 0, 3))}, r"with 1 ≤ K ≤ M, got \(2, 0, 3\)"),
        ({"displays_by_position": np.ones((0, 2, 3))}, r"with 1 ≤ K ≤ M, got \(0, 2, 3\)"),
        ({"displays_by_position": np.ones((2, 3))}, r"with 1 ≤ K ≤ M, got \(2, 3\)"),
        ({"displays_by_position": np.ones((2, 2, 3), dtype=int)}, "must be an array of float64"),
        ({"arrivals": [1.0, 1.0]}, "arrivals must be an array of float64, got"),
        ({"rounds": -1}, "rounds must be a whole number of at least 0, got -1"),
        ({"rounds": 1.5}, "rounds must be a whole number of at least 0, got 1.5"),
    ],
)
def test_arrays_that_compiled_code_would_overrun_are_rejected(changes: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        _made(**changes)


def test_rounds_may_be_any_integer_type() -> None:
    assert type(_made(rounds=np.int64(7)).rounds) is int


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("displays_by_position", np.inf, "displays must be finite and not negative, got inf"),
        (
            "displays_by_position",
            0.0,
            r"rewards\[0\]\[0\]\[0\] must be 0 where nothing was displayed, got 1.0",
        ),
        ("rewards_by_position", np.nan, "rewards must be finite and not negative, got nan"),
        ("rewards_by_position", -1.0, "rewards must be finite and not negative, got -1.0"),
        ("arrivals", -2.0, "arrivals must be finite and not negative, got -2.0"),
    ],
)
def test_readers_of_counts_reject_invalid_values(field: str, value: float, message: str) -> None:
    counts = _made()
    getattr(counts, field).flat[0] = value
    for read in READERS:
        with pytest.raises(InvalidInputError, match=message):
            read(counts)


def test_readers_of_counts_reject_other_types() -> None:
    for read in READERS:
        with pytest.raises(InvalidInputError, match="counts must be a Counts, got None"):
            read(None)


def test_a_ranking_needs_a_generator() -> None:
    with pytest.raises(InvalidInputError, match=r"rng must be a numpy.random.Generator, got None"):
        ThompsonRank().rank(_made(), 0, rng=None)
