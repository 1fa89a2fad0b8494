import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from banditrank import Counts, InvalidInputError, estimate, make_problem
from banditrank.estimators._maximum_likelihood import alternate

SHAPES = st.sampled_from([(2, 5, 2), (1, 4, 4), (3, 6, 1), (1, 1, 1), (2, 7, 3)])


def random_counts(shape: tuple[int, int, int], seed: int, *, empty: float = 0.3) -> Counts:
    """Sparse counts: some cells are never shown, some never rewarded."""
    rng = np.random.default_rng(seed)
    displays = rng.integers(1, 200, shape) * (rng.random(shape) > empty)
    rewards = rng.binomial(displays, rng.random(shape) * 0.2)
    return Counts.from_arrays(displays, rewards, displays.sum(axis=(1, 2)))


def log_likelihood(counts: Counts, rho: np.ndarray, mu: np.ndarray) -> float:
    """Σ S ln(ρμ) − Tρμ, where 0 ln 0 = 0."""
    rates = mu[:, :, None] * rho[:, None, :]  # (N, M, K)
    rewarded = counts.rewards > 0
    logs = np.log(rates[rewarded]) if (rates[rewarded] > 0).all() else np.array([-np.inf])
    return float((counts.rewards[rewarded] * logs).sum() - (counts.displays * rates).sum())


@given(seed=st.integers(0, 10**6), shape=SHAPES)
def test_exact_rewards_recover_the_problem(seed: int, shape: tuple[int, int, int]) -> None:
    n, m, k = shape
    problem = make_problem("random", n_user_types=n, n_items=m, n_positions=k, seed=seed)
    displays = np.random.default_rng(seed).integers(1, 10**6, shape).astype(float)
    rewards = displays * problem.item_means[:, :, None] * problem.position_preferences[:, None, :]
    found = estimate(Counts.from_arrays(displays, rewards, displays.sum(axis=(1, 2))), method="likelihood")
    assert found.position_preferences == pytest.approx(problem.position_preferences, abs=1e-9)
    assert found.item_means == pytest.approx(problem.item_means, rel=1e-6)
    looks = np.einsum("ijk,ik->ij", displays, problem.position_preferences)
    assert found.exposure == pytest.approx(looks, rel=1e-6)


@given(seed=st.integers(0, 10**6), shape=SHAPES)
def test_no_iteration_lowers_the_likelihood(seed: int, shape: tuple[int, int, int]) -> None:
    counts = random_counts(shape, seed)
    n, m, k = shape
    rho, mu, raw = np.full((n, k), 1 / k), np.zeros((n, m)), np.zeros(k)
    displays, rewards = counts.displays_by_position, counts.rewards_by_position
    before = -np.inf
    for _ in range(12):
        for i in range(n):
            alternate(displays, rewards, rho, mu, raw, i, 0.0, 1)
        after = log_likelihood(counts, rho, mu)
        assert math.isfinite(after)
        assert after >= before - 1e-9 * abs(after)
        before = after


@given(seed=st.integers(0, 10**6), shape=SHAPES)
def test_the_estimate_is_a_local_maximum(seed: int, shape: tuple[int, int, int]) -> None:
    counts = random_counts(shape, seed, empty=0.0)
    found = estimate(counts, method="likelihood")
    best = log_likelihood(counts, found.position_preferences, found.item_means)
    rng = np.random.default_rng(seed)
    for size in (0.3, 0.01):
        rho = found.position_preferences * np.exp(size * rng.normal(size=found.position_preferences.shape))
        mu = found.item_means * np.exp(size * rng.normal(size=found.item_means.shape))
        assert log_likelihood(counts, rho, mu) <= best + 1e-9 * abs(best)


@given(seed=st.integers(0, 10**6), shape=SHAPES)
def test_relabelling_types_items_and_positions_relabels_the_estimates(
    seed: int, shape: tuple[int, int, int]
) -> None:
    counts = random_counts(shape, seed, empty=0.1)
    rng = np.random.default_rng(seed)
    types, items, positions = (rng.permutation(size) for size in shape)
    picked = np.ix_(types, items, positions)
    relabelled = Counts.from_arrays(counts.displays[picked], counts.rewards[picked], counts.arrivals[types])
    found, other = (estimate(each, max_iterations=500, method="likelihood") for each in (counts, relabelled))
    assert other.position_preferences == pytest.approx(
        found.position_preferences[np.ix_(types, positions)], abs=1e-9
    )
    assert other.item_means == pytest.approx(found.item_means[np.ix_(types, items)], rel=1e-6, abs=1e-12)
    assert other.arrival_rates == pytest.approx(found.arrival_rates[types])


