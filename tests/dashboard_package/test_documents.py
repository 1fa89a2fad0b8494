"""What a dashboard is told is what was learned, and nothing beyond."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from helpers.live import ITEMS, TYPES, Clock, FailingStore, a_ranker, a_surface, play, wait_until

from banditrank import Counts, Problem, user_type_values
from banditrank.dashboard.assessment import assess
from banditrank.dashboard.document_schemas import DashboardDocument
from banditrank.dashboard.documents import dashboard_document, first_bucket_since, series_document
from banditrank.dashboard.recent_impressions import RecentImpressions
from banditrank.dashboard.surface_problem import SurfaceProblem
from banditrank.engine.counts_replica import SurfaceCounts
from banditrank.engine.surface import Surface
from banditrank.ranker import Ranker
from banditrank.storage.records import DISCARDED

WORLD = Problem(
    [0.5, 0.5],
    [[0.7, 0.3], [0.4, 0.6]],
    [[0.9, 0.5, 0.1, 0.2, 0.3], [0.2, 0.3, 0.8, 0.4, 0.1]],
    user_types=TYPES,
    items=ITEMS,
)


def told(ranker: Ranker, truth: Problem | None = None) -> dict[str, Any]:
    """Return a dashboard's document as it comes out of JSON, which is as it was described."""
    live = ranker._runtime
    latest = RecentImpressions(live, ranker._engine.store)
    true = None if truth is None else SurfaceProblem(truth, live.surface)
    now = ranker._engine.now()
    document = dashboard_document(
        assess(live.known()), true, latest, live.last_hour(), [], now=now, counts_age=0.0
    )
    json.dumps(document, allow_nan=False)
    decoded = msgspec.json.decode(msgspec.json.encode(document))
    assert msgspec.convert(decoded, DashboardDocument) == decoded
    return decoded


@pytest.mark.parametrize(
    "settings", [{}, {"treatment": "equal", "utility": "nash"}, {"treatment": "equal"}], ids=str
)
def test_values_are_those_of_the_reports(settings: dict[str, Any]) -> None:
    with a_ranker(a_surface(**settings)) as ranker:
        play(ranker, 120, seed=1)
        ranker.retire_items(["b"])
        document, estimates, equality = told(ranker), ranker.estimates(), ranker.equality()
        counts = ranker._runtime.known().counts
    assert (document["rounds"], document["version"], document["level"]) == (120, 120, estimates.level)
    assert document["surface"]["items"] == list(ITEMS)
    assert document["surface"]["retired"] == ["b"]
    assert not document["has_true_values"]
    for i, one in enumerate(estimates.user_types):
        assert document["arrival_rates"][i] == one.share
        positions = [(row["estimate"], row["low"], row["high"]) for row in document["positions"][i]]
        assert positions == [(row.estimate, row.low, row.high) for row in one.positions]
        items = [(row["estimate"], row["low"], row["high"], row["clicks"]) for row in document["items"][i]]
        assert items == [(row.estimate, row.low, row.high, row.rewards) for row in one.items]
        assert document["displays"][i] == counts.displays[i].T.tolist()
        looks = [row["expected_looks"] for row in document["items"][i]]
        assert looks == pytest.approx(counts.displays[i] @ [row.estimate for row in one.positions])
        assert "true_value" not in document["items"][i][0]
    own = 2 if equality.utility == "nash" else 1
    personal, utilitarian, third = document["treatments"]
    assert (personal["treatment"], utilitarian["utility"], third["utility"]) == (
        "personalized",
        "utilitarian",
        "nash",
    )
    names = [[ITEMS[number] for number in ranking] for ranking in personal["rankings"]]
    assert names == [one.personalized_ranking for one in equality.user_types]
    assert personal["value"] == pytest.approx([one.personalized_value for one in equality.user_types])
    equal = document["treatments"][own]
    assert [ITEMS[number] for number in equal["rankings"][0]] == equality.equal_ranking
    assert len(equal["rankings"]) == 1
    assert equal["value"] == pytest.approx([one.equal_value for one in equality.user_types])
    assert equal["price"]["estimate"] == pytest.approx(equality.price_of_equality)
    for one in document["treatments"]:
        assert all(
            lo <= value <= hi for lo, value, hi in zip(one["low"], one["value"], one["high"], strict=True)
        )
        assert "true_values" not in one


