"""Tests of the lemmas: the ε of a miss rate, and violations of a bound."""

import math
from itertools import pairwise

import numpy as np
import pytest

from banditrank import Counts, UCBRank, kdd2012, simulate
from banditrank.estimators._confidence_radii import item_mean_error_rate, position_preference_error_rate
from banditrank.experiments._lemmas.analysis import ERROR_RATE, _is_violated, analyse
from banditrank.experiments._lemmas.sweep import MISS_RATES, WITHOUT_T, CoverageJob, _invert, _radii


@pytest.mark.parametrize("value", [0.999, 0.5, 0.01, 1e-6])
def test_the_larger_epsilon_of_lemma_2_is_found(value: float) -> None:
    epsilon = _invert(value)
    assert epsilon > 1
    assert epsilon * math.exp(1 - epsilon) == pytest.approx(value)


@pytest.fixture(scope="module")
def counts() -> Counts:
    return simulate(UCBRank(coefficient=0.25), kdd2012(), 5000, 1, 3, keep_counts=True).counts[0]


def test_radii_are_those_of_the_miss_rates(counts: Counts) -> None:
    problem = kdd2012()
    found = list(_radii(problem, counts))
    assert [(lemma, miss_rate) for lemma, miss_rate, *_ in found] == [
        (lemma, miss_rate) for miss_rate in MISS_RATES for lemma in (1, 2, 3, WITHOUT_T)
    ]
    shapes = {1: (2, 2), 2: (2, 5), 3: (2,), WITHOUT_T: (2,)}
    log_t = math.log(counts.rounds)
    least = (problem.item_means[:, :, None] * np.sqrt(counts.displays)).min(axis=1)  # (N, K)
    for lemma, miss_rate, errors, radii, applies in found:
        assert errors.shape == radii.shape == applies.shape == shapes[lemma]
        if lemma == 1:  # √(ε ln t) / least = radius
            epsilon = float((radii * least).max() ** 2 / log_t)
            assert position_preference_error_rate(counts, epsilon) == pytest.approx(miss_rate)
        if lemma == 2:  # √(2ε displays) / N = radius, and clicks / N is the estimate
            epsilon = _invert(miss_rate / log_t)
            exposures = np.sqrt(2 * epsilon * counts.displays.sum(axis=2)) / radii
            estimated = counts.rewards.sum(axis=2) / exposures
            assert item_mean_error_rate(counts, epsilon) == pytest.approx(miss_rate)
            assert np.allclose(errors, np.abs(estimated - problem.item_means))
        if lemma == 3:
            assert math.exp(-2 * counts.rounds * radii[0] ** 2) == pytest.approx(miss_rate)
            arrivals = np.abs(counts.arrivals - counts.rounds * problem.arrival_rates)
            assert np.allclose(errors, arrivals)  # the lemma's factor t


def test_a_smaller_miss_rate_has_a_larger_radius(counts: Counts) -> None:
    radii = {(lemma, miss_rate): radius for lemma, miss_rate, _, radius, _ in _radii(kdd2012(), counts)}
    for lemma in (1, 2, 3):
        for larger, smaller in pairwise(MISS_RATES):
            assert (radii[lemma, smaller] > radii[lemma, larger]).all()


@pytest.mark.parametrize("miss_rate", MISS_RATES)
@pytest.mark.parametrize("runs", [10, 100, 1000])
def test_a_bound_that_just_holds_is_hardly_ever_found_violated(miss_rate: float, runs: int) -> None:
    chances = [
        math.comb(runs, misses) * miss_rate**misses * (1 - miss_rate) ** (runs - misses)
        for misses in range(runs + 1)
        if _is_violated(misses, runs, miss_rate)
    ]
    assert sum(chances) < ERROR_RATE


def test_a_clear_violation_is_found() -> None:
    assert _is_violated(30, 100, 0.05)
    assert _is_violated(100, 100, 0.5)
    assert not _is_violated(5, 100, 0.05)
    assert not _is_violated(0, 0, 0.05)  # the lemma never applied


def test_coverage_counts_the_runs_that_a_lemma_applies_to() -> None:
    job = CoverageJob(
        name="a",
        policy=UCBRank(coefficient=0.25),
        problems=(kdd2012(),),
        horizon=2000,
        replications=4,
        seed=1,
    )
    data = job.run(workers=2, advance=lambda _: None)
    assert len(data) == len(MISS_RATES) * (2 * 2 + 2 * 5 + 2 + 2)
    assert (data["misses"] <= data["runs"]).all()
    assert (data.loc[data["lemma"] != 2, "runs"] == 4).all()
    result = analyse({"a": data})
    assert [check.holds for check in result.checks] == [True, True, False, True]
    assert [check.claimed_by for check in result.checks] == ["paper", "paper", "paper", "implementation"]
    assert "confirm Lemma 1 and Lemma 2 and contradict Lemma 3." in result.findings
