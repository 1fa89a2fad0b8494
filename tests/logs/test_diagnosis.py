"""The diagnosis of logs that cannot tell, and of those that can."""

import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from helpers.simulated_logs import draw_activity, long_tailed_visits, make_log_problem, simulate_visits

from banditrank import InvalidInputError, LogDiagnosis, diagnose
from banditrank.counts._click_cube import ClickCube
from banditrank.estimators import fit_click_model
from banditrank.estimators._click_models._selection import ClickModelSelection
from banditrank.logs import withhold_estimates

N = 6000
PROBLEM = make_log_problem()
RATES = 0.4 / (1 + np.arange(5))


def simulated(n_visits: int = N, logging: str = "uniform", model: str = "position-based") -> ClickCube:
    return simulate_visits(PROBLEM, logging, n_visits, model, np.random.default_rng(0)).cube()


def fixed_layout() -> ClickCube:
    rng = np.random.default_rng(0)
    items = np.tile(np.arange(5), (N, 1))
    return ClickCube.from_visits(rng.integers(0, 2, N), items, rng.random((N, 5)) < RATES)


def single_position() -> ClickCube:
    return simulated().select(n_positions=1)


def one_item_per_type(*, moves: bool) -> ClickCube:
    rng = np.random.default_rng(0)
    types = rng.integers(0, 2, N)
    position = rng.integers(0, 5, N) if moves else types
    items, clicks = np.full((N, 5), -1), np.zeros((N, 5))
    items[np.arange(N), position] = types
    clicks[np.arange(N), position] = rng.random(N) < RATES[position]
    return ClickCube.from_visits(types, items, clicks)


def all_or_none_clicked(rate: float) -> ClickCube:
    items = np.argsort(np.random.default_rng(0).random((N, 5)), axis=1)
    return ClickCube.from_visits(np.zeros(N), items, np.full((N, 5), rate))


def shuffled_positions() -> ClickCube:
    rng = np.random.default_rng(0)
    visits = simulate_visits(PROBLEM, "uniform", 3 * N, "position-based", rng)
    order = np.argsort(rng.random((3 * N, 5)), axis=1)
    items, clicks = (np.take_along_axis(table, order, 1) for table in (visits.items, visits.clicks))
    return ClickCube.from_visits(visits.user_type, items, clicks)


def active_users(model: str = "position-based") -> ClickCube:
    rng = np.random.default_rng(0)
    factors = draw_activity("two-levels", 3 * N, rng)
    return simulate_visits(PROBLEM, "explored", 3 * N, model, rng, activity=factors).cube()


def codes(diagnosis: LogDiagnosis) -> list[str]:
    return [finding.code for finding in diagnosis.findings]


def assert_prints_no_worth(diagnosis: LogDiagnosis) -> None:
    """Check that no precision of a position is printed, and that none is in the document."""
    assert "is known to" not in diagnosis.summary()
    document = json.loads(json.dumps(diagnosis.to_dict(), allow_nan=False))
    assert all(width is None for one in document["user_types"] for width in one["half_widths"])
    assert all(one["data_factor"] is None for one in document["user_types"])


def test_random_rankings_are_fine() -> None:
    diagnosis = diagnose(simulated(40_000))
    assert (diagnosis.severity, diagnosis.exit_code) == ("fine", 0)
    assert codes(diagnosis) == ["several-clicks"]
    assert not diagnosis.swaps
    one = diagnosis.user_types[0]
    assert one.effective_overlap > 0.9
    assert one.overlap.min() > 0.4
    assert one.components == ((0, 1, 2, 3, 4),)
    assert one.data_factor < 1.1


