"""Responses in one piece.

uvicorn writes the head of a response to the connection, then its body, and looks through every header for
signs that do not belong there. To write twice takes as long as to make a ranking: whoever listens is woken up
twice. So a response that is all there is written at once, from lines that were looked through before; and
with those of all others who asked at the same time, so that a proxy, say, is woken up once for all of them.
"""

from asyncio import Transport, get_running_loop
from collections.abc import Awaitable, Iterable
from functools import lru_cache
from typing import Any

from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    RequestResponseCycle,
)

from banditrank.service.messages import Headers, Receive, Response, Scope, Send


class Outbox:
    """Responses that are written together, once all that was asked at the same time is answered."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Transport, bytes]] = []

    def add(self, transport: Transport, response: bytes) -> None:
        """Write a response soon."""
        if not self._waiting:
            get_running_loop().call_soon(self.empty)
        self._waiting.append((transport, response))

    def empty(self) -> None:
        """Write what is waiting: before anything else is written, or a connection is closed."""
        waiting, self._waiting = self._waiting, []
        for transport, response in waiting:
            if not transport.is_closing():
                transport.write(response)


def in_one_piece(response: Response, usual: Iterable[tuple[bytes, bytes]], *, keep_alive: bool) -> bytes:
    r"""Return a response that has a body as uvicorn sends it.

    Parameters
    ----------
    response
        What is answered.
    usual
        Headers of every response of the server: the time of day.
    keep_alive
        Whether the connection is for further requests, too.

    Examples
    --------
    >>> sent = in_one_piece(Response(200, b"{}"), [(b"date", b"today")], keep_alive=False)
    >>> sent.startswith(b"HTTP/1.1 200 OK\r\ndate: today\r\n"), sent.endswith(b"connection: close\r\n\r\n{}")
    (True, True)
    """
    status, body, content_type, headers, handling = response
    lines = _lines((*usual, *headers, *handling, (b"content-type", content_type)))
    end = b"" if keep_alive else b"connection: close\r\n"
    return b"%b%bcontent-length: %d\r\n%b\r\n%b" % (STATUS_LINE[status], lines, len(body), end, body)


class WholeResponses:
    """An application whose responses are sent in one piece where they can be.

    Parameters
    ----------
    application
        As it is, with uvicorn's way to send.
    outbox
        Of the server, for all connections.
    """

    def __init__(self, application: Any, outbox: Outbox) -> None:
        self._application = application
        self._outbox = outbox

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer a request."""
        cycle = getattr(send, "__self__", None)
        if isinstance(cycle, RequestResponseCycle):
            send = _Sender(cycle, self._outbox).send
        answered: Awaitable[None] = self._application(scope, receive, send)
        return answered


class _Sender:
    """Keeps the head of a response until it is known whether the body is whole."""

    __slots__ = ("_cycle", "_head", "_outbox")

    def __init__(self, cycle: RequestResponseCycle, outbox: Outbox) -> None:
        self._cycle = cycle
        self._outbox = outbox
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
            self._outbox.empty()  # an earlier response on the same connection may be waiting there
            await cycle.send(head)
        await cycle.send(message)

    def _sends_whole(self, head: Any, body: bytes) -> bool:
        """Send a response, unless there is more to it than to write it: return whether it was sent."""
        cycle, headers = self._cycle, head["headers"]
        if not cycle.keep_alive or cycle.disconnected or cycle.flow.write_paused:
            return False
        if cycle.scope["method"] == "HEAD":
            return False
        if (b"content-length", b"%d" % len(body)) not in headers:
            return False
        lines = [STATUS_LINE[head["status"]]]
        for name, value in (*cycle.default_headers, *headers):
            if name == b"connection":
                return False
            lines.append(_line(name, value))
        cycle.response_started = cycle.response_complete = True
        self._outbox.add(cycle.transport, b"%b\r\n%b" % (b"".join(lines), body))
        cycle.message_event.set()
        cycle.on_response()
        return True


@lru_cache(256)
def _lines(headers: Headers) -> bytes:
    return b"".join([_line(name, value) for name, value in headers])


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
