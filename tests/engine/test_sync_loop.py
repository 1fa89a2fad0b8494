"""An idle engine does nothing for surfaces without changes, and one surface's work delays no other."""

import contextlib
import threading
import time
from collections import Counter
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from live import Clock, a_ranker, a_surface, play, seeded, wait_until

from banditrank.engine.due_queue import DueQueue
from banditrank.engine.engine import Engine
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.ranker import Ranker
from banditrank.storage.base import Store
from banditrank.storage.memory import MemoryStore
from banditrank.storage.records import SurfaceRecord
from banditrank.storage.sqlite import SqliteStore

N_SURFACES = 200
N_SYNCS = 20


class CountingStore(MemoryStore):
    """A memory store that counts the calls of its methods."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        if name in vars(Store):
            self.calls[name] += 1
        return super().__getattribute__(name)


@pytest.fixture
def _no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test takes so long that it is time to look for what other processes left."""
    monkeypatch.setattr("banditrank.engine.impression_expiry.SCAN_SECONDS", 10_000.0)


@pytest.mark.usefixtures("_no_looks")
def test_an_idle_engine_asks_for_versions_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditrank.engine.impression_expiry._EXPIRY_TRIAL_SECONDS", 10_000.0)
    store = CountingStore()
    for number in range(N_SURFACES):
        store.create_surface(f"s{number}", replace(a_surface(), name=f"s{number}").definition)
    looks: list[SurfaceRuntime] = []
    due_in = SurfaceRuntime.due_in
    monkeypatch.setattr(SurfaceRuntime, "due_in", lambda live: looks.append(live) or due_in(live))
    with contextlib.closing(Engine(store, sync_seconds=0.01)) as engine:
        sync_loop, schedule = engine._sync_loop, engine._queue
        wait_until(lambda: not (sync_loop._running or schedule._marked))
        wait_until(lambda: not any(due_in(live) <= 0.0 for live in engine.surfaces()))
        wait_until(lambda: not (sync_loop._running or schedule._marked))
        store.calls.clear()
        looks.clear()
        wait_until(lambda: store.calls["versions"] >= N_SYNCS)
        calls = dict(store.calls)
        assert calls.keys() == {"versions"}
        assert looks == []
        engine.surface("s7").rank("new")
        assert engine.feedback(engine.surface("s7").rank("new").id) == "counted"
        wait_until(lambda: engine.surface("s7").staleness_seconds == 0.0)
        assert {live.surface.name for live in looks} == {"s7"}


def test_an_idle_ranker_has_no_thread_that_wakes_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditrank.engine.sync_loop.IDLE_SECONDS", 0.0)
    monkeypatch.setattr("banditrank.engine.impression_expiry._EXPIRY_TRIAL_SECONDS", 0.0)
    waits: list[tuple[float | None, bool]] = []
    wait = DueQueue.wait

    def recorded(queue: DueQueue[SurfaceRuntime], timeout_seconds: float | None = None) -> bool:
        waits.append((timeout_seconds, bool(queue._heap)))
        return wait(queue, timeout_seconds)

    monkeypatch.setattr(DueQueue, "wait", recorded)
    with SqliteStore(tmp_path / "store.db") as store, Ranker(a_surface(), store, sync_seconds=0.01) as ranker:
        for _ in range(3):
            assert ranker.feedback(ranker.rank("new").id) == "counted"
        wait_until(lambda: waits[-1] == (None, False))  # neither a timeout nor a task that is scheduled
        threads = {thread.name for thread in threading.enumerate() if thread.name.startswith("banditrank")}
        assert not {name for name in threads if "monitor" in name}
        with Ranker(a_surface(), store, sync_seconds=0.01) as other:
            other.feedback(other.rank("new").id)
        assert ranker._runtime.version == 3
        ranker.rank("new")  # the next use synchronizes
        wait_until(lambda: ranker._runtime.version == 4)


