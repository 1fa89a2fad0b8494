"""Documents of the dashboard: they agree with the reports, and claim nothing without data."""

import json
from collections import Counter
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
import numpy as np
import pytest
from helpers.live import (
    ITEMS,
    TYPES,
    Clock,
    FailingStore,
    MonitoredRanker,
    a_monitored_ranker,
    a_surface,
    play,
    wait_until,
)

from banditrank import Counts, Problem, user_type_values
from banditrank.dashboard._assessment import assess
from banditrank.dashboard._document_schemas import DashboardDocument
from banditrank.dashboard._documents import (
    UNKNOWN_ESTIMATES,
    Compiling,
    counts_document,
    estimates_basis,
    estimates_document,
    first_bucket_since,
    series_document,
)
from banditrank.dashboard._recent_impressions import RecentImpressions
from banditrank.dashboard._surface_problem import SurfaceProblem
from banditrank.engine import Arm, SurfaceExperiment
from banditrank.engine._counts_replica import SurfaceCounts
from banditrank.engine._observers import IssuedImpression
from banditrank.engine._surface import Surface
from banditrank.storage._records import DISCARDED

PROBLEM = Problem(
    [0.5, 0.5],
    [[0.7, 0.3], [0.4, 0.6]],
    [[0.9, 0.5, 0.1, 0.2, 0.3], [0.2, 0.3, 0.8, 0.4, 0.1]],
    user_types=TYPES,
    items=ITEMS,
)


def document_of(ranker: MonitoredRanker, problem: Problem | None = None) -> dict[str, Any]:
    """Return the dashboard's document, with the latest estimates."""
    runtime, monitor = ranker._runtime, ranker.monitor
    assessment, recent, now = assess(runtime.counts()), RecentImpressions(monitor), ranker._engine.now()
    counts = counts_document(
        runtime,
        recent,
        monitor.last_hour(),
        [],
        now=now,
        has_true_values=problem is not None,
        estimated_from=estimates_basis(assessment, now),
    )
    known = None if problem is None else SurfaceProblem(problem, runtime.surface)
    return checked({**counts, **estimates_document(assessment, known, recent)})


def checked(document: dict[str, Any]) -> dict[str, Any]:
    """Return a dashboard's document after a round trip through JSON, validated by its schema."""
    json.dumps(document, allow_nan=False)
    decoded = msgspec.json.decode(msgspec.json.encode(document))
    assert msgspec.convert(decoded, DashboardDocument) == decoded
    return decoded


@pytest.mark.parametrize(
    "settings", [{}, {"treatment": "equal", "utility": "nash"}, {"treatment": "equal"}], ids=str
)
def test_values_are_those_of_the_reports(settings: dict[str, Any]) -> None:
    with a_monitored_ranker(a_surface(**settings)) as ranker:
        play(ranker, 120, seed=1)
        ranker.retire_items(["b"])
        document, estimates, equality = document_of(ranker), ranker.estimates(), ranker.equality()
        counts = ranker._runtime.counts().counts
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


def test_the_value_of_a_ranking_is_the_sum_over_its_items() -> None:
    with a_monitored_ranker() as ranker:
        play(ranker, 100, seed=1)
        document = document_of(ranker)
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
        assert 0 <= now["loss"]["low"] <= now["loss"]["estimate"] <= now["loss"]["high"] <= 1
        runner_up = now["runner_up"]
        assert runner_up["low"] <= runner_up["difference"] <= runner_up["high"]
        assert runner_up["difference"] <= 0
        assert runner_up["ranking"] != now["ranking"]


def test_under_equal_treatment_one_ranking_has_a_value_for_each_user_type() -> None:
    with a_monitored_ranker(a_surface(treatment="equal", utility="nash")) as ranker:
        play(ranker, 100, seed=1)
        (now,) = document_of(ranker)["best_rankings"]
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
    with a_monitored_ranker() as ranker:
        document = document_of(ranker, PROBLEM)
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
def test_a_surface_may_have_one_user_type_and_one_item(treatment: str) -> None:
    surface = a_surface(items=["only"], user_types=["all"], n_positions=1, treatment=treatment)
    with a_monitored_ranker(surface) as ranker:
        play(ranker, 5, seed=1)
        (now,) = document_of(ranker)["best_rankings"]
    assert (now["ranking"], now["runner_up"], now["shown"]) == ([0], None, {"share": 1.0, "n_rankings": 5})
    assert now["probability_best"] == {"estimate": 1.0, "low": 1.0, "high": 1.0}  # there is no other ranking
    assert now["loss"] == {"estimate": 0.0, "low": 0.0, "high": 0.0}


