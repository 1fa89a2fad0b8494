"""Whether all is well is told by limits, and how it was is remembered for an hour."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from live import a_surface, wait_until

from banditrank.engine.engine import Engine
from banditrank.engine.surface import Surface
from banditrank.service import vitals
from banditrank.service.metrics import Metrics
from banditrank.service.vitals import Vitals
from banditrank.storage.memory import MemoryStore


def a_surface_named(name: str) -> Surface:
    return Surface(name, items=["a", "b"], n_positions=1)


@dataclass
class Watched:
    """A surface at work, and a clock that is set by hand."""

    engine: Engine
    metrics: Metrics
    vitals: Vitals
    monotonic: list[float] = field(default_factory=lambda: [1000.0])

    def told(self) -> dict[str, dict[str, Any]]:
        return {check["n"]: check for check in self.vitals.checks(self.engine.surface("home"))}

    def pass_minutes(self, number: int) -> None:
        for _ in range(12 * number):
            self.vitals.sample()
            self.monotonic[0] += 5.0


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    engine = Engine(MemoryStore(), sync_seconds=60.0)
    begun = engine.last_sync
    wait_until(lambda: engine.last_sync != begun)  # it is not read again for a minute
    engine.create(a_surface())
    metrics = Metrics(engine)
    made = Watched(engine, metrics, Vitals(engine, metrics))

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return made.monotonic[0]

    monkeypatch.setattr(vitals, "time", Clock)
    engine.last_sync = 1000.0
    yield made
    engine.close()


def test_all_is_well_at_the_beginning(watched: Watched) -> None:
    told = watched.told()
    assert {check["s"] for check in told.values()} == {"ok"}
    assert all(check["v"] and check["d"] and check["l"] for check in told.values())


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


def test_rankings_without_feedback_and_what_is_not_noted_are_told(watched: Watched) -> None:
    live = watched.engine.surface("home")
    watched.pass_minutes(1)
    live.watch.reported += 80
    live.watch.unreported += 20
    watched.engine.journal.dropped += 3
    told = watched.told()
    assert (told["Unreported"]["v"], told["Unreported"]["s"]) == ("20.0%", "warn")
    assert (told["Dropped"]["v"], told["Dropped"]["s"]) == ("3", "bad")


def test_an_hour_is_remembered_and_no_more(watched: Watched) -> None:
    watched.pass_minutes(1)
    assert len(watched.told()["Commits"]["hour"]) == 12  # from the beginning it can be seen how it goes
    watched.pass_minutes(199)
    (history,) = watched.vitals._histories.values()
    assert 55 * 60 <= history.readings[-1].at - history.readings[0].at <= 65 * 60
    assert all(len(check["hour"]) == 60 for check in watched.told().values())
    watched.engine.journal.groups += 120
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
    watched.engine.journal.groups += 50
    told = {check["n"]: check for check in watched.vitals.checks(live)}
    assert told["Commits"]["v"] == "5.0 a second"
