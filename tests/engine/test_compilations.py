"""Compilation is tracked by surface, and delays no other surface."""

import logging
import threading
from dataclasses import replace

import pytest
from helpers.live import a_ranker, a_surface, wait_until
from helpers.slow_compilation import compile_formula, slow_compilation

from banditrank.engine._allowed_items import AllowedItems
from banditrank.engine._compilations import Compilations
from banditrank.engine._engine import Engine
from banditrank.engine._policy_snapshot import PolicySnapshot
from banditrank.errors import CompilingError
from banditrank.storage._memory import MemoryStore


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Compile the formulas beforehand."""
    for treatment in ("personalized", "equal"):
        with a_ranker(a_surface(treatment=treatment)) as ranker:
            ranker.rank("new")


def stored(*names: str) -> MemoryStore:
    store = MemoryStore()
    for name in names:
        store.create_surface(name, replace(a_surface(), name=name).definition)
    return store


def test_compilation_is_tracked_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="banditrank")
    compilations = Compilations()
    with compilations.track("home"):
        assert compilations.surfaces == set()
        compile_formula()
        compile_formula()
        assert compilations.surfaces == {"home"}
    assert compilations.surfaces == set()
    started, finished = caplog.records
    assert (started.message, started.surface) == ("compilation started", "home")
    assert (finished.message, finished.surface) == ("compilation finished", "home")
    assert finished.seconds >= 0


def test_the_duration_of_a_compilation_is_known() -> None:
    """Finding 13: it is counted from the first thread of the surface, or of any, and None without one."""
    now = [100.0]
    compilations = Compilations(clock=lambda: now[0])
    assert compilations.seconds() is None
    with compilations.track("home"):
        compile_formula()
        now[0] = 107.0
        with compilations.track("home"):
            compile_formula()
            now[0] = 123.0
            assert compilations.seconds("home") == 23.0
        assert compilations.seconds("home") == compilations.seconds() == 23.0
        assert compilations.seconds("shop") is None
    assert compilations.seconds("home") is None


def test_cached_code_and_other_threads_do_not_count(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="banditrank")
    compilations = Compilations()
    with compilations.track("home"), a_ranker() as ranker:
        ranker.rank("new")
        thread = threading.Thread(target=compile_formula)
        thread.start()
        thread.join()
        assert compilations.surfaces == set()
    assert [record for record in caplog.records if record.name.endswith("_compilations")] == []


def test_two_threads_may_compile_for_one_surface() -> None:
    compilations, may_end = Compilations(), threading.Event()

    def compile_and_wait() -> None:
        with compilations.track("home"):
            compile_formula()
            may_end.wait(60)

    thread = threading.Thread(target=compile_and_wait)
    thread.start()
    with compilations.track("home"):
        compile_formula()
    wait_until(lambda: compilations.surfaces == {"home"})
    may_end.set()
    thread.join()
    assert compilations.surfaces == set()


def test_an_engine_starts_before_its_surfaces_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    with slow_compilation(monkeypatch, "slow") as slow:
        engine = Engine(stored("slow", "quick"), sync_seconds=0.01, loads_in_background=True)
        try:
            slow.wait_for_start()
            assert not engine.wait_until_loaded(60.0), "it does not wait for the compiler"
            wait_until(lambda: engine.loaded("quick") is not None)
            for _ in range(20):  # more than there are threads
                with pytest.raises(CompilingError, match="surface 'slow' is not loaded yet"):
                    engine.surface("slow")
            assert len(engine.surface("quick").rank("new").items) == 2
            assert not engine.has_loaded
            slow.finish()
            assert engine.wait_until_loaded(60.0)
            assert len(engine.surface("slow").rank("new").items) == 2
        finally:
            engine.close()


def test_a_surface_that_is_found_later_is_loaded_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    store = stored()
    engine = Engine(store, sync_seconds=60.0, loads_in_background=True)
    try:
        assert engine.wait_until_loaded(60.0)
        with slow_compilation(monkeypatch, "slow") as slow:
            for name in ("slow", "quick"):
                store.create_surface(name, replace(a_surface(), name=name).definition)
            with pytest.raises(CompilingError):
                engine.surface("slow")
            slow.wait_for_start()
            assert engine.has_loaded, "only the surfaces of the start count"
        wait_until(lambda: engine.loaded("slow") is not None)
        assert len(engine.surface("quick").rank("new").items) == 2
    finally:
        engine.close()


def test_without_a_background_requests_wait_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    with slow_compilation(monkeypatch, "slow") as slow:
        threading.Timer(0.2, slow.finish).start()
        engine = Engine(stored("slow"), sync_seconds=60.0)
        assert engine.has_loaded
        assert len(engine.surface("slow").rank("new").items) == 2
        engine.close()


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("treatment", ["personalized", "equal"])
def test_code_for_candidates_is_compiled_with_the_surface(
    monkeypatch: pytest.MonkeyPatch, *, is_stored: bool, treatment: str
) -> None:
    surface = a_surface(treatment=treatment)
    store, compiling, choose = MemoryStore(), [], PolicySnapshot._choose

    def choose_slowly(
        snapshot: PolicySnapshot, user_type: int, seed: bytes, allowed: AllowedItems
    ) -> tuple[int, ...]:
        compile_formula()
        compiling.append(engine.compilations.surfaces)
        return choose(snapshot, user_type, seed, allowed)

    monkeypatch.setattr(PolicySnapshot, "_choose", choose_slowly)
    if is_stored:
        store.create_surface(surface.name, surface.definition)
    engine = Engine(store)
    runtime = engine.surface(surface.name) if is_stored else engine.create_surface(surface)
    assert compiling
    assert all(surfaces == {surface.name} for surfaces in compiling)
    assert runtime.restricts_fast == (treatment == "personalized")
    engine.close()


def test_rankings_continue_while_another_treatment_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    store = stored("home")
    here, there = (Engine(store, sync_seconds=0.01) for _ in range(2))
    before = here.surface("home")
    with slow_compilation(monkeypatch, "home") as slow:
        updating = threading.Thread(
            target=here.update_surface, args=("home", lambda surface: replace(surface, treatment="equal"))
        )
        updating.start()
        slow.wait_for_start()
        assert before.surface.treatment == "personalized", "it is stored once it is compiled"
        assert len(before._snapshots.policy.rank_batch([0], bytes)) == 1
        assert len(there.surface("home").rank("new").items) == 2
        slow.finish()
        updating.join()
    wait_until(lambda: there.surface("home").policy_snapshot().surface.treatment == "equal")
    assert before.policy_snapshot().surface.treatment == "equal"
    here.close()
    there.close()
