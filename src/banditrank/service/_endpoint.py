"""The ASGI application of a route: authorization, decoding, and the handler's response."""

import asyncio
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import msgspec
from starlette import convertors
from starlette.middleware import Middleware
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from banditrank.service._auth import ANONYMOUS, Principal
from banditrank.service._body_validation import body_error
from banditrank.service._http_errors import (
    CLIENT_DISCONNECTED,
    MALFORMED,
    TOO_LARGE,
    TOO_SLOW,
    WRONG_CONTENT_TYPE,
    HttpError,
)
from banditrank.service._middleware import CancelOnDisconnect, StreamLimits
from banditrank.service._requests import Request, RequestInfo, info_of
from banditrank.service._routing import Route
from banditrank.service._settings import Settings

if TYPE_CHECKING:
    from banditrank.service._service import Service

# A content length may have thousands; no limit has that many.
_MAX_LENGTH_DIGITS = 18
_SEGMENT = "percent_encoded_segment"


def starlette_route(route: Route, service: "Service") -> StarletteRoute:
    """Return a route of a service as Starlette takes it."""
    middleware = [Middleware(StreamLimits, service)] if route.events else []
    middleware += [Middleware(CancelOnDisconnect)] if route.is_cancellable else []
    return StarletteRoute(
        re.sub(r"{(\w+)}", rf"{{\1:{_SEGMENT}}}", route.path),
        Endpoint(route, service),
        methods=[route.method],
        name=route.operation_id,
        middleware=middleware,
    )


class Endpoint:
    """The ASGI application of a route: authorizes and decodes a request, and sends the handler's response."""

    def __init__(self, route: Route, service: "Service") -> None:
        self._route = route
        self._service = service
        self._decoder: msgspec.json.Decoder[Any] | None = None
        if route.request_schema is not None:
            self._decoder = msgspec.json.Decoder(route.request_schema)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        info, request = info_of(scope), Request(scope, receive, send)
        info.operation_id = self._route.operation_id
        request.service = self._service
        request.principal = self._authorize(info, scope["path_params"])
        if self._decoder is not None:
            body = await _read_body(info.headers, receive, self._service.settings)
            request.content = _decode(self._decoder, body)
        response = await self._route.handler(request)
        if scope["method"] == "HEAD" and isinstance(response, StreamingResponse):
            # Its body may never end.
            response = _without_body(response)
        await response(scope, receive, send)

    def _authorize(self, info: RequestInfo, path_params: Mapping[str, str]) -> Principal:
        """Return the caller, or raise a 401 or 403."""
        right = self._route.right
        if right is None:
            return ANONYMOUS
        principal = self._service.authenticator.authenticate(info.headers.get(b"authorization", b""))
        if self._route.scope == "handler":
            principal.check_right(right)
        else:
            principal.check(right, path_params.get("surface"))
        return principal


def _without_body(response: Response) -> Response:
    without = Response(status_code=response.status_code, headers=response.headers)
    # The length of the body is not known.
    del without.headers["content-length"]
    return without


async def _read_body(headers: Mapping[bytes, bytes], receive: Receive, settings: Settings) -> bytearray:
    """Return the body of a request.

    Raises
    ------
    HttpError
        A 408 if it arrives too slowly, a 413 if it is too large, a 415 if it is not JSON.
    """
    content_type = headers.get(b"content-type", b"")
    if content_type.partition(b";")[0].strip().lower() != b"application/json":
        received = content_type.decode("latin-1")[:80]
        raise HttpError(WRONG_CONTENT_TYPE, f"content-type must be application/json, got {received!r}")
    # Before the server asks for the body with a 100 Continue.
    length = headers.get(b"content-length", b"")
    _check_size(int(length[:_MAX_LENGTH_DIGITS]) if length.isdigit() else 0, settings)
    body = bytearray()
    try:
        async with asyncio.timeout(settings.body_timeout_seconds):
            is_complete = False
            while not is_complete:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise HttpError(CLIENT_DISCONNECTED, "the client disconnected before its body arrived")
                body += message.get("body", b"")
                _check_size(len(body), settings)
                is_complete = not message.get("more_body", False)
    except TimeoutError:
        detail = f"a body must arrive within {settings.body_timeout_seconds:g} seconds"
        raise HttpError(TOO_SLOW, detail) from None
    return body


def _check_size(n_bytes: int, settings: Settings) -> None:
    if n_bytes > settings.max_body_bytes:
        raise HttpError(TOO_LARGE, f"a body must be at most {settings.max_body_bytes:,} bytes")


def _decode(decoder: "msgspec.json.Decoder[Any]", content: bytearray) -> Any:
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
                path = _behind_root(raw_path.partition(b"?")[0].decode("latin-1"), root_path)
                scope = {**scope, "path": root_path + path}
        await self._app(scope, receive, send)


def _behind_root(raw_path: str, root_path: str) -> str:
    """Return the part of a percent-encoded path behind a decoded prefix, which some servers omit.

    The prefix ends at a slash that is not encoded. Otherwise the host would see another path than the service
    does, and its rules for paths could be bypassed.
    """
    end = 0
    while root_path and (end := raw_path.find("/", end + 1)) > 0:
        if unquote(raw_path[:end]) == root_path:
            return raw_path[end:]
    return raw_path
