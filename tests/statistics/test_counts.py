import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from banditrank import Counts, InvalidInputError


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
def test_arrays_and_plain_values_give_the_counts_back(seed: int) -> None:
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
        (0, [0, 0, 1], [0, 0, 0], "ranking must not show an item twice"),
        (0, [0, 1, 2], [0, 0], "rewards must have 3 entries"),
        (0, [0, 1, 2], [0, -1, 0], "rewards must be finite and not negative, got -1.0"),
        (0, [0, 1, 2], [0, np.nan, 0], "rewards must be finite and not negative, got nan"),
    ],
)
def test_a_bad_round_is_refused_and_changes_nothing(
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
def test_bad_arrays_are_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Counts.from_arrays(*arguments)


def test_counts_of_different_shapes_do_not_merge() -> None:
    with pytest.raises(InvalidInputError, match="counts must have the same shape"):
        drawn(1) + Counts.empty(n_user_types=1, n_items=1, n_positions=1)
