"""Steep runs: slopes over the last half of the rounds are compared with the Graves–Lai constant."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from banditrank import (
    Oracle,
    Problem,
    SimulationResult,
    UniformRandom,
    graves_lai_constant,
    kdd2012,
    make_contextual_problem,
    make_problem,
    simulate,
)
from banditrank.model._changes import make_timeline
from banditrank.simulation import _graves_lai
from banditrank.simulation._steep_runs import MAX_ITEMS, MAX_USER_TYPES, least_slope, steep_share

ROUNDS = np.array([100_000, 500_000, 1_000_000])
DEFAULTS: dict[str, Any] = {"treatment": "personalized", "click_model": "single-look", "rewards": "bernoulli"}


def result_of(problem: Problem, regret: NDArray[np.float64]) -> SimulationResult:
    """Return a result with the given regret, shape (R, 3), after `ROUNDS`."""
    result = simulate(UniformRandom(), problem, 10, len(regret), seed=1, workers=1)
    return replace(result, horizon=int(ROUNDS[-1]), checkpoints=ROUNDS, regret=regret)


def test_a_linear_stretch_is_counted_where_no_run_is_slow() -> None:
    """Finding 10: runs that lose linearly over the last half are counted, however small their regret."""
    problem = make_problem("conflict", n_user_types=3, n_items=20, n_positions=4, seed=1)
    least = graves_lai_constant(problem, min_gap=0.005).sum()
    assert least == pytest.approx(285.0, rel=0.03)  # the processor decides about near-ties: 278.6 to 292.9
    logarithmic = 1_200 + 1.2 * least * np.log(ROUNDS / ROUNDS[0])
    linear = 1_500 + 0.0026 * ROUNDS
    result = result_of(problem, np.array([logarithmic] * 16 + [linear] * 2))
    assert not (result.final_regret > 3 * np.median(result.final_regret)).any()
    assert result.steep_share == 2 / 18
    assert result.to_dict()["steep_share"] == 2 / 18


def test_the_slope_is_compared_with_three_times_the_constant() -> None:
    """Finding 10: a run is steep if its slope per ln t exceeds 3 times the constant."""
    for factor, share in ((2.9, 0.0), (3.1, 1.0)):
        assert steep_share(ROUNDS, factor * 40.0 * np.log(ROUNDS)[None], 40.0) == share


POLICIES = (UniformRandom(), Oracle(kdd2012()))


def test_random_rankings_are_steep_and_the_best_ones_are_not() -> None:
    """Finding 10: linear regret is steep in every run, and no regret in none."""
    results = [simulate(policy, kdd2012(), 20_000, 3, seed=1, workers=1) for policy in POLICIES]
    assert [result.steep_share for result in results] == [1.0, 0.0]


def test_the_last_half_starts_from_the_nearest_checkpoint() -> None:
    """Finding 10: checkpoints that do not resolve the last half leave the share unknown."""
    regret = np.array([[0.0, 1_000.0]])
    assert steep_share(np.array([250, 1_000]), regret, 100.0) == 1.0
    assert steep_share(np.array([749, 1_000]), regret, 100.0) == 1.0
    assert steep_share(np.array([249, 1_000]), regret, 100.0) is None
    assert steep_share(np.array([751, 1_000]), regret, 100.0) is None
    assert steep_share(np.array([1_000]), regret[:, 1:], 100.0) is None
    assert steep_share(np.array([500, 1_000]), regret[:0], 100.0) is None
    assert simulate(UniformRandom(), kdd2012(), 1, 2, seed=1, workers=1).steep_share is None
    default = simulate(UniformRandom(), kdd2012(), 1_001, 2, seed=1, workers=1).checkpoints
    assert 500 in default


@pytest.mark.parametrize(
    "setting",
    [
        {"treatment": "equal"},
        {"treatment": "equal-lottery"},
        {"has_guarantees": True},
        {"click_model": "cascade"},
        {"click_model": "dependent-click:0.5"},
        {"rewards": "beta:4:1"},
    ],
)
def test_a_share_without_a_constant_is_unknown(setting: dict[str, object]) -> None:
    """Finding 10: where the constant is not defined the share is unknown, not 0."""
    assert least_slope(kdd2012(), **DEFAULTS) == pytest.approx(35.7, abs=0.1)
    assert least_slope(kdd2012(), **{**DEFAULTS, **setting}) is None
    assert steep_share(ROUNDS, np.zeros((1, 3)), None) is None


def test_a_problem_without_a_constant_has_no_share() -> None:
    """Finding 10: problems that change, are contextual, too large or all ties have no share."""
    tied = Problem([1.0], [[0.5, 0.5]], [[0.4, 0.4, 0.4]])
    many_items = Problem([1.0], [[1.0]], [np.linspace(0.1, 0.9, MAX_ITEMS + 1)])
    n_types = MAX_USER_TYPES + 1
    many_types = Problem(np.full(n_types, 1 / n_types), np.ones((n_types, 1)), [[0.2, 0.1]] * n_types)
    for problem in (
        make_timeline(kdd2012(), "item-jumps:2", 1_000, 1),
        make_contextual_problem("linear", n_items=5, n_positions=2, seed=1),
        *(tied, many_items, many_types),
    ):
        assert least_slope(problem, **DEFAULTS) is None


def test_a_constant_that_is_not_found_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 10: a program that does not converge leaves the share unknown."""
    monkeypatch.setattr(_graves_lai, "_MAX_CUTTING_ROUNDS", 1)
    problem = Problem([1.0], [[0.6, 0.4]], [[0.81, 0.53, 0.3]])
    assert least_slope(problem, **DEFAULTS) is None


def test_the_constant_is_computed_once_for_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 10: results on the same problem share its constant."""
    calls = []

    def counted(problem: Problem, **_: object) -> NDArray[np.float64]:
        calls.append(problem)
        return np.array([7.0])

    monkeypatch.setattr("banditrank.simulation._steep_runs.graves_lai_constant", counted)
    for _ in range(3):
        problem = Problem([1.0], [[0.6, 0.4]], [[0.82, 0.51, 0.3]])
        assert least_slope(problem, **DEFAULTS) == 7.0
    assert len(calls) == 1
