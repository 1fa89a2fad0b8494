"""Detection of leaked references and leaked memory in repeated calls."""

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

BATCHES = 2
MIN_LEAK_BYTES = 16  # no Python object and no allocation of Numba's runtime is smaller


def assert_no_leaks(call: Callable[[], object], *arguments: Any, calls: int = 100) -> None:
    """Assert that repeated calls leak neither references to their arguments nor memory.

    Memory is what Python, NumPy and Numba's runtime allocate. Other threads may allocate at the same time;
    a leak adds to every batch of calls, so the batch with the lowest growth decides.

    Parameters
    ----------
    call
        Calls the function under test with the arguments.
    arguments
        Arrays, generators, and tuples of these, nested to any depth; others are ignored.
    calls
        Number of calls in a batch.

    Raises
    ------
    AssertionError
        If the reference count of an argument changed, or if memory grew with the number of calls.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> assert_no_leaks(rng.random, rng)
    """
    gc.freeze()  # so that collections take no time for objects of the program
    try:
        call()  # compiles and fills caches
        gc.collect()  # cycles left by the call may refer to arguments
        watched = list(_referenced("", arguments))
        before = [sys.getrefcount(value) for _, value in watched]
        growth = _traced_growth(call, calls)
    finally:
        gc.unfreeze()
    for (name, value), count in zip(watched, before, strict=True):
        change = sys.getrefcount(value) - count
        assert change == 0, f"references to argument {name} changed by {change}"
    assert growth < MIN_LEAK_BYTES * calls, f"{calls} calls leaked {growth} bytes"


def _referenced(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield arrays, generators and tuples, with the path that leads to each."""
    if isinstance(value, tuple) and value:  # all empty tuples are one object
        if name:
            yield name, value
        fields = getattr(value, "_fields", range(len(value)))
        for field, item in zip(fields, value, strict=True):
            yield from _referenced(f"{name}.{field}" if name else str(field), item)
    elif isinstance(value, np.random.Generator):
        yield name, value
        yield f"{name}.bit_generator", value.bit_generator
    elif isinstance(value, np.ndarray):
        yield name, value


def _traced_growth(call: Callable[[], object], calls: int) -> int:
    """Return the lowest growth of traced memory in a batch, in bytes."""
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        sizes = [_traced_size(call, calls) for _ in range(BATCHES + 1)]  # the first fills caches
    finally:
        if not was_tracing:
            tracemalloc.stop()
    return min(after - before for before, after in pairwise(sizes))


def _traced_size(call: Callable[[], object], calls: int) -> int:
    """Return the traced memory in bytes after a batch of calls, without CPython's caches."""
    for _ in range(calls):
        call()
    gc.collect()
    _clear_attribute_cache()
    return tracemalloc.get_traced_memory()[0]


# It holds up to 4,096 names of looked-up attributes, and native code creates new ones.
_clear_attribute_cache: Callable[[], None] = getattr(sys, "_clear_internal_caches", sys._clear_type_cache)  # noqa: SLF001 - documented
