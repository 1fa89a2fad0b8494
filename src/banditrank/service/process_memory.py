"""Memory of a process that serves for months: short garbage collections, and no free memory held back."""

import ctypes
import gc
import sys
from typing import Any

TRIM_SECONDS = 30.0
"""Seconds between two calls of `trim_heap`."""

_M_ARENA_MAX = -8  # of malloc.h
_MAX_HEAPS = 2


def freeze_objects() -> None:
    """Exempt all present objects from garbage collection.

    A full collection visits all that was imported and compiled, and for 0.1 s no request is answered.
    """
    gc.collect()
    gc.freeze()


def limit_heaps() -> None:
    """Let all threads allocate from a few heaps; to be called before threads are started.

    By default each of twenty threads fills a heap of its own, and all of them fragment: a busy service grows
    by some MiB a minute, though what it uses stays the same. Does nothing without the GNU C library.
    """
    if (set_option := _c_function("mallopt")) is not None:
        set_option(_M_ARENA_MAX, _MAX_HEAPS)


def trim_heap() -> None:
    """Return free memory to the operating system. Does nothing without the GNU C library."""
    if (trim := _c_function("malloc_trim")) is not None:
        trim(0)


def _c_function(name: str) -> Any:
    """Return a function of the GNU C library; None elsewhere."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
