"""Priority queue of surfaces by the time at which they have work due."""

import heapq
import threading
import time
from collections.abc import Callable, Hashable
from itertools import count
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class DueQueue(Generic[K]):
    """Priority queue of keys by due time.

    Thread-safe, except for `wait` and `take_due`, which one thread calls.

    Parameters
    ----------
    due_in
        Returns the number of seconds until a key has work due: 0 or less if it has now, infinity if it has
        none before the key is marked again.

    Examples
    --------
    >>> due_in = {"a": 0.0, "b": 3600.0}
    >>> queue = DueQueue(due_in.__getitem__)
    >>> queue.mark("a")
    >>> queue.mark("b")
    >>> queue.take_due()
    ['a']
    >>> queue.take_due()
    []
    """

    def __init__(self, due_in: Callable[[K], float]) -> None:
        self._due_in = due_in
        self._wake = threading.Condition()
        self._marked: set[K] = set()
        self._is_interrupted = False
        self._is_woken = False
        self._heap: list[tuple[float, int, K]] = []
        self._due_at: dict[K, float] = {}  # heap entries with another time are outdated
        self._order = count()  # so that keys are never compared

    def mark(self, key: K) -> None:
        """Reschedule a key: its due time may have changed."""
        if key not in self._marked:
            with self._wake:
                self._marked.add(key)
                self._wake.notify()

    def wake(self) -> None:
        """End the current wait, or the next one."""
        with self._wake:
            self._is_woken = True
            self._wake.notify()

    def interrupt(self) -> None:
        """End the current wait, and all later ones."""
        with self._wake:
            self._is_interrupted = True
            self._wake.notify()

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until a key is marked or due, or a timeout expires; return whether a key is marked."""
        with self._wake:
            if not (self._marked or self._is_interrupted or self._is_woken):
                if self._heap:
                    due_seconds = self._heap[0][0] - time.monotonic()
                    timeout_seconds = (
                        due_seconds if timeout_seconds is None else min(timeout_seconds, due_seconds)
                    )
                if timeout_seconds is None or timeout_seconds > 0.0:
                    self._wake.wait(timeout_seconds)
            self._is_woken = False
            return bool(self._marked)

    def take_due(self) -> list[K]:
        """Return the keys with work due now; each is scheduled again once it is marked."""
        with self._wake:
            keys, self._marked = self._marked, set()
        now = time.monotonic()
        while self._heap and self._heap[0][0] <= now:
            due_at, _, key = heapq.heappop(self._heap)
            if self._due_at.get(key) == due_at:
                keys.add(key)
        due = []
        for key in keys:
            self._due_at.pop(key, None)
            seconds = self._due_in(key)
            if seconds <= 0.0:
                due.append(key)
            elif seconds < float("inf"):
                self._due_at[key] = due_at = now + seconds
                heapq.heappush(self._heap, (due_at, next(self._order), key))
        return due
