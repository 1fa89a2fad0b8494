"""Responses in one piece.

uvicorn writes the head of a response to the connection, then its body, and looks through every header for
signs that do not belong there. To write twice takes as long as to make a ranking: whoever listens is woken up
twice. So a response that is all there is written at once, from lines that were looked through before.
"""

from collections.abc import Awaitable
from functools import lru_cache
from typing import Any

from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    RequestResponseCycle,
)

from banditrank.service.messages import BODY_IS_THERE, Receive, Scope, Send


class WholeResponses:
    """An application whose responses are sent in one piece where they can be.

    It is told whether the body of a request has come in one piece, too.

    Parameters
    ----------
    application
        As it is, with uvicorn's way to send.
    """

    def __init__(self, application: Any) -> None:
        self._application = application

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer a request."""
        cycle = getattr(send, "__self__", None)
        if isinstance(cycle, RequestResponseCycle):
            scope[BODY_IS_THERE] = not cycle.more_body
            if scope["method"] != "HEAD":
                send = _Sender(cycle).send
        answered: Awaitable[None] = self._application(scope, receive, send)
        return answered


class _Sender:
    """Keeps the head of a response until it is known whether the body is whole."""

    __slots__ = ("_cycle", "_head")

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._head: Any = None

    async def send(self, message: Any) -> None:
        """Take a message of the application's."""
        head, cycle = self._head, self._cycle
        if head is None and message["type"] == "http.response.start" and not cycle.response_started:
            self._head = message
            return
        if head is not None:
            self._head = None
            if not message.get("more_body", False) and self._sends_whole(head, message.get("body", b"")):
                return
            await cycle.send(head)
        await cycle.send(message)

    def _sends_whole(self, head: Any, body: bytes) -> bool:
        """Send a response, unless there is more to it than to write it: return whether it was sent."""
        cycle, headers = self._cycle, head["headers"]
        if not cycle.keep_alive or cycle.disconnected or cycle.flow.write_paused:
            return False
        if (b"content-length", b"%d" % len(body)) not in headers:
            return False
        lines = [STATUS_LINE[head["status"]]]
        for name, value in (*cycle.default_headers, *headers):
            if name == b"connection":
                return False
            lines.append(_line(name, value))
        cycle.response_started = cycle.response_complete = True
        cycle.transport.write(b"%b\r\n%b" % (b"".join(lines), body))
        cycle.message_event.set()
        cycle.on_response()
        return True


@lru_cache(4096)  # there are few: lengths differ, and the time of day
def _line(name: bytes, value: bytes) -> bytes:
    r"""Return a header as it is sent, or raise an error for what would be taken for more than one.

    Examples
    --------
    >>> _line(b"ETag", b"7")
    b'etag: 7\r\n'
    """
    if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
        raise RuntimeError(f"not a header: {name!r}: {value!r}")
    return name.lower() + b": " + value + b"\r\n"
