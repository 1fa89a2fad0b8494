import numpy as np
import pytest

from banditrank.compilation import compiled
from banditrank.policies.field.bookkeeping import exceeds, exploration_level, largest
from banditrank.policies.field.parts.kullback_leibler import kl_upper
from banditrank.policies.field.parts.leading_times import LeadingTimes, no_leaders, slot_of


@compiled
def _slot(table: LeadingTimes, copy: int, signature: int) -> int:
    return slot_of(table, copy, signature)


def test_the_level_never_falls_and_is_not_negative() -> None:
    levels = [exploration_level(float(times)) for times in range(1000)]
    assert min(levels) == 0.0
    assert levels == sorted(levels)


def test_ties_are_broken_uniformly() -> None:
    rng = np.random.default_rng(0)
    chosen = [largest(np.array([0.1, 0.9, 0.9, 0.3, 0.9]), rng) for _ in range(3000)]
    shares = np.bincount(chosen, minlength=5) / 3000
    # A share of 3,000 draws is off by more than 0.05 with probability below 1e-6 (Hoeffding).
    assert shares == pytest.approx([0, 1 / 3, 1 / 3, 0, 1 / 3], abs=0.05)


def test_a_bound_is_told_from_another_without_computing_it() -> None:
    rng = np.random.default_rng(1)
    for _ in range(2000):
        displays = float(rng.integers(0, 50))
        mean = float(rng.choice([0.0, rng.random(), 1.0]))
        level = float(rng.choice([0.0, 5 * rng.random()]))
        bound = float(rng.choice([rng.random(), 1.0, 1.5]))
        assert exceeds(mean, displays, level, bound) == (kl_upper(mean, displays, level) > bound)


def test_leaders_have_clocks_of_their_own() -> None:
    table = no_leaders(2, 5, 3)
    signatures = [12345 + (n << 20) for n in range(10)]  # they want the same slot
    for times, signature in enumerate(signatures, start=1):
        table.times[1, _slot(table, 1, signature)] += times
    assert [table.times[1, _slot(table, 1, signature)] for signature in signatures] == list(range(1, 11))
    assert table.times[0].sum() == 0


def test_the_leader_that_led_least_is_forgotten() -> None:
    table = no_leaders(1, 5, 3)
    signatures = [n << 20 for n in range(17)]  # one more than there are places
    for n, signature in enumerate(signatures[:16]):
        table.times[0, _slot(table, 0, signature)] = 20 - n
    assert table.times[0, _slot(table, 0, signatures[16])] == 0
    table.times[0, _slot(table, 0, signatures[16])] = 50
    assert [table.times[0, _slot(table, 0, signature)] for signature in signatures[:15]] == list(
        range(20, 5, -1)
    )
    assert table.times[0].sum() == sum(range(6, 21)) + 50