def test_products_of_what_is_shown_add_up_to_its_value() -> None:
    with a_ranker() as ranker:
        play(ranker, 100, seed=1)
        document = told(ranker)
    for i, now in enumerate(document["best_rankings"]):
        products = [
            document["positions"][i][k]["estimate"] * document["items"][i][item]["estimate"]
            for k, item in enumerate(now["ranking"])
        ]
        assert now["value"] == pytest.approx(sum(products))
        assert now["low"] <= now["value"] <= now["high"]
        assert (
            0
            <= now["probability_best"]["low"]
            <= now["probability_best"]["estimate"]
            <= now["probability_best"]["high"]
            <= 1
        )
        runner_up = now["runner_up"]
        assert runner_up["low"] <= runner_up["difference"] <= runner_up["high"]
        assert runner_up["difference"] <= 0
        assert runner_up["ranking"] != now["ranking"]


def test_under_equal_treatment_there_is_one_ranking_with_a_value_for_each_type() -> None:
    with a_ranker(a_surface(treatment="equal", utility="nash")) as ranker:
        play(ranker, 100, seed=1)
        (now,) = told(ranker)["best_rankings"]
    assert (
        len(now["value"]) == len(now["low"]) == len(now["high"]) == len(now["runner_up"]["by_user_type"]) == 2
    )
    assert (
        0
        <= now["probability_best"]["low"]
        <= now["probability_best"]["estimate"]
        <= now["probability_best"]["high"]
        <= 1
    )


def test_without_data_nothing_is_claimed() -> None:
    with a_ranker() as ranker:
        document = told(ranker, WORLD)
    assert (
        document["best_rankings"],
        document["latest_rankings"],
        document["treatments"],
        document["started_at"],
    ) == ([], [], [], None)
    nothing = {"visits": [0, 0], "clicks": [0, 0], "other_item": None, "other_order": None}
    assert document["last_hour"] == nothing
    assert document["arrival_rates"] == [0.5, 0.5]
    assert {row["high"] - row["low"] for rows in document["items"] for row in rows} == {1.0}


@pytest.mark.parametrize("treatment", ["personalized", "equal"])
def test_a_surface_with_one_type_and_one_item_is_told_of(treatment: str) -> None:
    surface = a_surface(items=["only"], user_types=["all"], n_positions=1, treatment=treatment)
    with a_ranker(surface) as ranker:
        play(ranker, 5, seed=1)
        (now,) = told(ranker)["best_rankings"]
    assert (now["ranking"], now["runner_up"], now["shown"]) == ([0], None, {"share": 1.0, "n_rankings": 5})
    assert now["probability_best"] == {"estimate": 1.0, "low": 1.0, "high": 1.0}  # there is no other


def test_rankings_without_any_click_are_no_reason_to_claim_a_price() -> None:
    with a_ranker(a_surface(treatment="equal", utility="nash")) as ranker:
        for _ in range(10):
            ranker.feedback(ranker.rank("new").id)
        document = told(ranker)
    assert document["treatments"][2]["price"] is None
    assert document["best_rankings"][0]["value"] == [0, 0]


def test_the_truth_is_told_in_a_demo() -> None:
    with a_ranker() as ranker:
        play(ranker, 30, seed=1)
        document = told(ranker, WORLD)
    assert document["has_true_values"]
    assert [[row["true_value"] for row in rows] for rows in document["items"]] == WORLD.item_means.tolist()
    assert [
        [row["true_value"] for row in rows] for rows in document["positions"]
    ] == WORLD.position_preferences.tolist()
    for one in document["treatments"]:
        rankings = one["rankings"] * 2 if len(one["rankings"]) == 1 else one["rankings"]
        values = [user_type_values(WORLD, ranking)[i] for i, ranking in enumerate(rankings)]
        assert one["true_values"] == pytest.approx(values)


