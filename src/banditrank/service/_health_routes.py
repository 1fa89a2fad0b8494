"""Routes for liveness, readiness and metrics."""

import asyncio
import time

from starlette.responses import Response

from banditrank import __version__
from banditrank.engine._engine import Engine
from banditrank.errors import StoreUnavailableError
from banditrank.service import _metrics as metrics
from banditrank.service._http_errors import COMPILING, UNAVAILABLE, HttpError
from banditrank.service._requests import JsonResponse, Request
from banditrank.service._routing import Route
from banditrank.service._schemas import HealthResponse
from banditrank.service._thread_pools import ThreadPool

_READINESS_SECONDS = 1.0  # for which a result is reused: the route needs no key
_TIMEOUT_SECONDS = 5.0


class ReadinessCheck:
    """Checks that surfaces are loaded and that the store accepts a durable write.

    The store is checked at most once a second for all clients. A surface that is created later does not
    affect readiness: all replicas compile its code at the same time.

    Parameters
    ----------
    engine
        Engine to check.
    pool
        Threads in which the check runs.
    """

    def __init__(self, engine: Engine, pool: ThreadPool) -> None:
        self._engine = engine
        self._pool = pool
        self._check: asyncio.Task[None] | None = None
        self._checked_at = 0.0

    async def check(self) -> None:
        """Return if surfaces are loaded, and the store accepted a durable write within the last second.

        Raises
        ------
        HttpError
            A 503 if surfaces are being compiled or loaded.
        StoreError
            If the store did not accept the write.
        """
        if not self._engine.has_loaded:
            is_compiling = bool(self._engine.compilations.surfaces)
            raise HttpError(COMPILING, f"surfaces are being {'compiled' if is_compiling else 'loaded'}")
        now = time.monotonic()
        if self._check is None or (self._check.done() and now - self._checked_at >= _READINESS_SECONDS):
            self._checked_at = now
            self._check = asyncio.create_task(self._pool.run(self._engine.store.check))
        await asyncio.wait([self._check], timeout=_TIMEOUT_SECONDS)
        if not self._check.done():
            raise StoreUnavailableError(f"the store did not respond within {_TIMEOUT_SECONDS:g} s")
        self._check.result()


async def _health(_: Request) -> JsonResponse:
    return JsonResponse(HealthResponse("ok", __version__))


async def _readiness(request: Request) -> JsonResponse:
    await request.service.readiness.check()
    return JsonResponse(HealthResponse("ok", __version__))


async def _metrics(request: Request) -> Response:
    service = request.service
    exposition = await service.pools.metrics.run(service.metrics.exposition)
    return Response(exposition, media_type=metrics.CONTENT_TYPE)


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
        "Return a 200 while the store accepts durable writes, once its surfaces are compiled and loaded.",
        None,
        _readiness,
        response_schema=HealthResponse,
        errors=(UNAVAILABLE, COMPILING),
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
