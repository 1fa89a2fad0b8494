"""Reports of a surface: estimates with intervals, and the price of equality."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from helpers.live import ITEMS, a_monitored_ranker, a_ranker, a_surface, play

from banditrank import InvalidInputError, KeptShare, LeastExposure, confidence_intervals, estimate
from banditrank._ranker import Ranker
from banditrank.dashboard._assessment import assess
from banditrank.dashboard._documents import estimates_document
from banditrank.dashboard._estimates_report import EstimatesReport
from banditrank.dashboard._recent_impressions import RecentImpressions
from banditrank.dashboard._treatment_report import TreatmentReport, report_treatments


def test_an_item_that_was_never_shown_has_no_estimate() -> None:
    """Finding 13: its estimate is None, not 0, in the report and in the dashboard's document."""
    with a_monitored_ranker(a_surface(n_positions=1)) as ranker:
        shown = ranker.rank("new")
        ranker.feedback(shown.id, clicked=shown.items[0])
        new, old = ranker.estimates().user_types
        document = estimates_document(
            assess(ranker._runtime.counts()), None, RecentImpressions(ranker.monitor)
        )
    for each, row in zip(new.items, document["items"][0], strict=True):
        is_shown = each.item == shown.items[0]
        assert (each.estimate is not None, each.displays) == (is_shown, int(is_shown))
        assert row["estimate"] == each.estimate
        assert (row["low"], row["high"]) == (each.low, each.high)
        assert (each.low, each.high) == (0.0, 1.0) or is_shown
    assert {each.estimate for each in old.items} == {None}


def plain(report: EstimatesReport | TreatmentReport) -> dict:
    return json.loads(json.dumps(asdict(report), allow_nan=False))


def test_estimates_are_of_maximum_likelihood_and_include_retired_items() -> None:
    with a_ranker() as ranker:
        play(ranker, 80, seed=1)
        counts = ranker.counts()
        ranker.retire_items(["b"])
        report = ranker.estimates(level=0.9)
    assert (report.surface, report.version, report.rounds, report.level) == ("home", 80, 80, 0.9)
    estimates, intervals = estimate(counts, method="likelihood"), confidence_intervals(counts, level=0.9)
    for i, estimated in enumerate(report.user_types):
        assert estimated.arrivals == counts.arrivals[i]
        assert estimated.share == pytest.approx(counts.arrivals[i] / 80)
        assert [one.position for one in estimated.positions] == [1, 2]
        assert [one.estimate for one in estimated.positions] == estimates.position_preferences[i].tolist()
        ends = [[one.low, one.high] for one in estimated.positions]
        assert np.array(ends) == pytest.approx(intervals.position_preferences[i])
        assert [one.item for one in estimated.items] == list(ITEMS)
        assert [one.retired for one in estimated.items] == [False, True, False, False, False]
        assert [one.estimate for one in estimated.items] == estimates.item_means[i].clip(0, 1).tolist()
        assert [one.displays for one in estimated.items] == counts.displays[i].sum(axis=1).tolist()
        assert [one.rewards for one in estimated.items] == counts.rewards[i].sum(axis=1).tolist()
        assert all(one.low <= one.estimate <= one.high for one in [*estimated.positions, *estimated.items])


def test_intervals_are_as_wide_as_possible_without_data() -> None:
    with a_ranker() as ranker:
        report = plain(ranker.estimates())
    for estimated in report["user_types"]:
        assert (estimated["arrivals"], estimated["share"]) == (0, 0.5)
        assert [one["estimate"] for one in estimated["positions"]] == [0.5, 0.5]
        assert {(one["low"], one["high"]) for one in estimated["positions"] + estimated["items"]} == {
            (0.0, 1.0)
        }


def test_an_invalid_level_is_rejected() -> None:
    with a_ranker() as ranker, pytest.raises(InvalidInputError, match="level must be a number"):
        ranker.estimates(level=95)


def click_always(ranker: Ranker, user_type: str, liked: str, rounds: int) -> None:
    """Let users of a type click one item at any position, and no other."""
    for _ in range(rounds):
        shown = ranker.rank(user_type)
        ranker.feedback(shown.id, clicked=liked if liked in shown.items else None)


def test_equality_has_a_price_if_user_types_differ() -> None:
    with a_ranker(a_surface(treatment="equal", utility="nash", n_positions=1, policy="random")) as ranker:
        click_always(ranker, "new", "a", 60)
        click_always(ranker, "old", "b", 60)
        report = ranker.equality()
    new, old = report.user_types
    assert (new.personalized_ranking, old.personalized_ranking) == (["a"], ["b"])
    assert new.personalized_value == old.personalized_value == 1.0
    assert report.personalized_total == 1.0
    assert report.price_of_equality == pytest.approx(1 - report.equal_total)
    assert sorted([new.share_lost, old.share_lost]) == [0.0, 1.0]
    assert report.equal_ranking in (["a"], ["b"])
    assert (report.utility, report.treatment) == ("nash", "equal")
    lottery = report.lottery  # shows both items, as often as their users arrive
    assert lottery is not None
    odds = {one.ranking[0]: one.probability for one in lottery.rankings}
    assert odds == pytest.approx({"a": new.arrival_rate, "b": old.arrival_rate}, abs=1e-6)
    assert lottery.user_type_values == pytest.approx(list(odds.values()), abs=1e-6)
    assert lottery.total == pytest.approx(0.5)
    assert (lottery.fixed_equivalent_value, lottery.gain) == (pytest.approx(0, abs=1e-9), None)
    assert lottery.is_certified
    assert "raises the geometric mean of the user types' values from 0.000" in lottery.summary
    exposures = {one.item: one.lottery.looks for one in report.items if one.lottery.looks > 0}
    assert exposures == pytest.approx(odds)


