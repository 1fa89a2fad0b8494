"""The cache is shared by processes, Ctrl-C waits for the compiler, calls leak nothing."""

import ast
import atexit
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock

import banditrank
from banditrank import _compilation
from banditrank._compilation import WITHOUT_FORMULAS, cache_directory, compiled, preferred_cache_directory
from banditrank._interrupts import deferred_interrupts
from banditrank.testing._leaks import assert_no_leaks

PACKAGE = Path(banditrank.__file__).parent
HARMLESS = {"cache_directory", "notify_on_compile", "preferred_cache_directory"}  # compile nothing


@pytest.mark.parametrize("layer", WITHOUT_FORMULAS)
def test_packages_without_formulas_compile_nothing(layer: str) -> None:
    files = sorted((PACKAGE / layer).rglob("*.py"))
    assert files
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules = {alias.name.partition(".")[0]: alias.name for alias in node.names}
                assert "numba" not in modules, file
                assert "banditrank._compilation" not in modules.values(), file
            elif isinstance(node, ast.ImportFrom) and node.module:
                assert node.module.partition(".")[0] != "numba", file
                if node.module == "banditrank._compilation":
                    assert {alias.name for alias in node.names} <= HARMLESS, file
                elif node.module == "banditrank":
                    assert "_compilation" not in {alias.name for alias in node.names}, file


@pytest.mark.usefixtures("default_interrupt")
def test_an_interrupt_waits_for_the_compiler() -> None:
    done = []

    @global_compiler_lock
    def compile_inner() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("inner")

    @global_compiler_lock
    def compile_outer() -> None:
        compile_inner()
        done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        compile_outer()
    assert done == ["inner", "outer"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with global_compiler_lock:
        pass  # the interrupt is raised only once


@pytest.mark.usefixtures("default_interrupt")
def test_an_application_handler_is_called_after_compilation() -> None:
    noted = []
    signal.signal(signal.SIGINT, lambda *_: noted.append("own"))
    with global_compiler_lock:
        signal.raise_signal(signal.SIGINT)
        assert noted == []
    assert noted == ["own"]


@pytest.mark.usefixtures("default_interrupt")
def test_the_compiler_is_not_interrupted_by_a_second_signal() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012, SIM117 - raised at the end of the lock
        with global_compiler_lock:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            done.append("compiled")
    assert done == ["compiled"]


@pytest.mark.usefixtures("default_interrupt")
def test_the_compiler_is_not_interrupted_within_a_call() -> None:
    done = []

    def call() -> None:
        with deferred_interrupts():
            with global_compiler_lock:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
                done.append("compiled")
            done.append("called")
            signal.raise_signal(signal.SIGINT)  # the first one was deferred to the end of the call
            done.append("not interrupted")

    with pytest.raises(KeyboardInterrupt):
        call()
    assert done == ["compiled", "called"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("default_interrupt")
def test_compiling_in_another_thread_leaves_the_signal_alone() -> None:
    seen = []

    def compile_something() -> None:
        with global_compiler_lock:
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=compile_something)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


class Arguments(NamedTuple):
    array: np.ndarray
    nested: tuple[np.ndarray, tuple[np.ndarray, int]]
    generator: np.random.Generator


def draw(arguments: Arguments, rng: np.random.Generator) -> float:
    return arguments.generator.random() + rng.random() + arguments.nested[1][0][0]


@pytest.mark.parametrize("compile_function", [compiled, numba.njit], ids=["without counts", "with counts"])
def test_calls_leave_references_to_arguments_as_they_were(compile_function: Any) -> None:
    rng = np.random.default_rng(0)
    arguments = Arguments(np.zeros(2), (np.zeros(3), (np.zeros(4), 5)), np.random.default_rng(1))
    function = compile_function(draw)
    assert function(arguments, rng) == draw(
        arguments._replace(generator=np.random.default_rng(1)), np.random.default_rng(0)
    )
    assert_no_leaks(lambda: function(arguments, rng), arguments, rng)


def test_an_unreadable_generator_raises() -> None:
    class Unreadable(np.random.Generator):
        @property
        def bit_generator(self) -> Any:
            raise RuntimeError("unreadable")

    rng = np.random.default_rng(0)
    arguments = Arguments(np.zeros(2), (np.zeros(3), (np.zeros(4), 5)), rng)
    with pytest.raises(RuntimeError, match="unreadable"):
        compiled(draw)(arguments, Unreadable(np.random.PCG64()))


def test_leaks_of_references_and_memory_are_found() -> None:
    kept: list[Any] = []
    array = np.zeros(1)
    assert_no_leaks(lambda: kept.append(1) or kept.clear(), array)
    with pytest.raises(AssertionError, match=r"references to argument 0\.1 changed by"):
        assert_no_leaks(lambda: kept.append(array), (1, array))
    for calls in (10, 100):  # the conformance suites make 10 calls at least
        with pytest.raises(AssertionError, match=f"{calls} calls leaked"):
            assert_no_leaks(lambda: kept.append(object()), calls=calls)


def test_a_read_only_cache_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose file system is read-only: Numba reads only caches that it can write to."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    preferred = preferred_cache_directory()
    (preferred / "formulas").mkdir(parents=True)
    (preferred / "formulas" / "code").write_text("machine code")
    assert cache_directory.__wrapped__() == preferred
    make, copies = tempfile.TemporaryFile, []

    def refuse(*, dir: Path) -> object:  # noqa: A002 - a parameter of TemporaryFile
        if Path(dir) == preferred:
            raise PermissionError
        return make(dir=dir)

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr(atexit, "register", lambda remove, *args, **_: copies.append((remove, args)))
    copy = cache_directory.__wrapped__()
    assert copy != preferred
    assert (copy / "formulas" / "code").read_text() == "machine code"
    ((remove, arguments),) = copies
    remove(*arguments)
    assert not copy.exists()


SAVING = """
import sys
from pathlib import Path
from numba.core.caching import IndexDataCacheFile
from banditrank._compilation import cache_directory

directory = cache_directory() / "functions"
directory.mkdir(exist_ok=True)
for number in range(200):
    IndexDataCacheFile(str(directory), "function", "stamp").save((sys.argv[1], number), (sys.argv[1], number))
"""


def test_processes_that_save_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SAVING]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    processes = [subprocess.Popen([*command, name], env=environment) for name in ("first", "second")]
    assert [process.wait() for process in processes] == [0, 0]
    (directory,) = tmp_path.glob("*/functions")
    index = IndexDataCacheFile(str(directory), "function", "stamp")
    for key in product(("first", "second"), range(200)):
        assert index.load(key) == key


