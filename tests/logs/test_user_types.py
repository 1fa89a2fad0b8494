"""Which columns are worth being user types."""

import json
from dataclasses import replace

import numpy as np
import pytest
from helpers.simulated_logs import long_tailed_visits

from banditrank import InvalidInputError, UnknownNameError, assess_user_types
from banditrank.counts._click_cube import ClickCube

MEANS = np.array([[0.5, 0.4, 0.1, 0.1, 0.2], [0.1, 0.1, 0.5, 0.4, 0.2]])


def make_cube(seed: int, *, n_visits: int = 6000, confounded: bool = False) -> ClickCube:
    """Return a log with a column of taste, and one of noise by which the logging policy may choose."""
    rng = np.random.default_rng(seed)
    taste, noise = rng.integers(0, 2, n_visits), rng.integers(0, 3, n_visits)
    keys = rng.random((n_visits, 5))
    if confounded:
        keys[np.arange(n_visits), noise] += 0.5
    items = np.argsort(-keys, axis=1)[:, :3]
    clicks = rng.random((n_visits, 3)) < MEANS[taste[:, None], items] * [1.0, 0.6, 0.4]
    cube = ClickCube.from_visits(taste * 3 + noise, items, clicks, user_types=[str(i) for i in range(6)])
    values = tuple((f"taste-{i // 3}", f"noise-{i % 3}") for i in range(6))
    return replace(cube, type_columns=("taste", "noise"), type_values=values)


def test_a_column_of_taste_is_recommended_and_one_of_noise_is_not() -> None:
    assessment = assess_user_types(make_cube(0))
    assert assessment.recommended == ("taste",)
    by_name = {one.columns: one for one in assessment.columns}
    taste, noise = by_name["taste",], by_name["noise",]
    assert taste.p_value < 1e-6
    assert taste.is_useful
    # Best for all: items 1 and 3 (0.3), then 2 and 4 (0.25); by type 0.5, 0.4 and 0.2: a gain of 0.32 or so.
    both = MEANS.mean(axis=0)
    best = np.sort(MEANS, axis=1)[:, ::-1][:, :3] @ [1.0, 0.6, 0.4]
    gain = best.mean() - np.sort(both)[::-1][:3] @ [1.0, 0.6, 0.4]
    assert taste.clicks_gained == pytest.approx(gain, abs=0.06)
    assert not noise.is_useful
    assert noise.clicks_gained == pytest.approx(0.0, abs=0.02)
    assert not taste.is_confounded
    assert not noise.is_confounded
    assert "taste: tells users apart" in assessment.summary()
    assert len(assessment.to_frame()) == 3
    json.dumps(assessment.to_dict(), allow_nan=False)


def test_a_column_of_noise_is_not_recommended_by_a_long_tail() -> None:
    """Finding 2: appeals of 0 and 1 in the tail do not make a column of noise predict better."""
    p_values = []
    for seed in range(3):
        assessment = assess_user_types(long_tailed_visits(seed, n_user_types=2)[0].cube())
        assert assessment.recommended == ()
        p_values.append(assessment.columns[0].p_value)
    assert max(p_values) > 0.01  # error rate 1e-6


def test_intervals_of_clicks_gained_contain_the_gain_and_are_stable() -> None:
    # 90% or more of the intervals contain the gain of the best rankings, 0.24: fewer than 24 of 30 have 1e-2.
    # Of 20 folds the standard error varies by a sixth or so, of 5 by a third.
    found = [assess_user_types(make_cube(seed, n_visits=3000), ["taste"]).columns[0] for seed in range(30)]
    intervals = np.array([one.clicks_interval for one in found])
    assert ((intervals[:, 0] < 0.24) & (intervals[:, 1] > 0.24)).sum() >= 24
    widths = np.diff(intervals, axis=1)
    assert widths.std() / widths.mean() < 0.25
    assert 0.22 < np.mean([one.clicks_gained for one in found]) < 0.26


def test_a_fixed_layout_does_not_say_whether_one_ranking_serves_all() -> None:
    rng = np.random.default_rng(0)
    items = np.tile([0, 1, 2], (3000, 1))
    clicks = rng.random((3000, 3)) < [0.4, 0.3, 0.1]
    assessment = assess_user_types(ClickCube.from_visits(rng.integers(0, 2, 3000), items, clicks))
    assert np.isnan(assessment.columns[0].clicks_gained)
    assert "one ranking serves all cannot be known" in assessment.summary()


def test_noise_has_no_interval_of_width_zero() -> None:
    rng = np.random.default_rng(0)
    items = np.argsort(rng.random((3000, 3)), axis=1)
    clicks = rng.random((3000, 3)) < np.array([0.5, 0.3, 0.1])[items]
    assessment = assess_user_types(ClickCube.from_visits(np.arange(3000) % 2, items, clicks))
    one = assessment.columns[0]
    assert (one.clicks_gained, one.gain_text) == (0.0, "none: the same ranking")
    assert assessment.to_dict()["columns"][0]["clicks_interval"] == [None, None]
    assert "as far as the log tells, one ranking serves all" in assessment.summary()


def test_a_column_that_rankings_were_chosen_by_is_confounded() -> None:
    assessment = assess_user_types(make_cube(1, confounded=True), pairs=False)
    by_name = {one.columns: one for one in assessment.columns}
    assert by_name["noise",].is_confounded
    assert not by_name["taste",].is_confounded
    assert "rankings were chosen by it" in assessment.summary()


