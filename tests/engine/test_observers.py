"""Observers: every hook is called as documented, and a surface without an observer works."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from helpers.live import Clock, a_ranker, a_surface, play, seeded, wait_until

from banditrank.engine._engine import Engine
from banditrank.engine._observers import IssuedImpression, SurfaceObserver
from banditrank.engine._surface import Surface
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.errors import StoreUnavailableError
from banditrank.storage._memory import MemoryStore
from banditrank.storage._records import Change, Snapshot


class RecordingObserver(SurfaceObserver):
    """Records the calls of all hooks."""

    def __init__(self, runtime: SurfaceRuntime) -> None:
        self.runtime = runtime
        self.rankings: list[tuple[list[IssuedImpression], float]] = []
        self.changes: list[Change] = []
        self.versions: list[int] = []  # of the counts, when a change arrived
        self.definitions: list[tuple[Surface, Surface]] = []
        self.snapshots: list[Snapshot] = []  # stored when another was about to be saved
        self.error: Exception | None = None

    def on_rankings(self, issued: Sequence[IssuedImpression], issued_at: float) -> None:
        self.rankings.append((list(issued), issued_at))

    def on_change(self, change: Change) -> None:
        self.changes.append(change)
        self.versions.append(self.runtime.version)

    def on_definition(self, before: Surface, after: Surface) -> None:
        self.definitions.append((before, after))

    def on_snapshot(self) -> None:
        self.snapshots.append(self.runtime.store.snapshot(self.runtime.surface_id))
        if self.error is not None:
            raise self.error


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def engine(store: MemoryStore) -> Iterator[Engine]:
    engine = Engine(store, sync_seconds=0.01, clock=Clock(), observe=RecordingObserver)
    yield engine
    engine.close()


@pytest.fixture
def observer(engine: Engine) -> RecordingObserver:
    observer = engine.create_surface(a_surface()).observer
    assert isinstance(observer, RecordingObserver)
    return observer


def test_the_default_observer_does_nothing() -> None:
    with a_ranker() as ranker:
        assert type(ranker._runtime.observer) is SurfaceObserver
        play(ranker, 3, seed=1)
        ranker.add_items(["late"])
        assert ranker.counts().rounds == 3


def test_each_surface_is_observed_once_after_it_was_loaded(store: MemoryStore) -> None:
    with a_ranker(store=store) as ranker:
        play(ranker, 3, seed=1)
    observed: list[tuple[str, int, int]] = []

    def observe(runtime: SurfaceRuntime) -> SurfaceObserver:
        observed.append((runtime.surface.name, runtime.version, runtime.counts().counts.rounds))
        return SurfaceObserver()

    with contextlib.closing(Engine(store, sync_seconds=0.01, observe=observe)) as engine:
        assert observed == [("home", 3, 3)]
        engine.create_surface(replace(a_surface(), name="created"))
        store.create_surface("elsewhere", replace(a_surface(), name="elsewhere").definition)
        wait_until(lambda: len(engine.surfaces()) == 3)
        for name in ("home", "created", "elsewhere"):
            engine.surface(name)
        assert observed == [("home", 3, 3), ("created", 0, 0), ("elsewhere", 0, 0)]


def test_no_task_runs_for_a_surface_whose_observer_failed(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("banditrank.engine._periodic_task._MIN_SECONDS", 0.01)
    scheduled: list[SurfaceRuntime] = []
    due_in = SurfaceRuntime.due_in
    monkeypatch.setattr(
        SurfaceRuntime, "due_in", lambda runtime: scheduled.append(runtime) or due_in(runtime)
    )
    failed: list[SurfaceRuntime] = []
    store.create_surface("home", a_surface().definition)

    def observe(runtime: SurfaceRuntime) -> SurfaceObserver:
        if len(failed) < 3:
            failed.append(runtime)
            raise ValueError("no")
        return SurfaceObserver()

    with contextlib.closing(Engine(store, sync_seconds=0.01, observe=observe)) as engine:
        assert engine.sync_errors == {"home": "ValueError: no"}
        wait_until(lambda: len(engine.surfaces()) == 1)
        wait_until(lambda: scheduled != [])
        assert set(scheduled) == set(engine.surfaces())
        assert len(failed) == 3


def test_rankings_are_observed_with_their_ids_and_time(engine: Engine, observer: RecordingObserver) -> None:
    runtime = observer.runtime
    one = runtime.rank("new")
    batch = runtime.rank_batch(["old", "new", "old"])
    assert [issued_at for _, issued_at in observer.rankings] == [1e9, 1e9]
    assert [[ranking_id for ranking_id, _ in issued] for issued, _ in observer.rankings] == [
        [one.id],
        [ranking.id for ranking in batch],
    ]
    for issued, _ in observer.rankings:
        for ranking_id, impression in issued:
            assert engine.issued_ranking(ranking_id)[1].impression == impression
    assert [impression.user_type for _, impression in observer.rankings[1][0]] == [1, 0, 1]


def test_changes_of_this_and_of_other_processes_are_observed_in_order(
    store: MemoryStore, engine: Engine, observer: RecordingObserver
) -> None:
    runtime = observer.runtime
    for _ in range(3):
        engine.feedback(runtime.rank("new").id)
    with a_ranker(store=store, clock=Clock(), random_bytes=seeded(2)) as other:
        play(other, 4, seed=1)
    wait_until(lambda: runtime.version == 7)
    engine.feedback(runtime.rank("new").id)
    assert observer.changes == store.changes(1, after=0)
    assert [change.version for change in observer.changes] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert observer.versions == [1, 2, 3, 4, 5, 6, 7, 8], "the counts include the change"


def test_changes_that_were_pruned_leave_a_gap(
    store: MemoryStore, engine: Engine, observer: RecordingObserver
) -> None:
    runtime = observer.runtime
    engine.feedback(runtime.rank("new").id)
    engine._sync_loop.close()  # the test syncs
    with a_ranker(store=store, clock=Clock(), random_bytes=seeded(2)) as other:
        play(other, 4, seed=1)
    store.prune(1, before_ms=int(1e12) + 1)
    with a_ranker(store=store, clock=Clock(), random_bytes=seeded(3)) as other:
        play(other, 2, seed=2)
        runtime.catch_up(7)
    assert [change.version for change in observer.changes] == [1, 6, 7]
    assert runtime.rounds == 7


def test_new_definitions_are_observed(
    store: MemoryStore, engine: Engine, observer: RecordingObserver
) -> None:
    first = a_surface()
    second, third = first.with_items(["late"]), first.with_items(["late"]).with_retired(["a"])
    engine.update_surface("home", lambda surface: surface.with_items(["late"]))
    assert observer.definitions == [(first, second)]
    engine.update_surface("home", lambda surface: surface)
    assert observer.definitions == [(first, second)], "it is the same"
    store.update_surface(store.find_surface("home"), third.definition)
    wait_until(lambda: observer.runtime.revision == 3)
    assert observer.definitions == [(first, second), (second, third)]


def test_an_observer_saves_before_the_snapshot_is_saved(
    store: MemoryStore, engine: Engine, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = observer.runtime
    for _ in range(3):
        engine.feedback(runtime.rank("new").id)
    assert observer.snapshots == []
    observer.error = StoreUnavailableError("the store is down")
    with pytest.raises(StoreUnavailableError):
        runtime.save_snapshot()
    assert store.snapshot(1).version == 0, "an observer that could not save still needs the changes"
    observer.error = None
    runtime.save_snapshot()
    assert [snapshot.version for snapshot in observer.snapshots] == [0, 0]
    assert store.snapshot(1).version == 3
    monkeypatch.setattr("banditrank.engine._counts_replica._MIN_CHANGES_PER_SNAPSHOT", 2)
    monkeypatch.setattr(runtime._replica, "_bytes_since_snapshot", 10**6)
    for _ in range(2):
        engine.feedback(runtime.rank("new").id)
    wait_until(lambda: store.snapshot(1).version >= 5)
    assert [snapshot.version for snapshot in observer.snapshots] == [0, 0, 3]
    engine.feedback(runtime.rank("new").id)
    engine.close()
    assert [snapshot.version for snapshot in observer.snapshots] == [0, 0, 3, 5]
    assert store.snapshot(1).version == 6


def test_closing_survives_an_observer_that_cannot_save(
    store: MemoryStore, engine: Engine, observer: RecordingObserver, caplog: pytest.LogCaptureFixture
) -> None:
    engine.feedback(observer.runtime.rank("new").id)
    other = engine.create_surface(replace(a_surface(), name="other"))
    engine.feedback(other.rank("new").id)
    observer.error = StoreUnavailableError("the store is down")
    engine.close()
    assert (store.snapshot(1).version, store.snapshot(2).version) == (0, 1)
    logged = [(record.message, record.surface, record.error) for record in caplog.records]
    assert logged == [("snapshot failed: the store is down", "home", "the store is down")]
