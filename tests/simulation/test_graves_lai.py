"""The Graves–Lai constant agrees with published and independent figures, and slopes are compared with it."""

import numpy as np
import pytest

from banditrank import (
    InvalidInputError,
    Problem,
    UnsolvableError,
    graves_lai_constant,
    kdd2012,
    make_problem,
    simulate,
)
from banditrank.experiments._compare.reproductions.lagree2016 import lower_bound
from banditrank.experiments._compare.reproductions.problems import FIVE_ITEMS
from banditrank.policies._uniform import UniformRandom
from banditrank.simulation._graves_lai import _near_rankings, _position_based, _sorted_instance


def kl(mean: float, other: float) -> float:
    return float(mean * np.log(mean / other) + (1 - mean) * np.log((1 - mean) / (1 - other)))


def test_table_1_agrees_with_an_independent_exact_solution_for_two_positions() -> None:
    # An exact solution of the multinomial program for K = 2, made apart: 26.6, and 169.5 for women, of which
    # all but 9.1 is the near-tie .491 and .490; 24.8 for men if positions were known.
    men, women = graves_lai_constant(kdd2012())
    assert (men, women) == (pytest.approx(26.6, abs=0.1), pytest.approx(169.5, abs=0.2))
    without_tie = graves_lai_constant(kdd2012(), min_gap=0.005)
    assert without_tie == pytest.approx([26.6, 9.1], abs=0.1)
    assert without_tie.sum() == pytest.approx(35.7, abs=0.1)
    assert graves_lai_constant(kdd2012(), knows_positions=True)[0] == pytest.approx(24.8, abs=0.1)


@pytest.mark.parametrize("click_model", ["single-look", "position-based"])
def test_one_position_is_the_ordinary_bandit(click_model: str) -> None:
    problem = Problem([1.0], [[1.0]], [[0.5, 0.4, 0.2]])
    expected = 0.1 / kl(0.4, 0.5) + 0.3 / kl(0.2, 0.5)  # Lai and Robbins
    found = graves_lai_constant(problem, click_model=click_model)
    assert found == pytest.approx([expected], rel=2e-3)


def test_known_positions_give_the_bound_of_lagree_et_al() -> None:
    found = graves_lai_constant(FIVE_ITEMS, click_model="position-based", knows_positions=True)
    assert found == pytest.approx([lower_bound()])


@pytest.mark.parametrize("click_model", ["single-look", "position-based"])
def test_unknown_positions_cost_more(click_model: str) -> None:
    problem = Problem([1.0], [[0.6, 0.4]], [[0.8, 0.5, 0.3, 0.2]])
    known = graves_lai_constant(problem, click_model=click_model, knows_positions=True)
    assert known[0] < 1.01 * graves_lai_constant(problem, click_model=click_model)[0]


def test_ties_cost_nothing() -> None:
    tied = Problem([1.0], [[0.5, 0.5]], [[0.4, 0.4, 0.4]])
    for click_model in ("single-look", "position-based"):
        assert graves_lai_constant(tied, click_model=click_model).tolist() == [0.0]


def test_positions_that_are_examined_equally_have_a_finite_constant() -> None:
    """Finding 10: rankings that cost nothing are not shown without limit, which made the constant 1e11."""
    means = [[0.68, 0.65, 0.11, 0.68, 0.34, 0.46, 0.93]]
    equal = graves_lai_constant(Problem([1.0], [[1 / 3] * 3], means), min_gap=0.005)
    nearly = graves_lai_constant(Problem([1.0], [[0.3343, 0.3333, 0.3324]], means), min_gap=0.005)
    assert equal == pytest.approx([29.2], abs=0.1)
    assert nearly == pytest.approx(equal, rel=0.01)


def test_a_program_that_does_not_converge_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 10: what was not found is an error, not a number."""
    monkeypatch.setattr("banditrank.simulation._graves_lai._MAX_CUTTING_ROUNDS", 1)
    with pytest.raises(UnsolvableError, match=r"constant of user type male was not found.* in 1 steps"):
        graves_lai_constant(kdd2012())


def test_large_problems_use_rankings_near_the_best() -> None:
    near = _near_rankings(6, 3)
    assert all(len(set(ranking)) == 3 for ranking in near)
    assert [0, 1, 2] in near
    assert [1, 5, 2] in near
    problem = Problem([1.0], [[0.5, 0.3, 0.15, 0.05]], [np.linspace(0.8, 0.1, 9)])
    assert 0 < graves_lai_constant(problem)[0] < 1_000


@pytest.mark.campaign
def test_the_synthetic_problem_is_solved_to_the_same_value_by_all_rankings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = Problem([1.0], [[0.5, 0.3, 0.2]], [np.linspace(0.8, 0.2, 7)])
    exact = graves_lai_constant(problem)
    monkeypatch.setattr("banditrank.simulation._graves_lai.MAX_RANKINGS", 0)
    near = graves_lai_constant(problem)
    assert 0.999 * exact[0] <= near[0] <= 1.1 * exact[0]


@pytest.mark.campaign
def test_the_synthetic_problem_has_the_constant_of_the_design() -> None:
    # The design's 733.8 takes preferences of sum 1 for the examination probabilities themselves. The
    # position-based model here scales them to a maximum of 1: more clicks, and a constant of 546.9.
    problem = make_problem("synthetic", n_user_types=3, n_items=20, n_positions=4, seed=0)
    rows = zip(problem.item_means, problem.position_preferences, strict=True)
    unscaled = sum(_position_based(_sorted_instance(means, preferences, 0.0)) for means, preferences in rows)
    assert unscaled == pytest.approx(733.8, rel=2e-3)
    scaled = graves_lai_constant(problem, click_model="position-based")
    assert scaled.sum() == pytest.approx(546.9, rel=2e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"click_model": "cascade"}, "click_model must be single-look or position-based"),
        ({"min_gap": -0.1}, "min_gap must be"),
    ],
)
def test_other_arguments_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        graves_lai_constant(kdd2012(), **options)  # type: ignore[arg-type]


def test_the_slope_of_linear_regret() -> None:
    result = simulate(UniformRandom(), kdd2012(), 2_000, 4, seed=1, workers=1, checkpoints=[200, 1_000])
    mean, low, high = result.log_slope()
    gained = result.regret[:, -1] - result.regret[:, 0]
    assert mean == pytest.approx(gained.mean() / np.log(10))
    assert low < mean < high
    later = result.log_slope(start=1_000)[0]
    assert later == pytest.approx((result.regret[:, -1] - result.regret[:, 1]).mean() / np.log(2))
    with pytest.raises(InvalidInputError, match="start must be before the horizon"):
        result.log_slope(start=2_000)
