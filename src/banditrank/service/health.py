"""Operations for those who watch the service."""

from typing import TYPE_CHECKING

import msgspec

from banditrank import __version__
from banditrank.service import metrics
from banditrank.service.messages import Request, Response
from banditrank.service.models import Health
from banditrank.service.operations import Operation
from banditrank.service.problems import UNAVAILABLE

if TYPE_CHECKING:
    from banditrank.service.application import Application


async def _alive(_application: "Application", _: Request) -> Response:
    return Response(200, msgspec.json.encode(Health("ok", __version__)))


async def _ready(application: "Application", _: Request) -> Response:
    await application.readiness.check()
    return Response(200, msgspec.json.encode(Health("ok", __version__)))


async def _metrics(application: "Application", _: Request) -> Response:
    return Response(200, await application.pools.metrics.run(application.metrics.text), metrics.CONTENT_TYPE)


OPERATIONS = (
    Operation("GET", "/healthz", "health", "Whether the process is alive.", None, _alive, answer=Health),
    Operation(
        "GET",
        "/readyz",
        "readiness",
        "Whether the store accepts a durable write.",
        None,
        _ready,
        answer=Health,
        problems=(UNAVAILABLE,),
    ),
    Operation(
        "GET",
        "/metrics",
        "metrics",
        "Measurements, for Prometheus.",
        "read",
        _metrics,
        content_type="text/plain",
    ),
)
