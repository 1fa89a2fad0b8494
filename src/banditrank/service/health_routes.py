"""Operations for those who watch the service."""

from typing import TYPE_CHECKING

import msgspec

from banditrank import __version__
from banditrank.service import metrics
from banditrank.service.http import Request, Response
from banditrank.service.http_errors import UNAVAILABLE
from banditrank.service.routing import Route
from banditrank.service.schemas import HealthResponse

if TYPE_CHECKING:
    from banditrank.service.application import Application


async def _alive(_application: "Application", _: Request) -> Response:
    return Response(200, msgspec.json.encode(HealthResponse("ok", __version__)))


async def _ready(application: "Application", _: Request) -> Response:
    await application.readiness.check()
    return Response(200, msgspec.json.encode(HealthResponse("ok", __version__)))


async def _metrics(application: "Application", _: Request) -> Response:
    return Response(200, await application.pools.metrics.run(application.metrics.text), metrics.CONTENT_TYPE)


ROUTES = (
    Route("GET", "/healthz", "health", "Whether the process is alive.", None, _alive, answer=HealthResponse),
    Route(
        "GET",
        "/readyz",
        "readiness",
        "Whether the store accepts a durable write.",
        None,
        _ready,
        answer=HealthResponse,
        problems=(UNAVAILABLE,),
    ),
    Route(
        "GET",
        "/metrics",
        "metrics",
        "Measurements, for Prometheus.",
        "read",
        _metrics,
        content_type="text/plain",
    ),
)
