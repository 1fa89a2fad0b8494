"""HTTP/1.1 connections: parsing, pipelining, and limits of size and time.

`StrictHttpProtocol` parses requests with httptools and passes them to the ASGI application, one `Exchange` at
a time. uvicorn listens, handles signals, runs the lifespan, and calls `StrictHttpProtocol.shutdown`.
"""

import asyncio
import contextvars
import logging
import resource
from collections import deque
from functools import lru_cache
from time import monotonic
from typing import Any, cast

import httptools

from ._exchange import EXTENSION, Exchange
from ._framing import check_framing, split_target

# Of the head of a request, and of a new connection without a request.
HEAD_TIMEOUT_SECONDS = 10.0
# Of a client that does not read its response.
STALL_TIMEOUT_SECONDS = 30.0
_SHUTDOWN_STALL_SECONDS = 2.0
# Of the rest of a body after the response: a client that is still sending would lose the response otherwise.
_LINGER_SECONDS = 2.0
# Of a head, and of the chunk headers and trailers of a request; up to two parsed parts more are accepted.
_MAX_HEAD_BYTES = 1 << 16
_MAX_HEADERS = 4096
# Of a body that waits for the application; reading pauses beyond it.
_MAX_UNREAD_BYTES = 1 << 16
_MAX_UNWRITTEN_BYTES = 1 << 16
# At once: bounds the number of pipelined requests in memory.
_MAX_PARSED_BYTES = 1 << 12
# A client that reads less of its response within the stall timeout has stalled.
_MIN_READ_BYTES = 1 << 16
# Of a chunk besides its data.
_CHUNK_OVERHEAD_BYTES = 16
_MAX_CONNECTIONS = 10_000
_RESERVED_FILES = 100

_CLOSE = b"connection: close\r\ncontent-length: 0\r\n\r\n"
_HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _CLOSE
_INVALID_REQUEST = b"HTTP/1.1 400 Bad Request\r\n" + _CLOSE
_TOO_MANY_CONNECTIONS = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n" + _CLOSE

logger = logging.getLogger(__name__)


