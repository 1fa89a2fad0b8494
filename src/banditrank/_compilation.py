"""Compilation of formulas with Numba, and the on-disk cache of machine code.

A formula is written once, as a module-level function decorated with `compiled` or `inlined`, and is called
from Python, from other formulas, and from the simulation loop. Five facts about Numba shape this module:

* A compiled function that is passed as an *argument*, or captured by a closure, is recompiled in every
  process. `specialise` captures the plain Python functions instead, which are pickled by name, so that the
  loop of a policy and a click model is cached on disk as well.
* Reference counting of the arrays in a state takes five times as long as the formulas themselves. Formulas
  therefore never allocate, and are compiled without it (``_nrt=False``): the caller owns every array.
* Without reference counting Numba borrows an array from Python, but takes a reference to a NumPy generator
  that it never releases: each call would leak. `_unbox_generator` borrows generators as well, so a call
  leaves the reference counts of its arguments unchanged. Functions of other packages are not affected.
* The compiler inlines a formula that takes tuples of many arrays into each call site, however large it is,
  at every level of the call graph. Large formulas are therefore called from one place.
* Numba invalidates a function's machine code when the function's own file changes, not when a formula that
  it calls does. The cache directory is therefore named after a digest of the whole package, and formulas of
  users, which may use values and formulas of any file, are compiled in each process.
"""

import atexit
import fcntl
import gc
import hashlib
import os
import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numba
import numba.core.caching
import numba.np.random.generator_core
import numpy as np
from numba import types
from numba.core import config, event
from numba.core.errors import NumbaWarning
from numba.extending import overload, register_jitable

from banditrank._identity import identify
from banditrank._interrupts import deferred_interrupts
from banditrank._notebook import CompilationNotice, is_notebook
from banditrank.errors import InvalidInputError

P = ParamSpec("P")
R = TypeVar("R")

# error_model: division by zero gives inf or nan as in NumPy, without a test and a branch at each division.
# nogil: replications run in threads.
# no_cfunc_wrapper: formulas are never called from C.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
_INLINED: Any = {**_OPTIONS, "forceinline": True}
_NATIVE: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
_NATIVE_FUNCTIONS: list[Any] = []  # kept alive: their addresses are in use
_INTERNAL: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True}
_INTERNAL_INLINED: Any = {**_INLINED, "no_cpython_wrapper": True}
_MAX_WAIT_SECONDS, _POLL_SECONDS = 120.0, 0.05  # while another process compiles
_MERGED: dict[str, Any] = {**_INTERNAL, "inline": "always"}
_RARE_THRESHOLDS = (50_000, 20, 100)  # of the garbage collector

# Packages whose source does not affect machine code.
WITHOUT_FORMULAS = (
    *(
        "_cli",
        "_demo",
        "client",
        "dashboard",
        "engine",
        "experiments",
        "logs",
        "service",
        "storage",
        "testing",
    ),
)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a formula on its first call; cache the machine code on disk if it is part of this package."""
    return _compile(function, _OPTIONS)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `compiled`, and inline into compiled callers: for formulas that run every round."""
    return _compile(function, _INLINED)


