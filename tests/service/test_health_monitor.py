"""Health checks and their history."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from helpers.live import Clock, a_surface, wait_until

from banditrank.engine._engine import Engine
from banditrank.engine._surface import Surface
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.errors import UnknownNameError
from banditrank.service import _health_monitor as health_monitor
from banditrank.service._health_monitor import HealthMonitor
from banditrank.service._metrics import Metrics
from banditrank.storage._memory import MemoryStore


def a_surface_named(name: str) -> Surface:
    return Surface(name, items=["a", "b"], n_positions=1)


@dataclass
class Monitored:
    """A monitored surface with manual clocks."""

    engine: Engine
    metrics: Metrics
    health_monitor: HealthMonitor
    now: Clock
    monotonic: list[float] = field(default_factory=lambda: [1000.0])

    def checks(self) -> dict[str, dict[str, Any]]:
        return {check["name"]: check for check in self.health_monitor.checks(self.engine.surface("home"))}

    def surface(self, **settings: Any) -> SurfaceRuntime:
        """Return the surface with other settings."""
        self.engine.delete_surface("home")
        return self.engine.create_surface(a_surface(**settings))

    def pass_minutes(self, number: int) -> None:
        for _ in range(12 * number):
            self.health_monitor.sample()
            self.monotonic[0] += 5.0


@pytest.fixture
def monitored(monkeypatch: pytest.MonkeyPatch) -> Iterator[Monitored]:
    now = Clock()
    engine = Engine(MemoryStore(), sync_seconds=60.0, clock=now)
    begun = engine.last_sync
    wait_until(lambda: engine.last_sync != begun)  # it is not read again for a minute
    engine.create_surface(a_surface())
    metrics = Metrics(engine)
    made = Monitored(engine, metrics, HealthMonitor(engine, metrics), now)

    class Steady:
        @staticmethod
        def monotonic() -> float:
            return made.monotonic[0]

    monkeypatch.setattr(health_monitor, "time", Steady)
    engine._sync_loop.last_sync = 1000.0
    yield made
    engine.close()


def test_all_checks_pass_at_the_start(monitored: Monitored) -> None:
    checks = monitored.checks()
    assert {check["status"] for check in checks.values()} == {"ok"}
    assert all(check["value"] and check["description"] and check["limit"] for check in checks.values())
    assert [checks[name]["limit"] for name in ("Dropped", "Failed", "Commits")] == ["0", "0", "no limit"]


@pytest.mark.parametrize(("seconds", "status"), [(1000, "ok"), (1300, "warn"), (9000, "bad")])
def test_store_sync_age(monitored: Monitored, seconds: float, status: str) -> None:
    monitored.monotonic[0] += seconds
    check = monitored.checks()["Store sync"]
    assert (check["value"], check["limit"], check["status"]) == (f"{seconds:,} s", "1,200 s", status)


@pytest.mark.parametrize(
    ("requests", "check", "value", "status"),
    [
        ([("rank", 200, 0.004)] * 99 + [("rank", 200, 0.3)], "Latency", "within 5 ms", "ok"),
        ([("rank", 200, 0.004)] * 90 + [("feedback", 200, 0.3)] * 10, "Latency", "within 500 ms", "warn"),
        ([("feedback", 200, 9.0)], "Latency", "within 5000 ms", "bad"),
        ([("rankBatch", 200, 9.0)], "Latency", "within 5000 ms", "bad"),
        ([("dashboard", 200, 9.0)], "Latency", "none", "ok"),
        ([("feedback", 200, 0.001)] * 95 + [("feedback", 409, 0.001)] * 5, "Refused", "5.0%", "warn"),
        ([("feedback", 404, 0.001)], "Refused", "100.0%", "bad"),
        ([("rankBatch", 422, 0.001)], "Refused", "100.0%", "bad"),
        ([("surfaces", 404, 0.001)], "Refused", "none", "ok"),
        ([("readiness", 503, 0.001)], "Failed", "1", "warn"),
        ([("rank", 500, 0.001)] * 11, "Failed", "11", "bad"),
    ],
)
def test_requests_of_the_last_minute(
    monitored: Monitored, requests: list[tuple[str, int, float]], check: str, value: str, status: str
) -> None:
    monitored.pass_minutes(2)
    for request in requests:
        monitored.metrics.record_request(*request)
    assert (monitored.checks()[check]["value"], monitored.checks()[check]["status"]) == (value, status)
    monitored.pass_minutes(2)
    assert monitored.checks()[check]["status"] == "ok"  # it is over
    measured = [each for each in monitored.checks()[check]["last_hour"] if each is not None]
    assert max(measured, default=0.0) > 0 or value == "none"


def test_what_was_not_measured_is_not_zero(monitored: Monitored) -> None:
    """Finding 13: without requests there is neither a latency nor a share of refused ones."""
    monitored.pass_minutes(2)
    checks = monitored.checks()
    for name in ("Latency", "Refused", "Unreported"):
        assert (checks[name]["value"], checks[name]["status"]) == ("none", "ok")
        assert set(checks[name]["last_hour"]) == {None}
    monitored.metrics.record_request("rank", 200, 0.001)
    assert monitored.checks()["Refused"]["value"] == "0.0%"


def test_dropped_impressions(monitored: Monitored) -> None:
    monitored.pass_minutes(1)
    monitored.engine.committer.dropped += 3
    assert (monitored.checks()["Dropped"]["value"], monitored.checks()["Dropped"]["status"]) == ("3", "bad")


@pytest.mark.parametrize("unreported", ["not-clicked", "discarded"])
def test_unreported_rankings(monitored: Monitored, unreported: str) -> None:
    live = monitored.surface(unreported=unreported, attribution_seconds=600.0)
    shown = [live.rank("new").id for _ in range(40)]
    monitored.now.now += 30
    for ranking in shown[:30]:
        assert monitored.engine.feedback(ranking) == "counted"
        assert monitored.engine.feedback(ranking) == "repeated"  # and is not counted again
    with pytest.raises(UnknownNameError):
        monitored.engine.feedback(shown[30], clicked="nothing")
    monitored.pass_minutes(1)
    checks = monitored.checks()
    assert (checks["Unreported"]["value"], checks["Unreported"]["status"]) == ("none", "ok")  # not known yet
    assert (checks["Pending"]["value"], checks["Pending"]["description"]) == (
        "10",
        "rankings wait for feedback, the oldest for 31 s",
    )  # to about a second
    assert (checks["Feedback delay"]["value"], checks["Feedback delay"]["limit"]) == ("30 s", "8 min")
    monitored.now.now += 600
    wait_until(lambda: live.feedback_tracker.closed == 40)
    checks = monitored.checks()
    assert (checks["Unreported"]["value"], checks["Unreported"]["status"]) == ("25.0%", "warn")
    assert checks["Unreported"]["last_hour"][-1] == 0.25
    assert checks["Pending"]["value"] == "0"
    monitored.pass_minutes(2)
    assert (monitored.checks()["Unreported"]["value"], monitored.checks()["Unreported"]["status"]) == (
        "none",
        "ok",
    )


def test_late_feedback(monitored: Monitored) -> None:
    live = monitored.surface(attribution_seconds=600.0)
    shown = [live.rank("new").id for _ in range(100)]
    for ranking in shown[:90]:
        monitored.engine.feedback(ranking)
    monitored.now.now += 500
    for ranking in shown[90:]:
        monitored.engine.feedback(ranking)
    check = monitored.checks()["Feedback delay"]
    assert (check["value"], check["status"]) == ("8 min", "warn")
    assert check["description"].endswith("0 s or less for half of it")


def test_feedback_checks_are_omitted_if_other_processes_write(monitored: Monitored) -> None:
    live = monitored.surface()
    ranking = live.rank("new").id
    assert monitored.checks().keys() >= {"Pending", "Unreported"}
    with closing(Engine(monitored.engine.store, clock=monitored.now)) as other:
        other.feedback(ranking)
    live.catch_up(1)
    assert monitored.checks().keys().isdisjoint({"Pending", "Unreported"})


def test_the_history_covers_one_hour(monitored: Monitored) -> None:
    monitored.pass_minutes(1)
    assert (
        len(monitored.checks()["Commits"]["last_hour"]) == 12
    )  # from the beginning it can be seen how it goes
    monitored.pass_minutes(199)
    (history,) = monitored.health_monitor._histories.values()
    assert 55 * 60 <= history.samples[-1].at - history.samples[0].at <= 65 * 60
    assert all(len(check["last_hour"]) == 60 for check in monitored.checks().values())
    monitored.engine.committer.groups += 120
    monitored.monotonic[0] += 60 - (monitored.monotonic[0] - history.samples[-1].at)
    checks = monitored.checks()
    assert checks["Commits"]["last_hour"][-1] == pytest.approx(2.0)
    assert checks["Commits"]["value"] == "2.0 per second"
    monitored.engine.delete_surface("home")
    monitored.health_monitor.sample()
    assert not monitored.health_monitor._histories


def test_the_history_of_a_new_surface_starts_with_its_first_check(monitored: Monitored) -> None:
    monitored.health_monitor.sample()
    monitored.engine.create_surface(a_surface_named("late"))
    live = monitored.engine.surface("late")
    monitored.health_monitor.checks(live)
    monitored.monotonic[0] += 10.0
    monitored.engine.committer.groups += 50
    checks = {check["name"]: check for check in monitored.health_monitor.checks(live)}
    assert checks["Commits"]["value"] == "5.0 per second"
