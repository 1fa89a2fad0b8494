import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.simulated_logs import Activity, Logging, make_log_problem, simulate_visits
from helpers.value_study import CROSS_FITTED, FIXED, NAIVE, study, true_values

from banditrank import InvalidInputError, ThompsonRank, UnknownNameError, evaluate
from banditrank.counts._click_cube import ClickCube, filter_rows
from banditrank.estimators import select_click_model
from banditrank.evaluation import Evaluation, ValueEstimate, load_rankings, target_of_visits
from banditrank.evaluation._price_of_equality import jackknife_price

PROBLEM = make_log_problem(7, n_items=6, n_positions=3)


@pytest.fixture(scope="module")
def cube() -> ClickCube:
    rng = np.random.default_rng(7)
    return simulate_visits(PROBLEM, "uniform", 20_000, "position-based", rng).cube(has_propensities=True)


@pytest.fixture(scope="module")
def evaluation(cube: ClickCube) -> Evaluation:
    return evaluate(cube, ["current", "personalized", "equal", [0, 1, 2]], utility="utilitarian")


def test_the_current_policy_has_the_clicks_of_the_log(cube: ClickCube, evaluation: Evaluation) -> None:
    target = evaluation["current"]
    assert target.headline == "cells"
    assert target.value.value == pytest.approx(cube.cells.clicks.sum() / cube.n_visits)
    assert target.rankings == ()


def test_the_current_policy_has_the_clicks_on_items_and_positions_that_are_kept(cube: ClickCube) -> None:
    for part in (cube.select(items=[0, 1, 2]), cube.select(n_positions=2)):
        target = evaluate(part, ["current"], click_model="position-based")["current"]
        assert target.value.value == pytest.approx(part.cells.clicks.sum() / part.n_visits)
        values = [estimate.total.value for estimate in target.estimates.values()]
        assert values == pytest.approx([target.value.value] * 4, rel=0.02)


def test_the_user_browsing_model_predicts_the_clicks_of_the_logged_rankings(cube: ClickCube) -> None:
    current = evaluate(cube, ["current"], click_model="user-browsing")["current"]
    by_model = current.estimates["model"].total
    assert (current.headline, current.rankings, current.describe_unpredicted()) == ("cells", (), "")
    assert by_model.low < current.value.value < by_model.high
    assert by_model.value == pytest.approx(current.value.value, rel=0.01)


def test_the_user_browsing_model_predicts_no_rankings_that_the_cube_lacks(cube: ClickCube) -> None:
    for part in (
        cube.select(items=[0, 1, 2]),
        replace(cube, lists=filter_rows(cube.lists, cube.lists.fold < 0)),
    ):
        evaluation = evaluate(part, ["current"], click_model="user-browsing")
        note = (
            "the clicks of the log itself; no value by model: the user-browsing model predicts whole rankings"
        )
        assert evaluation["current"].describe_unpredicted().startswith(note)
        assert note in evaluation.summary()


def test_a_model_that_another_one_predicts_is_named() -> None:
    rng = np.random.default_rng(0)
    items = np.argsort(rng.random((400, 3)), axis=1)
    attracted = rng.random((400, 3)) < np.array([0.5, 0.4, 0.3])[items]
    clicks = attracted & (attracted.cumsum(axis=1) == 1)  # a cascade
    small = ClickCube.from_visits(np.zeros(400), items, clicks)
    evaluation = evaluate(small, ["current"])
    assert evaluation.model.chosen == select_click_model(small).model == "cascade"
    assert evaluation.to_dict()["click_model"]["chosen"] == "cascade"
    assert "click model cascade, whose values user-browsing predicts: " in evaluation.summary()


def test_learned_targets_are_cross_fitted_and_contain_the_truth(evaluation: Evaluation) -> None:
    target = evaluation["personalized"]
    assert target.is_cross_fitted
    assert target.headline == "model"
    rankings = np.array([[int(name.split("-")[1]) - 1 for name in one] for one in target.rankings])
    truth = PROBLEM.arrival_rates @ true_values(PROBLEM, "position-based", rankings)
    assert target.value.low < truth < target.value.high  # fails in 5% of seeds


def test_the_price_of_equality_has_an_interval_around_it(evaluation: Evaluation) -> None:
    (price,) = evaluation.prices
    assert (price.target, price.reference, price.estimator) == ("equal:utilitarian", "personalized", "model")
    assert price.low < price.price < price.high < 1


