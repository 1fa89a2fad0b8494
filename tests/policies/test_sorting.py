import numpy as np
import pytest

from banditrank.policies._sorting import assign_in_order, random_argmax, top_k


def test_ties_are_broken_uniformly() -> None:
    rng = np.random.default_rng(0)
    chosen = [random_argmax(np.array([0.1, 0.9, 0.9, 0.3, 0.9]), rng) for _ in range(3000)]
    shares = np.bincount(chosen, minlength=5) / 3000
    # A share of 3,000 draws is off by more than 0.05 with probability below 1e-6 (Hoeffding).
    assert shares == pytest.approx([0, 1 / 3, 1 / 3, 0, 1 / 3], abs=0.05)


def test_the_largest_are_sorted_and_ties_go_to_the_lower_number() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        values = rng.integers(0, 6, 9) / 6
        sorted_out = np.zeros(int(rng.integers(1, 10)), dtype=np.uintp)
        top_k(values, sorted_out)
        assert sorted_out.tolist() == np.argsort(-values, kind="stable")[: sorted_out.size].tolist()


def test_the_first_item_goes_to_the_first_of_the_positions() -> None:
    ranking = np.zeros(3, dtype=np.uintp)
    assign_in_order(np.array([7, 4, 9], dtype=np.uintp), np.array([2, 0, 1], dtype=np.uintp), ranking)
    assert ranking.tolist() == [4, 9, 7]