def make_correlated_cube(seed: int, *, n_visits: int = 4000) -> ClickCube:
    """Return a log whose rankings were chosen by segment, with a country that is correlated with it."""
    rng = np.random.default_rng(seed)
    segment = rng.integers(0, 2, n_visits)
    country = np.where(rng.random(n_visits) < 0.7, segment, rng.integers(0, 3, n_visits))
    keys = rng.random((n_visits, 5))
    keys[np.arange(n_visits), segment] += 0.5
    items = np.argsort(-keys, axis=1)[:, :3]
    clicks = rng.random((n_visits, 3)) < MEANS[segment[:, None], items] * [1.0, 0.6, 0.4]
    cube = ClickCube.from_visits(segment * 3 + country, items, clicks, user_types=[str(i) for i in range(6)])
    values = tuple((f"segment-{i // 3}", f"country-{i % 3}") for i in range(6))
    return replace(cube, type_columns=("segment", "country"), type_values=values)


def test_a_column_that_is_correlated_with_the_one_rankings_were_chosen_by_is_not_blamed() -> None:
    """Finding 4: rankings were chosen by a column only if users who are alike in all others show it.

    The error rate is 1% a log: more than 2 of 20 have a probability below 1.1e-3.
    """
    found = [assess_user_types(make_correlated_cube(seed)) for seed in range(20)]
    by_name = [{each.columns: each.is_confounded for each in assessment.columns} for assessment in found]
    assert all(each["segment",] for each in by_name)
    assert sum(each["country",] for each in by_name) <= 2
    assert sum(each["segment", "country"] for each in by_name) <= 2
    assert all(each.logging_p_value < 1e-6 for each in found[0].columns if "segment" in each.columns)


def test_a_column_is_compared_among_users_who_are_alike_in_columns_that_are_not_assessed() -> None:
    """Finding 4: ``among`` does not make a correlated column the one that rankings were chosen by."""
    cube = make_correlated_cube(0)
    assert not assess_user_types(cube, ["country"]).columns[0].is_confounded
    assert assess_user_types(cube.regroup(["country"])).columns[0].is_confounded


def test_columns_that_stand_for_each_other_are_blamed_together() -> None:
    """Finding 4: of two columns that are the same, neither alone explains the rankings, but the pair does."""
    cube = make_correlated_cube(0).regroup(["segment"])
    values = tuple((name, name.replace("segment", "plan")) for (name,) in cube.type_values)
    twice = replace(cube, type_columns=("segment", "plan"), type_values=values)
    by_name = {each.columns: each for each in assess_user_types(twice).columns}
    assert not by_name["segment",].is_confounded
    assert not by_name["plan",].is_confounded
    assert by_name["segment", "plan"].is_confounded
    assert "leaving them out biases" in by_name["segment", "plan"].logging_text


def test_noise_is_rarely_found_useful_or_confounded() -> None:
    # Error rates are at most 2.5% and 1% a log: more than 2 of 12 have probabilities below 4e-3.
    found = [assess_user_types(make_cube(seed, n_visits=1500), ["noise"]).columns[0] for seed in range(12)]
    assert sum(one.is_useful for one in found) <= 2
    assert sum(one.is_confounded for one in found) <= 2


def test_a_column_with_one_value_cannot_be_assessed() -> None:
    cube = make_cube(0, n_visits=300).regroup([])
    with pytest.raises(InvalidInputError, match="at least one column"):
        assess_user_types(cube)
    items = np.argsort(np.random.default_rng(0).random((300, 3)), axis=1)
    constant = ClickCube.from_visits(np.zeros(300), items, items == 0)
    assert "cannot be assessed" in assess_user_types(constant).summary()


def test_unknown_columns_are_rejected() -> None:
    with pytest.raises(UnknownNameError, match="did you mean taste"):
        assess_user_types(make_cube(0, n_visits=100), ["tast"])


@pytest.mark.parametrize("n_shown", [1, 3])
def test_types_that_were_shown_different_items_cannot_be_compared(n_shown: int) -> None:
    """Each type has three items of its own, or a single one: fewer items than positions."""
    rng = np.random.default_rng(0)
    types = np.arange(3000) % 2
    items = np.argsort(rng.random((3000, 3)), axis=1)
    items = np.where(items < n_shown, items + n_shown * types[:, None], -1)
    chances = np.array([0.5, 0.3, 0.1, 0.2, 0.4, 0.6])[items] * [1.0, 0.7, 0.4]
    clicks = (rng.random((3000, 3)) < chances) & (items >= 0)
    assessment = assess_user_types(ClickCube.from_visits(types, items, clicks))
    assert assessment.columns[0].gain_text == "not identified"
    assert "one ranking serves all cannot be known" in assessment.summary()


def test_users_who_return_do_not_make_a_column_of_noise_significant() -> None:
    """Finding 3: the clicks of a column's value are those of its users, who differ in activity.

    As independent clicks, half of the p-values would be below 0.01. If one in 100 is, two or more of 6 are
    with a probability of 1.5e-3.
    """
    significant = 0
    for seed in range(6):
        rng = np.random.default_rng([7, seed])
        n, users = 4000, np.repeat(np.arange(200), 20)
        noise, is_active = rng.integers(0, 3, 200)[users], (rng.random(200) < 0.5)[users]
        items = np.argsort(rng.random((n, 5)), axis=1)[:, :3]
        clicks = is_active[:, None] & (rng.random((n, 3)) < 2 * MEANS[0, items] * [0.9, 0.6, 0.4])
        assessed = assess_user_types(ClickCube.from_visits(noise, items, clicks, users=users))
        significant += assessed.columns[0].p_value < 0.01
    assert significant < 2