def test_the_latest_rankings_are_told_with_what_became_of_them() -> None:
    with a_ranker() as ranker:
        shown = [ranker.rank("old") for _ in range(30)]
        ranker.feedback(shown[-1].id, clicked=shown[-1].items[1])
        ranker.feedback(shown[-2].id)
        recent = told(ranker)["latest_rankings"]
        assert [one["id"] for one in recent] == [one.id for one in reversed(shown[10:])]
        assert [ITEMS[number] for number in recent[0]["ranking"]] == list(shown[-1].items)
        assert {one["user_type"] for one in recent} == {1}
        assert [one["feedback"] for one in recent[:3]] == ["clicked", "none", "waiting"]
        assert ITEMS[recent[0]["clicked"]] == shown[-1].items[1]
        assert recent[1]["clicked"] is None


@pytest.mark.parametrize("unreported", ["discarded", "not-clicked"])
def test_feedback_that_did_not_come_is_not_said_to_be_none(unreported: str) -> None:
    clock = Clock()
    with a_ranker(a_surface(unreported=unreported, attribution_seconds=60.0), clock=clock) as ranker:
        ranker.rank("new")
        assert told(ranker)["latest_rankings"][0]["feedback"] == "waiting"
        clock.now += 60
        assert told(ranker)["latest_rankings"][0]["feedback"] == "unreported"


def test_what_was_shown_and_is_discarded_was_not_reported() -> None:
    clock = Clock()
    with a_ranker(a_surface(attribution_seconds=60.0), clock=clock) as ranker:
        shown = ranker.rank("new")
        store, number = ranker._engine.store, ranker._runtime.number
        wait_until(lambda: len(store.pending_impressions(number, since_ms=0, until_ms=10**13, limit=9)) == 1)
        ranker._engine.update_surface("home", lambda surface: replace(surface, unreported="discarded"))
        clock.now += 70
        wait_until(
            lambda: (
                store.outcome(number, ranker._engine.issued_ranking(shown.id)[1].impression.key) == DISCARDED
            )
        )
        assert told(ranker)["latest_rankings"][0]["feedback"] == "unreported"


def test_a_ranking_says_how_it_compares_with_the_best_of_its_time() -> None:
    with a_ranker(a_surface(n_positions=2, policy="random")) as ranker:
        wait_until(
            lambda: ranker._runtime.monitor.best is not None
        )  # nobody looks again before there is feedback
        ranker._runtime.monitor.best = ((0, 1), (2, 3))
        shown = {"new": [], "old": []}
        for number in range(20):
            kind = TYPES[number % 2]
            shown[kind].append(ranker.rank(kind))
        ranker._runtime.monitor.best = None
        recent = told(ranker)["latest_rankings"]
    reasons = Counter()
    for one in recent:
        best = [(0, 1), (2, 3)][one["user_type"]]
        same_items = set(one["ranking"]) == set(best)
        assert one["reason"] == (
            "best" if tuple(one["ranking"]) == best else "order" if same_items else "item"
        )
        assert one["explored_items"] == [item for item in one["ranking"] if item not in best]
        reasons[one["reason"]] += 1
    assert reasons["item"]


def test_shares_are_of_what_was_shown_to_a_type() -> None:
    with a_ranker(a_surface(policy="random")) as ranker:
        play(ranker, 40, seed=4)
        document = told(ranker)
        shown = ranker._runtime.monitor.shown.copy()
    rankings = Counter(tuple(np.frombuffer(one, dtype="<u2").tolist()) for one in shown)
    for i, now in enumerate(document["best_rankings"]):
        of_type = sum(number for ranking, number in rankings.items() if ranking[0] == i)
        assert now["shown"] == {"share": rankings[(i, *now["ranking"])] / of_type, "n_rankings": of_type}
    assert sum(now["shown"]["n_rankings"] for now in document["best_rankings"]) == 40