def test_a_fixed_layout_cannot_be_known_and_swaps_are_proposed() -> None:
    diagnosis = diagnose(fixed_layout())
    assert (diagnosis.severity, diagnosis.exit_code) == ("unknowable", 3)
    assert diagnosis.verdict == "The log cannot tell what a position is worth."
    assert "fixed layout" in diagnosis.summary()
    assert_prints_no_worth(diagnosis)
    assert diagnosis.user_types[0].overlap.max() < 1e-9
    assert diagnosis.user_types[0].effective_overlap == 0
    swaps = [swap for swap in diagnosis.swaps if swap.user_type == "type-1"]
    assert {swap.second_position for swap in swaps} == {1, 2, 3, 4}


def test_the_proposed_swaps_make_positions_known() -> None:
    # Swapped items are simulated as proposed: the half width at each position must be near the target.
    before = diagnose(fixed_layout().regroup([]))
    rng = np.random.default_rng(1)
    parts = [fixed_layout().regroup([])]
    for swap in before.swaps:
        items = np.tile(np.arange(5), (swap.n_visits, 1))
        items[:, [swap.first_position, swap.second_position]] = items[
            :, [swap.second_position, swap.first_position]
        ]
        clicks = rng.random(items.shape) < 0.4 * (RATES / 0.4)  # items are alike
        names = {"item_names": parts[0].items, "user_types": ["all"]}
        parts.append(ClickCube.from_visits(np.zeros(swap.n_visits), items, clicks, **names).regroup([]))
    after = diagnose(sum(parts[1:], parts[0]))
    assert after.severity != "unknowable"
    assert after.user_types[0].half_widths.max() < np.log(1.12)


def test_a_single_position_says_nothing_about_positions() -> None:
    diagnosis = diagnose(single_position())
    assert diagnosis.exit_code == 3
    assert codes(diagnosis)[0] == "single-position"
    assert "All displays are at position 1" in diagnosis.summary()
    assert_prints_no_worth(diagnosis)
    assert not diagnosis.swaps


def test_one_item_per_type() -> None:
    fixed = diagnose(one_item_per_type(moves=False))
    assert fixed.exit_code == 3
    assert set(codes(fixed)) == {"fixed-layout", "one-item-per-type"}
    assert_prints_no_worth(fixed)
    moving = diagnose(one_item_per_type(moves=True))
    assert moving.exit_code == 1
    assert "Each user type was shown a single item" in moving.summary()


@pytest.mark.parametrize(("rate", "code"), [(0.0, "no-clicks"), (1.0, "all-clicked")])
def test_logs_without_clicks_or_without_misses(rate: float, code: str) -> None:
    diagnosis = diagnose(all_or_none_clicked(rate))
    assert diagnosis.exit_code == 3
    assert codes(diagnosis) == [code]
    assert diagnosis.user_types[0].n_clicks == rate * N * 5
    assert_prints_no_worth(diagnosis)
    assert not diagnosis.swaps
    assert not re.search(r"\d", diagnosis.summary()), "there is nothing to say in numbers"


def test_shuffled_positions_make_no_difference() -> None:
    diagnosis = diagnose(shuffled_positions())
    assert diagnosis.exit_code == 1
    assert diagnosis.verdict == "The position in the log makes no difference to clicks."
    assert "not what users saw" in diagnosis.summary()
    assert not diagnosis.swaps


def test_a_small_log_says_how_much_more_data_it_takes() -> None:
    small, large = (diagnose(simulated(n, "explored")) for n in (1000, 16_000))
    assert small.severity == "warning"
    assert "times as much data" in small.summary()
    assert small.swaps
    ratio = small.user_types[0].data_factor / large.user_types[0].data_factor
    assert 8 < ratio < 32, "the factor is inversely proportional to the data"


