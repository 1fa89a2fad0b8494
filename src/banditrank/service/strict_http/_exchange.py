"""A request and its response, between a connection and an ASGI application."""

import asyncio
import logging
from collections.abc import MutableMapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._protocol import StrictHttpProtocol

EXTENSION = "strict_http"
"""Name in the scope's ``extensions``: applications need not check the framing of the request again."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS_LINES = {status: f"HTTP/1.1 {status} ".encode() for status in range(200, 600)} | {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}".encode()
    for status in HTTPStatus
    if status >= 200
}
# Set by the protocol, not by applications.
_HOP_BY_HOP = {b"connection", b"transfer-encoding"}
_FAILURE_HEADERS = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]

logger = logging.getLogger(__name__)


class Exchange:
    """A request and its response.

    `unread` is the received part of the body that the application has not read; `keep_alive` is whether the
    connection stays open after the response.
    """

    def __init__(self, connection: "StrictHttpProtocol", scope: dict[str, Any], *, keep_alive: bool) -> None:
        self._connection = connection
        self.scope = scope
        self.keep_alive = keep_alive
        expect = dict(scope["headers"]).get(b"expect", b"").lower()
        self._expects_continue = scope["http_version"] == "1.1" and expect == b"100-continue"
        self.unread = bytearray()
        self.is_request_complete = self._is_request_read = False
        self._is_disconnected = False
        # Kept until a part of the body follows.
        self._start: MutableMapping[str, Any] | None = None
        self._is_chunked = self._is_bodiless = False
        # Of the response's body, by its content-length.
        self._unsent_bytes: int | None = None
        self.has_response_started = self.is_response_complete = False

    def add_body(self, part: bytes) -> None:
        """Add a part of the request's body; it is dropped if the response is complete."""
        if not self.is_response_complete:
            self.unread += part
            self._connection.progress.set()

    def complete_request(self) -> None:
        """End the request's body."""
        self.is_request_complete = True
        self._connection.progress.set()

    def disconnect(self) -> None:
        """Drop the rest of the response: the client disconnected."""
        self._is_disconnected = True
        self._connection.progress.set()

    @property
    def _is_over(self) -> bool:
        return self.is_response_complete or self._is_disconnected

    async def run(self, application: Any) -> None:
        """Call the application; respond with a 500, or close the connection, if it fails."""
        if self._is_disconnected:
            return
        try:
            await application(self.scope, self._receive, self._send)
        except asyncio.CancelledError:
            self._connection.close()
            raise
        except Exception:
            logger.exception("application failed")
        else:
            if not self._is_over:
                logger.error("application returned without a complete response")
        if self._is_over:
            return
        if self.has_response_started:
            self._connection.close()
            return
        self._is_chunked, self._unsent_bytes = False, None
        self._start = {"status": 500, "headers": _FAILURE_HEADERS}
        self._write(b"Internal Server Error", more_body=False)

    async def _receive(self) -> MutableMapping[str, Any]:
        """Return the next part of the body, or ``http.disconnect`` after the response or the connection."""
        while not self._is_over:
            if self.unread or (self.is_request_complete and not self._is_request_read):
                body = bytes(self.unread)
                self.unread.clear()
                self._is_request_read = self.is_request_complete
                if not self.is_request_complete:
                    self._connection.update_reading()
                return {"type": "http.request", "body": body, "more_body": not self._is_request_read}
            if self._expects_continue and not self.has_response_started:
                self._expects_continue = False
                self._connection.write(_CONTINUE)
            self._connection.progress.clear()
            await self._connection.progress.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        """Send the head or a part of the body; RuntimeError if the message is not allowed at this point."""
        if not self._connection.writable.is_set():
            await self._connection.writable.wait()
        if self._is_disconnected:
            # An application that sends for ever must not block the others.
            await asyncio.sleep(0)
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
        elif self._is_bodiless:
            body = b""
        self.has_response_started = True
        self._connection.write(head + body)
        if not more_body:
            self.is_response_complete = True
            self.unread.clear()
            self._connection.progress.set()
            self._connection.finish(self)

    def _encode_head(self, body_size: int, *, more_body: bool) -> bytes:
        """Return the status line and the headers, and choose how the end of the body is marked."""
        assert self._start is not None  # noqa: S101 - checked by `_send`
        headers = [(name.lower(), value) for name, value in self._start.get("headers", ())]
        fields = dict(headers)
        # A client that expects 100 Continue and did not receive it sends the body, or not.
        is_body_unsure = self._expects_continue and not self.is_request_complete
        if is_body_unsure or fields.get(b"connection", b"").lower() == b"close":
            self.keep_alive = False
        if not _HOP_BY_HOP.isdisjoint(fields):
            headers = [header for header in headers if header[0] not in _HOP_BY_HOP]
        headers += [header for header in self._connection.server.default_headers if header[0] not in fields]
        self._is_bodiless = self.scope["method"] == "HEAD" or self._start["status"] in (204, 304)
        if self._is_bodiless:
            pass
        elif b"content-length" in fields:
            self._unsent_bytes = int(fields[b"content-length"])
        elif not more_body:
            self._unsent_bytes = body_size
            headers.append((b"content-length", b"%d" % body_size))
        elif self.scope["http_version"] == "1.1":
            self._is_chunked = True
            headers.append((b"transfer-encoding", b"chunked"))
        else:
            # The end of the connection is the end of the body.
            self.keep_alive = False
        if not self.keep_alive:
            headers.append((b"connection", b"close"))
        lines = [_STATUS_LINES[self._start["status"]], *map(b": ".join, headers), b"\r\n"]
        head = b"\r\n".join(lines)
        # A line end within a header would be the start of another header, or of another response.
        if not head.count(b"\r") == head.count(b"\n") == len(lines) or b"\0" in head:
            raise RuntimeError("a header of the response contains a line end or NUL")
        return head
