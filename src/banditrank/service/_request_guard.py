"""ASGI middleware that refuses ambiguous requests, for servers without the strict protocol."""

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from banditrank.service.strict_http import EXTENSION

_MAX_HEAD_BYTES = 1 << 16

logger = logging.getLogger(__name__)


class RequestGuard:
    """Refuse requests whose end or host is ambiguous with a 400, and close their connections.

    A proxy may find another end of such a request than the server behind it, and the bytes in between would
    become a request. Requests that the strict protocol has checked are passed on.

    Parameters
    ----------
    app
        ASGI application.
    """

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Check the head of a request, and pass it on or refuse it."""
        if scope["type"] != "http" or EXTENSION in (scope.get("extensions") or {}):
            await self._app(scope, receive, send)
            return
        # A copy, because some servers add trailers to theirs.
        headers = list(scope["headers"])
        closes = any(name == b"upgrade" for name, _ in headers)

        async def send_and_close(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        if reason := _refusal_reason(scope, headers):
            logger.info("request refused", extra={"reason": reason})
            start = {"type": "http.response.start", "status": 400, "headers": [(b"content-length", b"0")]}
            await send_and_close(start)
            await send({"type": "http.response.body"})
        else:
            await self._app({**scope, "headers": headers}, receive, send_and_close if closes else send)


def _refusal_reason(scope: MutableMapping[str, Any], headers: list[tuple[bytes, bytes]]) -> str | None:
    values: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        values.setdefault(name, []).append(value.lower())
    size = len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
    size += sum(len(name) + len(value) for name, value in headers)
    version, n_hosts = scope["http_version"], len(values.get(b"host", ()))
    codings, lengths = values.get(b"transfer-encoding", []), values.get(b"content-length", [])
    is_valid_coding = not codings or (version == "1.1" and codings == [b"chunked"] and not lengths)
    has_body = bool(codings) or lengths not in ([], [b"0"])
    # Requests of HTTP/2 and HTTP/3 have frames; Granian's name of HTTP/1.0 is 1.
    is_text = version not in ("2", "3")
    refusals = {
        "the head is too large": size > _MAX_HEAD_BYTES,
        "CONNECT is not supported": scope["method"] == "CONNECT",
        "the HTTP version is not supported": is_text and version not in ("1.1", "1.0", "1"),
        "a request must have exactly one host": is_text
        and (n_hosts > 1 or (n_hosts == 0 and version == "1.1")),
        "the end of the body is ambiguous": is_text and (not is_valid_coding or len(lengths) > 1),
        "an upgrade with a body is not supported": is_text and b"upgrade" in values and has_body,
    }
    return next((reason for reason, is_broken in refusals.items() if is_broken), None)