def test_all_swaps_are_planned_and_the_first_are_listed() -> None:
    # Of four user types, each with four imprecise positions, ten swaps are listed.
    problem = make_log_problem(0, n_user_types=4)
    visits = simulate_visits(problem, "uniform", 900, "position-based", np.random.default_rng(0))
    diagnosis = diagnose(visits.cube())
    assert len(diagnosis.swaps) > 10
    assert len(diagnosis.to_dict()["swaps"]) == len(diagnosis.swaps)
    more = len(diagnosis.swaps) - 10
    assert f"{more} more swaps, which the JSON output lists" in diagnosis.summary()
    listed = {swap.user_type for swap in diagnosis.swaps[:10]}
    imprecise = [one for one in diagnosis.findings if one.code == "imprecise"]
    assert 0 < len(listed) < len(imprecise) == 4
    for finding in imprecise:
        name = finding.text.partition(":")[0].removeprefix("User type ")
        assert ("or the swaps below" in finding.text) == (name in listed)
        assert "as much data in total, or the swaps" in finding.text


def test_positions_that_are_known_need_no_swap() -> None:
    # Positions 1 and 2 are known well, and so are 3 and 4: one swap connects them.
    rng = np.random.default_rng(0)
    n, first, second = 40_000, rng.random(40_000) < 0.5, rng.random(40_000) < 0.5
    items = np.column_stack([np.where(first, 0, 1), np.where(first, 1, 0)])
    items = np.column_stack([items, np.where(second, 2, 3), np.where(second, 3, 2)])
    rates = [0.4, 0.3, 0.25, 0.2]
    cube = ClickCube.from_visits(np.zeros(n), items, rng.random((n, 4)) < rates)
    (swap,) = diagnose(cube).swaps
    assert {swap.first_position, swap.second_position} == {0, 2}
    swapped = items[: swap.n_visits].copy()
    swapped[:, [swap.first_position, swap.second_position]] = items[
        : swap.n_visits, [swap.second_position, swap.first_position]
    ]
    swapped_clicks = rng.random(swapped.shape) < rates
    after = diagnose(cube + ClickCube.from_visits(np.zeros(swap.n_visits), swapped, swapped_clicks))
    assert not after.swaps
    assert after.user_types[0].data_factor < 1.1
    # A position that few visits reached, beside three that are known, is the only one to swap.
    items = np.argsort(rng.random((n, 4)), axis=1)
    items[600:, 3] = -1
    clicks = (rng.random((n, 4)) < rates) & (items >= 0)
    swaps = diagnose(ClickCube.from_visits(np.zeros(n), items, clicks)).swaps
    assert [swap.second_position for swap in swaps] == [3]
    # A position that is never clicked has no swap: only a bound is known, however many visits see it.
    clicks[:, 3] = False
    diagnosis = diagnose(ClickCube.from_visits(np.zeros(n), items, clicks))
    assert (codes(diagnosis)[0], diagnosis.swaps) == ("unclicked-position", ())


def test_bad_rows_and_busy_users_are_findings() -> None:
    rows = {"counted": 980, "clicked is not 0 or 1": 15, "outside since and until": 100, "item is missing": 5}
    metadata = {
        "rows": rows,
        "first_rows": {"item is missing": "a.csv line 7"},
        "busiest_user": {"rows": 5000, "mean_rows": 2.5},
    }
    diagnosis = diagnose(replace(simulated(40_000), metadata=metadata))
    assert diagnosis.exit_code == 1
    texts = {one.code: one.text for one in diagnosis.findings}
    assert texts["bad-rows"] == (
        "20 of 1,100 rows were left out. Clicked is not 0 or 1: 15 rows; item is missing: 5 rows "
        "(first: a.csv line 7)."
    )
    assert "a user has 5,000 rows, where users have 2.5 on average" in texts["busy-user"]
    assert diagnosis.to_dict()["rows"] == rows
    assert diagnosis.to_dict()["first_rows"] == metadata["first_rows"]


def test_propensities_are_checked() -> None:
    visits = simulate_visits(PROBLEM, "uniform", 40_000, "position-based", np.random.default_rng(0))
    right = diagnose(visits.cube(has_propensities=True))
    assert codes(right) == ["several-clicks", "propensities"]
    wrong = diagnose(visits._replace(propensities=visits.propensities * 2).cube(has_propensities=True))
    assert "wrong-propensities" in codes(wrong)
    assert "Propensities look wrong: at position 1 for type-1 the mean of 1/propensity is 5" in str(wrong)


