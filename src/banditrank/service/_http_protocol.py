"""HTTP/1.1 connections: parsing, pipelining, and limits of size and time.

`HttpProtocol` parses requests with httptools and passes them to the ASGI application, one `Exchange` at a
time. uvicorn listens, handles signals and runs the lifespan of the application. It creates the protocol, sees
its connections, tasks and number of requests, and calls `HttpProtocol.shutdown`.
"""

import asyncio
import logging
import resource
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

import httptools

from banditrank.service._asgi_exchange import MAX_UNREAD_BYTES, Exchange
from banditrank.service._http_framing import (
    ParsedHeaders,
    check_framing,
    head_size,
    length_after_upgrade,
    split_target,
)

if TYPE_CHECKING:
    import uvicorn
    from uvicorn.server import ServerState

HEAD_TIMEOUT_SECONDS = 10.0
"""Timeout for the head of a request, and for a new connection without a request."""

MAX_HEAD_BYTES = 1 << 16
"""Maximum size of a head, and of the chunk headers and trailers of a request together."""

STALL_TIMEOUT_SECONDS = 30.0
"""Timeout for a client that does not read its response."""

_MAX_PARSED_BYTES = 1 << 12  # at once: bounds the number of pipelined requests in memory
_MAX_UNWRITTEN_BYTES = 1 << 16
_SHUTDOWN_STALL_SECONDS = 2.0  # the stall timeout while the service stops
_MAX_CONNECTIONS = 10_000
_RESERVED_FILES = 100  # file descriptors for the store, logs and static files
_LOG_INTERVAL_SECONDS = 60.0  # between two log lines about refused connections

_ASGI = {"version": "3.0", "spec_version": "2.3"}
_CLOSE = b"connection: close\r\ncontent-length: 0\r\n\r\n"
_HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _CLOSE
_INVALID_REQUEST = b"HTTP/1.1 400 Bad Request\r\n" + _CLOSE
_TOO_MANY_CONNECTIONS = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n" + _CLOSE

logger = logging.getLogger(__name__)


