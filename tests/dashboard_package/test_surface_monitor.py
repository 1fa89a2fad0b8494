"""Monitors: every change is folded once, across restarts, replicas and processes without a dashboard."""

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.live import (
    ITEMS,
    TYPES,
    Clock,
    FailingStore,
    MonitoredRanker,
    a_monitored_ranker,
    a_ranker,
    a_surface,
    play,
    seeded,
    wait_until,
)

from banditrank import Problem
from banditrank._ranker import Ranker
from banditrank.dashboard._surface_monitor import SurfaceMonitor, SurfaceMonitors
from banditrank.dashboard._time_series import ClosedBuckets
from banditrank.engine._engine import Engine
from banditrank.errors import StoreUnavailableError
from banditrank.storage._base import Store
from banditrank.storage._memory import MemoryStore
from banditrank.storage._records import SavedTimeSeries
from banditrank.storage._sqlite import SqliteStore

MINUTE = 60.0


def n_visits(ranker: MonitoredRanker) -> list[int]:
    """Return the number of visits in each minute that has ended."""
    return ranker.monitor.series()[0].visits.sum(axis=1).tolist()


def assert_equal_buckets(one: ClosedBuckets, other: ClosedBuckets) -> None:
    for name in ("start_ms", "width_ms", "is_widened", "cumulative_regret"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("visits", "clicks", "other_item", "other_order"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def prune_changes(store: Store, clock: Clock) -> None:
    """Prune the changes up to the latest snapshot; the latest change stays."""
    store.prune(1, before_ms=int(clock.now * 1000) + 1)
    assert len(store.changes(1, after=0)) == 1


# Time series


def test_a_clock_that_was_ahead_does_not_change_the_series() -> None:
    clock = Clock()
    with a_monitored_ranker(clock=clock) as ranker:
        ranker._engine._sync_loop.close()  # nothing is pruned by the wrong clock
        play(ranker, 3, seed=1)
        clock.now += 3 * 365 * 86_400.0
        play(ranker, 3, seed=2)
        ranker.add_items(["late"])
        assert ranker.monitor.series()[0].width_ms > 60_000
        clock.now -= 3 * 365 * 86_400.0
        clock.now += MINUTE
        play(ranker, 3, seed=3)
        clock.now += 2 * MINUTE
        buckets, annotations = ranker.monitor.series()
        assert buckets.width_ms == 60_000
        assert buckets.visits.sum() == 9
        assert annotations == []


def test_the_series_continues_after_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "store.db"
    with SqliteStore(path) as store, a_monitored_ranker(store=store, clock=clock) as ranker:
        for _ in range(5):
            play(ranker, 10, seed=1)
            clock.now += MINUTE
        wait_until(lambda: ranker.monitor.best is not None)
        before, _ = ranker.monitor.series()
        hour = ranker.monitor.last_hour()
    with SqliteStore(path) as store, a_monitored_ranker(store=store, clock=clock) as ranker:
        after, annotations = ranker.monitor.series()
        assert [one.text for one in annotations] == ["service started"]
        again = ranker.monitor.last_hour()
        assert again[0] == hour[0]
        for one, other in zip(again[1], hour[1], strict=True):
            np.testing.assert_array_equal(one, other)
        assert again[1].visits.sum() == 50
        assert_equal_buckets(after, before)
        assert after.visits.sum(axis=1).tolist() == [10, 10, 10, 10, 10]
        play(ranker, 10, seed=2)
        clock.now += 2 * MINUTE
        assert n_visits(ranker) == [10, 10, 10, 10, 10, 10, 0]


def test_the_series_continues_from_the_saved_one_and_the_changes_after_it(tmp_path: Path) -> None:
    clock = Clock()
    with SqliteStore(tmp_path / "store.db") as store, a_monitored_ranker(store=store, clock=clock) as crashed:
        play(crashed, 10, seed=1)
        crashed._runtime.save_snapshot()
        assert store.time_series(1).version == 10
        clock.now += MINUTE
        play(crashed, 5, seed=2)
        clock.now += 2 * MINUTE
        with a_monitored_ranker(store=store, clock=clock, random_bytes=seeded(2)) as ranker:
            assert n_visits(ranker) == [10, 5, 0]
            one, other = crashed.monitor.series()[0], ranker.monitor.series()[0]
            assert (one.start_ms, one.clicks.tolist()) == (other.start_ms, other.clicks.tolist())
            play(ranker, 3, seed=3)
            clock.now += 2 * MINUTE
            assert n_visits(ranker) == [10, 5, 0, 3, 0]
        assert store.time_series(1).version == 18


def test_a_saved_series_is_not_saved_again_without_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    store, saved = MemoryStore(), []
    save = store.save_time_series

    def record(surface_id: int, series: SavedTimeSeries) -> None:
        saved.append(series.version)
        save(surface_id, series)

    monkeypatch.setattr(store, "save_time_series", record)
    with a_monitored_ranker(store=store, clock=Clock()) as ranker:
        play(ranker, 3, seed=1)
        for _ in range(3):
            ranker._runtime.save_snapshot()
    with a_monitored_ranker(store=store, clock=Clock()):
        pass
    assert saved == [3]


def test_a_surface_without_changes_has_no_series() -> None:
    store = MemoryStore()
    with a_monitored_ranker(store=store, clock=Clock()) as ranker:
        buckets, annotations = ranker.monitor.series()
        assert (len(buckets.visits), annotations) == (0, [])
        assert ranker.monitor.last_hour()[0] is None
    assert store.time_series(1) is None


# Processes without a dashboard


def test_changes_behind_a_snapshot_of_a_ranker_are_in_the_series() -> None:
    store, clock = MemoryStore(), Clock()
    with a_ranker(store=store, clock=clock) as ranker:
        play(ranker, 10, seed=1)
    assert (store.snapshot(1).version, store.time_series(1)) == (10, None)
    clock.now += MINUTE
    with a_monitored_ranker(store=store, clock=clock) as monitored:
        play(monitored, 5, seed=2)
        clock.now += 2 * MINUTE
        assert n_visits(monitored) == [10, 5, 0]


def test_a_series_is_saved_also_if_a_ranker_saved_the_snapshot_first() -> None:
    store, clock = MemoryStore(), Clock()
    with a_monitored_ranker(store=store, clock=clock) as monitored:
        play(monitored, 10, seed=1)
        with a_ranker(store=store, clock=clock):
            pass
        assert (store.snapshot(1).version, store.time_series(1)) == (10, None)
        monitored._runtime._save_snapshot_unless_newer()
        assert store.time_series(1).version == 10


def test_a_monitor_starts_after_pruned_changes() -> None:
    store, clock = MemoryStore(), Clock()
    with a_ranker(store=store, clock=clock) as ranker:
        play(ranker, 10, seed=1)
    prune_changes(store, clock)
    clock.now += MINUTE
    with a_monitored_ranker(store=store, clock=clock) as monitored:
        play(monitored, 5, seed=2)
        clock.now += 2 * MINUTE
        assert n_visits(monitored) == [1, 5, 0], "the change that was not pruned, and later ones"
        assert monitored.counts().rounds == 15
    with a_monitored_ranker(store=store, clock=clock) as monitored:
        assert n_visits(monitored) == [1, 5, 0]


def test_a_monitor_continues_a_saved_series_after_pruned_changes() -> None:
    store, clock = MemoryStore(), Clock()
    with a_monitored_ranker(store=store, clock=clock) as monitored:
        play(monitored, 4, seed=1)
    clock.now += MINUTE
    with a_ranker(store=store, clock=clock) as ranker:
        play(ranker, 10, seed=2)
    assert (store.snapshot(1).version, store.time_series(1).version) == (14, 4)
    prune_changes(store, clock)
    clock.now += MINUTE
    with a_monitored_ranker(store=store, clock=clock) as monitored:
        play(monitored, 5, seed=3)
        clock.now += 2 * MINUTE
        assert n_visits(monitored) == [4, 1, 5, 0]
        assert monitored.counts().rounds == 19


def test_a_running_monitor_continues_after_pruned_changes() -> None:
    store, clock = MemoryStore(), Clock()
    with a_monitored_ranker(store=store, clock=clock) as behind:
        behind._engine._sync_loop.close()  # the test syncs
        play(behind, 4, seed=1)
        clock.now += MINUTE
        with a_ranker(store=store, clock=clock, random_bytes=seeded(2)) as ranker:
            play(ranker, 10, seed=2)
        prune_changes(store, clock)
        clock.now += MINUTE
        with a_ranker(store=store, clock=clock, random_bytes=seeded(3)) as ranker:
            play(ranker, 3, seed=3)
        behind._runtime.catch_up(17)
        play(behind, 5, seed=4)
        assert (behind.counts().rounds, behind._runtime.version) == (22, 22)
        clock.now += 2 * MINUTE
        for _ in range(2):  # reading changes nothing
            assert n_visits(behind) == [4, 1, 8, 0]
        play(behind, 2, seed=5)
        clock.now += 2 * MINUTE
        assert n_visits(behind) == [4, 1, 8, 0, 2, 0]


def test_a_monitor_behind_pruned_changes_continues_from_the_series_of_another() -> None:
    store, clock = MemoryStore(), Clock()
    with a_monitored_ranker(store=store, clock=clock) as behind:
        behind._engine._sync_loop.close()  # the test syncs
        play(behind, 4, seed=1)
        clock.now += MINUTE
        with a_monitored_ranker(store=store, clock=clock, random_bytes=seeded(2)) as other:
            play(other, 10, seed=2)
        prune_changes(store, clock)
        behind._runtime.catch_up(14)
        play(behind, 2, seed=3)
        clock.now += 2 * MINUTE
        assert n_visits(behind) == [4, 12, 0]


# Several processes


def test_two_replicas_have_the_same_series() -> None:
    store, clock = MemoryStore(), Clock()
    settings = {"store": store, "clock": clock, "sync_seconds": 0.01}
    with (
        a_monitored_ranker(**settings) as one,
        a_monitored_ranker(**settings, random_bytes=seeded(2)) as two,
    ):
        for _ in range(4):
            play(one, 10, seed=1)
            play(two, 5, seed=2)
            clock.now += MINUTE
        wait_until(lambda: one._runtime.version == two._runtime.version == 60)
        first, second = one.monitor.series()[0], two.monitor.series()[0]
    assert first.start_ms == second.start_ms
    assert first.visits.tolist() == second.visits.tolist()
    assert first.clicks.tolist() == second.clicks.tolist()
    assert first.visits.sum(axis=1).tolist() == [15, 15, 15, 15]


def test_monitors_of_several_engines_fold_each_change_once(tmp_path: Path) -> None:
    """Engines write, save snapshots and read series at the same time, on stores and threads of their own."""
    clock, path, n_engines, n_rounds = Clock(), tmp_path / "store.db", 3, 40
    stores = [SqliteStore(path) for _ in range(n_engines)]
    rankers = [
        a_monitored_ranker(store=store, clock=clock, sync_seconds=0.01, random_bytes=seeded(number))
        for number, store in enumerate(stores)
    ]
    errors: list[BaseException] = []

    def play_and_read(number: int) -> None:
        try:
            for step in range(n_rounds // 10):
                play(rankers[number], 10, seed=10 * number + step)
                rankers[number]._runtime.save_snapshot()
                rankers[number].monitor.series()
        except BaseException as error:  # noqa: BLE001 - asserted below
            errors.append(error)

    threads = [threading.Thread(target=play_and_read, args=[number]) for number in range(n_engines)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    total = n_engines * n_rounds
    rounds = [0] * n_engines

    def are_in_sync() -> bool:
        rounds[:] = [ranker._runtime.rounds for ranker in rankers]
        return rounds == [total] * n_engines

    wait_until(are_in_sync)
    clock.now += 2 * MINUTE
    assert [n_visits(ranker) for ranker in rankers] == [[total, 0]] * n_engines
    clicks = [ranker.monitor.series()[0].clicks.tolist() for ranker in rankers]
    assert clicks == [clicks[0]] * n_engines
    for ranker, store in zip(rankers, stores, strict=True):
        ranker.close()
        store.close()
    with SqliteStore(path) as store, a_monitored_ranker(store=store, clock=clock) as again:
        assert n_visits(again) == [total, 0]


def test_a_monitor_that_missed_changes_reads_them_from_the_store() -> None:
    store, clock = MemoryStore(), Clock()
    with a_monitored_ranker(store=store, clock=clock) as ranker:
        monitor = ranker.monitor
        ranker._runtime.observer = SurfaceMonitor(ranker._runtime, clock)
        play(ranker, 3, seed=1)
        ranker._runtime.observer = monitor
        play(ranker, 2, seed=2)
        clock.now += 2 * MINUTE
        assert n_visits(ranker) == [5, 0]


# Definitions and problems


def test_updates_of_the_definition_are_annotated_and_the_problem_follows() -> None:
    problem = Problem(
        [0.5, 0.5], [[0.7, 0.3], [0.4, 0.6]], [[0.9, 0.5, 0.1, 0, 0], [0.2, 0.3, 0.8, 0, 0]],
        user_types=TYPES, items=ITEMS,
    )  # fmt: skip
    with a_monitored_ranker(clock=Clock(), problems={"home": problem}) as ranker:
        monitor = ranker.monitor
        assert monitor.has_problem
        assert monitor.problem_of(ranker.surface).optimal_values == pytest.approx([0.78, 0.6])
        ranker.add_items(["late"])
        ranker.retire_items(["a", "late"])
        surface_problem = monitor.problem_of(ranker.surface)
        assert surface_problem.optimal_values == pytest.approx([0.7 * 0.5 + 0.3 * 0.1, 0.6 * 0.8 + 0.4 * 0.3])
        assert surface_problem.random_values == pytest.approx([0.6 / 4, 1.1 / 4])
        assert surface_problem.item_means[:, 5].tolist() == [0, 0], "the problem does not have the item"
        assert [one.text for one in monitor.series()[1]] == ["late added", "a and late retired"]


def test_an_annotation_lists_a_few_of_many_items() -> None:
    with a_monitored_ranker() as ranker:
        ranker.add_items([f"x{number}" for number in range(1002)])
        assert [one.text for one in ranker.monitor.series()[1]] == ["x0, x1, x2 and 999 more added"]


def test_a_surface_without_a_problem_has_no_regret() -> None:
    clock = Clock()
    with a_monitored_ranker(clock=clock) as ranker:
        assert not ranker.monitor.has_problem
        assert ranker.monitor.problem_of(ranker.surface) is None
        play(ranker, 3, seed=1)
        clock.now += 2 * MINUTE
        assert ranker.monitor.series()[0].cumulative_regret is None


# Saving


def test_a_series_that_cannot_be_saved_is_saved_later_with_the_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = MemoryStore(), Clock()
    with a_monitored_ranker(store=store, clock=clock) as ranker:
        play(ranker, 3, seed=1)

        def fail(*_: object) -> None:
            raise StoreUnavailableError("the store is down")

        with monkeypatch.context() as patched:
            patched.setattr(store, "save_time_series", fail)
            with pytest.raises(StoreUnavailableError):
                ranker._runtime.save_snapshot()
        assert (store.snapshot(1).version, store.time_series(1)) == (0, None), "the changes are still needed"
        ranker._runtime.save_snapshot()
        assert (store.snapshot(1).version, store.time_series(1).version) == (3, 3)


def test_an_outage_does_not_hide_the_series() -> None:
    store, clock = FailingStore(), Clock()
    with a_monitored_ranker(store=store, clock=clock) as ranker:
        play(ranker, 3, seed=1)
        clock.now += 2 * MINUTE
        store.down = True
        assert n_visits(ranker) == [3, 0]
        assert ranker.monitor.last_hour()[1].visits.sum() == 3
        store.down = False


# Monitors of all surfaces


def test_every_surface_of_an_engine_is_monitored() -> None:
    store, clock = MemoryStore(), Clock()
    monitors = SurfaceMonitors(clock=clock)
    engine = Engine(store, sync_seconds=0.01, clock=clock, observe=monitors.observe)
    try:
        engine.create_surface(a_surface())
        store.create_surface("other", replace(a_surface(), name="other").definition)
        wait_until(lambda: len(engine.surfaces()) == 2)
        for runtime in engine.surfaces():
            assert monitors.of(runtime).runtime is runtime
            engine.feedback(runtime.rank("new").id)
            wait_until(lambda runtime=runtime: monitors.of(runtime).best is not None)
            assert len(monitors.of(runtime).recent) == 1
        engine.delete_surface("other")
        home = engine.surface("home")
        compared = monitors.of(home)._compared
        engine.feedback(home.rank("new").id)
        wait_until(lambda: monitors.of(home)._compared != compared)
    finally:
        engine.close()
        monitors.close()


def test_the_best_rankings_follow_the_latest_change() -> None:
    with a_monitored_ranker(clock=Clock()) as ranker:
        for number in range(1, 6):
            play(ranker, 1, seed=number)
            wait_until(lambda number=number: ranker.monitor._compared == (1, number))
        ranker.add_items(["late"])
        wait_until(lambda: ranker.monitor._compared == (2, 5))


def test_closed_monitors_still_observe() -> None:
    clock = Clock()
    with a_monitored_ranker(clock=clock) as ranker:
        ranker.monitors.close()
        play(ranker, 3, seed=1)
        clock.now += 2 * MINUTE
        assert n_visits(ranker) == [3, 0]


def test_a_surface_that_is_not_monitored_raises_a_type_error() -> None:
    monitors = SurfaceMonitors()
    try:
        with Ranker(a_surface()) as ranker, pytest.raises(TypeError, match="surface home is not monitored"):
            monitors.of(ranker._runtime)
    finally:
        monitors.close()


def test_a_series_that_cannot_be_read_is_an_error_of_its_surface(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditrank.engine._periodic_task._MIN_SECONDS", 0.01)
    store = MemoryStore()
    store.create_surface("home", a_surface().definition)
    monitors = SurfaceMonitors()
    with monkeypatch.context() as patched:
        patched.setattr(store, "time_series", lambda _: 1 / 0)
        engine = Engine(store, sync_seconds=0.01, observe=monitors.observe)
        assert engine.sync_errors == {"home": "ZeroDivisionError: division by zero"}
        assert engine.surfaces() == []
        with pytest.raises(ZeroDivisionError):
            engine.surface("home")
        assert engine._registry.all() == []
    try:
        wait_until(lambda: len(engine.surfaces()) == 1)
        wait_until(lambda: engine.sync_errors == {})
    finally:
        engine.close()
        monitors.close()