def test_a_store_that_is_down_leaves_feedback_open(monkeypatch: pytest.MonkeyPatch) -> None:
    store = FailingStore()
    with a_ranker(store=store) as ranker:
        shown = ranker.rank("new")
        ranker.feedback(shown.id)

        def down(*_: object) -> None:
            store.down = True
            store.fail_if_down()

        with monkeypatch.context() as patched:
            patched.setattr(store, "outcome", down)
            assert told(ranker)["latest_rankings"][0]["feedback"] == "waiting"
        store.down = False
        assert told(ranker)["latest_rankings"][0]["feedback"] == "none"


def test_the_series_tells_what_came() -> None:
    clock = Clock(999_999_960.0)
    with a_ranker(clock=clock) as ranker:
        play(ranker, 40, seed=1)
        live = ranker._runtime
        wait_until(lambda: live.monitor.best is not None)
        clock.now += 60
        play(ranker, 20, seed=2)
        clock.now += 121
        buckets, notes = live.series()
        plain = series_document(buckets, notes, n_user_types=2, with_regret=False)
        with_regret = series_document(buckets, notes, n_user_types=2, with_regret=True, first=1)
    assert (plain["start"], plain["bucket_seconds"]) == ("2001-09-09T01:46:00.000Z", 60.0)
    assert [sum(row) for row in plain["visits"]] == [40, 20, 0]
    assert "regret" not in plain
    assert plain["other_item"][1] is not None
    assert (plain["other_item"][2], plain["other_order"][2]) == (None, None)  # nobody came
    assert with_regret["start"] == "2001-09-09T01:47:00.000Z"
    assert with_regret["visits"] == plain["visits"][1:]
    assert len(with_regret["regret"]) == 2


def test_the_last_hour_goes_up_to_now_however_wide_buckets_are() -> None:
    clock = Clock(999_999_960.0)
    with a_ranker(clock=clock) as ranker:
        play(ranker, 5, seed=1)
        clock.now += 40 * 86400
        play(ranker, 30, seed=1)
        assert ranker._runtime.series()[0].width_ms > 3_600_000
        document = told(ranker)
        assert sum(document["last_hour"]["visits"]) == 30
        assert sum(document["last_hour"]["clicks"]) > 0
        assert document["started_at"] == "2001-09-09T01:46:00.000Z"
        clock.now += 3600
        assert sum(told(ranker)["last_hour"]["visits"]) == 0


def test_the_optimum_may_be_more_than_the_best_known_ranking_where_items_were_hardly_shown() -> None:
    surface = a_surface(user_types=["all"], n_positions=1)
    counts = np.zeros((1, 5, 1), dtype=np.int64), np.zeros((1, 5, 1))
    counts[0][0, :, 0], counts[1][0, :, 0] = [2000, 2000, 3, 3, 3], [400, 200, 0, 0, 0]
    for settings in ({}, {"treatment": "equal", "utility": "nash"}):
        assessed = assess(_known(replace(surface, **settings), Counts.from_arrays(*counts, [4009])))
        (value,), (optimum,) = assessed.treatments[assessed.current_treatment].values, assessed.optimal_values
        assert assessed.is_optimum_exact
        assert optimum.estimate == value.estimate == pytest.approx(0.2)
        assert value.high < 0.23
        assert optimum.high > 0.3  # one of the three may be far better
        assert optimum.low >= value.low


def test_without_telling_what_is_best_of_all_the_best_known_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditrank.dashboard.probability_best.MAX_ELEMENTS", 10)
    with a_ranker(a_surface(treatment="equal", utility="nash")) as ranker:
        play(ranker, 50, seed=1)
        document = told(ranker)
        true = told(ranker, WORLD)
    assert not document["is_optimum_exact"]
    assert document["best_rankings"][0]["probability_best"] is None
    assert [one["estimate"] for one in document["optimum"]] == document["treatments"][2]["value"]
    assert true["is_optimum_exact"]


