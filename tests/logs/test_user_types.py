"""Which columns are worth being user types."""

import json
from dataclasses import replace

import numpy as np
import pytest

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
