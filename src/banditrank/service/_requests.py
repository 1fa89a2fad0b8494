"""Requests as handlers receive them, and JSON responses."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.types import Scope

if TYPE_CHECKING:
    from banditrank.engine._surface_runtime import SurfaceRuntime
    from banditrank.service._auth import Principal
    from banditrank.service._service import Service


@dataclass(slots=True)
class RequestInfo:
    """What middleware and exception handlers know of a request.

    Attributes
    ----------
    id
        Request id, for log lines and error responses.
    headers
        Headers by lower-case name; the last value of a repeated name.
    operation_id
        Operation id of its route, for metrics and log lines.
    """

    id: str
    headers: dict[bytes, bytes]
    operation_id: str = "none"


class Request(StarletteRequest):
    """A request after routing, authentication and decoding.

    Attributes
    ----------
    service
        The service that handles the request.
    principal
        The authenticated caller.
    content
        Decoded body, an instance of the route's `request_schema`.
    """

    service: "Service"
    principal: "Principal"
    content: Any

    @property
    def id(self) -> str:
        """Request id, for log lines and error responses."""
        return info_of(self.scope).id

    async def surface(self) -> "SurfaceRuntime":
        """Return the surface in the path.

        Raises
        ------
        HttpError
            A 404 if it does not exist.
        CompilingError
            If it is not loaded yet, because code is being compiled.
        """
        return await self.service.surface(self.path_params["surface"])


_encode = msgspec.json.Encoder().encode


class JsonResponse(Response):
    """A response whose body is encoded by msgspec; bytes are JSON already."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return content if isinstance(content, bytes) else _encode(content)


# A key of its own in the state, which a mounted service shares with its host.
_STATE_KEY = "banditrank"


def info_of(scope: Scope) -> RequestInfo:
    """Return what `RequestMonitor` has noted of a request."""
    return cast("RequestInfo", scope["state"][_STATE_KEY])


def note_info(scope: Scope, info: RequestInfo) -> None:
    """Note what `info_of` returns."""
    scope.setdefault("state", {})[_STATE_KEY] = info


def make_conditional(request: StarletteRequest, response: Response, etag: bytes) -> Response:
    """Return the response with its entity tag, or a 304 if the client sent the same tag."""
    tag = etag.decode("ascii")
    known = {each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")}
    if tag.removeprefix("W/") in known or "*" in known:
        return Response(status_code=304, headers={"etag": tag})
    response.headers["etag"] = tag
    return response
