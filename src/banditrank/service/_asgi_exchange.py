"""One HTTP request and its response, between a connection and an ASGI application."""

import asyncio
import logging
from collections.abc import Coroutine, MutableMapping
from email.utils import formatdate
from http import HTTPStatus
from time import time
from typing import Any, Protocol

from banditrank.service._http import AsgiApplication, Headers, Scope

MAX_UNREAD_BYTES = 1 << 16
"""Size of the body that is kept until the application reads it; reading pauses beyond it."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_STATUS_LINES = {
    status: f"HTTP/1.1 {status} {_PHRASES.get(status, '')}".encode() for status in range(100, 600)
}
_WITHOUT_BODY = (204, 304)
_FAILURE_BODY = b"Internal Server Error"
_FAILURE_HEADERS: Headers = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"%d" % len(_FAILURE_BODY)),
    (b"connection", b"close"),
)

logger = logging.getLogger(__name__)


class Connection(Protocol):
    """The connection of an exchange."""

    is_write_paused: bool

    def write(self, data: bytes) -> None:
        """Write a part of the response."""

    async def drain(self) -> None:
        """Wait until the client has read enough."""

    def update_reading(self) -> None:
        """Resume reading if nothing else prevents it: the application read a part of the body."""

    def finish(self, exchange: "Exchange") -> None:
        """Start the next exchange: the response of this one is complete."""

    def close(self) -> None:
        """Close the connection: the response cannot be completed."""


class Exchange:
    """A request and its response.

    Parameters
    ----------
    connection
        Connection on which the request was received.
    application
        ASGI application.
    scope
        ASGI scope of the request.
    keep_alive
        Whether the connection stays open after the response.
    expects_continue
        Whether the client waits for a ``100 Continue`` before it sends the body.

    Attributes
    ----------
    scope, keep_alive
        As given; responses with ``connection: close`` reset `keep_alive`.
    is_started
        Whether the application was called, or is about to be.
    has_response_started, is_response_complete
        Whether a part of the response, or all of it, was written.
    unread_bytes
        Size of the received body that the application has not read.
    """

    __slots__ = (
        "_application",
        "_body",
        "_connection",
        "_expects_continue",
        "_is_chunked",
        "_is_disconnected",
        "_is_request_complete",
        "_is_request_read",
        "_progress",
        "_response_start",
        "_unsent_bytes",
        "has_response_started",
        "is_response_complete",
        "is_started",
        "keep_alive",
        "scope",
    )

    def __init__(
        self,
        connection: Connection,
        application: AsgiApplication,
        scope: Scope,
        *,
        keep_alive: bool,
        expects_continue: bool,
    ) -> None:
        self._connection = connection
        self._application = application
        self.scope = scope
        self.keep_alive = keep_alive
        self._expects_continue = expects_continue
        self._body: bytes | bytearray = b""
        self._is_request_complete = False
        self._is_request_read = False
        self._is_disconnected = False
        self._progress: asyncio.Event | None = None  # of the request; only if the application waits for it
        self._response_start: MutableMapping[str, Any] | None = None  # kept until a part of the body follows
        self._is_chunked = False
        self._unsent_bytes: int | None = None  # of the body, by its content-length
        self.is_started = False
        self.has_response_started = False
        self.is_response_complete = False

    # The request, as it arrives

    @property
    def unread_bytes(self) -> int:
        """Size of the received body that the application has not read."""
        return len(self._body)

    def add_body(self, part: bytes) -> None:
        """Add a part of the body; it is dropped if the response is complete."""
        if self.is_response_complete:
            return
        if not self._body:  # nearly always: the body is one part
            self._body = part
        else:
            if not isinstance(self._body, bytearray):
                self._body = bytearray(self._body)
            self._body += part
        self._notify()

    def complete_request(self) -> None:
        """End the body."""
        self._is_request_complete = True
        self._notify()

    def disconnect(self) -> None:
        """Drop the rest of the response: the client disconnected."""
        self._is_disconnected = True
        self._notify()

    def _notify(self) -> None:
        if self._progress is not None:
            self._progress.set()

    # The application

    def start(self, loop: asyncio.AbstractEventLoop, tasks: set["asyncio.Task[None]"]) -> None:
        """Call the application.

        If the body has arrived, the application runs at once, without a task, until it waits for something:
        most responses are complete by then. A handler must therefore not use ``asyncio.timeout`` or the
        current task before it has waited for the first time.
        """
        running: Coroutine[Any, Any, None] = self._run()
        if self._is_request_complete:
            try:
                awaited = running.send(None)
            except StopIteration:
                return
            running = _Resumed(running, awaited)
        task = loop.create_task(running)
        tasks.add(task)  # the event loop keeps only weak references
        task.add_done_callback(tasks.discard)

    async def _run(self) -> None:
        try:
            await self._application(self.scope, self.receive, self.send)
        except asyncio.CancelledError:
            self._connection.close()
            raise
        except Exception:
            logger.exception("application failed")
            self._fail()
        else:
            if not (self.is_response_complete or self._is_disconnected):
                logger.error("application returned without a complete response")
                self._fail()

    def _fail(self) -> None:
        """Respond with a 500, or close the connection if a part of the response was written."""
        if self.is_response_complete or self._is_disconnected:
            return
        if self.has_response_started:
            self._connection.close()
            return
        self._is_chunked, self._unsent_bytes = False, None  # of a head that could not be encoded
        self._response_start = {"status": 500, "headers": _FAILURE_HEADERS}
        self._write_body(_FAILURE_BODY, more_body=False)

    # ASGI callables

    async def receive(self) -> MutableMapping[str, Any]:
        """Return the next part of the body, or ``http.disconnect`` after the response or the connection."""
        while not (self._is_disconnected or self.is_response_complete):
            if self._body or (self._is_request_complete and not self._is_request_read):
                body, self._body = bytes(self._body), b""
                self._is_request_read = self._is_request_complete
                if not self._is_request_complete:
                    self._connection.update_reading()
                return {"type": "http.request", "body": body, "more_body": not self._is_request_complete}
            if self._expects_continue and not self.has_response_started:
                self._expects_continue = False
                self._connection.write(_CONTINUE)
            if self._progress is None:
                self._progress = asyncio.Event()
            self._progress.clear()
            await self._progress.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Send the head or a part of the body of the response.

        Raises
        ------
        RuntimeError
            If the message is not allowed at this point, or a header contains a line end.
        """
        if self._connection.is_write_paused and not self._is_disconnected:
            await self._connection.drain()
        if self._is_disconnected:
            return
        kind = message["type"]
        if kind == "http.response.start" and self._response_start is None:
            self._response_start = message
        elif (
            kind == "http.response.body"
            and self._response_start is not None
            and not self.is_response_complete
        ):
            self._write_body(message.get("body", b""), more_body=message.get("more_body", False))
        else:
            raise RuntimeError(f"message {kind!r} is not allowed at this point of the response")

    def _write_body(self, body: bytes, *, more_body: bool) -> None:
        """Write a part of the body, after the head if it is the first."""
        head = b""
        if not self.has_response_started:
            head = self._encode_head(len(body), more_body=more_body)
        if self._is_chunked:
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body = body if more_body else body + b"0\r\n\r\n"
        elif self._unsent_bytes is not None:
            self._unsent_bytes -= len(body)
            if self._unsent_bytes < 0 or (self._unsent_bytes > 0 and not more_body):
                raise RuntimeError("the body of the response differs from its content-length")
        elif self._has_no_body():
            body = b""
        self.has_response_started = True
        self._connection.write(head + body)
        if not more_body:
            self.is_response_complete = True
            self._body = b""
            self._notify()
            self._connection.finish(self)

    def _has_no_body(self) -> bool:
        start = self._response_start
        return self.scope["method"] == "HEAD" or (start is not None and start["status"] in _WITHOUT_BODY)

    def _encode_head(self, body_size: int, *, more_body: bool) -> bytes:
        """Return the status line and the headers, and choose how the end of the body is marked."""
        start = self._response_start
        assert start is not None  # noqa: S101 - checked by `send`
        headers = start.get("headers", ())
        fields = dict(headers)
        lines = [_STATUS_LINES[start["status"]], *map(b": ".join, headers), _date_header()]
        if self._expects_continue and not self._is_request_complete:
            self.keep_alive = False  # the client may send the body, or not
        if fields.get(b"connection") == b"close":
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append(b"connection: close")
        if not self._has_no_body():
            length = fields.get(b"content-length")
            if length is not None:
                self._unsent_bytes = int(length)
            elif not more_body:
                self._unsent_bytes = body_size
                lines.append(b"content-length: %d" % body_size)
            elif self.scope["http_version"] == "1.1":
                self._is_chunked = True
                lines.append(b"transfer-encoding: chunked")
            else:  # the end of the connection is the end of the body
                self.keep_alive = False
        lines.append(b"\r\n")
        head = b"\r\n".join(lines)
        # A line end within a header would be the start of another header, or of another response.
        if not head.count(b"\r") == head.count(b"\n") == len(lines) or b"\0" in head:
            raise RuntimeError("a header of the response contains a line end or NUL")
        return head


class _Resumed(Coroutine[Any, Any, None]):
    """The rest of a coroutine that ran without a task until it waited for something.

    A task takes coroutines only, and a generator that resumes one is none from Python 3.12 on.
    """

    __slots__ = ("_awaited", "_running", "_send")

    def __init__(self, running: Coroutine[Any, Any, None], awaited: Any) -> None:
        self._running, self._awaited = running, awaited
        self._send: Any = self._send_awaited

    def _send_awaited(self, _: None) -> Any:
        self._send = self._running.send
        return self._awaited

    def send(self, value: Any) -> Any:
        """Resume the coroutine; the first time, return what it waits for."""
        return self._send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error where the coroutine waits."""
        self._send = self._running.send
        return self._running.throw(*error)

    def close(self) -> None:
        """Close the coroutine."""
        self._running.close()

    def __await__(self) -> Any:
        return self


_date = (0, b"")


def _date_header() -> bytes:
    global _date  # noqa: PLW0603 - formatted once a second
    second, line = _date
    now = int(time())
    if now != second:
        line = b"date: " + formatdate(now, usegmt=True).encode()
        _date = (now, line)
    return line
