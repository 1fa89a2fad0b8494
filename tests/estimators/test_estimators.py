import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from banditrank import NASH, UTILITARIAN, Counts, InvalidInputError, estimate, make_problem
from banditrank.estimators._confidence_radii import (
    item_mean_error_rate,
    item_mean_radius,
    position_preference_error_rate,
    position_preference_radius,
)
from banditrank.estimators._item_means import exposure, item_means
from banditrank.estimators._position_preferences import position_preferences
from banditrank.testing._policies import dense_counts


def by_the_book(counts: Counts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Algorithm 1, N and μ̂ as the paper prints them."""
    ratios = counts.rewards / counts.displays  # (N, M, K)
    v = ratios / ratios.sum(axis=2, keepdims=True)
    rho = v.mean(axis=1)
    looks = np.einsum("ijk,ik->ij", counts.displays, rho)
    return rho, looks, counts.rewards.sum(axis=2) / looks


@given(seed=st.integers(0, 10**6), shape=st.sampled_from([(2, 5, 2), (1, 4, 4), (3, 6, 1), (1, 1, 1)]))
def test_estimates_follow_algorithm_1(seed: int, shape: tuple[int, int, int]) -> None:
    n, m, k = shape
    counts = dense_counts(make_problem("random", n_user_types=n, n_items=m, n_positions=k, seed=seed), seed)
    rho, looks, means = by_the_book(counts)
    found = estimate(counts)
    assert found.position_preferences == pytest.approx(rho)
    assert found.exposure == pytest.approx(looks)
    assert found.item_means == pytest.approx(means)
    assert found.arrival_rates == pytest.approx(counts.arrivals / counts.arrivals.sum())


@given(seed=st.integers(0, 10**6))
def test_exact_ratios_recover_the_problem(seed: int) -> None:
    problem = make_problem("random", n_user_types=2, n_items=6, n_positions=3, seed=seed)
    displays = np.full((2, 6, 3), 1000.0)
    rewards = displays * problem.item_means[:, :, None] * problem.position_preferences[:, None, :]
    found = estimate(Counts.from_arrays(displays, rewards, [600, 400]))
    assert found.position_preferences == pytest.approx(problem.position_preferences)
    assert found.item_means == pytest.approx(problem.item_means)
    ranking = np.array([4, 0, 2])
    values = (problem.position_preferences * problem.item_means[:, ranking]).sum(axis=1)
    assert found.collective_utility(ranking, UTILITARIAN) == pytest.approx([0.6, 0.4] @ values)
    assert found.collective_utility(ranking, NASH) == pytest.approx([0.6, 0.4] @ np.log(values))


def test_without_data_all_estimates_are_equal() -> None:
    found = estimate(Counts.empty(n_user_types=2, n_items=3, n_positions=2))
    assert (found.position_preferences == 0.5).all()
    assert (found.arrival_rates == 0.5).all()
    assert (found.exposure == 0).all()
    assert (found.item_means == 0).all()


def test_an_item_with_an_empty_cell_is_excluded() -> None:
    displays = [[[100, 100], [100, 0], [0, 0]]]
    rewards = [[[30, 10], [50, 0], [0, 0]]]
    counts = Counts.from_arrays(displays, rewards, [100])
    assert position_preferences(counts) == pytest.approx(np.array([[0.75, 0.25]]))
    assert exposure(counts) == pytest.approx(np.array([[100, 75, 0]]))
    assert item_means(counts) == pytest.approx(np.array([[0.4, 50 / 75, 0.0]]))


def test_a_never_clicked_item_is_excluded_and_has_mean_zero() -> None:
    counts = Counts.from_arrays([[[100, 100], [100, 100]]], [[[30, 10], [0, 0]]], [100])
    assert position_preferences(counts) == pytest.approx(np.array([[0.75, 0.25]]))
    assert item_means(counts)[0, 1] == 0


def test_a_type_that_never_arrived_has_equal_preferences() -> None:
    counts = Counts.from_arrays(
        [[[9, 9], [9, 9]], [[0, 0], [0, 0]]], [[[2, 1], [2, 1]], [[0, 0], [0, 0]]], [9, 0]
    )
    assert position_preferences(counts)[1].tolist() == [0.5, 0.5]
    assert estimate(counts).arrival_rates.tolist() == [1.0, 0.0]


def test_radii_follow_the_lemmas() -> None:
    counts = Counts.from_arrays([[[100, 50], [400, 25]]], [[[1, 1], [1, 1]]], [500])
    means = np.array([[0.5, 0.2]])
    log_t = np.log(500)
    radius = position_preference_radius(counts, means, 2.0)
    assert radius[0, 0] == pytest.approx(np.sqrt(2 * log_t / min(0.25 * 100, 0.04 * 400)))
    assert radius[0, 1] == pytest.approx(np.sqrt(2 * log_t / min(0.25 * 50, 0.04 * 25)))
    assert position_preference_error_rate(counts, 2.0) == pytest.approx(4 * 500**-4.0)
    looks = np.array([[70.0, 300.0]])
    assert item_mean_radius(counts, looks, 3.0) == pytest.approx(np.sqrt(6 * np.array([[150, 425]])) / looks)
    assert item_mean_error_rate(counts, 9.0) == pytest.approx(9 * np.exp(-8) * log_t)


def test_radii_are_infinite_without_data() -> None:
    counts = Counts.empty(n_user_types=1, n_items=2, n_positions=2)
    assert np.isinf(position_preference_radius(counts, np.full((1, 2), 0.5), 1.0)).all()
    assert np.isinf(item_mean_radius(counts, np.zeros((1, 2)), 1.0)).all()
    assert position_preference_error_rate(counts, 1.0) == 1.0
    shown = Counts.from_arrays([[[5], [5]]], [[[0], [1]]], [10])
    assert np.isinf(position_preference_radius(shown, np.array([[0.0, 0.5]]), 1.0)).all()


@pytest.mark.parametrize("epsilon", [-1.0, np.nan, np.inf])
def test_an_invalid_epsilon_is_rejected(epsilon: float) -> None:
    counts = Counts.empty(n_user_types=1, n_items=1, n_positions=1)
    with pytest.raises(InvalidInputError, match="epsilon must be"):
        item_mean_error_rate(counts, epsilon)
