"""``GET /v1/access``: what the caller may do, for pages that hide what it may not."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from banditrank.service.http import Request, Response
from banditrank.service.routing import Route
from banditrank.service.schemas import AccessResponse

if TYPE_CHECKING:
    from banditrank.service.application import Application


async def _access(application: "Application", request: Request) -> Response:
    principal = application.rights.find(request.headers)
    answer = AccessResponse(application.rights.demanded, [])
    if principal is not None:
        answer.rights = list(principal.rights)
        answer.surfaces = list(principal.surfaces) or None
        if principal.expires_at_ms is not None:
            answer.expires_at = datetime.fromtimestamp(principal.expires_at_ms / 1000, UTC)
    return Response(200, msgspec.json.encode(answer))


ROUTES = (
    Route(
        "GET",
        "/v1/access",
        "access",
        "What the key that is sent with this request may do; everything, if keys are not demanded.",
        None,
        _access,
        answer=AccessResponse,
    ),
)
