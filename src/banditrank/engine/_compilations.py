"""Surfaces whose code is being compiled in this process."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from banditrank._compilation import notify_on_compile

logger = logging.getLogger(__name__)


class Compilations:
    """Tracks and logs the compilation of code for surfaces. Thread-safe.

    Code in the cache is only loaded, which does not count.
    """

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()  # number of threads that compile, by name of the surface
        self._lock = threading.Lock()

    @property
    def surfaces(self) -> set[str]:
        """Names of the surfaces whose code is being compiled."""
        with self._lock:
            return set(self._running)

    @contextmanager
    def track(self, surface: str) -> Iterator[None]:
        """Track what this thread compiles for a surface within the block, from the first formula on."""
        started_at: list[float] = []

        def on_compile() -> None:
            started_at.append(time.monotonic())
            with self._lock:
                self._running[surface] += 1
            logger.info("compilation started", extra={"surface": surface})

        try:
            with notify_on_compile("banditrank", on_compile, is_own_thread=True):
                yield
        finally:
            if started_at:
                with self._lock:
                    self._running[surface] -= 1
                    self._running += Counter()  # drops zeros
                seconds = round(time.monotonic() - started_at[0], 1)
                logger.info("compilation finished", extra={"surface": surface, "seconds": seconds})