def test_the_true_optimum_has_no_interval() -> None:
    with a_ranker() as ranker:
        play(ranker, 30, seed=1)
        document = told(ranker, WORLD)
    best = [0.9 * 0.7 + 0.5 * 0.3, 0.8 * 0.6 + 0.4 * 0.4]
    for end in ("low", "estimate", "high"):
        assert [one[end] for one in document["optimum"]] == pytest.approx(best)
    assert document["random"] == pytest.approx([0.4, 0.36])


def _known(surface: Surface, counts: Counts) -> SurfaceCounts:
    return SurfaceCounts(surface, 1, 1, counts)


@pytest.mark.parametrize(("displays", "is_told"), [(20_000, True), (30, False)])
def test_what_comes_next_is_told_apart_in_the_utility_and_not_in_clicks(
    displays: int,
    is_told: bool,  # noqa: FBT001
) -> None:
    """The fair item brings both types 0.4; the other 0.9 and 0.05: more clicks, and less Nash value."""
    surface = Surface(
        "home", items=["fair", "loved"], n_positions=1, user_types=TYPES, treatment="equal", utility="nash"
    )
    rates = np.array([[[0.4], [0.9]], [[0.4], [0.05]]])
    shown = np.full((2, 2, 1), displays)
    assessed = assess(_known(surface, Counts.from_arrays(shown, shown * rates, [2 * displays] * 2)))
    (choice,) = assessed.best_rankings
    assert choice.ranking.tolist() == [0]
    assert choice.runner_up.delta_by_user_type == pytest.approx([0.5, -0.35], abs=0.02)
    assert choice.runner_up.delta.estimate == pytest.approx(np.log([0.9 / 0.4, 0.05 / 0.4]).mean(), abs=0.1)
    assert (choice.runner_up.delta.high < 0) == is_told
    assert choice.runner_up.delta.low < 0


@pytest.mark.parametrize("utility", ["nash", "alpha:1000", "maximin"])
def test_a_type_that_gets_nothing_does_not_make_differences_endless(utility: str) -> None:
    surface = a_surface(treatment="equal", utility=utility)
    counts = Counts.from_arrays(np.full((2, 5, 2), 10), np.zeros((2, 5, 2)), [50, 50])
    (choice,) = assess(_known(surface, counts)).best_rankings
    assert np.isfinite(choice.runner_up.delta).all()


def test_whoever_has_narrower_buckets_is_told_all() -> None:
    clock = Clock(999_999_960.0)
    with a_ranker(clock=clock) as ranker:
        play(ranker, 1, seed=1)
        clock.now += 601
        start = 999_999_960.0
        buckets, _ = ranker._runtime.series()
        wanted = [
            first_bucket_since(buckets, since) for since in (None, 0, start, start + 60, start + 61, 2e9)
        ]
        assert wanted == [0, 0, 0, 1, 2, 10]
        clock.now += 60 * 240
        play(ranker, 1, seed=1)
        buckets, _ = ranker._runtime.series()
        assert buckets.width_ms == 120_000
        assert first_bucket_since(buckets, start + 120 * 120) == 0
        assert first_bucket_since(buckets, start + 122 * 120) == 122


def test_types_that_were_added_are_in_the_series() -> None:
    clock = Clock(999_999_960.0)
    with a_ranker(clock=clock) as ranker:
        play(ranker, 5, seed=1)
        clock.now += 61
        types = (*TYPES, "late")
        ranker._engine.update_surface(
            "home", lambda surface: surface.from_dict(surface.to_dict() | {"user_types": types})
        )
        document = series_document(*ranker._runtime.series(), n_user_types=3, with_regret=False)
        assert told(ranker)["last_hour"]["visits"] == [*document["visits"][0][:2], 0]
    assert [len(row) for row in document["visits"] + document["clicks"]] == [3, 3]
    assert document["visits"][0][2] == 0