def internal(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `compiled`, for formulas that are not called from Python.

    The wrapper that unpacks Python arguments takes long to compile for tuples of many arrays.
    """
    return _compile(function, _INTERNAL)


def merged(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `internal`, as part of the caller: for formulas around a large one.

    Each compiled level of the call graph optimises everything that it calls once more.
    """
    return _compile(function, _MERGED)


def dispatch_on_type(
    formulas: Mapping[type, Callable[..., Any]],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that makes compiled code call the formula for the type of the first argument.

    Parameters
    ----------
    formulas
        A formula for each class of named tuples, with the arguments of the decorated function.
    """
    functions = {kind: getattr(formula, "py_func", formula) for kind, formula in formulas.items()}

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        overload(function, jit_options=_INTERNAL_INLINED, strict=False)(
            lambda first, *_: functions[first.instance_class]
        )
        return function

    return decorate


@cache
def specialise(
    build: Callable[..., Callable[..., Any]], *formulas: Any, **constants: int
) -> Callable[..., Any]:
    """Compile the function that ``build`` returns for the given formulas and constants, once for each set.

    Parameters
    ----------
    build
        Takes the formulas and constants, returns the function to compile.
    formulas
        Functions decorated with `compiled` or `inlined`.
    constants
        Integers known at compile time.

    Returns
    -------
    Callable
        The compiled function.
    """
    captured = [_by_name(getattr(formula, "py_func", formula)) for formula in formulas]
    return _compile(build(*captured, **constants), _OPTIONS, is_cached=all(map(is_own, formulas)))


def check_unchanged(formula: Callable[..., Any]) -> None:
    """Check that a formula of a user is what it was when this was first called, which is before compilation.

    Machine code keeps the values and the formulas that it was compiled with.

    Raises
    ------
    InvalidInputError
        If a value or a formula that it uses has changed.
    """
    if is_own(formula):
        return
    function = getattr(formula, "py_func", formula)
    try:
        digest = identify("formula", function).digest
    except InvalidInputError:  # of values that are not compiled
        return
    if _COMPILED_DIGESTS.setdefault(function, digest) != digest:
        rule = "must be defined again, because values that it was compiled with have changed"
        raise InvalidInputError("formula", rule, function.__name__)


_COMPILED_DIGESTS: WeakKeyDictionary[Callable[..., Any], str] = WeakKeyDictionary()


def is_own(formula: Callable[..., Any]) -> bool:
    """Return whether a formula is part of this package.

    Others, and functions that are built around them, are not cached on disk: the cache would not notice that
    their source changes, and could not be read where their module is missing.
    """
    module = getattr(formula, "py_func", formula).__module__  # None for a function of exec
    return str(module).startswith("banditrank.")


def compile_native(function: Callable[..., None], signature: Any) -> int:
    """Return the address of a function that is compiled on its own, for a Numba signature.

    Of processes that need the same function at the same time, one compiles it, and the others wait for its
    machine code.
    """
    with _compilation_lock(f"{function.__module__}.{function.__qualname__} {signature}"), _cache_directory():
        native: Any = numba.cfunc(signature, cache=True, **_NATIVE)(function)
    _NATIVE_FUNCTIONS.append(native)
    return int(native.address)


@contextmanager
def _compilation_lock(function: str) -> Iterator[None]:
    """Wait while another process compiles the same function, up to a limit: that process may be suspended."""
    name = hashlib.blake2b(function.encode(), digest_size=8).hexdigest()
    with ExitStack() as stack:
        with suppress(OSError):  # a file system without locks
            lock = stack.enter_context((cache_directory() / f"{name}.lock").open("w"))
            for _ in range(round(_MAX_WAIT_SECONDS / _POLL_SECONDS)):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until the file is closed
                    break
                except BlockingIOError:
                    time.sleep(_POLL_SECONDS)
        yield


@cache
def wrap_formula(build: Callable[..., Callable[..., Any]], formula: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that ``build`` returns for a formula, for `compile_native`; always the same one."""
    return build(_by_name(getattr(formula, "py_func", formula)))


def _compile(
    function: Callable[..., Any], options: dict[str, Any], *, is_cached: bool = True
) -> Callable[..., Any]:
    with _cache_directory():
        is_cached = is_cached and is_own(function)
        dispatcher: Callable[..., Any] = numba.njit(cache=is_cached, **options)(function)
    return dispatcher


@cache
def _by_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a formula's Python function callable from compiled code and picklable by name.

    The module's name refers to the compiled formula; the function is its ``py_func``.
    """
    function.__qualname__ += ".py_func"
    jitable: Callable[..., Any] = register_jitable(**_INTERNAL_INLINED)(function)
    return jitable


def _lock_saves(save: Callable[..., None]) -> Callable[..., None]:
    """Return a method that saves machine code of this package, in one process at a time for each directory.

    Numba reads an index, adds an entry, and writes it. Two processes at the same time would lose an entry, or
    store machine code under the name that the index has for the other's.
    """

    @wraps(save)
    def locked_save(self: Any, key: Any, data: Any) -> None:
        with ExitStack() as stack:
            if cache_directory() in (directory := Path(self._cache_path)).parents:
                with suppress(OSError):  # a file system without locks
                    lock = stack.enter_context((directory / "lock").open("w"))
                    fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
            save(self, key, data)

    return locked_save


_caching: Any = numba.core.caching  # without types
_caching.IndexDataCacheFile.save = _lock_saves(_caching.IndexDataCacheFile.save)


class _GeneratorType(types.NumPyRandomGeneratorType):
    """Numba's type of NumPy generators, unboxed by `_unbox_generator`."""


GENERATOR_TYPE = _GeneratorType("generator")

_numba: Any = numba  # its functions have no types
_cgutils = _numba.core.cgutils
_numba.extending.register_model(_GeneratorType)(_numba.np.random.generator_core.NumPyRandomGeneratorTypeModel)


@_numba.extending.typeof_impl.register(np.random.Generator)  # type: ignore[untyped-decorator]
def _typeof_generator(_: np.random.Generator, __: Any) -> _GeneratorType:
    return GENERATOR_TYPE


@_numba.extending.unbox(_GeneratorType)  # type: ignore[untyped-decorator]
def _unbox_generator(generator_type: Any, generator: Any, c: Any) -> Any:
    """Emit code that unboxes a NumPy generator, as a borrowed reference without reference counting.

    Parameters
    ----------
    generator_type
        Numba's type of the generator.
    generator
        Pointer to the Python object.
    c
        Numba's unboxing context.
    """
    if c.context.enable_nrt:
        return c.unbox(types.NumPyRandomGeneratorType("generator"), generator)
    native = _cgutils.create_struct_proxy(generator_type)(c.context, c.builder)  # zeros: without owner
    native.parent = generator
    is_error = _cgutils.alloca_once_value(c.builder, _cgutils.true_bit)
    bit_generator = c.pyapi.object_getattr_string(generator, "bit_generator")
    with c.builder.if_then(_cgutils.is_not_null(c.builder, bit_generator)):
        unboxed = c.unbox(types.NumPyRandomBitGeneratorType("bit_generator"), bit_generator)
        native.bit_generator = unboxed.value
        c.builder.store(unboxed.is_error, is_error)
        c.pyapi.decref(bit_generator)  # the generator keeps it alive
    return _numba.extending.NativeValue(native._getvalue(), is_error=c.builder.load(is_error))  # noqa: SLF001 - Numba's idiom


@contextmanager
def _cache_directory() -> Iterator[None]:
    """Point Numba at this package's cache while a function is decorated."""
    settings: Any = config  # its attributes are made at run time
    with _SETTINGS_LOCK:
        before = settings.CACHE_DIR
        settings.CACHE_DIR = str(cache_directory())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NumbaWarning)
                yield
        finally:
            settings.CACHE_DIR = before


_SETTINGS_LOCK = threading.RLock()  # settings of Numba and filters of warnings are global


@contextmanager
def notify_on_compile(
    package: str, callback: Callable[[], None], *, is_own_thread: bool = False
) -> Iterator[None]:
    """Call ``callback`` once if a formula of a package is compiled because it is not in the cache.

    Parameters
    ----------
    package
        The package of the formula: ``banditrank.solvers``.
    callback
        Called before compilation.
    is_own_thread
        Whether to ignore what other threads compile.
    """
    thread_id = threading.get_ident() if is_own_thread else None
    with event.install_listener("numba:compile", _CompileListener(package, callback, thread_id)):
        yield


class _CompileListener(event.Listener):
    """Calls back on the first compilation in a package, by a thread if its id is given."""

    def __init__(self, package: str, callback: Callable[[], None], thread_id: int | None) -> None:
        self.package = package
        self.callback = callback
        self.thread_id = thread_id
        self.is_notified = False

    def on_start(self, event: Any) -> None:
        if self.thread_id not in (None, threading.get_ident()):
            return
        module = event.data["dispatcher"].py_func.__module__
        if not self.is_notified and f"{module}.".startswith(f"{self.package}."):
            self.is_notified = True
            self.callback()

    def on_end(self, event: Any) -> None:
        """Do nothing."""


class _InterruptDeferrer(event.Listener):
    """Defers Ctrl-C while the main thread compiles or loads a formula, and handles it right after.

    An interrupted compiler leaves half-registered functions behind, and an interruption inside a callback of
    LLVM is lost.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.block = ExitStack()

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - Numba's interface
        if threading.current_thread() is not threading.main_thread():
            return
        if self.depth == 0:
            self.block.enter_context(deferred_interrupts(defer_all=True))
        self.depth += 1

    def on_end(self, event: Any) -> None:  # noqa: ARG002 - Numba's interface
        if threading.current_thread() is not threading.main_thread():
            return
        self.depth -= 1
        if self.depth == 0:
            self.block.close()


class _RareCollection(event.Listener):
    """Lets the garbage collector run rarely while formulas are compiled.

    The compiler keeps nearly all objects that it makes: searching them for garbage takes a tenth of its time.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0  # over all threads
        self.thresholds = self.rare = gc.get_threshold()

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - Numba's interface
        with self.lock:
            if self.depth == 0:
                self.thresholds = gc.get_threshold()
                if self.thresholds[0]:  # 0: the program has switched it off
                    gc.set_threshold(*map(max, self.thresholds, _RARE_THRESHOLDS))
                self.rare = gc.get_threshold()
            self.depth += 1

    def on_end(self, event: Any) -> None:  # noqa: ARG002 - Numba's interface
        with self.lock:
            self.depth -= 1
            if self.depth == 0 and gc.get_threshold() == self.rare:  # the program has not set others
                gc.set_threshold(*self.thresholds)


class _NotebookListener(event.Listener):
    """Shows a notice in a notebook while a formula of this package is compiled."""

    def __init__(self) -> None:
        self.notice = CompilationNotice()

    def on_start(self, event: Any) -> None:
        if is_own(event.data["dispatcher"]) and is_notebook():
            self.notice.start()

    def on_end(self, event: Any) -> None:
        if is_own(event.data["dispatcher"]) and is_notebook():
            self.notice.end()


_events: Any = event  # its functions have no types
_events.register("numba:compiler_lock", _RareCollection())  # first: the end of the other one may raise
_events.register("numba:compiler_lock", _InterruptDeferrer())
_events.register("numba:compile", _NotebookListener())


@cache
def cache_directory() -> Path:
    """Return the cache directory of machine code.

    If the preferred one is not writable, as in a read-only container, a temporary copy of it that is removed
    when the process ends: Numba reads only caches that it can write to.
    """
    directory = preferred_cache_directory()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        copy = Path(tempfile.mkdtemp(prefix="banditrank-"))
        atexit.register(shutil.rmtree, copy, ignore_errors=True)
        with suppress(OSError):  # there is nothing to copy, or not all of it: the rest is compiled
            shutil.copytree(directory, copy, copy_function=shutil.copyfile, dirs_exist_ok=True)
        return copy
    return directory


def preferred_cache_directory() -> Path:
    """Return the cache directory below ``NUMBA_CACHE_DIR``, or below the user's cache directory."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        root = Path(chosen)
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "banditrank"
    return root / package_digest()


@cache
def package_digest() -> str:
    """Return a digest of all source files that may contain formulas or their constants."""
    package = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=8)
    for source in sorted(package.rglob("*.py")):
        name = source.relative_to(package)
        if name.parts[0] in WITHOUT_FORMULAS:
            continue
        digest.update(name.as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()
