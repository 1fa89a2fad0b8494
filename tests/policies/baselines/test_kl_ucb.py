import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import rel_entr

from banditrank.policies.baselines._components.kl_ucb import (
    bernoulli_kl,
    exploration_level,
    kl_ucb,
    kl_ucb_exceeds,
)

means = st.floats(0.0, 1.0, allow_subnormal=False)
displays = st.floats(1.0, 1e9)
levels = st.floats(1e-6, 1e3)


@settings(deadline=None)
@given(means, means)
def test_divergence_is_the_relative_entropy(p: float, q: float) -> None:
    expected = float(rel_entr(p, q) + rel_entr(1 - p, 1 - q))
    # Close to each other, SciPy's terms cancel; and 1 − q is only as exact as q.
    assert bernoulli_kl(p, q) == pytest.approx(max(0.0, expected), rel=1e-6, abs=1e-12)


def test_divergence_keeps_its_digits_where_terms_cancel() -> None:
    # d(½, ½ + h) = −½ ln(1 − 4h²) = 2h² + 4h⁴ + …
    assert bernoulli_kl(0.5, 0.5 + 2.0**-30) == pytest.approx(2 * 2.0**-60, rel=1e-6)


@settings(deadline=None)
@given(means, displays, levels)
def test_upper_bound_is_where_the_divergence_reaches_the_level(p: float, n: float, level: float) -> None:
    q = kl_ucb(p, n, level)
    assert p <= q <= 1
    below, above = q - 1e-10, q + 1e-10
    rounding = n * 4e-16  # the terms of the divergence, up to 1, cancel
    assert below <= p or n * bernoulli_kl(p, below) <= level + rounding
    assert above >= 1 or n * bernoulli_kl(p, above) >= level - rounding


def test_upper_bounds_in_closed_form() -> None:
    assert kl_ucb(0.0, 5.0, 2.0) == pytest.approx(1 - math.exp(-0.4), abs=1e-15)  # −ln(1−q) = 2/5
    # d(½, q) = c gives 4q(1−q) = e^(−2c)
    assert kl_ucb(0.5, 10.0, 1.0) == pytest.approx((1 + math.sqrt(1 - math.exp(-0.2))) / 2, abs=1e-13)
    assert kl_ucb(1.0, 5.0, 2.0) == 1.0
    assert kl_ucb(0.3, 5.0, 0.0) == 0.3
    assert kl_ucb(0.3, 0.0, 2.0) == 1.0


def test_the_level_never_falls_and_is_not_negative() -> None:
    levels = [exploration_level(float(times)) for times in range(1000)]
    assert min(levels) == 0.0
    assert levels == sorted(levels)


def test_a_bound_is_compared_without_computing_it() -> None:
    rng = np.random.default_rng(1)
    for _ in range(2000):
        displays = float(rng.integers(0, 50))
        mean = float(rng.choice([0.0, rng.random(), 1.0]))
        level = float(rng.choice([0.0, 5 * rng.random()]))
        bound = float(rng.choice([rng.random(), 1.0, 1.5]))
        assert kl_ucb_exceeds(mean, displays, level, bound) == (kl_ucb(mean, displays, level) > bound)