class HttpProtocol(asyncio.Protocol):
    """An HTTP/1.1 connection.

    Parameters
    ----------
    config
        Configuration of the server: its application and the timeout of idle connections.
    server_state
        Connections, tasks and number of requests of the server.
    app_state
        State that the application's lifespan set; the event ``stopping`` ends event streams.
    _loop
        Event loop; the running one by default.

    Attributes
    ----------
    transport
        Transport of the connection.
    pipeline
        Requests that wait for the responses before them.
    is_write_paused
        Whether the client does not read fast enough.
    """

    transport: asyncio.Transport

    def __init__(
        self,
        config: "uvicorn.Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._loop = _loop or asyncio.get_running_loop()
        self._application: Any = config.loaded_app
        self._keep_alive_seconds: float = config.timeout_keep_alive
        self._server_state = server_state
        self._app_state = app_state
        self._parser: httptools.HttpRequestParser = httptools.HttpRequestParser(self)
        self.pipeline: deque[Exchange] = deque()
        self._unwritten = b""
        self.is_write_paused = False
        self._drained: asyncio.Event | None = None  # only if an exchange waits for it
        self._running: Exchange | None = None  # the request that the application handles
        self._receiving: Exchange | None = None  # the request whose body is received
        # Input
        self._unparsed: bytes | memoryview = b""
        self._is_reading_paused = False
        self._is_input_ended = False  # what follows is dropped
        self._target = b""
        self._headers: ParsedHeaders = []
        self._in_head = False
        self._excess_bytes = 0  # received for the current request besides its body
        self._is_upgrade = False
        self._raw_body_bytes = 0  # of the body after an upgrade that are not received yet
        # Timeouts
        self._deadline: float | None = None  # of the client; None while the service has work to do
        self._is_head_deadline = False
        self._timer: asyncio.TimerHandle | None = None  # set once: a timer per request would take longer
        self._timer_at = 0.0
        self._stall_timer: asyncio.TimerHandle | None = None

    # Connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timeout for the first request, or refuse the connection if too many are open."""
        self.transport = cast("asyncio.Transport", transport)
        connections: set[Any] = self._server_state.connections
        connections.add(self)
        if len(connections) > max_connections():
            _log_refusal(len(connections))
            self.write(_TOO_MANY_CONNECTIONS)
            self.close()
        else:
            self._set_deadline(HEAD_TIMEOUT_SECONDS, is_head=True)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the client may close at any time
        """Cancel timers and notify the application."""
        connections: set[Any] = self._server_state.connections
        connections.discard(self)
        self._disconnect()
        self.resume_writing()  # an exchange may wait for it
        for timer in (self._timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        del self._parser  # it refers to this object

    def close(self) -> None:
        """Close the connection after the written data is read, or after the stall timeout."""
        self._disconnect()
        self._flush()
        self.transport.close()
        self._abort_later()

    def _disconnect(self) -> None:
        self._end_input()
        self._deadline = None
        self.pipeline.clear()
        if self._running is not None:
            self._running.disconnect()
            self._running = None

    def shutdown(self) -> None:
        """Finish requests in progress, then close; end event streams, and abort connections that stall."""
        stopping: asyncio.Event | None = self._app_state.get("stopping")
        if stopping is not None:
            stopping.set()
        unanswered = self._unanswered()
        if unanswered:
            unanswered[-1].keep_alive = False
        else:
            self.close()
        self._loop.call_later(_SHUTDOWN_STALL_SECONDS, self._abort_if_stalled)

    # Input

    def data_received(self, data: bytes) -> None:
        """Parse data, and start the request in it."""
        if not self._is_input_ended:
            self._unparsed = data if not self._unparsed else bytes(self._unparsed) + data
            self._parse()

    def _parse(self) -> None:
        """Parse data until a pipelined request has to wait, and start the request before it."""
        while self._unparsed and not self.pipeline:
            if len(self._unparsed) <= _MAX_PARSED_BYTES:  # nearly always
                part, self._unparsed = self._unparsed, b""
            else:
                rest = memoryview(self._unparsed)
                part, self._unparsed = rest[:_MAX_PARSED_BYTES], rest[_MAX_PARSED_BYTES:]
            self._feed(part)
        running = self._running
        if running is None:
            if not (self._is_input_ended or self._is_head_deadline):
                self._set_deadline(HEAD_TIMEOUT_SECONDS, is_head=True)
        elif not running.is_started:
            running.is_started = True
            self._loop.call_soon(self._start, running)  # once the data of all connections is parsed
        if self.pipeline or self._unparsed or self._receiving is not None or self._is_reading_paused:
            self.update_reading()

    def _feed(self, data: bytes | memoryview) -> None:
        if self._is_upgrade:
            self._receive_after_upgrade(data)
            return
        self._excess_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            (offset,) = upgrade.args
            self._receive_after_upgrade(data[offset:])
        except httptools.HttpParserError as error:
            if not self._is_input_ended:
                logger.info("invalid request", extra={"error": str(error.__context__ or error)})
                self._refuse(_INVALID_REQUEST)
        else:
            if self._excess_bytes > MAX_HEAD_BYTES:
                self._refuse_large_head()

    def _receive_after_upgrade(self, data: bytes | memoryview) -> None:
        """Receive the body of a request with an upgrade, and drop the data that follows.

        The service ignores upgrades, as HTTP allows. The parser stops at the head of such a request, so only
        the length of the body is known.
        """
        if self._raw_body_bytes > 0:
            body = bytes(data[: self._raw_body_bytes])
            self._raw_body_bytes -= len(body)
            self.on_body(body)
            self.on_message_complete()

    def _refuse_large_head(self) -> None:
        logger.info("head or trailers too large", extra={"bytes": self._excess_bytes})
        self._refuse(_HEAD_TOO_LARGE)

    def _refuse(self, response: bytes) -> None:
        """Refuse the request that is being received, after the responses to all requests before it."""
        self._end_input()
        receiving = self._receiving
        before = [exchange for exchange in self._unanswered() if exchange is not receiving]
        if before:
            if receiving is not None and receiving in self.pipeline:
                self.pipeline.remove(receiving)
            before[-1].keep_alive = False  # closes the connection
            return
        if receiving is None or not receiving.has_response_started:
            self.write(response)
        self.close()

    def _end_input(self) -> None:
        self._is_input_ended = True
        self._unparsed = b""

    def update_reading(self) -> None:
        """Pause reading while received data waits for the application, or resume it."""
        receiving = self._receiving
        is_paused = bool(self.pipeline or self._unparsed) or (
            receiving is not None and receiving.unread_bytes > MAX_UNREAD_BYTES
        )
        if is_paused != self._is_reading_paused and not self.transport.is_closing():
            self._is_reading_paused = is_paused
            if is_paused:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    # Callbacks of the parser; an error that one raises refuses the request with a 400

    def on_message_begin(self) -> None:
        """Start a request."""
        self._in_head = True
        self._target = b""
        self._headers = []

    def on_url(self, target: bytes) -> None:
        """Receive a part of the target."""
        self._target += target

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header or a trailer."""
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Create the exchange, which is started once the received data is parsed."""
        parser, headers = self._parser, self._headers
        if self._excess_bytes > MAX_HEAD_BYTES and head_size(self._target, headers) > MAX_HEAD_BYTES:
            self._refuse_large_head()
            raise ValueError("the head is too large")
        version, method = parser.get_http_version(), parser.get_method()
        check_framing(version, headers)
        keep_alive = version == "1.1" and parser.should_keep_alive()
        if parser.should_upgrade():
            self._raw_body_bytes = length_after_upgrade(method, headers)
            self._is_upgrade = True
            keep_alive = False
        path, raw_path, query = split_target(self._target)
        scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "method": method.decode(),
            "scheme": "http",
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
            "root_path": "",
            "headers": headers,
            "state": self._app_state.copy(),
        }
        expects_continue = version == "1.1" and dict(headers).get(b"expect", b"").lower() == b"100-continue"
        exchange = Exchange(
            self, self._application, scope, keep_alive=keep_alive, expects_continue=expects_continue
        )
        self._in_head = False
        self._headers = []  # of trailers, which are not headers of the request
        self._receiving = exchange
        if self._running is None and not self.pipeline:
            self._run_next(exchange)
        else:
            self.pipeline.append(exchange)

    def on_body(self, body: bytes) -> None:
        """Receive a part of the body."""
        self._excess_bytes -= len(body)
        if self._receiving is not None:
            self._receiving.add_body(body)

    def on_message_complete(self) -> None:
        """Finish a request, unless the parser skipped its body because of an upgrade."""
        receiving = self._receiving
        if self._raw_body_bytes == 0 and receiving is not None:
            self._excess_bytes = 0
            self._receiving = None
            receiving.complete_request()
            if not receiving.keep_alive:
                self._end_input()

    # Exchanges

    def _unanswered(self) -> list[Exchange]:
        """Return the requests without a complete response, in order."""
        return [*self.pipeline] if self._running is None else [self._running, *self.pipeline]

    def _run_next(self, exchange: Exchange) -> None:
        self._running = exchange
        self._deadline = None
        self._is_head_deadline = False

    def _start(self, exchange: Exchange) -> None:
        if exchange is self._running:  # still connected
            exchange.start(self._loop, self._server_state.tasks)

    def finish(self, exchange: Exchange) -> None:
        """Start the next exchange, or the timeout for the next request: a response is complete."""
        self._server_state.total_requests += 1
        self._running = None
        if not exchange.keep_alive:
            self.close()
        elif self.pipeline or self._unparsed:
            self._loop.call_soon(self._continue)  # other connections have their turn
        else:
            if self._is_reading_paused:
                self.update_reading()
            seconds = HEAD_TIMEOUT_SECONDS if self._in_head else self._keep_alive_seconds
            self._set_deadline(seconds, is_head=self._in_head)

    def _continue(self) -> None:
        if self._running is None and self.pipeline:
            self._run_next(self.pipeline.popleft())
        self._parse()

    # Output

    def write(self, data: bytes) -> None:
        """Write data in the next iteration of the event loop.

        A write wakes the client. Waking it once for the responses of all connections takes much less time
        than once for each.
        """
        if self._unwritten:
            self._unwritten += data
        else:
            self._unwritten = data
            self._loop.call_soon(self._flush)
        if len(self._unwritten) > _MAX_UNWRITTEN_BYTES:  # flow control must notice
            self._flush()

    def _flush(self) -> None:
        data, self._unwritten = self._unwritten, b""
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def pause_writing(self) -> None:
        """Start the stall timeout."""
        self.is_write_paused = True
        self._abort_later()

    def resume_writing(self) -> None:
        """Cancel the stall timeout."""
        self.is_write_paused = False
        if self._drained is not None:
            self._drained.set()
            self._drained = None
        if self._stall_timer is not None and not self.transport.is_closing():
            self._stall_timer.cancel()
            self._stall_timer = None

    async def drain(self) -> None:
        """Wait until the client has read enough, or disconnected."""
        if self._drained is None:
            self._drained = asyncio.Event()
        await self._drained.wait()

    # Timeouts

    def _set_deadline(self, seconds: float, *, is_head: bool) -> None:
        """Close the connection unless the next request starts in time."""
        self._is_head_deadline = is_head
        self._deadline = deadline = self._loop.time() + seconds
        if self._timer is not None:
            if self._timer_at <= deadline:
                return  # it will be set again
            self._timer.cancel()
        self._set_timer(deadline)

    def _set_timer(self, deadline: float) -> None:
        self._timer = self._loop.call_at(deadline, self._check_deadline)
        self._timer_at = deadline

    def _check_deadline(self) -> None:
        self._timer = None
        if self._deadline is None:
            return  # the next response sets the timer again
        if self._deadline > self._loop.time():
            self._set_timer(self._deadline)
        else:
            self.close()

    def _abort_later(self) -> None:
        if self._stall_timer is None:
            self._stall_timer = self._loop.call_later(STALL_TIMEOUT_SECONDS, self._abort_stalled)

    def _abort_stalled(self) -> None:
        self._stall_timer = None
        logger.info("client does not read its response", extra={"seconds": STALL_TIMEOUT_SECONDS})
        self.transport.abort()

    def _abort_if_stalled(self) -> None:
        if self.transport.get_write_buffer_size() > 0:
            self.transport.abort()


def max_connections() -> int:
    """Return the maximum number of open connections, from the process's limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(_MAX_CONNECTIONS, soft - _RESERVED_FILES))


_last_logged = -_LOG_INTERVAL_SECONDS
_refused = 0


def _log_refusal(n_open: int) -> None:
    global _last_logged, _refused  # noqa: PLW0603 - one log line for all connections
    _refused += 1
    if monotonic() - _last_logged >= _LOG_INTERVAL_SECONDS:
        logger.warning("too many connections", extra={"open": n_open, "refused": _refused})
        _last_logged, _refused = monotonic(), 0
