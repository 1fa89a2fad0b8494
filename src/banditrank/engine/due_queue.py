"""A schedule of when each surface has work due."""

import heapq
import threading
import time
from collections.abc import Callable, Hashable
from itertools import count
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class DueQueue(Generic[K]):
    """Priority queue of keys by due time.

    Thread-safe, but for `wait` and `take_due`, which one thread calls.

    Parameters
    ----------
    due_in
        Returns the number of seconds until there is work to do for a key: 0 or less if there is now,
        infinity if there is none before the key is marked again.

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
        self._heap: list[tuple[float, int, K]] = []
        self._due_at: dict[K, float] = {}  # of the entry that counts: others of the key are outdated
        self._order = count()  # so that keys are never compared

    def mark(self, key: K) -> None:
        """Reschedule a key: its due time may have changed."""
        if key not in self._marked:
            with self._wake:
                self._marked.add(key)
                self._wake.notify()

    def interrupt(self) -> None:
        """End the current wait, and all later ones."""
        with self._wake:
            self._is_interrupted = True
            self._wake.notify()

    def wait(self, timeout_seconds: float) -> bool:
        """Wait until a key is marked or due, or a timeout passed; return whether one is marked."""
        with self._wake:
            if not (self._marked or self._is_interrupted):
                if self._heap:
                    timeout_seconds = min(timeout_seconds, self._heap[0][0] - time.monotonic())
                if timeout_seconds > 0.0:
                    self._wake.wait(timeout_seconds)
            return bool(self._marked)

    def take_due(self) -> list[K]:
        """Return the keys with work to do now; each is looked at again once it is marked."""
        with self._wake:
            keys, self._marked = self._marked, set()
        now = time.monotonic()
        while self._heap and self._heap[0][0] <= now:
            moment, _, key = heapq.heappop(self._heap)
            if self._due_at.get(key) == moment:
                keys.add(key)
        due = []
        for key in keys:
            self._due_at.pop(key, None)
            seconds = self._due_in(key)
            if seconds <= 0.0:
                due.append(key)
            elif seconds < float("inf"):
                self._due_at[key] = moment = now + seconds
                heapq.heappush(self._heap, (moment, next(self._order), key))
        return due
