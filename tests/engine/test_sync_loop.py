"""Synchronization: polling or on demand, without work for unchanged surfaces or delay by slow ones."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from helpers.live import Clock, FailingStore, a_ranker, a_surface, play, seeded, wait_for_tasks, wait_until

from banditrank._ranker import Ranker
from banditrank.engine._due_queue import DueQueue
from banditrank.engine._engine import Engine
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.storage._base import Store
from banditrank.storage._memory import MemoryStore
from banditrank.storage._records import SurfaceRecord
from banditrank.storage._sqlite import SqliteStore

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
def _no_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scan periodically for impressions of other processes less often than any test takes."""
    monkeypatch.setattr("banditrank.engine._impression_expiry.SCAN_SECONDS", 10_000.0)


@pytest.mark.usefixtures("_no_scans")
def test_an_idle_engine_reads_versions_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in ("_EXPIRY_TRIAL_SECONDS", "SCAN_SECONDS"):  # however long this takes on a busy machine
        monkeypatch.setattr(f"banditrank.engine._impression_expiry.{setting}", 10_000.0)
    store = CountingStore()
    for number in range(N_SURFACES):
        store.create_surface(f"s{number}", replace(a_surface(), name=f"s{number}").definition)
    evaluated: list[SurfaceRuntime] = []
    due_in = SurfaceRuntime.due_in
    monkeypatch.setattr(
        SurfaceRuntime, "due_in", lambda runtime: evaluated.append(runtime) or due_in(runtime)
    )
    with contextlib.closing(Engine(store, sync_seconds=0.01)) as engine:

        def is_idle() -> bool:
            store.calls.clear()
            evaluated.clear()
            wait_until(lambda: store.calls["versions"] >= N_SYNCS)
            return store.calls.keys() == {"versions"} and not evaluated

        wait_until(is_idle)  # after the first tasks; an engine that works all the time never is
        engine.surface("s7").rank("new")
        assert engine.feedback(engine.surface("s7").rank("new").id) == "counted"
        wait_until(lambda: engine.surface("s7").staleness_seconds == 0.0)
        assert {runtime.surface.name for runtime in evaluated} == {"s7"}


def test_an_idle_ranker_has_no_thread_that_wakes_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditrank.engine._sync_loop.IDLE_SECONDS", 0.0)
    monkeypatch.setattr("banditrank.engine._impression_expiry._EXPIRY_TRIAL_SECONDS", 0.0)
    waits: list[tuple[float | None, list[float]]] = []  # timeouts, and seconds until scheduled tasks
    wait = DueQueue.wait

    def recorded(queue: DueQueue[SurfaceRuntime], timeout_seconds: float | None = None) -> bool:
        waits.append((timeout_seconds, [due_at - time.monotonic() for due_at, _, _ in queue._heap]))
        return wait(queue, timeout_seconds)

    def is_asleep(min_seconds: float) -> bool:
        n_waits = len(waits)
        time.sleep(0.3)  # any duration works: it does nothing meanwhile
        if not waits or len(waits) > n_waits:
            return False
        timeout_seconds, scheduled = waits[-1]
        return timeout_seconds is None and all(seconds >= min_seconds for seconds in scheduled)

    monkeypatch.setattr(DueQueue, "wait", recorded)
    with SqliteStore(tmp_path / "store.db") as store, Ranker(a_surface(), store, sync_seconds=0.01) as ranker:
        wait_until(lambda: is_asleep(inf))  # no task is scheduled
        for _ in range(3):
            assert ranker.feedback(ranker.rank("new").id) == "counted"
        wait_until(lambda: is_asleep(1000.0))  # at the end of an attribution window at the earliest
        threads = {thread.name for thread in threading.enumerate() if thread.name.startswith("banditrank")}
        assert not {name for name in threads if "monitor" in name}
        with Ranker(a_surface(), store, sync_seconds=0.01) as other:
            other.feedback(other.rank("new").id)
        assert ranker._runtime.version == 3
        ranker.rank("new")  # the next use syncs
        wait_until(lambda: ranker._runtime.version == 4)


def on_demand(store: Store, **settings: Any) -> Engine:
    """Return an engine that syncs on demand, after its first sync."""
    engine = Engine(store, polls=False, **{"sync_seconds": 0.01, **settings})
    wait_until(lambda: engine._sync_loop._is_in_sync)
    return engine


