"""The memory of an engine and its monitor has a bound, however many rankings they count and however long."""

import gc
import random
import sys
import threading
import time
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from helpers.live import MAX_WAIT_SECONDS, Clock, MonitoredRanker, a_monitored_ranker, a_surface

from banditrank._feedback import Feedback
from banditrank.storage._memory import MemoryStore
from banditrank.testing._leaks import MIN_LEAK_BYTES

N_STEPS = 12  # in an hour
N_RANKINGS = 100  # in a step
N_FILLING = 3  # hours until all buffers are full: the last are the latest 64 revisions
SPARE = ["f", "g"]
_PACKAGES = {"banditrank", "builtins", "collections", "functools", "numpy"}
_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType, FrameType, threading.Thread)


def test_an_engine_retains_as_much_after_hours_as_before() -> None:
    """Finding 17: once its buffers are full, neither time nor requests add to what an engine holds."""
    clock, chance, store = Clock(1_800_000_000.0), random.Random(0), MemoryStore()  # noqa: S311 - no secret
    surface = a_surface(attribution_seconds=60.0, keep_seconds=1800.0, refresh_seconds=1.0)
    with a_monitored_ranker(surface, store, clock=clock) as ranker:
        for _ in range(N_FILLING):
            _run_hour(ranker, clock, chance)
        before = _retained_bytes(ranker, clock)
        for _ in range(3):
            _run_hour(ranker, clock, chance)
        after = _retained_bytes(ranker, clock)
    assert before > 50_000, "the buffers are found"
    # Provisional buckets of the time series, 16 KB, come and go, as do the 4 KB of a set that was emptied.
    assert after - before < MIN_LEAK_BYTES * 3 * N_STEPS * N_RANKINGS


def _run_hour(ranker: MonitoredRanker, clock: Clock, chance: random.Random) -> None:
    """Rank, report most rankings, and replace an item, over an hour of the clock."""
    for step in range(N_STEPS):
        clock.now += 3600 / N_STEPS
        shown = ranker.rank_batch([chance.choice(("new", "old")) for _ in range(N_RANKINGS)])
        ranker.feedback_batch(
            [
                Feedback(each.id, chance.choice([None, None, *each.items]))
                for each in shown
                if chance.random() < 0.8
            ]
        )
        added, retired = SPARE[step % 2], SPARE[1 - step % 2]
        ranker.add_items([added])
        if retired in ranker.surface.active_items:
            ranker.retire_items([retired])


def _retained_bytes(ranker: MonitoredRanker, clock: Clock) -> int:
    """Return the size of all objects that the engine refers to, without its store, when no work is left."""
    clock.now += 120.0
    runtime, until = ranker._runtime, time.monotonic() + MAX_WAIT_SECONDS
    while ranker._engine.committer.queued or runtime.due_in() <= 0.0 or runtime._expirer._being_expired:
        assert time.monotonic() < until
        time.sleep(0.01)
    ranker.monitor.series()  # adds changes that wait
    runtime.counts()
    return _deep_size((ranker._engine, ranker.monitor), exclude=ranker._engine.store)


def _deep_size(value: Any, *, exclude: Any) -> int:
    """Return the size of an object and of all that it refers to, apart from code and other packages."""
    size, seen, stack = 0, {id(exclude)}, [value]
    while stack:
        each = stack.pop()
        if (
            id(each) in seen
            or isinstance(each, _SHARED)
            or type(each).__module__.partition(".")[0] not in _PACKAGES
        ):
            continue
        seen.add(id(each))
        size += sys.getsizeof(each)
        stack.extend(gc.get_referents(each))
    return size
