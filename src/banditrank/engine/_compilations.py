"""Surfaces whose code is being compiled in this process."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from banditrank._compilation import notify_on_compile

logger = logging.getLogger(__name__)


class Compilations:
    """Tracks and logs the compilation of code for surfaces. Thread-safe.

    Code in the cache is only loaded, which does not count.

    Parameters
    ----------
    clock
        Returns a monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        # Start in each thread that compiles, by name of the surface.
        self._running: dict[str, list[float]] = {}
        self._lock = threading.Lock()
        self._clock = clock

    @property
    def surfaces(self) -> set[str]:
        """Names of the surfaces whose code is being compiled."""
        with self._lock:
            return set(self._running)

    def seconds(self, surface: str | None = None) -> float | None:
        """Return for how long code has been compiled for a surface, or for any; None if none is."""
        with self._lock:
            running = self._running.values() if surface is None else [self._running.get(surface, [])]
            starts = [start for thread_starts in running for start in thread_starts]
        return self._clock() - min(starts) if starts else None

    @contextmanager
    def track(self, surface: str) -> Iterator[None]:
        """Track what this thread compiles for a surface within the block, from the first formula on."""
        started_at: list[float] = []

        def on_compile() -> None:
            started_at.append(self._clock())
            with self._lock:
                self._running.setdefault(surface, []).append(started_at[0])
            logger.info("compilation started", extra={"surface": surface})

        try:
            with notify_on_compile("banditrank", on_compile, is_own_thread=True):
                yield
        finally:
            if started_at:
                with self._lock:
                    self._running[surface].remove(started_at[0])
                    if not self._running[surface]:
                        del self._running[surface]
                seconds = round(self._clock() - started_at[0], 1)
                logger.info("compilation finished", extra={"surface": surface, "seconds": seconds})
