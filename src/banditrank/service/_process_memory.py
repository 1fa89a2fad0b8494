"""Memory management of a long-running process: garbage collection and the heap of the C library."""

import ctypes
import gc
import sys
from typing import Any

TRIM_SECONDS = 30.0
"""Seconds between two calls of `trim_heap`."""

_M_ARENA_MAX = -8  # of malloc.h
_MAX_ARENAS = 2


def freeze_objects() -> None:
    """Exempt all present objects from garbage collection.

    Otherwise a full collection visits all imported and compiled code, and blocks requests for 0.1 s.
    """
    gc.collect()
    gc.freeze()


def limit_arenas() -> None:
    """Limit the malloc arenas of the process; must be called before threads start.

    By default each thread has an arena, and all of them fragment: a busy service with twenty threads grows by
    some MiB a minute. Does nothing without the GNU C library.
    """
    if (set_option := _c_function("mallopt")) is not None:
        set_option(_M_ARENA_MAX, _MAX_ARENAS)


def trim_heap() -> None:
    """Return free memory to the operating system. Does nothing without the GNU C library."""
    if (trim := _c_function("malloc_trim")) is not None:
        trim(0)


def _c_function(name: str) -> Any:
    """Return a function of the GNU C library; None elsewhere."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