def test_targets_are_found_by_name_and_by_what_was_given(evaluation: Evaluation) -> None:
    assert evaluation["equal"] is evaluation["equal:utilitarian"]
    with pytest.raises(
        UnknownNameError, match="must be one of current, personalized, equal:utilitarian, 0, 1, 2"
    ):
        evaluation["equal:nash"]


def test_frames_json_and_text_have_every_target(evaluation: Evaluation) -> None:
    frame = evaluation.to_frame()
    assert len(frame) == 4 * 4 * 3  # targets, estimators, types and all visits
    assert set(frame["target"]) == {"current", "personalized", "equal:utilitarian", "0, 1, 2"}
    document = json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))
    assert len(document["targets"]) == 4
    for target in evaluation:
        assert target.name in evaluation.summary()
    assert "Price of equality" in str(evaluation)


def test_a_target_without_displays_is_refused_and_its_cells_are_named() -> None:
    rng = np.random.default_rng(0)
    fixed_layout = ClickCube.from_visits(np.zeros(900), np.tile([0, 1], (900, 1)), rng.random((900, 2)) < 0.3)
    result = evaluate(fixed_layout, {"swapped": ["item-2", "item-1"]})
    target = result["swapped"]
    assert target.headline is None
    assert not target.value.is_identified
    assert target.unsupported == (("type-1", "item-1", 2), ("type-1", "item-2", 1))
    assert "item-1 at position 2 to type-1" in target.reason
    assert "not identified" in result.summary()
    assert result.to_dict()["targets"][0]["value"] is None


@pytest.mark.parametrize("utility", ["nash", "maximin", "alpha:2"])
def test_collective_utilities_are_those_of_the_values(cube: ClickCube, utility: str) -> None:
    result = evaluate(cube, {"new": [0, 1, 2]}, utility=utility, click_model="position-based")
    estimate = result["new"].estimates["model"]
    rates = result.n_visits / result.n_visits.sum()
    expected = {
        "nash": rates @ np.log(estimate.values),
        "maximin": estimate.values.min(),
        "alpha:2": -rates @ (1 / estimate.values),
    }[utility]
    assert estimate.utility.value == pytest.approx(expected)
    assert estimate.utility.low < expected < estimate.utility.high


def test_a_mixture_lies_between_its_parts_and_a_single_part_is_the_ranking(cube: ClickCube) -> None:
    result = evaluate(
        cube,
        {"a": [0, 1, 2], "b": [3, 4, 5], "both": [(0.5, [0, 1, 2]), (0.5, [3, 4, 5])]},
        click_model="user-browsing",
    )
    a, b, both = (result[name].estimates["model"].values for name in ("a", "b", "both"))
    assert both == pytest.approx((a + b) / 2)


def test_rankings_may_differ_by_type_and_come_from_files(cube: ClickCube, tmp_path: Path) -> None:
    rankings = {"type-1": ["item-1", "item-2", "item-3"], "type-2": ["item-4", "item-5", "item-6"]}
    (tmp_path / "new.json").write_text(json.dumps(rankings))
    lines = [f"{t},{k},{j}" for t, items in rankings.items() for k, j in enumerate(items, 1)]
    (tmp_path / "table.csv").write_text("\n".join(["user_type,position,item", *lines]))
    assert load_rankings(tmp_path / "table.csv") == rankings
    result = evaluate(
        cube,
        {"given": rankings, "json": str(tmp_path / "new.json"), "csv": tmp_path / "table.csv"},
        click_model="position-based",
    )
    values = [target.value.value for target in result]
    assert values[0] == values[1] == values[2]
    assert evaluate(cube, rankings, click_model="position-based").targets[0].value.value == values[0]


def test_the_rankings_of_a_candidate_in_each_visit_are_a_mixture(cube: ClickCube) -> None:
    user_types = ["type-1"] * 3 + ["type-2"] * 2
    first, other = ("item-1", "item-2", "item-3"), ("item-4", "item-5", "item-6")
    target = target_of_visits(user_types, [first, first, other, first, other], name="candidate")
    result = evaluate(cube, {**target, "first": first, "other": other}, click_model="position-based")
    a, b, mixed = (result[name].estimates["model"].values for name in ("first", "other", "candidate"))
    assert mixed == pytest.approx([(2 * a[0] + b[0]) / 3, (a[1] + b[1]) / 2])


