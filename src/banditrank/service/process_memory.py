"""Memory of a process that serves for months: short garbage collections, and no free memory held back."""

import ctypes
import gc
import sys

TRIM_SECONDS = 30.0
"""Seconds between two calls of `trim_heap`."""


def freeze_objects() -> None:
    """Exempt all present objects from garbage collection.

    A full collection visits all that was imported and compiled, and for 0.1 s no request is answered.
    """
    gc.collect()
    gc.freeze()


def trim_heap() -> None:
    """Return free memory to the operating system.

    Threads allocate from heaps of their own, which fragment: without this a busy service grows by some MiB
    a minute, though what it uses stays the same. Does nothing without the GNU C library.
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
