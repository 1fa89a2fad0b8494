"""Readiness: whether the store accepts a durable write now."""

import asyncio
import time

from banditrank.errors import StoreUnavailableError
from banditrank.service.thread_pools import ThreadPool
from banditrank.storage.base import Store

_FRESH_SECONDS = 1.0  # unauthenticated, so a result is reused for a second
_TIMEOUT_SECONDS = 5.0


class Readiness:
    """Check the store at most once a second, for all clients.

    Parameters
    ----------
    store
        The store that must accept writes.
    pool
        Where the check runs.
    """

    def __init__(self, store: Store, pool: ThreadPool) -> None:
        self._store = store
        self._pool = pool
        self._check: asyncio.Task[None] | None = None
        self._checked_at = 0.0

    async def check(self) -> None:
        """Return if the store accepted a durable write within the last second.

        Raises
        ------
        StoreError
            If it did not.
        """
        now = time.monotonic()
        if self._check is None or (self._check.done() and now - self._checked_at >= _FRESH_SECONDS):
            self._checked_at = now
            self._check = asyncio.create_task(self._pool.run(self._store.check))
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                await asyncio.shield(self._check)
        except TimeoutError:
            raise StoreUnavailableError(f"the store did not answer within {_TIMEOUT_SECONDS:g} s") from None
