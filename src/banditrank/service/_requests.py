"""Requests as handlers receive them, and JSON responses."""

from typing import TYPE_CHECKING, Any, cast

import msgspec
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response

if TYPE_CHECKING:
    from banditrank.engine._surface_runtime import SurfaceRuntime
    from banditrank.service._auth import Principal
    from banditrank.service._service import Service


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
        return request_id(self)

    async def surface(self) -> "SurfaceRuntime":
        """Return the surface in the path.

        Raises
        ------
        UnknownSurfaceError
            If it does not exist.
        CompilingError
            If it is not loaded yet, because code is being compiled.
        """
        return await self.service.surface(self.path_params["surface"])


class JsonResponse(Response):
    """A response whose body is encoded by msgspec; bytes are JSON already."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return content if isinstance(content, bytes) else msgspec.json.encode(content)


def request_id(request: StarletteRequest) -> str:
    """Return the id of a request, which `RequestMonitor` has set."""
    return cast("str", request.scope["state"]["request_id"])


def conditional(request: StarletteRequest, response: Response, etag: bytes) -> Response:
    """Return the response with its entity tag, or a 304 if the client sent the same tag."""
    tag = etag.decode("ascii")
    known = {each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")}
    if tag.removeprefix("W/") in known or "*" in known:
        return Response(status_code=304, headers={"etag": tag})
    response.headers["etag"] = tag
    return response
