"""A request and its response, between a connection and an ASGI application."""

import asyncio
import logging
from collections.abc import MutableMapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from banditrank.service.strict_http.protocol import StrictHttpProtocol

EXTENSION = "strict_http"
"""Name in the scope's ``extensions``: applications need not check the framing of the request again."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS_LINES = {status: f"HTTP/1.1 {status} ".encode() for status in range(100, 600)} | {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}".encode() for status in HTTPStatus
}
_BODILESS = (204, 304)
_FAILURE_BODY = b"Internal Server Error"
_FAILURE = {
    "type": "http.response.start",
    "status": 500,
    "headers": [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(_FAILURE_BODY)),
        (b"connection", b"close"),
    ],
}

logger = logging.getLogger(__name__)


class Exchange:
    """A request and its response.

    Attributes
    ----------
    scope
        ASGI scope of the request.
    keep_alive
        Whether the connection stays open after the response.
    is_request_complete
        Whether the whole body was received.
    has_response_started, is_response_complete
        Whether a part of the response, or all of it, was written.
    body
        Received part of the body that the application has not read.
    """

    def __init__(
        self,
        connection: "StrictHttpProtocol",
        scope: dict[str, Any],
        *,
        keep_alive: bool,
        expects_continue: bool,
    ) -> None:
        self._connection = connection
        self.scope = scope
        self.keep_alive = keep_alive
        self._expects_continue = expects_continue
        self.body = bytearray()
        self.is_request_complete = False
        self._is_request_read = False
        self._is_disconnected = False
        # Of the request; only if the application waits for it.
        self._progress: asyncio.Event | None = None
        # Kept until a part of the body follows.
        self._start: MutableMapping[str, Any] | None = None
        self._is_chunked = False
        # Of the response's body, by its content-length.
        self._unsent_bytes: int | None = None
        self.has_response_started = False
        self.is_response_complete = False

    # The request, as it arrives

    def add_body(self, part: bytes) -> None:
        """Add a part of the body; it is dropped if the response is complete."""
        if not self.is_response_complete:
            self.body += part
            self._notify()

    def complete_request(self) -> None:
        """End the body."""
        self.is_request_complete = True
        self._notify()

    def disconnect(self) -> None:
        """Drop the rest of the response: the client disconnected."""
        self._is_disconnected = True
        self._notify()

    def _notify(self) -> None:
        if self._progress is not None:
            self._progress.set()

    # The application

    async def run(self, application: Any) -> None:
        """Call the application; respond with a 500, or close the connection, if it fails."""
        try:
            await application(self.scope, self._receive, self._send)
        except asyncio.CancelledError:
            self._connection.close()
            raise
        except Exception:
            logger.exception("application failed")
        if self.is_response_complete or self._is_disconnected:
            return
        if self.has_response_started:
            logger.error("application returned without a complete response")
            self._connection.close()
            return
        self._is_chunked, self._unsent_bytes, self._start = False, None, _FAILURE
        self._write(_FAILURE_BODY, more_body=False)

    async def _receive(self) -> MutableMapping[str, Any]:
        """Return the next part of the body, or ``http.disconnect`` after the response or the connection."""
        while not (self._is_disconnected or self.is_response_complete):
            if self.body or (self.is_request_complete and not self._is_request_read):
                body = bytes(self.body)
                self.body.clear()
                self._is_request_read = self.is_request_complete
                if not self.is_request_complete:
                    self._connection.update_reading()
                return {"type": "http.request", "body": body, "more_body": not self.is_request_complete}
            if self._expects_continue and not self.has_response_started:
                self._expects_continue = False
                self._connection.write(_CONTINUE)
            if self._progress is None:
                self._progress = asyncio.Event()
            self._progress.clear()
            await self._progress.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        """Send the head or a part of the body; RuntimeError if the message is not allowed at this point."""
        if self._connection.is_write_paused and not self._is_disconnected:
            await self._connection.drain()
        if self._is_disconnected:
            return
        kind = message["type"]
        if kind == "http.response.start" and self._start is None:
            self._start = message
        elif kind == "http.response.body" and self._start is not None and not self.is_response_complete:
            self._write(message.get("body", b""), more_body=message.get("more_body", False))
        else:
            raise RuntimeError(f"message {kind!r} is not allowed at this point of the response")

    def _write(self, body: bytes, *, more_body: bool) -> None:
        head = b"" if self.has_response_started else self._encode_head(len(body), more_body=more_body)
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
            self.body.clear()
            self._notify()
            self._connection.finish(self)

    def _has_no_body(self) -> bool:
        status = None if self._start is None else self._start["status"]
        return self.scope["method"] == "HEAD" or status in _BODILESS

    def _encode_head(self, body_size: int, *, more_body: bool) -> bytes:
        """Return the status line and the headers, and choose how the end of the body is marked."""
        assert self._start is not None  # noqa: S101 - checked by `_send`
        headers = [(name.lower(), value) for name, value in self._start.get("headers", ())]
        fields = dict(headers)
        if fields.get(b"connection") == b"close" or not self.is_request_complete:
            # What is left of the request's body may never come, or be endless.
            self.keep_alive = False
        if not self.keep_alive and fields.get(b"connection") != b"close":
            headers.append((b"connection", b"close"))
        if not self._has_no_body():
            length = fields.get(b"content-length")
            if length is not None:
                self._unsent_bytes = int(length)
            elif not more_body:
                self._unsent_bytes = body_size
                headers.append((b"content-length", b"%d" % body_size))
            elif self.scope["http_version"] == "1.1":
                self._is_chunked = True
                headers.append((b"transfer-encoding", b"chunked"))
            else:
                # The end of the connection is the end of the body.
                self.keep_alive = False
        headers += [header for header in self._connection.default_headers() if header[0] not in fields]
        lines = [_STATUS_LINES[self._start["status"]], *map(b": ".join, headers), b"\r\n"]
        head = b"\r\n".join(lines)
        # A line end within a header would be the start of another header, or of another response.
        if not head.count(b"\r") == head.count(b"\n") == len(lines) or b"\0" in head:
            raise RuntimeError("a header of the response contains a line end or NUL")
        return head
