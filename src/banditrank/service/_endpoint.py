"""The ASGI application of a route: authorization, decoding, and the handler's response."""

import re
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from starlette import convertors, routing
from starlette.middleware import Middleware
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from banditrank.service._auth import ANONYMOUS, Principal
from banditrank.service._body_validation import body_error
from banditrank.service._http_errors import MALFORMED, WRONG_CONTENT_TYPE, HttpError
from banditrank.service._requests import JsonResponse, Request
from banditrank.service._routing import Route

_SEGMENT = "percent_encoded_segment"


def starlette_route(route: Route, *middleware: Middleware) -> routing.Route:
    """Return a route as Starlette takes it.

    Parameters
    ----------
    route
        Description of the route.
    *middleware
        Middleware around that of the route.
    """
    return routing.Route(
        re.sub(r"{(\w+)}", rf"{{\1:{_SEGMENT}}}", route.path),
        Endpoint(route),
        methods=[route.method],
        name=route.operation_id,
        middleware=[*middleware, *route.middleware],
    )


class Endpoint:
    """The ASGI application of a route: authorizes and decodes a request, and sends the handler's response."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._decoder: msgspec.json.Decoder[Any] | None = None
        if route.request_schema is not None:
            self._decoder = msgspec.json.Decoder(route.request_schema)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        route, request = self._route, Request(scope, receive, send)
        scope["state"]["operation"] = route.operation_id
        request.principal = _authorize(route, request)
        if self._decoder is not None:
            _check_content_type(request)
            request.content = _decode(self._decoder, await request.body())
        response = await route.handler(request)
        if scope["method"] == "HEAD" and isinstance(response, StreamingResponse):
            # Its body may never end.
            response = Response(headers=response.headers)
        await response(scope, receive, send)


def _authorize(route: Route, request: Request) -> Principal:
    """Return the caller, or raise a 401 or 403."""
    if route.right is None:
        return ANONYMOUS
    principal = request.service.authenticator.authenticate(request.headers)
    if route.scope == "handler":
        principal.check_right(route.right)
    else:
        principal.check(route.right, request.path_params.get("surface"))
    return principal


def _check_content_type(request: Request) -> None:
    content_type = request.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() != JsonResponse.media_type:
        rule = f"content-type must be {JsonResponse.media_type}"
        raise HttpError(WRONG_CONTENT_TYPE, f"{rule}, got {content_type[:80]!r}")


def _decode(decoder: "msgspec.json.Decoder[Any]", content: bytes) -> Any:
    """Return the body as an instance of its schema.

    Raises
    ------
    HttpError
        A 400 if it is not valid JSON.
    InvalidInputError
        If it does not conform to the schema.
    """
    try:
        try:
            return decoder.decode(content)
        except msgspec.ValidationError as error:
            raise body_error(decoder.type, content, error) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HttpError(MALFORMED, str(error)) from None
    except RecursionError:
        raise HttpError(MALFORMED, "the body is nested too deeply") from None


class _Segment(convertors.Convertor[str]):
    """Convertor of a percent-encoded segment, which may contain an encoded slash."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        return quote(value, safe="")


convertors.register_url_convertor(_SEGMENT, _Segment())


class PercentEncodedPaths:
    """Middleware that restores the path as the client sent it, so that routes decode their parameters."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http":
            raw_path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
            if b"%" in raw_path:
                root_path = scope.get("root_path", "")
                path = raw_path.partition(b"?")[0].decode("latin-1").removeprefix(quote(root_path))
                scope = {**scope, "path": root_path + path}
        await self._app(scope, receive, send)
