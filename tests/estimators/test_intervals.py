import numpy as np
import pytest

from banditrank import (
    Counts,
    GreedyRank,
    InvalidInputError,
    Problem,
    ThompsonRank,
    kdd2012,
    make_problem,
    simulate,
)
from banditrank.estimators._estimates import estimate
from banditrank.estimators._intervals import confidence_intervals
from banditrank.policies.schedules import constant

EXPLORES = GreedyRank(schedule=constant(coefficient=1.0))  # shows items in turn, at all positions


@pytest.mark.parametrize(
    "problem",
    [kdd2012(), make_problem("random", n_user_types=2, n_items=8, n_positions=3, seed=4)],
    ids=["kdd", "random"],
)
def test_intervals_have_at_least_the_stated_coverage(problem: Problem) -> None:
    # 400 runs: a share of true coverage 0.9 has standard error 0.015. Preferences, whose intervals are to be
    # exact, must be covered in [0.83, 0.965], means in 0.83 or more: error rate below 1e-3 if they are.
    result = simulate(EXPLORES, problem, 4000, 400, 3, keep_counts=True)
    intervals = [confidence_intervals(counts, level=0.9) for counts in result.counts]
    preferences = np.array([each.position_preferences for each in intervals])
    means = np.array([each.item_means for each in intervals])
    assert _coverage(preferences, problem.position_preferences).max() <= 0.965
    assert _coverage(preferences, problem.position_preferences).min() >= 0.83
    assert _coverage(means, problem.item_means).min() >= 0.83


def test_intervals_cover_what_a_policy_learned_from() -> None:
    # Items that do badly are shown less: rounds are not independent. Averaged over all quantities and runs,
    # coverage must be within 0.03 of 0.95; it was 0.963 and 0.974, with standard errors of about 0.005.
    problem = kdd2012()
    runs = simulate(ThompsonRank(), problem, 2000, 200, seed=3, keep_counts=True)
    intervals = [confidence_intervals(counts) for counts in runs.counts]
    preferences = np.array([one.position_preferences for one in intervals])
    means = np.array([one.item_means for one in intervals])
    assert abs(_coverage(preferences, problem.position_preferences).mean() - 0.95) < 0.03
    assert abs(_coverage(means, problem.item_means).mean() - 0.95) < 0.03


def _coverage(ends: np.ndarray, truth: np.ndarray) -> np.ndarray:
    return ((ends[..., 0] <= truth) & (truth <= ends[..., 1])).mean(axis=0)


def test_intervals_contain_the_estimates_and_narrow_with_data() -> None:
    counts = simulate(EXPLORES, kdd2012(), 5000, 1, 0, keep_counts=True).counts[0]
    few, many = confidence_intervals(counts), confidence_intervals(counts.scaled(100))
    estimates = estimate(counts, method="likelihood")
    for name in ("position_preferences", "item_means"):
        ends, narrow, value = getattr(few, name), getattr(many, name), getattr(estimates, name)
        assert (ends[..., 0] < value).all()
        assert (value < ends[..., 1]).all()
        ratio = np.diff(narrow) / np.diff(ends)
        assert ratio == pytest.approx(0.1, rel=0.15)


def test_unidentified_quantities_have_the_whole_interval() -> None:
    # Item 1 at position 1 only, item 2 at position 2 only: which is better, item or position?
    counts = Counts.from_arrays([[[500, 0], [0, 500]]], [[[100, 0], [0, 50]]], [500])
    intervals = confidence_intervals(counts)
    assert intervals.position_preferences.tolist() == [[[0, 1], [0, 1]]]
    assert intervals.item_means.tolist() == [[[0, 1], [0, 1]]]


def test_without_data_intervals_are_whole() -> None:
    empty = confidence_intervals(Counts.empty(n_user_types=2, n_items=3, n_positions=2))
    assert (empty.item_means == [0, 1]).all()
    assert (empty.position_preferences == [0, 1]).all()


def test_unrewarded_quantities_have_a_small_upper_end() -> None:
    counts = Counts.from_arrays([[[3000], [1000]]], [[[900], [0]]], [4000])
    intervals = confidence_intervals(counts, level=0.95)
    assert intervals.item_means[0, 1] == pytest.approx([0, -np.log(0.025) / 1000])
    assert intervals.position_preferences.tolist() == [[[1, 1]]], "there is only one place to look"


@pytest.mark.parametrize(
    ("shape", "displays", "rewards", "least"),
    [
        ((1, 1, 1), 1000, 999, 0.93),
        ((1, 1, 1), 1000, 1000, 0.93),
        ((1, 5, 2), 1e6, 499_900, 0.995),
        ((1, 5, 2), 1e15, 5e14, 0.999_999),
        ((1, 5, 2), 1e300, 5e299, 0.999_999),
        ((1, 3, 1), 2, 2, 0.01),
    ],
)
def test_intervals_near_one_contain_their_estimate_and_are_narrow(
    shape: tuple[int, int, int], displays: float, rewards: float, least: float
) -> None:
    counts = Counts.from_arrays(np.full(shape, displays), np.full(shape, rewards), [1000])
    intervals, estimates = confidence_intervals(counts), estimate(counts, method="likelihood")
    for ends, values in (
        (intervals.item_means, np.minimum(estimates.item_means, 1.0)),
        (intervals.position_preferences, estimates.position_preferences),
    ):
        assert (ends[..., 0] <= values).all()
        assert (values <= ends[..., 1]).all()
    assert (intervals.item_means[..., 0] >= least).all()
    assert intervals.item_means[..., 1] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("level", [0, 1, -1, float("nan"), "0.9", True])
def test_an_invalid_level_is_rejected(level: object) -> None:
    with pytest.raises(InvalidInputError, match="level"):
        confidence_intervals(Counts.empty(n_user_types=1, n_items=2, n_positions=1), level=level)


def test_unrewarded_positions_lower_the_ends_of_the_others() -> None:
    counts = Counts.from_arrays([[[300, 300], [300, 300]]], [[[60, 0], [30, 0]]], [600])
    ends = confidence_intervals(counts).position_preferences[0]
    assert ends[1, 0] == 0.0
    assert 0.0 < ends[1, 1] < 0.2
    assert ends[0] == pytest.approx([1 - ends[1, 1], 1.0])
