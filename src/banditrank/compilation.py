"""How formulas are compiled, and where the machine code is kept.

A formula is written once, as a module-level function decorated with `compiled` or `inlined`, and is called
from Python, from other formulas, and from the simulation loop. Five facts about Numba shape this module:

* A compiled function that is passed as an *argument*, or captured by a closure, is compiled anew in every
  process. `specialise` captures the plain Python functions instead, which are pickled by name, so that loops
  made for one policy and one click model are kept on disk as well.
* Reference counting of the arrays in a state costs five times the formulas themselves. Formulas therefore
  never allocate, and are compiled without it (``_nrt=False``): the caller owns every array.
* Without reference counting Numba borrows an array from Python, but takes a reference to a NumPy generator
  that it never releases: each call would leak. `_unbox_generator` borrows generators as well, so a call
  leaves the reference counts of all its arguments as they were. Functions of other packages are not affected.
* The compiler copies a formula that takes tuples of many arrays into each place that calls it, however large
  it is, and does so again at every level above. Large formulas are therefore called from one place.
* Numba invalidates a function's machine code when the function's own file changes, not when a formula that
  it calls does. The cache directory is therefore named after the contents of the whole package.
"""

import atexit
import hashlib
import os
import shutil
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
import numba.np.random.generator_core
import numpy as np
from numba import types
from numba.core import config, event
from numba.core.errors import NumbaWarning
from numba.extending import overload, register_jitable

P = ParamSpec("P")
R = TypeVar("R")

# error_model: division by zero gives inf or nan as in NumPy, without a test and a branch at each division.
# nogil: replications run in threads.
# no_cfunc_wrapper: what nobody calls need not be compiled.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
_INLINED: Any = {**_OPTIONS, "forceinline": True}
_INTERNAL: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True}

WITHOUT_FORMULAS = ("cli", "client", "demo", "engine", "experiments", "logs", "service", "storage", "testing")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a formula on its first call, and keep the machine code on disk."""
    return _compile(function, _OPTIONS)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `compiled`, for what runs every round: the caller's loop absorbs the body."""
    return _compile(function, _INLINED)


def internal(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `compiled`, for what only other formulas call.

    What would take arguments from Python apart takes long to compile if they are tuples of many arrays.
    """
    return _compile(function, _INTERNAL)


def dispatch_on_type(formulas: Mapping[type, Callable[..., Any]]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function stand for several formulas: the compiler calls that of the first argument's type.

    Parameters
    ----------
    formulas
        By a class of named tuples, each with the arguments of the function.
    """
    functions = {kind: getattr(formula, "py_func", formula) for kind, formula in formulas.items()}

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        overload(function, jit_options=_INLINED, strict=False)(
            lambda first, *_: functions[first.instance_class]
        )
        return function

    return decorate


@cache
def specialise(
    build: Callable[..., Callable[..., Any]], *formulas: Any, **constants: int
) -> Callable[..., Any]:
    """Compile the function that ``build`` makes around the given formulas and constants, once for each set.

    Parameters
    ----------
    build
        Takes the formulas and constants, returns the function to compile.
    formulas
        Functions made by `compiled` or `inlined`.
    constants
        Integers known at compile time.
    """
    captured = [_by_name(getattr(formula, "py_func", formula)) for formula in formulas]
    return _compile(build(*captured, **constants), _OPTIONS)


def _compile(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    with _cache_directory():
        dispatcher: Callable[..., Any] = numba.njit(cache=True, **options)(function)
    return dispatcher


@cache
def _by_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a formula's Python function callable from compiled code, and let pickle find it by name.

    In its module the name stands for the compiled formula; the function is that formula's ``py_func``.
    """
    function.__qualname__ += ".py_func"
    jitable: Callable[..., Any] = register_jitable(**_INLINED)(function)
    return jitable


class _GeneratorType(types.NumPyRandomGeneratorType):
    """Numba's type of NumPy generators, but unboxed by `_unbox_generator`."""


_numba: Any = numba  # its functions have no types
_cgutils = _numba.core.cgutils
_numba.extending.register_model(_GeneratorType)(_numba.np.random.generator_core.NumPyRandomGeneratorTypeModel)


@_numba.extending.typeof_impl.register(np.random.Generator)  # type: ignore[untyped-decorator]
def _typeof_generator(_: np.random.Generator, __: Any) -> _GeneratorType:
    return _GeneratorType("generator")


@_numba.extending.unbox(_GeneratorType)  # type: ignore[untyped-decorator]
def _unbox_generator(generator_type: Any, generator: Any, c: Any) -> Any:
    """Emit the code that unboxes a NumPy generator; without reference counting it is borrowed.

    Parameters
    ----------
    generator_type
        Its type in Numba.
    generator
        The pointer to it.
    c
        The context in which Numba unboxes.
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
    """Point Numba at this package's own cache while one function is decorated."""
    settings: Any = config  # its attributes are made at run time
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(cache_directory())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaWarning)
            yield
    finally:
        settings.CACHE_DIR = before


@contextmanager
def notify_on_compile(package: str, tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` once, as soon as a formula of a package must be compiled because it was not kept.

    Parameters
    ----------
    package
        Where the formula is: ``banditrank.solvers``.
    tell
        What to do then.
    """
    with event.install_listener("numba:compile", _FirstOf(package, tell)):
        yield


class _FirstOf(event.Listener):
    def __init__(self, package: str, tell: Callable[[], None]) -> None:
        self.package = package
        self.tell = tell
        self.told = False

    def on_start(self, event: Any) -> None:
        module = event.data["dispatcher"].py_func.__module__
        if not self.told and f"{module}.".startswith(f"{self.package}."):
            self.told = True
            self.tell()

    def on_end(self, event: Any) -> None:
        """Do nothing: whoever waits notices."""


class _HoldInterruption(event.Listener):
    """Keep Ctrl-C back while the main thread compiles or loads a formula, and raise it right after.

    The compiler would not survive it: it leaves functions that it half knows, and where it is called back by
    LLVM the interruption is lost. Whoever handles the signal in a way of their own is left alone.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.holds = False
        self.interrupted = False

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - all are alike
        if threading.current_thread() is not threading.main_thread():
            return
        if self.depth == 0 and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self.holds = True
        self.depth += 1

    def on_end(self, event: Any) -> None:  # noqa: ARG002 - all are alike
        if threading.current_thread() is not threading.main_thread():
            return
        self.depth -= 1
        if self.depth == 0 and self.holds:
            self.holds = False
            interrupted, self.interrupted = self.interrupted, False
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if interrupted:
                raise KeyboardInterrupt

    def _note(self, *_: object) -> None:
        self.interrupted = True


_events: Any = event  # its functions have no types
_events.register("numba:compiler_lock", _HoldInterruption())


@cache
def cache_directory() -> Path:
    """Return where machine code is kept: below ``NUMBA_CACHE_DIR`` or the user's cache directory.

    Where neither can be written to, it is kept for this process only.
    """
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        root = Path(chosen)
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "banditrank"
    directory = root / package_digest()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        directory = Path(tempfile.mkdtemp(prefix="banditrank-"))
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


@cache
def package_digest() -> str:
    """Return a digest of all source files that formulas, or the constants in them, may come from."""
    package = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=8)
    for source in sorted(package.rglob("*.py")):
        name = source.relative_to(package)
        if name.parts[0] in WITHOUT_FORMULAS:
            continue
        digest.update(name.as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()
