"""Surfaces are put to work each by itself: one that takes long, or cannot be read, holds up no other."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from live import a_ranker, a_surface, wait_until

from banditrank.engine.engine import Engine
from banditrank.engine.policy_snapshot import PolicySnapshot
from banditrank.engine.surface import Surface
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.errors import StoreError, StoreUnavailableError, UnknownNameError
from banditrank.storage.memory import MemoryStore


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Nobody waits for formulas to be compiled: that may take a minute."""
    with a_ranker() as ranker:
        wait_until(lambda: ranker._runtime.monitor.best is not None)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditrank.engine.backoff._LEAST_SECONDS", 0.01)


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
    return [live.surface.name for live in engine.surfaces()]


def test_a_surface_that_takes_long_to_open_holds_up_nobody_else(
    store: MemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_go_on, make, made = threading.Event(), threading.Event(), SurfaceRuntime._new_snapshot, []

    def slowly(live: SurfaceRuntime) -> PolicySnapshot:
        if live.surface.name == "slow":
            made.append(live)
            begun.set()
            assert may_go_on.wait(60)
        return make(live)

    monkeypatch.setattr(SurfaceRuntime, "_new_snapshot", slowly)
    define(store, "slow")
    assert begun.wait(60)
    found: list[SurfaceRuntime] = []
    askers = [threading.Thread(target=lambda: found.append(engine.surface("slow"))) for _ in range(3)]
    for asker in askers:
        asker.start()
    define(store, "quick")
    wait_until(lambda: names(engine) == ["quick"])
    before = engine.last_sync
    wait_until(lambda: engine.last_sync > before)
    may_go_on.set()
    for asker in askers:
        asker.join()
    assert found == [engine.surface("slow")] * 3
    assert made == found[:1], "who asks meanwhile waits for the same"


def test_who_waits_for_a_surface_is_told_why_there_is_none(
    store: MemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_go_on = threading.Event(), threading.Event()

    def fail(_: SurfaceRuntime) -> PolicySnapshot:
        begun.set()
        assert may_go_on.wait(60)
        raise StoreUnavailableError("down")

    monkeypatch.setattr(SurfaceRuntime, "_new_snapshot", fail)
    define(store, "home")
    assert begun.wait(60)
    (being_made,) = engine._registry._loading.values()
    may_go_on.set()
    with pytest.raises(StoreUnavailableError, match="down"):
        being_made.result(60)
    with pytest.raises(StoreUnavailableError, match="down"):
        engine.surface("home")
    assert engine.sync_errors == {}, "that passes"


NEWER = {"colour": "red"}
DROPPED = {"policy": "dropped"}


def test_surfaces_that_cannot_be_read_hold_up_no_start(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    define(store, "dropped", **DROPPED)
    define(store, "home")
    define(store, "newer", **NEWER)
    engine = Engine(store, sync_seconds=0.01)
    try:
        assert names(engine) == ["home"]
        assert sorted(engine.sync_errors) == ["dropped", "newer"]
        assert (
            "a surface in the store is not of this version: surface must be one of name,"
            in (engine.sync_errors["newer"])
        )
        with pytest.raises(StoreError, match="not of this version: policy must be one of"):
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
    said = [record.getMessage() for record in caplog.records]
    assert [text.partition(":")[0] for text in said] == [
        "surface dropped is not at work as it is in the store",
        "surface newer is not at work as it is in the store",
    ]


def test_a_definition_that_cannot_be_read_holds_up_no_other(
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
    assert engine.surface("one").rank("new").items, "it goes on as it was"
    store.update_surface(store.find_surface("one"), definition("one", keep_seconds=100.0))
    wait_until(lambda: list(engine.sync_errors) == ["three"])
    assert engine.surface("one").surface.keep_seconds == 100.0
    assert len(caplog.records) == 2


def test_a_record_of_a_surface_that_was_deleted_since_replaces_no_other(
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
    registry.drop(old)
    assert engine.surface("home") is again
    old = registry.open(stale)
    registry.drop(again)
    assert engine.loaded("home") is old, "until the store says that it is gone, too"
    wait_until(lambda: engine.loaded("home") is not old)


def test_what_is_not_there_cannot_be_deleted(engine: Engine) -> None:
    with pytest.raises(UnknownNameError):
        engine.delete_surface("home")


def test_a_text_that_is_no_definition_is_said_to_be_of_another_version() -> None:
    for text in ("{", "[]", '{"name": 1}', definition("home", n_positions="two")):
        with pytest.raises(StoreError, match="a surface in the store is not of this version"):
            Surface.from_definition(text)


def test_a_surface_that_cannot_be_ranked_is_not_stored(
    store: MemoryStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(PolicySnapshot, "_make", lambda *_: 1 / 0)
        for treatment in ("personalized", "equal"):
            with pytest.raises(ZeroDivisionError):
                engine.create_surface(a_surface(treatment=treatment))
    assert store.surfaces() == []
    assert engine.create_surface(a_surface()).rank("new").items
