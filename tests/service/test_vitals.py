"""Whether all is well is told by limits, and how it was is remembered for an hour."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from helpers.live import Clock, a_surface, wait_until

from banditrank.engine.engine import Engine
from banditrank.engine.surface import Surface
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.errors import UnknownNameError
from banditrank.service import vitals
from banditrank.service.metrics import Metrics
from banditrank.service.vitals import Vitals
from banditrank.storage.memory import MemoryStore


def a_surface_named(name: str) -> Surface:
    return Surface(name, items=["a", "b"], n_positions=1)


@dataclass
class Watched:
    """A surface at work, and clocks that are set by hand."""

    engine: Engine
    metrics: Metrics
    vitals: Vitals
    now: Clock
    monotonic: list[float] = field(default_factory=lambda: [1000.0])

    def told(self) -> dict[str, dict[str, Any]]:
        return {check["n"]: check for check in self.vitals.checks(self.engine.surface("home"))}

    def surface(self, **settings: Any) -> SurfaceRuntime:
        """Return the surface with other settings."""
        self.engine.delete("home")
        return self.engine.create(a_surface(**settings))

    def pass_minutes(self, number: int) -> None:
        for _ in range(12 * number):
            self.vitals.sample()
            self.monotonic[0] += 5.0


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    now = Clock()
    engine = Engine(MemoryStore(), sync_seconds=60.0, clock=now)
    begun = engine.last_sync
    wait_until(lambda: engine.last_sync != begun)  # it is not read again for a minute
    engine.create(a_surface())
    metrics = Metrics(engine)
    made = Watched(engine, metrics, Vitals(engine, metrics), now)

    class Steady:
        @staticmethod
        def monotonic() -> float:
            return made.monotonic[0]

    monkeypatch.setattr(vitals, "time", Steady)
    engine._sync_loop.last_sync = 1000.0
    yield made
    engine.close()


def test_all_is_well_at_the_beginning(watched: Watched) -> None:
    told = watched.told()
    assert {check["s"] for check in told.values()} == {"ok"}
    assert all(check["v"] and check["d"] and check["l"] for check in told.values())
    assert [told[name]["l"] for name in ("Dropped", "Failed", "Commits")] == ["0", "0", "no limit"]


@pytest.mark.parametrize(("seconds", "status"), [(1000, "ok"), (1300, "warn"), (9000, "bad")])
def test_a_store_that_is_not_read_is_told(watched: Watched, seconds: float, status: str) -> None:
    watched.monotonic[0] += seconds
    check = watched.told()["Store"]
    assert (check["v"], check["l"], check["s"]) == (f"{seconds:,} s", "1,200 s", status)


@pytest.mark.parametrize(
    ("requests", "check", "value", "status"),
    [
        ([("rank", 200, 0.004)] * 99 + [("rank", 200, 0.3)], "Answers", "within 5 ms", "ok"),
        ([("rank", 200, 0.004)] * 90 + [("feedback", 200, 0.3)] * 10, "Answers", "within 500 ms", "warn"),
        ([("feedback", 200, 9.0)], "Answers", "within 5000 ms", "bad"),
        ([("dashboard", 200, 9.0)], "Answers", "none", "ok"),
        ([("feedback", 200, 0.001)] * 95 + [("feedback", 409, 0.001)] * 5, "Refused", "5.0%", "warn"),
        ([("feedback", 404, 0.001)], "Refused", "100.0%", "bad"),
        ([("surfaces", 404, 0.001)], "Refused", "0.0%", "ok"),
        ([("readiness", 503, 0.001)], "Failed", "1", "warn"),
        ([("rank", 500, 0.001)] * 11, "Failed", "11", "bad"),
    ],
)
def test_requests_of_the_last_minute_are_told(
    watched: Watched, requests: list[tuple[str, int, float]], check: str, value: str, status: str
) -> None:
    watched.pass_minutes(2)
    for request in requests:
        watched.metrics.request(*request)
    assert (watched.told()[check]["v"], watched.told()[check]["s"]) == (value, status)
    watched.pass_minutes(2)
    assert watched.told()[check]["s"] == "ok"  # it is over
    assert max(watched.told()[check]["hour"], default=0.0) > 0 or value in ("none", "0.0%")


def test_what_is_not_noted_is_told(watched: Watched) -> None:
    watched.pass_minutes(1)
    watched.engine.committer.dropped += 3
    assert (watched.told()["Dropped"]["v"], watched.told()["Dropped"]["s"]) == ("3", "bad")


@pytest.mark.parametrize("unreported", ["not-clicked", "discarded"])
def test_rankings_without_feedback_are_told_whatever_becomes_of_them(
    watched: Watched, unreported: str
) -> None:
    live = watched.surface(unreported=unreported, attribution_seconds=600.0)
    shown = [live.rank("new").id for _ in range(40)]
    watched.now.now += 30
    for ranking in shown[:30]:
        assert watched.engine.feedback(ranking) == "counted"
        assert watched.engine.feedback(ranking) == "repeated"  # and is not counted again
    with pytest.raises(UnknownNameError):
        watched.engine.feedback(shown[30], clicked="nothing")
    watched.pass_minutes(1)
    told = watched.told()
    assert (told["Unreported"]["v"], told["Unreported"]["s"]) == ("none", "ok")  # nobody knows yet
    assert (told["Pending"]["v"], told["Pending"]["d"]) == (
        "10",
        "rankings wait for feedback, the oldest for 31 s",
    )  # to about a second
    assert (told["Feedback delay"]["v"], told["Feedback delay"]["l"]) == ("30 s", "8 min")
    watched.now.now += 600
    wait_until(lambda: live.watch.feedback_tracker.closed == 40)
    told = watched.told()
    assert (told["Unreported"]["v"], told["Unreported"]["s"]) == ("25.0%", "warn")
    assert told["Unreported"]["hour"][-1] == 0.25
    assert told["Pending"]["v"] == "0"
    watched.pass_minutes(2)
    assert (watched.told()["Unreported"]["v"], watched.told()["Unreported"]["s"]) == ("none", "ok")


def test_feedback_that_nearly_comes_too_late_is_told(watched: Watched) -> None:
    live = watched.surface(attribution_seconds=600.0)
    shown = [live.rank("new").id for _ in range(100)]
    for ranking in shown[:90]:
        watched.engine.feedback(ranking)
    watched.now.now += 500
    for ranking in shown[90:]:
        watched.engine.feedback(ranking)
    check = watched.told()["Feedback delay"]
    assert (check["v"], check["s"]) == ("8 min", "warn")
    assert check["d"].endswith("half of it within 0 s")


def test_nothing_is_said_of_feedback_that_may_have_come_to_another_process(watched: Watched) -> None:
    live = watched.surface()
    ranking = live.rank("new").id
    assert watched.told().keys() >= {"Pending", "Unreported"}
    with closing(Engine(watched.engine.store, clock=watched.now)) as other:
        other.feedback(ranking)
    live.catch_up(1)
    assert watched.told().keys().isdisjoint({"Pending", "Unreported"})


def test_an_hour_is_remembered_and_no_more(watched: Watched) -> None:
    watched.pass_minutes(1)
    assert len(watched.told()["Commits"]["hour"]) == 12  # from the beginning it can be seen how it goes
    watched.pass_minutes(199)
    (history,) = watched.vitals._histories.values()
    assert 55 * 60 <= history.readings[-1].at - history.readings[0].at <= 65 * 60
    assert all(len(check["hour"]) == 60 for check in watched.told().values())
    watched.engine.committer.groups += 120
    watched.monotonic[0] += 60 - (watched.monotonic[0] - history.readings[-1].at)
    told = watched.told()
    assert told["Commits"]["hour"][-1] == pytest.approx(2.0)
    assert told["Commits"]["v"] == "2.0 a second"
    watched.engine.delete("home")
    watched.vitals.sample()
    assert not watched.vitals._histories


def test_a_surface_that_is_new_is_measured_from_when_somebody_first_looks(watched: Watched) -> None:
    watched.vitals.sample()
    watched.engine.create(a_surface_named("late"))
    live = watched.engine.surface("late")
    watched.vitals.checks(live)
    watched.monotonic[0] += 10.0
    watched.engine.committer.groups += 50
    told = {check["n"]: check for check in watched.vitals.checks(live)}
    assert told["Commits"]["v"] == "5.0 a second"