COMPILING = """
import sys
import time
from banditrank._compilation import _compilation_lock
for _ in range(20):
    with _compilation_lock("the same"), open(sys.argv[1], "a", buffering=1) as log:
        log.write("begin\\n")
        time.sleep(0.005)
        log.write("end\\n")
"""


def test_one_process_compiles_while_others_wait(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COMPILING, str(tmp_path / "log")]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    processes = [subprocess.Popen(command, env=environment) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert (tmp_path / "log").read_text().split() == ["begin", "end"] * 40


def test_a_process_that_is_suspended_while_it_compiles_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_compilation, "_MAX_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(_compilation, "cache_directory", lambda: tmp_path)
    turns = []
    with _compilation._compilation_lock("the same"), _compilation._compilation_lock("the same"):
        turns.append("taken")
    assert turns == ["taken"]


def test_the_garbage_collector_runs_rarely_while_formulas_are_compiled() -> None:
    before = gc.get_threshold()
    inside = []

    def compile_something() -> None:
        with global_compiler_lock:
            inside.append(gc.get_threshold())

    try:
        gc.set_threshold(700, 200, 10)
        with global_compiler_lock:
            thread = threading.Thread(target=compile_something)
            thread.start()
            with global_compiler_lock:
                inside.append(gc.get_threshold())
        thread.join()
        assert inside == [(50_000, 200, 100)] * 2
        assert gc.get_threshold() == (700, 200, 10)
        with global_compiler_lock:
            gc.set_threshold(800, 5, 5)
        assert gc.get_threshold() == (800, 5, 5)
        gc.set_threshold(0)
        with global_compiler_lock:
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)


def test_functions_without_a_module_are_compiled() -> None:
    def increment(number: int) -> int:
        return number + 1

    increment.__module__ = None  # type: ignore[assignment] # as that of a function of exec
    assert numba.njit(increment)(1) == 2
