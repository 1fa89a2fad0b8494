"""A pool of database connections."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from banditrank.errors import StoreUnavailableError


class Closable(Protocol):
    """A connection of any driver."""

    def close(self) -> None:
        """Close the connection and roll back what was not committed."""


C = TypeVar("C", bound=Closable)


class ConnectionPool(Generic[C]):
    """Opens connections on demand and reuses them.

    The pool never retries and has no background thread: while the database is unreachable every use fails at
    once, and the first use afterwards opens a new connection.

    Parameters
    ----------
    connect
        Opens a connection.
    is_stale
        Returns whether an idle connection was closed by the server.
    max_connections
        Maximum number of connections in use.
    timeout_seconds
        Time to wait for a connection when all are in use.
    """

    def __init__(
        self,
        connect: Callable[[], C],
        *,
        is_stale: Callable[[C], bool] = lambda _: False,
        max_connections: int = 16,
        timeout_seconds: float = 5.0,
    ) -> None:
        self._connect, self._is_stale = connect, is_stale
        self._max_connections, self._timeout_seconds = max_connections, timeout_seconds
        self._slots = threading.BoundedSemaphore(max_connections)
        self._lock = threading.Lock()
        self._idle: list[C] = []
        self._is_closed = False

    @contextmanager
    def connection(self) -> Iterator[C]:
        """Return a connection for the block; if the block raises, its state is unknown and it is closed.

        Raises
        ------
        StoreUnavailableError
            If all connections stay in use.
        """
        if not self._slots.acquire(timeout=self._timeout_seconds):
            raise StoreUnavailableError(f"all {self._max_connections} connections to the store are in use")
        try:
            connection = self._acquire()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            self._release(connection)
        finally:
            self._slots.release()

    def _acquire(self) -> C:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._connect()
            if not self._is_stale(connection):
                return connection
            connection.close()

    def _release(self, connection: C) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close idle connections now, and the others when they are released."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
