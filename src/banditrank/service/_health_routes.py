"""Routes for liveness, readiness and metrics."""

import asyncio
import time
from typing import TYPE_CHECKING

import msgspec

from banditrank import __version__
from banditrank.errors import StoreUnavailableError
from banditrank.service import _metrics as metrics
from banditrank.service._http import Request, Response
from banditrank.service._http_errors import UNAVAILABLE
from banditrank.service._routing import Route
from banditrank.service._schemas import HealthResponse
from banditrank.service._thread_pools import ThreadPool
from banditrank.storage._base import Store

if TYPE_CHECKING:
    from banditrank.service._application import Application

_READINESS_SECONDS = 1.0  # for which a result is reused: the route needs no key
_TIMEOUT_SECONDS = 5.0


class ReadinessCheck:
    """Checks that the store accepts a durable write, at most once a second for all clients.

    Parameters
    ----------
    store
        Store to check.
    pool
        Threads in which the check runs.
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
        if self._check is None or (self._check.done() and now - self._checked_at >= _READINESS_SECONDS):
            self._checked_at = now
            self._check = asyncio.create_task(self._pool.run(self._store.check))
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                await asyncio.shield(self._check)
        except TimeoutError:
            raise StoreUnavailableError(f"the store did not respond within {_TIMEOUT_SECONDS:g} s") from None


async def _health(_application: "Application", _: Request) -> Response:
    return Response(200, msgspec.json.encode(HealthResponse("ok", __version__)))


async def _readiness(application: "Application", _: Request) -> Response:
    await application.readiness.check()
    return Response(200, msgspec.json.encode(HealthResponse("ok", __version__)))


async def _metrics(application: "Application", _: Request) -> Response:
    exposition = await application.pools.metrics.run(application.metrics.exposition)
    return Response(200, exposition, metrics.CONTENT_TYPE)


ROUTES = (
    Route(
        "GET",
        "/healthz",
        "health",
        "Return a 200 while the process is alive.",
        None,
        _health,
        response_schema=HealthResponse,
    ),
    Route(
        "GET",
        "/readyz",
        "readiness",
        "Return a 200 while the store accepts durable writes.",
        None,
        _readiness,
        response_schema=HealthResponse,
        errors=(UNAVAILABLE,),
    ),
    Route(
        "GET",
        "/metrics",
        "metrics",
        "Return metrics in the Prometheus text format.",
        "read",
        _metrics,
        content_type="text/plain",
    ),
)
