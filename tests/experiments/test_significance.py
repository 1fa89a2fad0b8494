"""Significance tests find differences, and have the stated error rate."""

import numpy as np
import pytest
from scipy.stats import bootstrap, mannwhitneyu

from banditrank.experiments._significance import SIGNIFICANCE_LEVEL, rank_test, ratio_of_means


@pytest.mark.parametrize(("n", "m", "shift"), [(4, 4, 2.0), (7, 7, 0.5), (20, 20, 0.8), (100, 12, 0.3)])
def test_the_p_value_is_that_of_the_mann_whitney_test(n: int, m: int, shift: float) -> None:
    rng = np.random.default_rng(n)
    first, second = rng.normal(size=n), rng.normal(size=m) + shift
    expected = mannwhitneyu(first, second, method="exact").pvalue
    # With 9,999 permutations: four standard deviations.
    assert rank_test(first, second).p_value == pytest.approx(expected, abs=4 * 0.5 / 100)


def test_the_rate_of_false_positives_is_at_most_the_level() -> None:
    rng = np.random.default_rng(1)
    found = sum(rank_test(*rng.normal(size=(2, 7))).less is not None for _ in range(400))
    assert found / 400 <= SIGNIFICANCE_LEVEL + 4 * np.sqrt(
        SIGNIFICANCE_LEVEL * (1 - SIGNIFICANCE_LEVEL) / 400
    )  # an error rate of 1e-4


def test_a_difference_has_a_direction() -> None:
    low, high = np.arange(5.0), np.arange(5.0) + 10
    assert (rank_test(low, high).less, rank_test(low, high).greater) == (True, False)
    assert (rank_test(high, low).less, rank_test(high, low).greater) == (False, True)


@pytest.mark.parametrize("values", [[3.0], [1.0, 2.0], [5.0] * 30, [0.0, 1e300, 1.0, 2.0]])
def test_nothing_is_decided_by_one_run_or_between_equals(values: list[float]) -> None:
    test = rank_test(np.array(values), np.array(values))
    assert test == (None, 1.0)
    assert test.greater is None
    assert str(test) == "p = 1, not decided"


def test_one_extreme_run_decides_nothing() -> None:
    values = np.arange(12.0)
    assert rank_test(values, np.r_[values[:-1], 1e9]).less is None


def test_a_ratio_is_decided_only_if_it_is_significant() -> None:
    rng = np.random.default_rng(2)
    before = rng.gamma(4.0, 25.0, size=8)
    assert ratio_of_means(before, 0.8 * before).at_most_1 is True
    assert ratio_of_means(before, 1.2 * before).at_most_1 is False
    noisy = 1.05 * before * rng.uniform(0.5, 1.5, size=8)
    ratio = ratio_of_means(before, noisy)
    assert ratio.low < 1 < ratio.high
    assert ratio.at_most_1 is None
    assert str(ratio).endswith("not decided)")


def test_the_interval_is_that_of_the_bootstrap() -> None:
    rng = np.random.default_rng(3)
    before, after = rng.gamma(4.0, 25.0, size=40), rng.gamma(4.0, 30.0, size=40)
    expected = bootstrap(
        (after, before),
        lambda a, b, axis: a.mean(axis=axis) / b.mean(axis=axis),
        paired=True,
        method="percentile",
        rng=1,
    ).confidence_interval
    assert ratio_of_means(before, after)[1:] == pytest.approx(tuple(expected), rel=0.02)


def test_one_replication_decides_no_ratio() -> None:
    one = np.array([3.0])
    assert ratio_of_means(one, 5 * one).at_most_1 is None
