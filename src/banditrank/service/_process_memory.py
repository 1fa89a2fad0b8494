"""Memory management of a long-running process: garbage collection and the heap of the C library."""

import ctypes
import gc
import sys
from typing import Any

TRIM_SECONDS = 30.0
"""Seconds between two calls of `trim_heap`."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of malloc.h
_MAX_ARENAS = 2
_MAX_HEAP_BLOCK_BYTES = 1 << 20


def freeze_objects() -> None:
    """Exempt all present objects from garbage collection.

    Otherwise a full collection visits all imported and compiled code, and blocks requests for 0.1 s.
    """
    gc.collect()
    gc.freeze()


def configure_heap() -> None:
    """Bound the fragmentation of the heap; must be called before threads start.

    By default each thread has an arena, and all of them fragment: a busy service with twenty threads grows by
    some MiB a minute.

    By default the arrays of a solver, some of 25 MiB, are in the heap once one of them was freed. Each solve
    then writes zeros to all of them, small blocks come to lie between them, and the heap grows. Large blocks
    therefore always have a mapping of their own: only the pages that are used are in memory, and all of them
    are returned at once.

    Does nothing without the GNU C library.
    """
    if (set_option := _c_function("mallopt")) is not None:
        set_option(_M_ARENA_MAX, _MAX_ARENAS)
        set_option(_M_MMAP_THRESHOLD, _MAX_HEAP_BLOCK_BYTES)
        set_option(_M_TRIM_THRESHOLD, 2 * _MAX_HEAP_BLOCK_BYTES)  # the ratio by default


def trim_heap() -> None:
    """Return free memory to the operating system. Does nothing without the GNU C library."""
    if (trim := _c_function("malloc_trim")) is not None:
        trim(0)


def _c_function(name: str) -> Any:
    """Return a function of the GNU C library; None elsewhere."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