@given(seed=st.integers(0, 10**6), shape=SHAPES)
def test_rows_sum_to_one_whatever_is_empty(seed: int, shape: tuple[int, int, int]) -> None:
    found = estimate(random_counts(shape, seed, empty=0.8), method="likelihood")
    assert found.position_preferences.sum(axis=1) == pytest.approx(np.ones(shape[0]))
    assert (found.position_preferences >= 0).all()
    assert np.isfinite(found.item_means).all()


def test_without_data_all_estimates_are_equal() -> None:
    found = estimate(Counts.empty(n_user_types=2, n_items=3, n_positions=2), method="likelihood")
    assert (found.position_preferences == 0.5).all()
    assert (found.arrival_rates == 0.5).all()
    assert (found.item_means == 0).all()


def test_a_type_without_a_reward_has_equal_preferences_and_means_of_zero() -> None:
    counts = Counts.from_arrays([[[10, 20], [30, 40]]], [[[0, 0], [0, 0]]], [100])
    found = estimate(counts, method="likelihood")
    assert found.position_preferences.tolist() == [[0.5, 0.5]]
    assert found.item_means.tolist() == [[0.0, 0.0]]


def test_a_position_never_shown_gets_an_equal_share() -> None:
    counts = Counts.from_arrays(
        [[[100, 100, 0], [100, 100, 0], [100, 100, 0]]], [[[30, 10, 0], [30, 10, 0], [3, 1, 0]]], [100]
    )
    found = estimate(counts, method="likelihood")
    assert found.position_preferences == pytest.approx(np.array([[0.5, 1 / 6, 1 / 3]]))
    assert found.item_means == pytest.approx(np.array([[0.6, 0.6, 0.06]]))


def test_a_position_shown_and_never_rewarded_has_preference_zero() -> None:
    counts = Counts.from_arrays([[[100, 100], [100, 100]]], [[[30, 0], [10, 0]]], [100])
    found = estimate(counts, method="likelihood")
    assert found.position_preferences == pytest.approx(np.array([[1.0, 0.0]]))
    assert found.item_means == pytest.approx(np.array([[0.3, 0.1]]))


def test_items_with_empty_cells_contribute() -> None:
    displays = np.array([[[100, 100, 0], [0, 100, 100], [100, 0, 100]]])
    rho, mu = np.array([[0.5, 0.3, 0.2]]), np.array([[0.1, 0.4, 0.8]])
    counts = Counts.from_arrays(displays, displays * mu[:, :, None] * rho[:, None, :], [100])
    found = estimate(counts, method="likelihood")
    assert found.position_preferences == pytest.approx(rho)
    assert found.item_means == pytest.approx(mu)
    assert estimate(counts).position_preferences == pytest.approx(np.full((1, 3), 1 / 3))


def test_unconnected_positions_keep_the_initial_ratio() -> None:
    counts = Counts.from_arrays([[[100, 0], [0, 100]]], [[[30, 0], [0, 10]]], [100])
    found = estimate(counts, method="likelihood")
    assert found.position_preferences == pytest.approx(np.array([[0.5, 0.5]]))
    assert found.item_means == pytest.approx(np.array([[0.6, 0.2]]))


def test_cells_are_weighted_by_displays() -> None:
    """On rewards drawn from a given problem, one well shown item outweighs four rarely shown ones."""
    rng = np.random.default_rng(3)
    displays = np.array([[[10**6, 10**6], *[[40, 40]] * 4]])
    rewards = rng.binomial(displays, np.array([0.7, 0.3]) * 0.2)
    counts = Counts.from_arrays(displays, rewards, [10**6])
    truth = np.array([[0.7, 0.3]])
    error = np.abs(estimate(counts, method="likelihood").position_preferences - truth).max()
    assert error < 0.005  # five standard deviations
    assert np.abs(estimate(counts).position_preferences - truth).max() > 10 * error


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tolerance": -1.0}, "tolerance must be a number from 0 to 1, got -1.0"),
        ({"tolerance": math.nan}, "tolerance must be .*, got nan"),
        ({"max_iterations": 0}, "max_iterations must be a whole number of at least 1, got 0"),
        ({"max_iterations": 1.5}, "max_iterations must be a whole number .* got 1.5"),
    ],
)
def test_invalid_settings_are_rejected(settings: dict, message: str) -> None:
    counts = Counts.empty(n_user_types=1, n_items=1, n_positions=1)
    with pytest.raises(InvalidInputError, match=message):
        estimate(counts, method="likelihood", **settings)


def test_an_unknown_method_is_rejected() -> None:
    counts = Counts.empty(n_user_types=1, n_items=1, n_positions=1)
    with pytest.raises(
        InvalidInputError, match=r"method must be one of paper, likelihood .*, got 'likelyhood'"
    ):
        estimate(counts, method="likelyhood")
