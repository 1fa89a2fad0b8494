"""Cross-origin resource sharing (CORS) for an explicit list of origins; none by default."""

import re
from collections.abc import MutableMapping, Sequence
from typing import Any

from banditrank.errors import InvalidInputError
from banditrank.service._host_check import is_loopback
from banditrank.service._http import AsgiApplication, Headers, Receive, RequestHeaders, Response, Scope, Send

LOOPBACK = "loopback"
"""Stands for all origins on this machine, at any port."""

_ORIGIN = re.compile(r"(https?)://([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?")
_DEFAULT_PORTS = {"http": "80", "https": "443"}  # browsers omit them
_NOT_ALLOWED: Headers = ((b"vary", b"origin"),)
_PREFLIGHT: Headers = (
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"600"),
)


def check_origins(origins: Sequence[str]) -> tuple[str, ...]:
    """Return the origins as browsers send them: in lower case, without default ports.

    Raises
    ------
    InvalidInputError
        If one of them is neither an origin nor ``loopback``.

    Examples
    --------
    >>> check_origins(["https://Shop.example", "loopback"])
    ('https://shop.example', 'loopback')
    >>> check_origins(["https://shop.example/page"])
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: allow_origins must be origins such as https://shop.example, or
        loopback, got 'https://shop.example/page'
    """
    return tuple(origin if origin == LOOPBACK else _normalize(origin) for origin in origins)


def is_allowed(origin: str, allowed_origins: Sequence[str]) -> bool:
    """Return whether pages of an origin may send requests.

    Examples
    --------
    >>> is_allowed("http://localhost:8000", ["loopback"]), is_allowed("null", ["loopback"])
    (True, False)
    """
    return origin in allowed_origins or (LOOPBACK in allowed_origins and _is_loopback_origin(origin))


def cors_headers(headers: RequestHeaders, allowed_origins: Sequence[str]) -> Headers:
    """Return the CORS headers of the response to a request."""
    origin = headers.get(b"origin")
    if origin is None or not is_allowed(origin.decode("latin-1"), allowed_origins):
        return _NOT_ALLOWED
    return ((b"access-control-allow-origin", origin), *_NOT_ALLOWED)


async def cors_middleware(
    application: AsgiApplication,
    allowed_origins: Sequence[str],
    methods: Sequence[str],
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Answer preflight requests of allowed origins, and add CORS headers to all other responses.

    Parameters
    ----------
    application
        Application that handles the request.
    allowed_origins
        Origins as `check_origins` returns them.
    methods
        Methods of all routes.
    scope, receive, send
        ASGI arguments of the request.
    """
    request_headers = dict(scope["headers"])
    headers = cors_headers(request_headers, allowed_origins)
    requested_method = request_headers.get(b"access-control-request-method")
    if headers is not _NOT_ALLOWED and scope["method"] == "OPTIONS" and requested_method is not None:
        allowed_methods = (b"access-control-allow-methods", ", ".join(methods).encode())
        await Response(204, b"", headers=(*headers, allowed_methods, *_PREFLIGHT)).send(send)
        return

    async def send_with_headers(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *headers]
        await send(message)

    await application(scope, receive, send_with_headers)


def _normalize(origin: str) -> str:
    match = _ORIGIN.fullmatch(origin.lower()) if isinstance(origin, str) else None
    if match is None:
        rule = f"must be origins such as https://shop.example, or {LOOPBACK}"
        raise InvalidInputError("allow_origins", rule, origin)
    scheme, host, port = match.groups()
    return f"{scheme}://{host}" + ("" if port == _DEFAULT_PORTS[scheme] or port is None else f":{port}")


def _is_loopback_origin(origin: str) -> bool:
    match = _ORIGIN.fullmatch(origin.lower())  # the whole header: it is sent back to the client
    return match is not None and is_loopback(match[2].strip("[]"))
