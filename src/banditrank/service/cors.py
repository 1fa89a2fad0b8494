"""Pages of other origins that may ask: cross-origin resource sharing, for those that are named and no others.

A browser sends what a script of another origin asks for only after the service agreed to it, and shows the
script no answer without. The service agrees to nothing unless told to.
"""

import re
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, TypeAlias

from banditrank.errors import InvalidInputError
from banditrank.service.host_check import is_loopback
from banditrank.service.http import Headers, Receive, RequestHeaders, Response, Scope, Send

LOOPBACK = "loopback"
"""Stands for all origins on the machine itself, at any port."""

_ORIGIN = re.compile(r"(https?)://([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?")
_USUAL_PORTS = {"http": "80", "https": "443"}  # which browsers leave out
_REMEMBER_SECONDS = b"600"  # an agreement holds for this long before a browser asks again
_NOT_AGREED: Headers = ((b"vary", b"origin"),)
_AGREED: Headers = (
    (b"access-control-allow-methods", b"GET, POST, PATCH, DELETE"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", _REMEMBER_SECONDS),
)

Answer: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


def check_origins(origins: Sequence[str]) -> tuple[str, ...]:
    """Return origins as browsers write them, or raise an error.

    Examples
    --------
    >>> check_origins(["https://Shop.example", "loopback"])
    ('https://shop.example', 'loopback')
    >>> check_origins(["https://shop.example/page"])
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: allow_origins must be origins such as https://shop.example, or
        loopback, got 'https://shop.example/page'
    """
    return tuple(origin if origin == LOOPBACK else _checked(origin) for origin in origins)


def is_allowed(origin: str, allowed: Sequence[str]) -> bool:
    """Return whether a page of an origin may ask.

    Examples
    --------
    >>> is_allowed("http://localhost:8000", ["loopback"]), is_allowed("null", ["loopback"])
    (True, False)
    """
    return origin in allowed or (LOOPBACK in allowed and _is_on_this_machine(origin))


def agreement_with(headers: RequestHeaders, allowed: Sequence[str]) -> Headers:
    """Return what a browser is told with an answer: whether the page that asked may know it."""
    origin = headers.get(b"origin")
    if origin is None or not is_allowed(origin.decode("latin-1"), allowed):
        return _NOT_AGREED
    return ((b"access-control-allow-origin", origin), *_NOT_AGREED)


async def answer_across_origins(
    answer: Answer, allowed: Sequence[str], scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer a request, and tell the browser whether the page that asked may know.

    Parameters
    ----------
    answer
        Answers any request.
    allowed
        Origins that may ask.
    scope, receive, send
        Of the request.
    """
    headers = dict(scope["headers"])
    agreement = agreement_with(headers, allowed)
    wanted = headers.get(b"access-control-request-method")
    if agreement is not _NOT_AGREED and scope["method"] == "OPTIONS" and wanted is not None:
        await Response(204, b"", headers=(*agreement, *_AGREED)).send(send)
        return

    async def send_agreed(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *agreement]
        await send(message)

    await answer(scope, receive, send_agreed)


def _checked(origin: str) -> str:
    match = _ORIGIN.fullmatch(origin.lower()) if isinstance(origin, str) else None
    if match is None:
        rule = f"must be origins such as https://shop.example, or {LOOPBACK}"
        raise InvalidInputError("allow_origins", rule, origin)
    scheme, host, port = match.groups()
    return f"{scheme}://{host}" + ("" if port == _USUAL_PORTS[scheme] or port is None else f":{port}")


def _is_on_this_machine(origin: str) -> bool:
    match = _ORIGIN.fullmatch(origin.lower())  # with nothing behind it: it is sent back, and remembered
    return match is not None and is_loopback(match[2].strip("[]"))
