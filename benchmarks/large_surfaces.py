"""Cost of the largest surfaces that the service accepts: 2 million cells of user type, item and position.

Times are processor times, of one call at a time, with all machine code compiled.
"""

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from banditrank._feedback import Feedback
from banditrank.dashboard._explain import explain
from banditrank.engine._engine import Engine
from banditrank.engine._surface import Surface
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.storage._memory import MemoryStore

T = TypeVar("T")

SIZES = ((1_000, 100, 20), (1_000, 2_000, 1), (200, 10_000, 1), (64, 10_000, 3), (2, 10_000, 100))
"""User types, items and positions."""

VISITS, BATCH = 5_000, 500


def measure_large_surfaces() -> Iterator[dict[str, float]]:
    """Time what has to read all cells of a surface: creation, opening, a refresh and an explanation."""
    _spend(lambda: dict(_measure(3, 12, 2)))  # compiles
    for size in SIZES:
        yield dict(_measure(*size))


def _measure(n_user_types: int, n_items: int, n_positions: int) -> Iterator[tuple[str, float]]:
    surface = Surface(
        "large",
        items=[f"item {number}" for number in range(n_items)],
        n_positions=n_positions,
        user_types=[f"type {number}" for number in range(n_user_types)],
        refresh_seconds=3600.0,
    )
    size = f"{n_user_types:,} types, {n_items:,} items, {n_positions} positions"
    store = MemoryStore()
    engine = Engine(store)
    runtime, seconds = _spend(lambda: engine.create_surface(surface))
    yield f"{size}: s to create", seconds
    _visit(engine, runtime)
    yield f"{size}, {VISITS:,} visits: s of a refresh", _spend(runtime.refresh)[1]
    ranking = runtime.rank(surface.user_types[0])
    yield f"{size}, {VISITS:,} visits: s of an explanation", _spend(lambda: explain(engine, ranking.id))[1]
    engine.close()
    engine, seconds = _spend(lambda: Engine(store))
    yield f"{size}, {VISITS:,} visits: s to open", seconds
    engine.close()


def _visit(engine: Engine, runtime: SurfaceRuntime) -> None:
    rng = np.random.default_rng(1)
    user_types = runtime.surface.user_types
    for _ in range(VISITS // BATCH):
        chosen = rng.integers(len(user_types), size=BATCH)
        rankings = runtime.rank_batch([user_types[number] for number in chosen])
        engine.feedback_batch(
            [Feedback(each.id, each.items[0] if rng.random() < 0.3 else None) for each in rankings]
        )


def _spend(work: Callable[[], T]) -> tuple[T, float]:
    start = time.process_time()
    result = work()
    return result, time.process_time() - start