@pytest.mark.parametrize(
    "settings", [{}, {"treatment": "equal"}, {"treatment": "equal", "utility": "nash"}], ids=str
)
def test_little_is_lost_where_alternatives_hardly_differ(settings: dict[str, Any]) -> None:
    """Equal click rates of all items in 80,000 displays: the best ranking is unknown, and does not matter."""
    surface = a_surface(**settings)
    displays = np.full((2, 5, 2), 16_000)
    counts = Counts.from_arrays(displays, displays // 4, [80_000, 80_000])
    alike = assess(SurfaceCounts(surface, 1, 7, counts))
    for best in alike.best_rankings:
        assert best.probability_best.estimate < 0.3
        assert 0 <= best.loss.low < best.loss.estimate < best.loss.high < 0.02  # of 0.5 clicks per visit
    rewards = displays // 4
    rewards[:, 0, :] = displays[:, 0, :] // 8 * 3
    rewards[:, 1, :] = displays[:, 1, :] // 16 * 5
    rewards[:, :, 0] += displays[:, :, 0] // 32
    apart = assess(SurfaceCounts(surface, 1, 7, Counts.from_arrays(displays, rewards, [80_000, 80_000])))
    for best in apart.best_rankings:
        assert best.ranking.tolist() == [0, 1]
        assert (best.probability_best.estimate, best.loss) == (1.0, (0.0, 0.0, 0.0))


def test_without_clicks_there_is_no_price_of_equality() -> None:
    with a_monitored_ranker(a_surface(treatment="equal", utility="nash")) as ranker:
        for _ in range(10):
            ranker.feedback(ranker.rank("new").id)
        document = document_of(ranker)
    assert document["treatments"][2]["price"] is None
    assert document["best_rankings"][0]["value"] == [0, 0]


def test_the_document_of_simulated_users_has_the_problem() -> None:
    with a_monitored_ranker() as ranker:
        play(ranker, 30, seed=1)
        document = document_of(ranker, PROBLEM)
    assert document["has_true_values"]
    assert [[row["true_value"] for row in rows] for rows in document["items"]] == PROBLEM.item_means.tolist()
    assert [
        [row["true_value"] for row in rows] for rows in document["positions"]
    ] == PROBLEM.position_preferences.tolist()
    for one in document["treatments"]:
        rankings = one["rankings"] * 2 if len(one["rankings"]) == 1 else one["rankings"]
        values = [user_type_values(PROBLEM, ranking)[i] for i, ranking in enumerate(rankings)]
        assert one["true_values"] == pytest.approx(values)


def test_the_latest_impressions_have_their_outcomes() -> None:
    with a_monitored_ranker() as ranker:
        shown = [ranker.rank("old") for _ in range(30)]
        ranker.feedback(shown[-1].id, clicked=shown[-1].items[1])
        ranker.feedback(shown[-2].id)
        recent = document_of(ranker)["latest_rankings"]
        assert [one["id"] for one in recent] == [one.id for one in reversed(shown[10:])]
        assert [ITEMS[number] for number in recent[0]["ranking"]] == list(shown[-1].items)
        assert {one["user_type"] for one in recent} == {1}
        assert [one["feedback"] for one in recent[:3]] == ["clicked", "not-clicked", "pending"]
        assert [ITEMS[number] for number in recent[0]["clicked"]] == [shown[-1].items[1]]
        assert recent[1]["clicked"] == []


@pytest.mark.parametrize("unreported", ["discarded", "not-clicked"])
def test_an_impression_without_feedback_is_unreported_after_its_window(unreported: str) -> None:
    clock = Clock()
    with a_monitored_ranker(
        a_surface(unreported=unreported, attribution_seconds=60.0), clock=clock
    ) as ranker:
        ranker.rank("new")
        assert document_of(ranker)["latest_rankings"][0]["feedback"] == "pending"
        clock.now += 60
        assert document_of(ranker)["latest_rankings"][0]["feedback"] == "unreported"


def test_a_discarded_impression_is_unreported() -> None:
    clock = Clock()
    with a_monitored_ranker(a_surface(attribution_seconds=60.0), clock=clock) as ranker:
        shown = ranker.rank("new")
        store, surface_id = ranker._engine.store, ranker._runtime.surface_id
        wait_until(
            lambda: len(store.pending_impressions(surface_id, since_ms=0, until_ms=10**13, limit=9)) == 1
        )
        ranker._engine.update_surface("home", lambda surface: replace(surface, unreported="discarded"))
        clock.now += 70
        wait_until(
            lambda: (
                store.outcome(surface_id, ranker._engine.issued_ranking(shown.id)[1].impression.key)
                == DISCARDED
            )
        )
        assert document_of(ranker)["latest_rankings"][0]["feedback"] == "unreported"


def test_an_impression_is_compared_with_the_best_ranking_of_its_time() -> None:
    with a_monitored_ranker(a_surface(n_positions=2, policy="random")) as ranker:
        wait_until(
            lambda: ranker.monitor.best is not None
        )  # it changes with the next feedback at the earliest
        ranker.monitor.best = ((0, 1), (2, 3))
        shown = {"new": [], "old": []}
        for number in range(20):
            kind = TYPES[number % 2]
            shown[kind].append(ranker.rank(kind))
        ranker.monitor.best = None
        recent = document_of(ranker)["latest_rankings"]
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


def test_an_impression_is_not_compared_with_a_ranking_that_is_not_known() -> None:
    """Finding 13: an impression from before the best rankings are known has no reason."""
    with a_monitored_ranker() as ranker:
        ranker.monitor.best = None
        ranker.monitor.on_rankings([issued(ranker)], issued_at=1e9)
        latest = document_of(ranker)["latest_rankings"][0]
    assert (latest["reason"], latest["explored_items"]) == (None, [])


def issued(ranker: MonitoredRanker) -> IssuedImpression:
    shown = ranker.rank("new")
    return IssuedImpression(shown.id, ranker._engine.issued_ranking(shown.id)[1].impression)


def test_counts_are_known_before_estimates() -> None:
    """Finding 13: a document without estimates has the latest counts; the estimates are null, not 0."""
    clock = Clock()
    with a_monitored_ranker(a_surface(), clock=clock) as ranker:
        play(ranker, 5, seed=3)
        runtime, monitor = ranker._runtime, ranker.monitor
        recent, old = RecentImpressions(monitor), assess(runtime.counts())
        started_at = clock.now
        play(ranker, 30, seed=4)
        clock.now += 39.0
        counts = counts_document(
            *(runtime, recent, monitor.last_hour(), []),
            now=clock.now,
            compiling=Compiling("this-surface", 38.96),
        )
        document = checked({**counts, **UNKNOWN_ESTIMATES})
        later = counts_document(
            *(runtime, recent, monitor.last_hour(), []),
            now=clock.now,
            estimated_from=estimates_basis(old, started_at),
        )
        late = checked({**later, **estimates_document(old, None, recent)})
    assert (document["rounds"], document["version"]) == (35, 35)
    assert sum(document["last_hour"]["visits"]) == 35
    assert len(document["latest_rankings"]) == 20
    assert (document["compiling"], document["compiling_seconds"]) == ("this-surface", 39.0)
    assert document["estimated_from"] is None
    assert {document[name] for name in UNKNOWN_ESTIMATES} == {None}
    assert (late["rounds"], late["version"], late["compiling_seconds"]) == (35, 35, None)
    assert (late["estimated_from"]["rounds"], late["estimated_from"]["version"]) == (5, 5)
    age = datetime.fromisoformat(late["as_of"]) - datetime.fromisoformat(late["estimated_from"]["at"])
    assert age.total_seconds() == pytest.approx(39.0, abs=0.002)
    assert sum(each["clicks"] for row in late["items"] for each in row) <= 5


def test_shares_are_of_the_impressions_of_a_user_type() -> None:
    with a_monitored_ranker(a_surface(policy="random")) as ranker:
        play(ranker, 40, seed=4)
        document = document_of(ranker)
        shown = ranker.monitor.recent_rankings.copy()
    rankings = Counter(tuple(np.frombuffer(one, dtype="<u2").tolist()) for one in shown)
    for i, now in enumerate(document["best_rankings"]):
        of_type = sum(number for ranking, number in rankings.items() if ranking[0] == i)
        assert now["shown"] == {"share": rankings[(i, *now["ranking"])] / of_type, "n_rankings": of_type}
    assert sum(now["shown"]["n_rankings"] for now in document["best_rankings"]) == 40


def test_feedback_is_awaited_while_the_store_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    store = FailingStore()
    with a_monitored_ranker(store=store) as ranker:
        shown = ranker.rank("new")
        ranker.feedback(shown.id)

        def down(*_: object) -> None:
            store.down = True
            store.fail_if_down()

        with monkeypatch.context() as patched:
            patched.setattr(store, "outcome", down)
            assert document_of(ranker)["latest_rankings"][0]["feedback"] == "pending"
        store.down = False
        assert document_of(ranker)["latest_rankings"][0]["feedback"] == "not-clicked"


def test_the_series_document_has_the_closed_buckets() -> None:
    clock = Clock(999_999_960.0)
    with a_monitored_ranker(clock=clock) as ranker:
        play(ranker, 40, seed=1)
        wait_until(lambda: ranker.monitor.best is not None)
        clock.now += 60
        play(ranker, 20, seed=2)
        clock.now += 121
        buckets, annotations = ranker.monitor.series()
        plain = series_document(buckets, annotations, n_user_types=2, with_regret=False)
        with_regret = series_document(buckets, annotations, n_user_types=2, with_regret=True, first=1)
    assert (plain["start"], plain["bucket_seconds"]) == ("2001-09-09T01:46:00.000Z", 60.0)
    assert [sum(row) for row in plain["visits"]] == [40, 20, 0]
    assert "regret" not in plain
    assert plain["other_item"][1] is not None
    assert (plain["other_item"][2], plain["other_order"][2]) == (None, None)  # no visits
    assert with_regret["start"] == "2001-09-09T01:47:00.000Z"
    assert with_regret["visits"] == plain["visits"][1:]
    assert len(with_regret["regret"]) == 2


def test_the_last_hour_ends_now_however_wide_buckets_are() -> None:
    clock = Clock(999_999_960.0)
    with a_monitored_ranker(clock=clock) as ranker:
        play(ranker, 5, seed=1)
        clock.now += 40 * 86400
        play(ranker, 30, seed=1)
        assert ranker.monitor.series()[0].width_ms > 3_600_000
        document = document_of(ranker)
        assert sum(document["last_hour"]["visits"]) == 30
        assert sum(document["last_hour"]["clicks"]) > 0
        assert document["started_at"] == "2001-09-09T01:46:00.000Z"
        clock.now += 3600
        assert sum(document_of(ranker)["last_hour"]["visits"]) == 0


def test_the_optimum_may_exceed_the_best_ranking_if_items_were_hardly_shown() -> None:
    surface = a_surface(user_types=["all"], n_positions=1)
    counts = np.zeros((1, 5, 1), dtype=np.int64), np.zeros((1, 5, 1))
    counts[0][0, :, 0], counts[1][0, :, 0] = [2000, 2000, 3, 3, 3], [400, 200, 0, 0, 0]
    for settings in ({}, {"treatment": "equal", "utility": "nash"}):
        assessed = assess(_surface_counts(replace(surface, **settings), Counts.from_arrays(*counts, [4009])))
        (value,), (optimum,) = assessed.treatments[assessed.current_treatment].values, assessed.optimal_values
        assert assessed.is_optimum_exact
        assert optimum.estimate == value.estimate == pytest.approx(0.2)
        assert value.high < 0.23
        assert optimum.high > 0.3  # one of the three may be far better
        assert optimum.low >= value.low


def test_the_optimum_is_the_best_ranking_if_sampling_it_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("banditrank.dashboard._probability_best.MAX_ELEMENTS", 10)
    with a_monitored_ranker(a_surface(treatment="equal", utility="nash")) as ranker:
        play(ranker, 50, seed=1)
        document = document_of(ranker)
        simulated = document_of(ranker, PROBLEM)
    assert not document["is_optimum_exact"]
    assert document["best_rankings"][0]["probability_best"] is None
    assert document["best_rankings"][0]["loss"] is None
    assert [one["estimate"] for one in document["optimum"]] == document["treatments"][2]["value"]
    assert simulated["is_optimum_exact"]


def test_the_optimum_of_a_known_problem_has_no_interval() -> None:
    with a_monitored_ranker() as ranker:
        play(ranker, 30, seed=1)
        document = document_of(ranker, PROBLEM)
    best = [0.9 * 0.7 + 0.5 * 0.3, 0.8 * 0.6 + 0.4 * 0.4]
    for end in ("low", "estimate", "high"):
        assert [one[end] for one in document["optimum"]] == pytest.approx(best)
    assert document["random"] == pytest.approx([0.4, 0.36])


def _surface_counts(surface: Surface, counts: Counts) -> SurfaceCounts:
    return SurfaceCounts(surface, 1, 1, counts)


@pytest.mark.parametrize(("displays", "is_significant"), [(20_000, True), (30, False)])
def test_the_runner_up_is_compared_by_the_utility_and_not_by_clicks(
    displays: int,
    is_significant: bool,  # noqa: FBT001
) -> None:
    """The fair item brings both types 0.4; the other 0.9 and 0.05: more clicks, and less Nash value."""
    surface = Surface(
        "home", items=["fair", "loved"], n_positions=1, user_types=TYPES, treatment="equal", utility="nash"
    )
    rates = np.array([[[0.4], [0.9]], [[0.4], [0.05]]])
    shown = np.full((2, 2, 1), displays)
    assessed = assess(_surface_counts(surface, Counts.from_arrays(shown, shown * rates, [2 * displays] * 2)))
    (choice,) = assessed.best_rankings
    assert choice.ranking.tolist() == [0]
    assert choice.runner_up.difference_by_user_type == pytest.approx([0.5, -0.35], abs=0.02)
    assert choice.runner_up.difference.estimate == pytest.approx(
        np.log([0.9 / 0.4, 0.05 / 0.4]).mean(), abs=0.1
    )
    assert (choice.runner_up.difference.high < 0) == is_significant
    assert choice.runner_up.difference.low < 0


@pytest.mark.parametrize("utility", ["nash", "alpha:1000", "maximin"])
def test_differences_are_finite_if_a_user_type_gets_nothing(utility: str) -> None:
    surface = a_surface(treatment="equal", utility=utility)
    counts = Counts.from_arrays(np.full((2, 5, 2), 10), np.zeros((2, 5, 2)), [50, 50])
    (choice,) = assess(_surface_counts(surface, counts)).best_rankings
    assert np.isfinite(choice.runner_up.difference).all()


def test_a_reader_with_narrower_buckets_gets_all_buckets() -> None:
    clock = Clock(999_999_960.0)
    with a_monitored_ranker(clock=clock) as ranker:
        play(ranker, 1, seed=1)
        clock.now += 601
        start = 999_999_960.0
        buckets, _ = ranker.monitor.series()
        first = [
            first_bucket_since(buckets, since) for since in (None, 0, start, start + 60, start + 61, 2e9)
        ]
        assert first == [0, 0, 0, 1, 2, 10]
        clock.now += 60 * 240
        play(ranker, 1, seed=1)
        buckets, _ = ranker.monitor.series()
        assert buckets.width_ms == 120_000
        assert first_bucket_since(buckets, start + 120 * 120) == 0
        assert first_bucket_since(buckets, start + 122 * 120) == 122


def test_added_user_types_are_in_the_series() -> None:
    clock = Clock(999_999_960.0)
    with a_monitored_ranker(clock=clock) as ranker:
        play(ranker, 5, seed=1)
        clock.now += 61
        types = (*TYPES, "late")
        ranker._engine.update_surface(
            "home", lambda surface: surface.from_dict(surface.to_dict() | {"user_types": types})
        )
        document = series_document(*ranker.monitor.series(), n_user_types=3, with_regret=False)
        assert document_of(ranker)["last_hour"]["visits"] == [*document["visits"][0][:2], 0]
    assert [len(row) for row in document["visits"] + document["clicks"]] == [3, 3]
    assert document["visits"][0][2] == 0


def test_the_latest_impressions_have_their_arms() -> None:
    experiment = SurfaceExperiment("autumn", [Arm("hold-out", 0.5)])
    with a_monitored_ranker(a_surface(experiment=experiment)) as ranker:
        shown = ranker.rank_batch(["new"] * 20)
        for one in shown:
            ranker.feedback(one.id)
        document = document_of(ranker)
        recent = document["latest_rankings"]
        assert [one["arm"] for one in recent] == [one.arm for one in reversed(shown)]
        assert {one["arm"] for one in recent} == {"policy", "hold-out"}
        assert document["surface"]["experiment"] == "autumn"
        assert document["rounds"] == 20, "the visits of all arms"
        assert sum(document["last_hour"]["visits"]) == 20