def n_syncs(store: CountingStore) -> int:
    """Return the number of syncs, once there are no more: an engine that polls never stops."""
    n_before = -1
    while n_before != (n_now := store.calls["versions"]):
        n_before = n_now
        time.sleep(0.5)  # 50 periods
    return n_now


def test_an_engine_on_demand_syncs_once_it_is_used() -> None:
    store = CountingStore()
    store.create_surface("home", a_surface().definition)
    with contextlib.closing(on_demand(store)) as engine:
        before = n_syncs(store)
        last_sync = engine.last_sync
        engine.touch()
        wait_until(lambda: engine.last_sync > last_sync)
        assert n_syncs(store) > before
        with a_ranker(store=store) as other:
            play(other, 3, seed=1)
        assert n_syncs(store) > before
        assert engine.surface("home").version == 0
        engine.touch()
        wait_until(lambda: engine.surface("home").version == 3)


def test_an_engine_on_demand_syncs_once_per_period() -> None:
    store = CountingStore()
    store.create_surface("home", a_surface().definition)
    with contextlib.closing(on_demand(store, sync_seconds=1000.0)) as engine:
        before = n_syncs(store)
        for _ in range(100):
            engine.touch()
        assert n_syncs(store) == before


def test_an_engine_that_polls_syncs_without_use() -> None:
    store = MemoryStore()
    store.create_surface("home", a_surface().definition)
    with contextlib.closing(Engine(store, sync_seconds=0.01)) as engine, a_ranker(store=store) as other:
        play(other, 3, seed=1)
        wait_until(lambda: engine.surface("home").version == 3)


def test_the_first_use_after_a_pause_scans_for_impressions_of_other_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("banditrank.engine._sync_loop.IDLE_SECONDS", 0.3)
    monkeypatch.setattr("banditrank.engine._impression_expiry._EXPIRY_TRIAL_SECONDS", 0.0)
    monkeypatch.setattr("banditrank.engine._impression_expiry._MIN_SCAN_SECONDS", 0.0)
    store = CountingStore()
    store.create_surface("home", a_surface().definition)
    with contextlib.closing(on_demand(store)) as engine:
        sync_loop, runtime = engine._sync_loop, engine.surface("home")
        wait_until(lambda: sync_loop.is_idle and runtime.due_in() > 0.0)
        runtime._expirer._next_scan = 0.0  # as if the latest scan was long ago
        runtime.run_due_tasks()
        assert runtime.due_in() == inf, "an idle surface is not scanned"
        n_scans = store.calls["pending_impressions"]
        engine.touch()
        assert not sync_loop.is_idle
        wait_until(lambda: store.calls["pending_impressions"] > n_scans)


def test_an_engine_on_demand_retries_after_an_outage_without_use() -> None:
    store = FailingStore()
    store.create_surface("home", a_surface().definition)
    with contextlib.closing(on_demand(store)) as engine:
        store.down = True
        before = engine.last_sync
        time.sleep(0.02)
        engine.touch()
        time.sleep(0.1)
        assert engine.last_sync == before
        store.down = False
        wait_until(lambda: engine.last_sync > before)


