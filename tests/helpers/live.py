"""Test doubles of the engine: a manual clock, seeded ids, a failing store and a monitored ranker."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from banditrank._ranker import Ranker
from banditrank.dashboard._surface_monitor import SurfaceMonitor, SurfaceMonitors
from banditrank.engine._engine import Engine
from banditrank.engine._surface import Surface
from banditrank.errors import StoreUnavailableError
from banditrank.model._problem import Problem
from banditrank.storage._base import Store, WriteResult
from banditrank.storage._memory import MemoryStore
from banditrank.storage._records import Change, Event

ITEMS = ("a", "b", "c", "d", "e")
TYPES = ("new", "old")
MAX_WAIT_SECONDS = 300.0  # includes compilation on a busy machine


class Clock:
    """Manual clock, in seconds since 1970."""

    def __init__(self, now: float = 1e9) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class FailingStore(MemoryStore):
    """Memory store that can fail before or just after a commit."""

    def __init__(self) -> None:
        super().__init__()
        self.down = False
        self.loses_answers = False

    def _write(self, events: Sequence[Event], at_ms: int) -> WriteResult:
        self.fail_if_down()
        written = super()._write(events, at_ms)
        if self.loses_answers:
            raise StoreUnavailableError("the connection broke after the commit")
        return written

    def versions(self) -> dict[int, Any]:
        self.fail_if_down()
        return super().versions()

    def changes(self, surface_id: int, *, after: int, limit: int = 1000) -> list[Change]:
        self.fail_if_down()
        return super().changes(surface_id, after=after, limit=limit)

    def fail_if_down(self) -> None:
        if self.down:
            raise StoreUnavailableError("the store is down")


def a_surface(**settings: Any) -> Surface:
    """Return a surface that refreshes at once."""
    values = {"items": ITEMS, "n_positions": 2, "user_types": TYPES, "refresh_seconds": 0.0, **settings}
    return Surface("home", **values)


def seeded(seed: int) -> Callable[[int], bytes]:
    """Return a reproducible source of random bytes."""
    return random.Random(seed).randbytes  # noqa: S311 - reproducible, not secret


def a_ranker(surface: Surface | None = None, store: Store | None = None, **settings: Any) -> Ranker:
    """Return a ranker with seeded ids."""
    return Ranker(
        a_surface() if surface is None else surface, store, **{"random_bytes": seeded(1), **settings}
    )


class MonitoredRanker(Ranker):
    """Ranker whose engine polls and is monitored, as the service's is."""

    def __init__(
        self,
        surface: Surface,
        store: Store | None = None,
        *,
        clock: Callable[[], float] = time.time,
        problems: Mapping[str, Problem] = MappingProxyType({}),
        **settings: Any,
    ) -> None:
        self.monitors = SurfaceMonitors(clock=clock, problems=problems)
        self._engine = Engine(
            MemoryStore() if store is None else store,
            clock=clock,
            observe=self.monitors.observe,
            **settings,
        )
        self._runtime = self._open(surface)

    @property
    def monitor(self) -> SurfaceMonitor:
        """Monitor of the surface."""
        return self.monitors.of(self._runtime)

    def close(self) -> None:
        """Close the engine, then stop the monitors."""
        super().close()
        self.monitors.close()


def a_monitored_ranker(
    surface: Surface | None = None, store: Store | None = None, **settings: Any
) -> MonitoredRanker:
    """Return a monitored ranker with seeded ids."""
    return MonitoredRanker(
        a_surface() if surface is None else surface, store, **{"random_bytes": seeded(1), **settings}
    )


def play(ranker: Ranker, rounds: int, seed: int) -> list[str]:
    """Rank for random users who click at random; return the ranking ids."""
    rng = random.Random(seed)  # noqa: S311
    ids = []
    for _ in range(rounds):
        shown = ranker.rank(rng.choice(ranker.surface.user_types))
        clicked = rng.choice([None, *shown.items])
        reward = rng.choice([1.0, 0.5])
        ranker.feedback(shown.id, clicked=clicked, reward=1.0 if clicked is None else reward)
        ids.append(shown.id)
    return ids


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until a condition that other threads change holds; fail after some minutes."""
    end = time.monotonic() + MAX_WAIT_SECONDS
    while not holds():
        assert time.monotonic() < end, "condition did not hold in time"
        time.sleep(0.005)


def wait_for_tasks(ranker: Ranker) -> None:
    """Wait until no task of the ranker's surface is due."""
    wait_until(lambda: ranker._runtime.due_in() > 0.0)