def test_a_slow_adoption_delays_no_other_surface(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_go_on, adopt = threading.Event(), threading.Event(), SurfaceRuntime.redefine

    def adopt_slowly(live: SurfaceRuntime, record: SurfaceRecord) -> None:
        if record.name == "slow" and threading.current_thread() is not threading.main_thread():
            begun.set()
            assert may_go_on.wait(60)
        adopt(live, record)

    monkeypatch.setattr(SurfaceRuntime, "redefine", adopt_slowly)
    store = MemoryStore()
    one, two = Engine(store, sync_seconds=0.01), Engine(store, sync_seconds=0.01)
    with contextlib.closing(one), contextlib.closing(two):
        try:
            for name in ("slow", "quick"):
                one.create_surface(replace(a_surface(), name=name))
                two.surface(name)
            one.update_surface("slow", lambda surface: surface.with_items(["late"]))
            assert begun.wait(60)
            one.update_surface("quick", lambda surface: surface.with_items(["late"]))
            one.feedback(one.surface("quick").rank("new").id)
            before = two.last_sync
            wait_until(lambda: two.surface("quick").revision == 2)
            wait_until(lambda: two.surface("quick").version == 1)
            wait_until(lambda: two.last_sync > before)
            assert two.surface("slow").revision == 1
        finally:
            may_go_on.set()
        wait_until(lambda: two.surface("slow").revision == 2)


@pytest.mark.usefixtures("_no_looks")
def test_short_windows_are_settled_without_waiting_for_a_look() -> None:
    store, clock = MemoryStore(), Clock()
    with a_ranker(a_surface(attribution_seconds=2.0), store, clock=clock) as ranker:
        clock.now += 100.0  # the clock is believed
        wait_until(lambda: ranker._runtime.due_in() > 0.0)
        play(ranker, 1, seed=1)
        ranker.rank("new")
        wait_until(lambda: len(store.pending_impressions(1, since_ms=0, until_ms=2**47)) == 1)
        assert ranker.counts().rounds == 1
        clock.now += 9.0
        wait_until(lambda: ranker.counts().rounds == 2)


def test_rankings_of_a_process_that_ended_are_settled_by_another() -> None:
    store, clock = MemoryStore(), Clock()
    surface = a_surface(attribution_seconds=300.0)
    with a_ranker(surface, store, clock=clock, random_bytes=seeded(2)) as survivor:
        clock.now += 100.0  # its clock is believed
        wait_until(lambda: survivor._runtime.due_in() > 0.0)
        with a_ranker(surface, store, clock=clock) as other:
            for _ in range(3):
                other.rank("new")
                clock.now += 20.0
        assert survivor.counts().rounds == 0
        for expected in (1, 2, 3):
            settled = 1e9 + 100.0 + 300.0 + 20.0 * (expected - 1) + 5.1  # a little after the grace period
            while clock.now < settled:
                clock.now = min(clock.now + 30.0, settled)
                wait_until(lambda: survivor._runtime.due_in() > 0.0)
            wait_until(lambda expected=expected: survivor.counts().rounds == expected)


def test_a_key_is_due_at_its_own_time_and_when_it_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(1000.0)
    monkeypatch.setattr("banditrank.engine.due_queue.time.monotonic", clock)
    due_in = {"a": 10.0, "b": 5.0, "c": inf}
    asked: list[str] = []
    schedule = DueQueue[str](lambda key: asked.append(key) or due_in[key])
    for key in due_in:
        schedule.mark(key)
    assert schedule.take_due() == []
    clock.now += 5.0
    due_in["b"] = 0.0
    asked.clear()
    assert (schedule.take_due(), asked) == (["b"], ["b"])
    due_in["a"] = 2.0  # earlier than it was
    schedule.mark("a")
    assert schedule.take_due() == []
    clock.now += 2.0
    due_in["a"] = inf
    asked.clear()
    assert (schedule.take_due(), asked) == ([], ["a"])
    clock.now += 100.0
    assert (schedule.take_due(), asked) == ([], ["a"]), "its first time is outdated"


def test_a_wait_ends_when_a_key_is_marked_or_it_is_interrupted() -> None:
    schedule = DueQueue[str](lambda _: inf)
    assert not schedule.wait(0.0)
    marker = threading.Timer(0.01, schedule.mark, ["a"])
    marker.start()
    assert schedule.wait(60.0)
    marker.join()
    assert schedule.take_due() == []
    schedule.interrupt()
    begun = time.monotonic()
    assert not schedule.wait(1000.0)
    assert time.monotonic() - begun < 500.0
