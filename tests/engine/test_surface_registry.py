"""Loading of surfaces: one that takes long, or cannot be read, delays no other."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from helpers.live import a_ranker, a_surface, wait_until

from banditrank.engine._engine import Engine
from banditrank.engine._policy_snapshot import PolicySnapshot
from banditrank.engine._surface import Surface
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.errors import StoreError, StoreUnavailableError, UnknownNameError
from banditrank.storage._memory import MemoryStore


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Compile the formulas beforehand: that may take a minute."""
    with a_ranker() as ranker:
        ranker.rank("new")


@pytest.fixture(autouse=True)
def _short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditrank.engine._periodic_task._MIN_SECONDS", 0.01)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def engine(store: MemoryStore) -> Iterator[Engine]:
    engine = Engine(store, sync_seconds=0.01)
    yield engine
    engine.close()


def define(store: MemoryStore, name: str, **settings: object) -> None:
    store.create_surface(name, definition(name, **settings))


def definition(name: str, **settings: object) -> str:
    return json.dumps({**replace(a_surface(), name=name).to_dict(), **settings})


def names(engine: Engine) -> list[str]:
    return [runtime.surface.name for runtime in engine.surfaces()]


def test_a_surface_that_takes_long_to_load_delays_no_other(
    store: MemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, may_continue, loaded = threading.Event(), threading.Event(), []
    new_snapshot = SurfaceRuntime._new_snapshot

    def new_snapshot_slowly(runtime: SurfaceRuntime) -> PolicySnapshot:
        if runtime.surface.name == "slow":
            loaded.append(runtime)
            started.set()
            assert may_continue.wait(60)
        return new_snapshot(runtime)

    monkeypatch.setattr(SurfaceRuntime, "_new_snapshot", new_snapshot_slowly)
    define(store, "slow")
    assert started.wait(60)
    found: list[SurfaceRuntime] = []
    threads = [threading.Thread(target=lambda: found.append(engine.surface("slow"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    define(store, "quick")
    wait_until(lambda: names(engine) == ["quick"])
    before = engine.last_sync
    wait_until(lambda: engine.last_sync > before)
    may_continue.set()
    for thread in threads:
        thread.join()
    assert found == [engine.surface("slow")] * 3
    assert loaded == found[:1], "other threads wait for the first"


def test_threads_that_wait_for_a_surface_get_the_error_of_loading_it(
    store: MemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, may_continue = threading.Event(), threading.Event()

    def fail(_: SurfaceRuntime) -> PolicySnapshot:
        started.set()
        assert may_continue.wait(60)
        raise StoreUnavailableError("down")

    monkeypatch.setattr(SurfaceRuntime, "_new_snapshot", fail)
    define(store, "home")
    assert started.wait(60)
    (loading,) = engine._registry._loading.values()
    may_continue.set()
    with pytest.raises(StoreUnavailableError, match="down"):
        loading.result(60)
    with pytest.raises(StoreUnavailableError, match="down"):
        engine.surface("home")
    assert engine.sync_errors == {}, "an outage is no error of the surface"


NEWER = {"colour": "red"}
DROPPED = {"policy": "dropped"}


def test_surfaces_that_cannot_be_read_do_not_prevent_a_start(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    define(store, "dropped", **DROPPED)
    define(store, "home")
    define(store, "newer", **NEWER)
    engine = Engine(store, sync_seconds=0.01)
    try:
        assert names(engine) == ["home"]
        assert sorted(engine.sync_errors) == ["dropped", "newer"]
        newer = engine.sync_errors["newer"]
        assert newer.startswith(
            "surface in the store cannot be read: colour is not a field, must be one of name,"
        )
        with pytest.raises(StoreError, match="surface in the store cannot be read: policy must be one of"):
            engine.surface("dropped")
        define(store, "later")
        wait_until(lambda: names(engine) == ["home", "later"])
        assert store.update_surface(store.find_surface("newer"), definition("newer"))
        wait_until(lambda: names(engine) == ["home", "later", "newer"])
        wait_until(lambda: list(engine.sync_errors) == ["dropped"])
        engine.delete_surface("dropped")
        wait_until(lambda: engine.sync_errors == {})
    finally:
        engine.close()
    assert [(record.message.partition(":")[0], record.surface) for record in caplog.records] == [
        ("surface out of sync with the store", "dropped"),
        ("surface out of sync with the store", "newer"),
    ]
    assert all(record.message.endswith(f": {record.error}") for record in caplog.records)


def test_a_definition_that_cannot_be_read_delays_no_other(
    store: MemoryStore, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("one", "two"):
        engine.create_surface(replace(a_surface(), name=name))
    store.update_surface(store.find_surface("one"), definition("one", **NEWER))
    store.update_surface(store.find_surface("two"), definition("two", keep_seconds=100.0))
    wait_until(lambda: engine.surface("two").revision == 2)
    wait_until(lambda: list(engine.sync_errors) == ["one"])
    define(store, "three", **NEWER)
    define(store, "four")
    wait_until(lambda: names(engine) == ["four", "one", "two"])
    wait_until(lambda: sorted(engine.sync_errors) == ["one", "three"])
    assert engine.surface("one").rank("new").items, "its earlier definition is used"
    store.update_surface(store.find_surface("one"), definition("one", keep_seconds=100.0))
    wait_until(lambda: list(engine.sync_errors) == ["three"])
    assert engine.surface("one").surface.keep_seconds == 100.0
    assert len(caplog.records) == 2


def test_an_outdated_record_does_not_replace_a_surface_of_the_same_name(
    store: MemoryStore, engine: Engine
) -> None:
    engine.create_surface(a_surface())
    stale = store.find_surface("home")
    assert stale is not None
    engine.delete_surface("home")
    again = engine.create_surface(a_surface())
    registry = engine._registry
    old = registry.open(stale)
    assert engine.surface("home") is again
    registry.remove(old)
    assert engine.surface("home") is again
    old = registry.open(stale)
    registry.remove(again)
    assert engine.loaded("home") is old, "until the next sync finds that it was deleted, too"
    wait_until(lambda: engine.loaded("home") is not old)


def test_an_unknown_surface_cannot_be_deleted(engine: Engine) -> None:
    with pytest.raises(UnknownNameError):
        engine.delete_surface("home")


def test_an_invalid_definition_raises_a_store_error() -> None:
    for text in ("{", "[]", '{"name": 1}', definition("home", n_positions="two")):
        with pytest.raises(StoreError, match=r"^surface in the store cannot be read: "):
            Surface.from_definition(text)


def test_a_surface_that_cannot_be_ranked_is_not_stored(
    store: MemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(PolicySnapshot, "_compute", lambda *_: 1 / 0)
        for treatment in ("personalized", "equal"):
            with pytest.raises(ZeroDivisionError):
                engine.create_surface(a_surface(treatment=treatment))
    assert store.surfaces() == []
    assert engine.create_surface(a_surface()).rank("new").items
