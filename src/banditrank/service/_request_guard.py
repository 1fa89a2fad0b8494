"""ASGI middleware that refuses ambiguous requests, for servers without the strict protocol."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from banditrank.service.strict_http import EXTENSION

_MAX_HEAD_BYTES = 1 << 16


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

        if _is_ambiguous(scope, headers):
            start = {"type": "http.response.start", "status": 400, "headers": [(b"content-length", b"0")]}
            await send_and_close(start)
            await send({"type": "http.response.body"})
        else:
            await self._app({**scope, "headers": headers}, receive, send_and_close if closes else send)


def _is_ambiguous(scope: MutableMapping[str, Any], headers: list[tuple[bytes, bytes]]) -> bool:
    values: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        values.setdefault(name, []).append(value.lower())
    size = len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
    size += sum(len(name) + len(value) for name, value in headers)
    if size > _MAX_HEAD_BYTES or scope["method"] == "CONNECT":
        return True
    version, n_hosts = scope["http_version"], len(values.get(b"host", ()))
    # Requests of HTTP/2 and HTTP/3 have frames.
    if version in ("2", "3"):
        return False
    codings, lengths = values.get(b"transfer-encoding", []), values.get(b"content-length", [])
    if version == "1.1":
        is_valid = n_hosts == 1 and (not codings or (codings == [b"chunked"] and not lengths))
    else:
        # Granian's name of HTTP/1.0 is 1.
        is_valid = version in ("1.0", "1") and n_hosts <= 1 and not codings
    has_body = bool(codings) or lengths not in ([], [b"0"])
    return not is_valid or len(lengths) > 1 or (b"upgrade" in values and has_body)