def test_separate_components_are_named() -> None:
    rng = np.random.default_rng(0)
    items = np.where(rng.random((N, 1)) < 0.5, [[0, 1, 2]], [[1, 0, 2]])
    diagnosis = diagnose(ClickCube.from_visits(np.zeros(N), items, rng.random((N, 3)) < [0.5, 0.3, 0.4]))
    assert diagnosis.exit_code == 3
    assert diagnosis.verdict == "The log tells the worth of some positions only."
    assert "positions 1, 2 can be compared" in diagnosis.summary()
    assert diagnosis.to_dict()["user_types"][0]["half_widths"][2] is None


def test_missing_visits_drift_and_bots_are_found() -> None:
    rng = np.random.default_rng(0)
    items = np.argsort(rng.random((N, 4)), axis=1)
    period = np.repeat([0, 1], N // 2)
    rates = np.where(items == 2, 0.1 + 0.3 * period[:, None], 0.2) * [1.0, 0.8, 0.6, 0.4]
    clicks = rng.random((N, 4)) < rates
    clicks[:300] = True
    drifting = ClickCube.from_visits(np.zeros(N), items, clicks, period=period, periods=("May", "June"))
    found = diagnose(drifting)
    assert {"drift", "every-position-clicked"} <= set(codes(found))
    assert "item-3" in {one.item for one in found.drift.items}
    kept = clicks.any(axis=1)
    assert "all-visits-clicked" in codes(
        diagnose(ClickCube.from_visits(np.zeros(kept.sum()), items[kept], clicks[kept]))
    )


def test_rates_that_are_no_products_are_a_misfit() -> None:
    rng = np.random.default_rng(0)
    items = np.argsort(rng.random((N, 4)), axis=1)
    is_even = (items + np.arange(4)) % 2 == 0
    cube = ClickCube.from_visits(np.zeros(N), items, rng.random((N, 4)) < np.where(is_even, 0.3, 0.15))
    assert "misfit" in codes(diagnose(cube))


def test_false_alarms_of_drift_are_rare() -> None:
    # A false alarm has a probability of 5% a log: more than 4 of 12 have 2e-4.
    alarms = 0
    for seed in range(12):
        visits = simulate_visits(PROBLEM, "uniform", 3000, "position-based", np.random.default_rng(seed))
        cube = ClickCube.from_visits(
            visits.user_type, visits.items, visits.clicks, period=np.arange(3000) % 3, periods=("a", "b", "c")
        )
        alarms += bool(diagnose(cube).drift.items)
    assert alarms <= 4


def test_of_many_user_types_the_first_findings_of_a_kind_are_listed() -> None:
    rng = np.random.default_rng(2)
    items = np.argsort(rng.random((400, 3)), axis=1)
    diagnosis = diagnose(ClickCube.from_visits(np.arange(400) % 40, items, rng.random((400, 3)) < 0.5))
    codes = Counter(one.code for one in diagnosis.findings)
    code, count = codes.most_common(1)[0]
    assert count > 10
    listed = [one.text for one in diagnosis.listed_findings() if one.code == code]
    assert len(listed) == 11
    assert listed[-1] == f"The same for {count - 10} more user types ({code}); the JSON output lists all."
    assert len(diagnosis.to_dict()["findings"]) == len(diagnosis.findings)
    assert diagnosis.summary().count("\n- ") < len(diagnosis.findings)


def test_frames_have_a_row_for_each_user_type_and_position() -> None:
    assert len(diagnose(simulated()).to_frame()) == 10


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(InvalidInputError, match="target"):
        diagnose(simulated(100), target=0.0)
    with pytest.raises(InvalidInputError, match="must have displays"):
        diagnose(simulated(100).select(folds=[]))


def test_positions_that_cannot_be_compared_are_withheld_if_the_model_is_an_assumption() -> None:
    """Two items at positions 1 and 2, two others at 3: only a cascade knows the worth of all three."""
    rng = np.random.default_rng(0)
    items = np.column_stack([rng.permuted(np.tile([0, 1], (60, 1)), axis=1), 2 + np.arange(60) % 2])
    wanted = rng.random((60, 3)) < 0.3
    clicks = wanted & (wanted.cumsum(axis=1) == 1)
    cube = ClickCube.from_visits(np.zeros(60), items, clicks)
    diagnosis = diagnose(cube)
    assert diagnosis.user_types[0].is_position_known.tolist() == [True, True, False]
    assert "position 3 cannot be compared with them" in diagnosis.summary()
    chosen = fit_click_model(cube, "cascade")
    assert np.isfinite(withhold_estimates(chosen, diagnosis).position_worth).all()
    selection = ClickModelSelection(
        "cascade", is_sure=False, describing_model="cascade", statement="", candidates=(), held_out=None
    )
    for is_sure in (False, True):
        fit = replace(chosen, selection=replace(selection, is_sure=is_sure))
        worth = withhold_estimates(fit, diagnosis).position_worth
        assert np.isfinite(worth)[0].tolist() == [True, True, is_sure]


def test_users_who_differ_in_activity_are_named() -> None:
    """Finding 3: clicks of a visit that are correlated where cells fit are a finding, and no reservation."""
    diagnosis = diagnose(active_users(), target=1.0)
    (finding,) = (each for each in diagnosis.findings if each.code == "activity")
    assert finding.severity == diagnosis.severity == "fine"
    assert "Users of a type differ in activity" in finding.text
    for model in ("position-based", "user-browsing"):
        assert "activity" not in codes(diagnose(simulated(3 * N, "explored", model), target=1.0))


def test_a_long_tail_is_named() -> None:
    """Finding 2: the diagnosis names a long tail, whose log fits and tells what positions are worth."""
    diagnosis = diagnose(long_tailed_visits(0)[0].cube())
    (finding,) = (each for each in diagnosis.findings if each.code == "long-tail")
    assert finding.severity == "fine"
    assert "items have fewer than 50 looks" in finding.text
    assert "compared within each item only" in finding.text
    assert not {"misfit", "positions-are-noise"} & set(codes(diagnosis))
    assert "long-tail" not in codes(diagnose(simulated()))


def test_positions_that_do_not_matter_are_found_in_a_long_tail() -> None:
    """Finding 2: items of the tail do not make equal positions differ."""
    cube = long_tailed_visits(0, n_visits=8000, examination=np.full(5, 0.5))[0].cube()
    assert "positions-are-noise" in codes(diagnose(cube))


def test_a_misfit_of_the_tail_alone_names_the_tail() -> None:
    """Finding 2: a misfit that is gone without the items of few looks is said to be theirs."""
    rng = np.random.default_rng(0)
    head = simulate_visits(PROBLEM, "uniform", N, "position-based", rng)
    items, clicks = np.full((6000, 5), -1), np.zeros((6000, 5), dtype=bool)
    position = rng.integers(0, 2, 6000)
    items[np.arange(6000), position] = 10 + np.arange(6000) % 200
    prefers_second = items[np.arange(6000), position] % 2 == 1
    clicks[np.arange(6000), position] = rng.random(6000) < np.where(
        prefers_second == (position == 1), 0.8, 0.1
    )
    types = np.concatenate([head.user_type, np.zeros(6000, dtype=int)])
    cube = ClickCube.from_visits(
        types, np.vstack([head.items, items]), np.vstack([head.clicks, clicks]), user_types=["a", "b"]
    )
    (finding,) = (each for each in diagnose(cube).findings if each.code == "misfit")
    assert "the long tail, items with fewer than 50 looks" in finding.text