def test_exposure_is_the_share_of_displays_and_of_looks() -> None:
    with a_ranker() as ranker:
        play(ranker, 60, seed=3)
        ranker.retire_items(["a"])
        counts = ranker.counts()
        report = ranker.equality()
        displays = sum(one.items[0].displays for one in ranker.estimates().user_types)
    assert report.utility == "utilitarian"
    assert report.is_certified
    assert report.lottery is None  # gains nothing under a linear utility
    assert {one.lottery for one in report.items} == {None}
    assert report.gap == pytest.approx(0, abs=1e-9)
    assert [one.item for one in report.items] == list(ITEMS)
    for kind in ("so_far", "personalized", "equal"):
        for share in ("displays", "looks"):
            assert sum(getattr(getattr(one, kind), share) for one in report.items) == pytest.approx(1)
    retired = report.items[0]
    assert retired.retired
    assert retired.so_far.displays == pytest.approx(displays / 120)
    assert (retired.personalized.looks, retired.equal.displays) == (0.0, 0.0)
    assert [one.item for one in report.items if one.equal.displays > 0] == sorted(report.equal_ranking)
    assert {one.equal.displays for one in report.items} == {0.0, 0.5}
    rates = {one.user_type: one.arrival_rate for one in report.user_types}
    expected = (counts.arrivals + 1) / (counts.arrivals.sum() + 2)
    assert list(rates.values()) == pytest.approx(expected)
    for one in report.items:
        given = sum(
            rates[kind.user_type] * (one.item in kind.personalized_ranking) for kind in report.user_types
        )
        assert one.personalized.displays == pytest.approx(given / 2)


@pytest.mark.parametrize("utility", ["utilitarian", "nash", "maximin", "alpha:2"])
@pytest.mark.parametrize("rounds", [0, 1])
def test_equality_is_defined_with_hardly_any_data(utility: str, rounds: int) -> None:
    with a_ranker(a_surface(treatment="equal", utility=utility)) as ranker:
        play(ranker, rounds, seed=rounds)
        report = plain(ranker.equality())
    assert (report["rounds"], report["version"]) == (rounds, rounds)
    assert 0 <= report["price_of_equality"] <= 1
    assert len(report["equal_ranking"]) == 2
    if not rounds:
        assert report["personalized_total"] == report["equal_total"] == 0
        assert {share for one in report["items"] for share in one["so_far"].values()} == {0.0}


def test_guarantees_have_a_price_and_a_realised_exposure() -> None:
    guarantees = [LeastExposure(0.2, ["c", "d"], is_group=True), KeptShare(0.3, ["old"])]
    surface = a_surface(
        treatment="equal-lottery", utility="maximin", n_positions=1, guarantees=guarantees, retired=["d"]
    )
    with a_ranker(surface) as ranker:
        assert [one.realised for one in ranker.equality().lottery.guarantees] == [None, None]
        for _ in range(40):
            click_always(ranker, "new", "a", 1)
            click_always(ranker, "old", "b", 1)
        counts, report = ranker.counts(), ranker.equality().lottery
        conflicting = replace(surface, guarantees=(LeastExposure(0.9, ["c"]), KeptShare(0.5, ["old"])))
        conflict = report_treatments(ranker._runtime.counts()._replace(surface=conflicting)).lottery
    exposure, value = report.guarantees
    assert (exposure.name, exposure.level) == ("exposure of c", 0.2)
    assert exposure.expected == pytest.approx(0.2)
    assert exposure.price > 0
    share = counts.displays[:, 2].sum() / 80  # with one position, every user looks at it
    assert exposure.realised == pytest.approx(share)
    deviation = (share * (1 - share) / 80) ** 0.5
    assert (exposure.low, exposure.high) == pytest.approx(
        (share - 1.96 * deviation, share + 1.96 * deviation), abs=1e-3
    )
    assert exposure.is_kept == (exposure.high >= 0.2)
    assert value.name == "value of old"
    assert value.level == pytest.approx(0.3)
    assert value.price == 0
    assert value.realised == pytest.approx(counts.rewards[1].sum() / 40)
    assert report.unguaranteed_value == pytest.approx(0.5, abs=0.01)
    assert report.equivalent_value == pytest.approx(0.4, abs=0.01)
    assert conflict.conflict.startswith("guarantees cannot all be kept: the largest common factor is 0.7")
    assert [(one.expected, one.price) for one in conflict.guarantees] == [(None, None)] * 2
    assert json.dumps(asdict(conflict), allow_nan=False)


def test_guarantees_bind_the_optimum_of_personalized_treatment() -> None:
    surface = a_surface(n_positions=1, guarantees=[LeastExposure(0.4, ["c"])])
    with a_ranker(surface) as ranker:
        for _ in range(100):
            click_always(ranker, "new", "a", 1)
            click_always(ranker, "old", "b", 1)
        assessment = assess(ranker._runtime.counts())
    unbound = [value.estimate for value in assessment.treatments[assessment.current_treatment].values]
    bound = [value.estimate for value in assessment.optimal_values]
    assert np.mean(unbound) == pytest.approx(1.0, abs=0.1)
    assert np.mean(bound) == pytest.approx(0.6 * np.mean(unbound), abs=0.05)
    assert not assessment.is_optimum_exact