def test_policies_are_learned_from_the_log(cube: ClickCube) -> None:
    result = evaluate(
        cube, {"named": "auto", "given": ThompsonRank(click_model="position-based")}, n_samples=3, n_folds=2
    )
    assert result["named"].is_cross_fitted
    values = [target.value.value for target in result]
    assert values[0] == values[1]  # the same policy and seed
    assert values[0] > evaluate(cube, "current").targets[0].value.value


def test_clipping_and_effective_visits_are_reported(cube: ClickCube) -> None:
    free, clipped = (evaluate(cube, {"new": [0, 1, 2]}, clip=clip)["new"] for clip in (None, 2.0))
    assert free.clipped_share == 0
    assert clipped.clipped_share == 1  # the weight of each display is 6
    assert clipped.estimates["ips"].total.value < free.estimates["ips"].total.value / 2
    assert clipped.effective_visits == pytest.approx(free.effective_visits)


def test_a_log_without_visits_and_folds_is_evaluated_by_cells_and_positions() -> None:
    rng = np.random.default_rng(2)
    visits = simulate_visits(PROBLEM, "uniform", 5000, "position-based", rng).cube()
    blank = np.full_like(visits.cells.fold, -1)
    cells = visits.cells._replace(fold=blank, above=blank)
    none = visits.visits._replace(**{name: column[:0] for name, column in visits.visits._asdict().items()})
    lists = visits.lists._replace(**{name: column[:0] for name, column in visits.lists._asdict().items()})
    bare = ClickCube(
        visits.type_columns, visits.type_values, visits.items, visits.periods, 3, cells, none, lists
    )
    result = evaluate(bare, ["current", "personalized"], n_folds=5)
    assert result["current"].value.value == pytest.approx(visits.cells.clicks.sum() / 5000, rel=1e-9)
    assert result.model.model == "position-based"
    assert result["personalized"].value.value > result["current"].value.value
    with pytest.raises(InvalidInputError, match="must not be user-browsing for a log without visits"):
        evaluate(bare, click_model="user-browsing")


def test_nothing_is_learned_from_a_log_with_fewer_items_than_positions() -> None:
    rng = np.random.default_rng(0)
    items = rng.permuted(np.tile([0, 1, -1], (400, 1)), axis=1)
    few = ClickCube.from_visits(np.zeros(400), items, (rng.random(items.shape) < 0.4) & (items >= 0))
    rule = "must not be learned from a log with 2 items for 3 positions"
    for target in ("personalized", "equal", "thompson-rank"):
        with pytest.raises(InvalidInputError, match=rule):
            evaluate(few, [target])


