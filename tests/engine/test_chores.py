"""What a surface fails to do holds up nothing else, is tried again ever more seldom, and is said once."""

from math import inf
from types import SimpleNamespace

import pytest
from helpers.live import Clock, a_ranker, a_surface, play, wait_until

from banditrank.engine import backoff as module
from banditrank.engine.backoff import Backoff
from banditrank.engine.periodic_task import PeriodicTask
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.errors import StoreError, StoreUnavailableError
from banditrank.storage.memory import MemoryStore


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time that attempts go by."""
    clock = Clock(0.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock))
    return clock


def fail(attempts: Backoff, error: Exception) -> None:
    with attempts:
        raise error


def test_what_fails_is_tried_again_ever_more_seldom_and_said_once(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    attempts = Backoff("surface home shows rankings of old counts")
    waits = []
    for _ in range(7):
        fail(attempts, ValueError("no"))
        begin = clock.now
        while not attempts.is_due:
            clock.now += 1.0
        waits.append(clock.now - begin)
    assert waits == [1, 2, 4, 8, 16, 30, 30]
    assert attempts.trouble == "ValueError: no"
    assert [record.getMessage() for record in caplog.records] == [
        "surface home shows rankings of old counts: no"
    ]
    with attempts:
        pass
    assert (attempts.trouble, attempts.is_due) == (None, True)
    fail(attempts, StoreError("of a newer version"))
    assert (attempts.trouble, len(caplog.records)) == ("of a newer version", 2)
    assert [bool(record.exc_info) for record in caplog.records] == [True, False]


def test_a_store_that_is_down_is_said_by_the_keeper_alone(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    attempts = Backoff("nothing is saved")
    for _ in range(3):
        with pytest.raises(StoreUnavailableError):
            fail(attempts, StoreUnavailableError("down"))
        assert not attempts.is_due
        clock.now += 1.0
        assert attempts.is_due
    assert (attempts.trouble, caplog.text) == (None, "")


def test_a_chore_is_done_when_it_is_needed_and_did_not_just_fail(clock: Clock) -> None:
    done: list[int] = []

    def do() -> None:
        done.append(1)
        raise StoreUnavailableError("down")

    needed = [False]
    chore = PeriodicTask("nothing is done", lambda: 0.0 if needed[0] else inf, do)
    chore.tend()
    needed[0] = True
    chore.tend()
    chore.tend()
    clock.now += 1.0
    chore.tend()
    assert len(done) == 2


def test_a_surface_whose_view_cannot_be_made_is_kept_otherwise(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store, clock = MemoryStore(), Clock()
    monkeypatch.setattr("banditrank.engine.counts_replica._CHANGES_A_SNAPSHOT", 2)
    surface = a_surface(attribution_seconds=60.0, refresh_seconds=0.01)
    with a_ranker(surface, store, clock=clock) as ranker:
        with monkeypatch.context() as broken:
            broken.setattr(SurfaceRuntime, "_new_view", lambda _: 1 / 0)
            ranker.rank("new")
            play(ranker, 3, seed=1)
            wait_until(lambda: store.snapshot(1).version >= 2)
            clock.now += 70.0
            wait_until(lambda: ranker._live.rounds == 4)
        wait_until(lambda: ranker._live.age == 0.0)
    assert caplog.text.count("surface home shows rankings of old counts") == 1