class StrictHttpProtocol(asyncio.Protocol):
    """An HTTP/1.1 connection.

    uvicorn passes its configuration, the state that its connections share, and the state of the lifespan. The
    configuration has the timeout of idle connections, and their maximum number as ``limit_concurrency``.
    """

    def __init__(self, config: Any, server_state: Any, app_state: dict[str, Any], _loop: Any = None) -> None:
        self._loop: asyncio.AbstractEventLoop = _loop or asyncio.get_running_loop()
        self._config = config
        self.server = server_state
        self._app_state = app_state
        # Context variables that one request sets must not reach the next.
        self._context = contextvars.copy_context()
        self._parser: httptools.HttpRequestParser = httptools.HttpRequestParser(self)
        # Requests without a complete response, in order: the application handles the first.
        self._exchanges: deque[Exchange] = deque()
        # The request whose body is received.
        self._receiving: Exchange | None = None
        self._unparsed: bytes | memoryview = b""
        self._is_reading_paused = False
        # What follows is dropped.
        self._is_input_ended = False
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._is_in_head = self._is_upgrade = False
        # Received for the current request besides its body.
        self._excess_bytes = 0
        # Of the body after an upgrade that are not received yet.
        self._raw_body_bytes = 0
        # Set when more of a request arrives, and at the end of an exchange.
        self.progress = asyncio.Event()
        self._unwritten = b""
        # Unless the client has to read first.
        self.writable = asyncio.Event()
        self.writable.set()
        # The connection closes at it unless the client proceeds.
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timeout for the first request, or refuse the connection if too many are open."""
        self._transport = cast("asyncio.Transport", transport)
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "scheme": "https" if transport.get_extra_info("sslcontext") else "http",
            "root_path": self._config.root_path,
            "client": _address(transport.get_extra_info("peername")),
            "server": _address(transport.get_extra_info("sockname")),
        }
        self._set_deadline(HEAD_TIMEOUT_SECONDS)
        self.server.connections.add(self)
        if len(self.server.connections) > (self._config.limit_concurrency or max_connections()):
            _log_refusal(int(monotonic()) // 60)
            self.write(_TOO_MANY_CONNECTIONS)
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the client may close at any time
        """Cancel timers and notify the application."""
        self.server.connections.discard(self)
        self._disconnect()
        for timer in (self._timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        # It refers to this object.
        del self._parser

    def close(self) -> None:
        """Close the connection after the written data is read, or after the stall timeout."""
        self._disconnect()
        self._flush()
        self._transport.close()
        if self._stall_timer is None:
            self._check_stall()

    def _disconnect(self) -> None:
        self._is_input_ended, self._unparsed = True, b""
        self._deadline = None
        for exchange in self._exchanges:
            exchange.disconnect()
        self._exchanges.clear()
        self.writable.set()

    def shutdown(self) -> None:
        """Finish requests in progress, then close; abort the connection if the client does not read."""
        if self._exchanges:
            self._exchanges[-1].keep_alive = False
        else:
            self.close()
        unread = self._transport.get_write_buffer_size()
        self._loop.call_later(_SHUTDOWN_STALL_SECONDS, self._check_stall, unread)

    def data_received(self, data: bytes) -> None:
        """Parse data until a pipelined request has to wait."""
        was_in_head = self._is_in_head
        if not self._is_input_ended:
            self._unparsed = b"".join((self._unparsed, data)) if self._unparsed else data
        if len(self._unparsed) > _MAX_PARSED_BYTES:
            self._unparsed = memoryview(self._unparsed)
        while self._unparsed and len(self._exchanges) < 2:
            part, self._unparsed = self._unparsed[:_MAX_PARSED_BYTES], self._unparsed[_MAX_PARSED_BYTES:]
            self._feed(part)
        if self._is_in_head and not (was_in_head or self._exchanges or self._is_input_ended):
            self._set_deadline(HEAD_TIMEOUT_SECONDS)
        self.update_reading()

    def _feed(self, data: bytes | memoryview) -> None:
        if not self._is_upgrade:
            self._excess_bytes += len(data)
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
            except httptools.HttpParserError as error:
                self._refuse(_INVALID_REQUEST, str(error.__context__ or error))
            if self._excess_bytes > _MAX_HEAD_BYTES:
                self._refuse(_HEAD_TOO_LARGE, "the head or the trailers are too large")
        # The parser stops at the head of a request with an upgrade. Only the length of its body is known.
        if self._raw_body_bytes > 0:
            body = bytes(data[: self._raw_body_bytes])
            self._raw_body_bytes -= len(body)
            self.on_body(body)
            self.on_message_complete()

    def _refuse(self, response: bytes, reason: str) -> None:
        """Refuse the request that is being received, after the responses to all requests before it."""
        if self._is_input_ended:
            return
        logger.info("request refused", extra={"reason": reason})
        self._is_input_ended, self._unparsed = True, b""
        before = [exchange for exchange in self._exchanges if exchange is not self._receiving]
        if before:
            # The connection closes after the last of them.
            before[-1].keep_alive = False
            self._exchanges = deque(before)
        else:
            if self._receiving is None or not self._receiving.has_response_started:
                self.write(response)
            self.close()

    def update_reading(self) -> None:
        """Pause reading while received data waits for the application, or resume it."""
        is_paused = bool(self._unparsed) or len(self._exchanges) > 1
        if self._receiving is not None:
            is_paused |= len(self._receiving.unread) > _MAX_UNREAD_BYTES
        if is_paused != self._is_reading_paused and not self._transport.is_closing():
            self._is_reading_paused = is_paused
            (self._transport.pause_reading if is_paused else self._transport.resume_reading)()

    # Callbacks of the parser; an error that one raises refuses the request with a 400

    def on_message_begin(self) -> None:
        """Start a request."""
        if self._is_input_ended:
            raise ValueError("the connection closes after the request before this one")
        self._is_in_head = True
        self._target, self._headers = b"", []

    def on_url(self, target: bytes) -> None:
        """Receive a part of the target."""
        self._target += target

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header or a trailer."""
        self._headers.append((name.lower(), value))
        if len(self._headers) > _MAX_HEADERS:
            raise ValueError("the request has too many headers")

    def on_headers_complete(self) -> None:
        """Start the request, or queue it behind those before it."""
        parser, headers = self._parser, self._headers
        version, method = parser.get_http_version(), parser.get_method()
        check_framing(version, method, headers)
        keep_alive = version == "1.1" and parser.should_keep_alive()
        if parser.should_upgrade():
            fields = dict(headers)
            if b"transfer-encoding" in fields:
                raise ValueError("an upgrade with a chunked body is not supported")
            # Ignored, as HTTP allows.
            self._raw_body_bytes = int(fields.get(b"content-length", 0))
            self._is_upgrade = True
            keep_alive = False
        path, raw_path, query = split_target(self._target)
        scope: dict[str, Any] = {
            **self._scope,
            "http_version": version,
            "method": method.decode(),
            "path": self._config.root_path + path,
            "raw_path": self._config.root_path.encode() + raw_path,
            "query_string": query,
            "headers": headers,
            "state": self._app_state.copy(),
            "extensions": {EXTENSION: {}},
        }
        self._is_in_head = False
        # Trailers are not headers of the request.
        self._headers = []
        self._receiving = Exchange(self, scope, keep_alive=keep_alive)
        self._exchanges.append(self._receiving)
        if len(self._exchanges) == 1:
            self._run(self._receiving)

    def on_body(self, body: bytes) -> None:
        """Receive a part of the body."""
        self._excess_bytes = max(0, self._excess_bytes - len(body) - _CHUNK_OVERHEAD_BYTES)
        if self._receiving is not None:
            self._receiving.add_body(body)

    def on_message_complete(self) -> None:
        """Finish a request, unless the parser skipped its body because of an upgrade."""
        receiving = self._receiving
        if self._raw_body_bytes > 0 or receiving is None:
            return
        self._excess_bytes = 0
        self._receiving = None
        receiving.complete_request()
        if not receiving.keep_alive:
            self._is_input_ended, self._unparsed = True, b""
        if receiving.is_response_complete:
            self._continue(receiving)

    def _run(self, exchange: Exchange) -> None:
        self._deadline = None
        task = self._loop.create_task(exchange.run(self._config.loaded_app), context=self._context.copy())
        # The event loop keeps only weak references.
        self.server.tasks.add(task)
        task.add_done_callback(self.server.tasks.discard)

    def finish(self, exchange: Exchange) -> None:
        """Start the next exchange, or a timeout for the client: a response is complete."""
        self.server.total_requests += 1
        self._exchanges.popleft()
        if exchange.is_request_complete:
            self._continue(exchange)
        else:
            self._set_deadline(_LINGER_SECONDS)
            self.update_reading()

    def _continue(self, finished: Exchange) -> None:
        if not finished.keep_alive:
            self.close()
            return
        if self._exchanges:
            self._run(self._exchanges[0])
        else:
            self._set_deadline(HEAD_TIMEOUT_SECONDS if self._is_in_head else self._config.timeout_keep_alive)
        if self._unparsed:
            # Other connections have their turn.
            self._loop.call_soon(self.data_received, b"")
        else:
            self.update_reading()

    def write(self, data: bytes) -> None:
        """Write a part of a response, with those of other connections: each write may wake the client."""
        if not self._unwritten:
            self._loop.call_soon(self._flush)
        self._unwritten += data
        if len(self._unwritten) > _MAX_UNWRITTEN_BYTES:
            self._flush()

    def _flush(self) -> None:
        data, self._unwritten = self._unwritten, b""
        if data and not self._transport.is_closing():
            self._transport.write(data)

    def pause_writing(self) -> None:
        """Start the stall timeout."""
        self.writable.clear()
        self._check_stall()

    def resume_writing(self) -> None:
        """Cancel the stall timeout."""
        self.writable.set()
        if self._stall_timer is not None and not self._transport.is_closing():
            self._stall_timer.cancel()
            self._stall_timer = None

    def _set_deadline(self, seconds: float) -> None:
        self._deadline = deadline = self._loop.time() + seconds
        # A timer for each request would take longer.
        if self._timer is not None and self._timer.when() > deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._deadline is not None and self._deadline <= self._loop.time():
            self.close()
        elif self._deadline is not None:
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)

    def _check_stall(self, unread_before: int | None = None) -> None:
        """Abort the connection if the client has read too little since the last check; check again later."""
        unread = self._transport.get_write_buffer_size()
        if unread_before is None or unread_before - unread >= _MIN_READ_BYTES:
            self._stall_timer = self._loop.call_later(STALL_TIMEOUT_SECONDS, self._check_stall, unread)
        elif unread > 0:
            logger.info("client does not read its response", extra={"unread_bytes": unread})
            self._transport.abort()


def max_connections() -> int:
    """Return the maximum number of open connections, from the process's limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(_MAX_CONNECTIONS, max(1, soft - _RESERVED_FILES) if soft > 0 else _MAX_CONNECTIONS)


@lru_cache(maxsize=1)
def _log_refusal(_minute: int) -> None:
    logger.warning("too many connections")


def _address(name: Any) -> tuple[str, int] | None:
    # A Unix socket has no host and port.
    return (str(name[0]), int(name[1])) if isinstance(name, list | tuple) else None
