"""Scores are averages of means over the best's, and random rankings are never the best."""

import numpy as np
import pytest
from helpers.synthetic_regret import ending_at

from banditrank.experiments._compare.scores import better_variant, final_regret, scores, slow_share

REGRETS = {
    "easy": {"a": np.array([10.0, 20.0, 30.0]), "b": np.array([40.0] * 3), "random": np.array([5.0])},
    "hard": {"a": np.array([300.0] * 3), "b": np.array([100.0] * 3), "random": np.array([900.0])},
}


def test_the_score_is_the_average_of_means_over_the_best() -> None:
    best, other = scores(REGRETS, ["a", "b"])
    assert (best.policy, best.ratios, best.average) == ("b", {"easy": 2.0, "hard": 1.0}, 1.5)
    assert (other.policy, other.ratios, other.average) == ("a", {"easy": 1.0, "hard": 3.0}, 2.0)
    assert other.worst_suite == "hard"


def test_the_95th_percentile_is_over_the_best_mean() -> None:
    score = {score.policy: score for score in scores(REGRETS, ["a", "b"])}["a"]
    assert score.tail_ratios == pytest.approx({"easy": 1.45, "hard": 3.0})
    assert score.average_tail == pytest.approx(2.225)


def test_a_slow_run_is_above_three_times_the_median() -> None:
    assert slow_share(np.array([10.0, 10.0, 30.0, 31.0, 10.0])) == 0.2
    regrets = {"easy": {"a": np.array([1.0, 1.0, 1.0, 99.0])}, "hard": {"a": np.ones(4)}}
    [score] = scores(regrets, ["a"])
    assert score.slow_shares == {"easy": 0.25, "hard": 0.0}
    assert score.slow_share == 0.125


def test_of_a_variant_that_locks_in_the_other_counts() -> None:
    results = {"a": np.array([5.0, 5.0, 5.0]), "a+window": np.array([1.0, 1.0, 100.0])}
    assert better_variant(results)["a"].tolist() == [5.0, 5.0, 5.0]


def test_random_rankings_are_scored_but_never_the_best() -> None:
    found = {score.policy: score.ratios for score in scores(REGRETS, ["a", "b", "random"])}
    assert found["random"] == {"easy": 0.25, "hard": 9.0}
    assert found["a"]["easy"] == 1.0


def test_only_those_that_are_compared_count() -> None:
    [score] = scores(REGRETS, ["a"])
    assert score.average == 1.0
    assert scores(REGRETS, []) == []


def test_of_a_policy_with_and_without_a_window_the_better_counts() -> None:
    results = {
        "a": np.array([5.0]),
        "b": np.array([2.0]),
        "a+window": np.array([3.0]),
        "b+window": np.array([9.0]),
    }
    assert {name: float(values[0]) for name, values in better_variant(results).items()} == {
        "a": 3.0,
        "b": 2.0,
    }


def test_regret_is_that_of_the_last_round() -> None:
    assert final_regret(ending_at(50.0, replications=3)) == pytest.approx([50.0, 50.5, 51.0])


def test_a_policy_missing_in_a_suite_is_scored_by_the_others() -> None:
    regrets = {"easy": {"a": np.array([1.0])}, "hard": {"a": np.array([9.0]), "b": np.array([3.0])}}
    found = {score.policy: score for score in scores(regrets, ["a", "b", "c"])}
    assert set(found) == {"a", "b"}
    assert (found["b"].ratios, found["b"].average) == ({"hard": 1.0}, 1.0)
    assert found["a"].average == 2.0


def test_no_regret_at_all_is_no_division_by_zero() -> None:
    regrets = {"s": {"a": np.zeros(3), "b": np.ones(3)}}
    assert all(np.isfinite(score.average) for score in scores(regrets, ["a", "b"]))
