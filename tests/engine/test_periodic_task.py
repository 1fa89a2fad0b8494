"""Failing tasks are retried with backoff, logged once, and delay no other task."""

from math import inf
from types import SimpleNamespace

import pytest
from helpers.live import Clock, a_ranker, a_surface, play, wait_until

from banditrank.engine import _periodic_task as module
from banditrank.engine._periodic_task import Backoff, PeriodicTask
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.errors import StoreError, StoreUnavailableError
from banditrank.storage._memory import MemoryStore


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of backoffs."""
    clock = Clock(0.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock))
    return clock


def fail(backoff: Backoff, error: Exception) -> None:
    with backoff:
        raise error


def test_failures_back_off_exponentially_and_are_logged_once(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    backoff = Backoff("refresh failed", surface="home")
    waits = []
    for _ in range(7):
        fail(backoff, ValueError("no"))
        begin = clock.now
        while not backoff.is_due:
            clock.now += 1.0
        waits.append(clock.now - begin)
    assert waits == [1, 2, 4, 8, 16, 30, 30]
    assert backoff.error == "ValueError: no"
    logged = [(record.message, record.surface, record.error) for record in caplog.records]
    assert logged == [("refresh failed", "home", "no")]
    with backoff:
        pass
    assert (backoff.error, backoff.is_due) == (None, True)
    fail(backoff, StoreError("of a newer version"))
    assert (backoff.error, len(caplog.records)) == ("of a newer version", 2)
    assert [bool(record.exc_info) for record in caplog.records] == [True, False]


def test_an_unavailable_store_is_not_logged_by_backoff(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    backoff = Backoff("snapshot failed")
    for _ in range(3):
        with pytest.raises(StoreUnavailableError):
            fail(backoff, StoreUnavailableError("down"))
        assert not backoff.is_due
        clock.now += 1.0
        assert backoff.is_due
    assert (backoff.error, caplog.text) == (None, "")


def test_a_task_runs_when_due_and_not_right_after_a_failure(clock: Clock) -> None:
    done: list[int] = []

    def do() -> None:
        done.append(1)
        raise StoreUnavailableError("down")

    needed = [False]
    task = PeriodicTask("task failed", lambda: 0.0 if needed[0] else inf, do)
    task.run_if_due()
    needed[0] = True
    task.run_if_due()
    task.run_if_due()
    clock.now += 1.0
    task.run_if_due()
    assert len(done) == 2


def test_other_tasks_run_while_refresh_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store, clock = MemoryStore(), Clock()
    monkeypatch.setattr("banditrank.engine._counts_replica._MIN_CHANGES_PER_SNAPSHOT", 2)
    surface = a_surface(attribution_seconds=60.0, refresh_seconds=0.01)
    with a_ranker(surface, store, clock=clock) as ranker:
        with monkeypatch.context() as broken:
            broken.setattr(SurfaceRuntime, "_new_snapshot", lambda _: 1 / 0)
            ranker.rank("new")
            play(ranker, 3, seed=1)
            wait_until(lambda: store.snapshot(1).version >= 2)
            clock.now += 70.0
            wait_until(lambda: ranker._runtime.rounds == 4)
        wait_until(lambda: ranker._runtime.staleness_seconds == 0.0)
    logged = [record.surface for record in caplog.records if record.message == "refresh failed"]
    assert logged == ["home"]
