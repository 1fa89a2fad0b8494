"""Connections that are kept for the next who needs one."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from banditrank.errors import StoreUnavailableError


class Closable(Protocol):
    """A connection of whatever driver."""

    def close(self) -> None:
        """Let go of it, and undo what was not committed."""


C = TypeVar("C", bound=Closable)


class ConnectionPool(Generic[C]):
    """Hands out connections, opens new ones when there is none left, and keeps them afterwards.

    Nothing is tried again and nothing happens in the background: while the database is away every use says
    so at once, and the first use after it came back opens a new connection.

    Parameters
    ----------
    connect
        Opens a connection.
    is_stale
        Whether a connection that was not in use has been closed by the other side meanwhile.
    most
        How many there may be at a time.
    patience
        How many seconds to wait for one when all are in use.
    """

    def __init__(
        self,
        connect: Callable[[], C],
        *,
        is_stale: Callable[[C], bool] = lambda _: False,
        most: int = 16,
        patience: float = 5.0,
    ) -> None:
        self._connect, self._is_stale = connect, is_stale
        self._most, self._patience = most, patience
        self._room = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._idle: list[C] = []
        self._closed = False

    @contextmanager
    def one(self) -> Iterator[C]:
        """Hand out a connection. If the block raises, it is not used again: who knows what state it is in."""
        if not self._room.acquire(timeout=self._patience):
            raise StoreUnavailableError(f"all {self._most} connections to the store are in use")
        try:
            connection = self._take()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            self._keep(connection)
        finally:
            self._room.release()

    def _take(self) -> C:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._connect()
            if not self._is_stale(connection):
                return connection
            connection.close()

    def _keep(self, connection: C) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close all connections; those in use when they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