def test_a_model_that_does_not_fit_gives_way_to_cells() -> None:
    rng = np.random.default_rng(4)
    items = np.argsort(rng.random((20_000, 3)), axis=1)[:, :2]
    chances = np.array([[0.1, 0.4], [0.4, 0.1], [0.2, 0.2]])[items, np.arange(2)]  # not of rank one
    cube = ClickCube.from_visits(np.zeros(20_000), items, rng.random(items.shape) < chances)
    result = evaluate(cube, {"new": [1, 0]}, click_model="position-based")
    assert result.model.is_misfit
    assert result["new"].headline == "cells"
    assert result["new"].value.low < 0.8 < result["new"].value.high
    assert "does not fit" in result.summary()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"targets": ["nothing"]}, UnknownNameError, "target"),
        (
            {"targets": ["equal:nush"]},
            UnknownNameError,
            r"^target .* \(did you mean equal:nash\?\), got 'equal:nush'",
        ),
        (
            {"targets": ["equal:alpha:-1"]},
            InvalidInputError,
            "^target must be valid: .*, got 'equal:alpha:-1'",
        ),
        ({"targets": []}, InvalidInputError, "at least one target"),
        ({"targets": {"new": [0, 0, 1]}}, InvalidInputError, "twice"),
        ({"targets": {"new": ["item-9", 0, 1]}}, UnknownNameError, "item-9"),
        ({"targets": {"new": {"type-1": [0, 1, 2]}}}, InvalidInputError, "each user type"),
        ({"targets": {"new": {"type-9": [0, 1, 2]}}}, UnknownNameError, "type-9"),
        ({"targets": {"new": [(0.5, [0, 1, 2]), (0.4, [1, 0, 2])]}}, InvalidInputError, "add up to 1"),
        ({"targets": ["top-rank"]}, InvalidInputError, "learns from counts alone"),
        ({"click_model": "magic"}, UnknownNameError, "magic"),
        ({"level": 2}, InvalidInputError, "level"),
        ({"n_folds": 1}, InvalidInputError, "n_folds"),
        ({"targets": "missing.json"}, InvalidInputError, "readable"),
    ],
)
def test_invalid_arguments_are_refused(
    cube: ClickCube, options: dict, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        evaluate(cube, **{"targets": ["current"], **options})


def test_an_interval_of_the_price_needs_a_value_without_each_group() -> None:
    price = jackknife_price("equal", "personalized", "cells", (0.4, 0.5), [(np.nan, 0.5)] * 3, 0.95)
    assert price.price == pytest.approx(0.2)
    assert np.isnan(price.low)
    assert price.to_dict()["low"] is None


def test_learned_values_are_unbiased_and_naive_ones_are_not() -> None:
    """10 sparse logs of 5,000 visits, with two totals of each kind.

    The relative spread of a value is 0.15, so that of the mean of 10 logs is at most 0.05. 60 logs show a
    bias of −1% cross-fitted, +18% naive and 0% of fixed rankings: the bounds are two such spreads away, and
    the seeds are fixed.
    """
    results = study(
        range(10), "explored", "position-based", n_visits=5000, n_items=20, n_positions=5, means=(0.02, 0.2)
    )
    assert abs(results[f"{CROSS_FITTED} total", "model"].bias) < 0.1
    assert results[f"{NAIVE} total", "model"].bias > 0.08
    assert abs(results[FIXED, "model"].bias) < 0.1
    for kind in (FIXED, CROSS_FITTED):
        assert results[kind, "model"].coverage > 0.82  # of 40 intervals: 0.95 − 4 spreads


def half_width(estimate: ValueEstimate) -> float:
    return (estimate.total.high - estimate.total.low) / 2 / 1.96


@pytest.mark.parametrize("estimator", ["cells", "snips"])
def test_intervals_hold_for_correlated_clicks_of_a_visit(estimator: str) -> None:
    """Finding 3: the variance of a value is that between visits, not the sum of those of its cells.

    Half of the visits click on nothing. The target was shown as a whole, so that its value is the mean of the
    visits that it was shown in. As independent clicks, its variance would be too small by a third.
    """
    rng = np.random.default_rng(3)
    n, rates = 4000, np.array([0.4, 0.3])
    items = np.array([[0, 1], [1, 0]])[rng.integers(0, 2, n)]
    is_active = rng.random((n, 1)) < 0.5
    clicks = is_active & (rng.random((n, 2)) < 2 * rates[items] * [1.0, 0.8])
    cube = ClickCube.from_visits(np.zeros(n), items, clicks)
    estimate = evaluate(cube, {"new": [0, 1]}, click_model="position-based")["new"].estimates[estimator]
    earned = clicks[items[:, 0] == 0].sum(axis=1)
    assert estimate.total.value == pytest.approx(earned.mean())
    assert half_width(estimate) == pytest.approx(np.sqrt(earned.var() / earned.size), rel=0.03)


def test_intervals_hold_for_users_who_return() -> None:
    """Finding 3: the visits of a user are not independent, which the folds of users show.

    1,000 users, half of whom click on nothing, return 20 times: the error of a value is that of 1,000 means.
    20 folds tell it with an error of 16%; as independent visits, it would be too small by a factor of 3.
    """
    rng = np.random.default_rng(3)
    n, rates = 20_000, np.array([0.4, 0.3, 0.2])
    users = np.repeat(np.arange(1000), 20)
    is_active = (rng.random(1000) < 0.5)[users]
    items = np.argsort(rng.random((n, 3)), axis=1)[:, :2]
    clicks = is_active[:, None] & (rng.random((n, 2)) < 2 * rates[items] * [1.0, 0.8])
    cube = ClickCube.from_visits(np.zeros(n), items, clicks, users=users)
    current = evaluate(cube, ["current"])["current"].estimates["cells"]
    by_user = clicks.sum(axis=1).reshape(1000, 20).mean(axis=1)
    error = np.sqrt(by_user.var() / 1000)
    assert 0.6 < half_width(current) / error < 1.6
    apart = ClickCube.from_visits(np.zeros(n), items, clicks, users=rng.permutation(n))
    independent = evaluate(apart, ["current"])["current"].estimates["cells"]
    assert half_width(independent) < 0.45 * error


def equal_items_cube(seed: int, n_visits: int = 3000) -> ClickCube:
    """Return a log of 8 items that are equally good, so that all rankings have the value 0.51."""
    rng = np.random.default_rng(seed)
    items = np.argsort(rng.random((n_visits, 8)), axis=1)[:, :2]
    return ClickCube.from_visits(np.zeros(n_visits), items, rng.random((n_visits, 2)) < [0.3, 0.21])


def test_intervals_of_learned_rankings_hold_for_their_choice() -> None:
    """80 logs of equal items, of which each group of folds has another best ranking.

    If 95% of the intervals cover, fewer than 71 of 80 do with a probability of 7e-3; the root of the mean
    squared error of 80 logs has a spread of 8%. Without the choice of the rankings 82% cover, and the error
    is 1.36 times as large as the standard error. The seeds are fixed.
    """
    estimates = [
        evaluate(equal_items_cube(seed), ["personalized"], click_model="position-based")["personalized"]
        for seed in range(80)
    ]
    values = [target.value for target in estimates]
    assert sum(value.low < 0.51 < value.high for value in values) >= 71
    error = np.sqrt(np.mean([(value.value - 0.51) ** 2 for value in values]))
    assert np.mean([half_width(target.estimates["model"]) for target in estimates]) > 0.85 * error


def test_two_groups_of_folds_leave_the_choice_of_rankings_out() -> None:
    """There is no third group to learn a ranking from."""
    cube = equal_items_cube(1)
    widths = [
        half_width(evaluate(cube, ["personalized"], n_folds=n_folds)["personalized"].estimates["model"])
        for n_folds in (2, 3)
    ]
    assert widths[0] < widths[1]


def test_values_are_covered_if_users_differ_in_activity() -> None:
    """Finding 3: 10 logs of two levels of activity, most of which look like those of browsing users.

    If 95% of the intervals cover, fewer than 16 of 20 do with a probability of 3e-3, and the seeds are fixed.
    The browsing model is 2.5% too high and covers in 70% and 55%.
    """
    results = study(
        range(10),
        "uniform",
        "position-based",
        n_visits=20_000,
        n_items=20,
        n_positions=5,
        means=(0.05, 0.4),
        activity="two-levels",
    )
    for kind in (FIXED, CROSS_FITTED):
        headline = results[f"{kind} total", "headline"]
        assert headline.n_estimates == 20
        assert headline.coverage >= 0.8
        assert abs(headline.bias) < 0.015
        assert headline == results[f"{kind} total", "model"]  # in all logs


@pytest.mark.campaign
@pytest.mark.parametrize("visits_per_user", [1, 8])
@pytest.mark.parametrize("activity", ["two-levels", "gamma"])
@pytest.mark.parametrize("logging", ["uniform", "explored"])
def test_values_are_covered_if_users_differ_in_activity_in_100_logs(
    logging: Logging, activity: Activity, visits_per_user: int
) -> None:
    """Finding 3: 200 totals of fixed rankings: a coverage of 95% has a spread of 1.5%."""
    results = study(
        range(500, 600),
        logging,
        "position-based",
        n_visits=20_000,
        n_items=20,
        n_positions=5,
        means=(0.05, 0.3),
        activity=activity,
        visits_per_user=visits_per_user,
    )
    for kind, least in ((FIXED, 0.93), (f"{FIXED} total", 0.91), (CROSS_FITTED, 0.91)):
        for estimator in ("cells", "model", "headline"):
            figures = results[kind, estimator]
            assert abs(figures.bias) < 0.025, (kind, estimator)
            assert figures.coverage > least, (kind, estimator)


@pytest.mark.campaign
@pytest.mark.parametrize("click_model", ["single-look", "position-based"])
@pytest.mark.parametrize("logging", ["uniform", "explored", "plackett-luce"])
def test_values_of_a_hundred_logs_are_unbiased_and_covered(click_model: str, logging: str) -> None:
    """400 values for each estimator: coverage has a spread of 0.011, and the bias of at most 0.007.

    Fixed rankings cover in 93% to 98% of the cases, and so do learned ones.
    """
    results = study(range(100), logging, click_model, n_visits=20_000)
    for kind, least in ((FIXED, 0.92), (CROSS_FITTED, 0.91)):
        for estimator in ("cells", "ips", "snips", "model", "headline"):
            figures = results[kind, estimator]
            assert abs(figures.bias) < 0.025
            assert figures.coverage > least