@pytest.mark.parametrize(
    "use",
    [
        lambda ranker: ranker.surface,
        lambda ranker: ranker.rank("new"),
        lambda ranker: ranker.rank_batch(["new", "old"]),
        lambda ranker: ranker.feedback(ranker._runtime.rank("new").id),
        lambda ranker: ranker.counts(),
        lambda ranker: ranker.estimates(),
        lambda ranker: ranker.equality(),
        lambda ranker: ranker.explain(ranker._runtime.rank("new").id),
    ],
    ids=["surface", "rank", "rank_batch", "feedback", "counts", "estimates", "equality", "explain"],
)
def test_every_use_of_a_ranker_syncs(
    use: Callable[[Ranker], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    touched: list[bool] = []
    with a_ranker() as ranker:
        monkeypatch.setattr(ranker._engine, "touch", lambda: touched.append(True))
        use(ranker)
    assert touched == [True]


def test_a_ranker_with_a_clock_of_its_own_polls() -> None:
    store = MemoryStore()
    with a_ranker(store=store, clock=Clock(), sync_seconds=0.01) as ranker, a_ranker(store=store) as other:
        play(other, 3, seed=1)
        wait_until(lambda: ranker._runtime.version == 3)


def test_a_slow_update_delays_no_other_surface(monkeypatch: pytest.MonkeyPatch) -> None:
    started, may_continue, redefine = threading.Event(), threading.Event(), SurfaceRuntime.redefine

    def redefine_slowly(runtime: SurfaceRuntime, record: SurfaceRecord) -> None:
        if record.name == "slow" and threading.current_thread() is not threading.main_thread():
            started.set()
            assert may_continue.wait(60)
        redefine(runtime, record)

    monkeypatch.setattr(SurfaceRuntime, "redefine", redefine_slowly)
    store = MemoryStore()
    one, two = Engine(store, sync_seconds=0.01), Engine(store, sync_seconds=0.01)
    with contextlib.closing(one), contextlib.closing(two):
        try:
            for name in ("slow", "quick"):
                one.create_surface(replace(a_surface(), name=name))
                two.surface(name)
            one.update_surface("slow", lambda surface: surface.with_items(["late"]))
            assert started.wait(60)
            one.update_surface("quick", lambda surface: surface.with_items(["late"]))
            one.feedback(one.surface("quick").rank("new").id)
            before = two.last_sync
            wait_until(lambda: two.surface("quick").revision == 2)
            wait_until(lambda: two.surface("quick").version == 1)
            wait_until(lambda: two.last_sync > before)
            assert two.surface("slow").revision == 1
        finally:
            may_continue.set()
        wait_until(lambda: two.surface("slow").revision == 2)


@pytest.mark.usefixtures("_no_scans")
def test_impressions_with_short_windows_expire_between_scans() -> None:
    store, clock = MemoryStore(), Clock()
    with a_ranker(a_surface(attribution_seconds=2.0), store, clock=clock) as ranker:
        clock.now += 100.0  # the clock is trusted
        wait_for_tasks(ranker)
        play(ranker, 1, seed=1)
        ranker.rank("new")
        wait_until(lambda: len(store.pending_impressions(1, since_ms=0, until_ms=2**47)) == 1)
        assert ranker.counts().rounds == 1
        clock.now += 9.0
        wait_until(lambda: ranker.counts().rounds == 2)


def test_impressions_of_a_process_that_ended_expire_in_another() -> None:
    store, clock = MemoryStore(), Clock()
    surface = a_surface(attribution_seconds=300.0)
    with a_ranker(surface, store, clock=clock, random_bytes=seeded(2)) as survivor:
        clock.now += 100.0  # its clock is trusted
        wait_for_tasks(survivor)
        with a_ranker(surface, store, clock=clock) as other:
            for _ in range(3):
                other.rank("new")
                clock.now += 20.0
        assert survivor.counts().rounds == 0
        for expected in (1, 2, 3):
            expired = 1e9 + 100.0 + 300.0 + 20.0 * (expected - 1) + 5.1  # a little after the grace period
            while clock.now < expired:
                clock.now = min(clock.now + 30.0, expired)
                wait_for_tasks(survivor)
            wait_until(lambda expected=expected: survivor.counts().rounds == expected)


def test_the_data_of_a_deleted_surface_is_purged(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store.db") as store:
        with a_ranker(store=store) as ranker:
            play(ranker, 5, seed=1)
            assert store.changes(1, after=0)
        assert store.delete_surface("home")
        assert store.changes(1, after=0), "it may be too much to be removed at once"
        with a_ranker(store=store, sync_seconds=0.01) as ranker:
            play(ranker, 5, seed=2)
            wait_until(lambda: store.changes(1, after=0) == [])
            wait_until(lambda: not store.purge_deleted())
            assert ranker.estimates().rounds == 5


def test_an_engine_on_demand_purges_all_data_without_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("banditrank.storage._sql._MAX_DELETED_ROWS", 2)
    with SqliteStore(tmp_path / "store.db") as store:
        with a_ranker(store=store) as ranker:
            play(ranker, 20, seed=1)
        assert store.delete_surface("home")
        with contextlib.closing(on_demand(store)):
            wait_until(lambda: store.changes(1, after=0) == [])
            wait_until(lambda: not store.purge_deleted())
