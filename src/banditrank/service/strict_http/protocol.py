"""HTTP/1.1 connections: parsing, pipelining, and limits of size and time.

`StrictHttpProtocol` parses requests with httptools and passes them to the ASGI application, one `Exchange` at
a time. uvicorn listens, handles signals and runs the lifespan of the application. It creates the protocol, sees
its connections, tasks and number of requests, and calls `StrictHttpProtocol.shutdown`.
"""

import asyncio
import logging
import resource
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

import httptools

from banditrank.service.strict_http.exchange import EXTENSION, Exchange
from banditrank.service.strict_http.framing import (
    ParsedHeaders,
    check_framing,
    head_size,
    length_after_upgrade,
    split_target,
)

if TYPE_CHECKING:
    import uvicorn

HEAD_TIMEOUT_SECONDS = 10.0
"""Timeout for the head of a request, and for a new connection without a request."""

MAX_HEAD_BYTES = 1 << 16
"""Maximum size of a head, and of the chunk headers and trailers of a request together."""

MAX_UNREAD_BYTES = 1 << 16
"""Size of the body that is kept until the application reads it; reading pauses beyond it."""

STALL_TIMEOUT_SECONDS = 30.0
"""Timeout for a client that does not read its response."""

_MAX_PARSED_BYTES = 1 << 12  # at once: bounds the number of pipelined requests in memory
_SHUTDOWN_STALL_SECONDS = 2.0  # the stall timeout while the server stops
_MAX_CONNECTIONS = 10_000
_RESERVED_FILES = 100  # file descriptors for what else the process opens
_LOG_INTERVAL_SECONDS = 60.0  # between two log lines about refused connections

_CLOSE = b"connection: close\r\ncontent-length: 0\r\n\r\n"
_HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _CLOSE
_INVALID_REQUEST = b"HTTP/1.1 400 Bad Request\r\n" + _CLOSE
_TOO_MANY_CONNECTIONS = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n" + _CLOSE

logger = logging.getLogger(__name__)


class StrictHttpProtocol(asyncio.Protocol):
    """An HTTP/1.1 connection.

    Parameters
    ----------
    config
        Configuration of uvicorn: its application, root path, timeout of idle connections and ``limit_concurrency``,
        which is the maximum number of connections.
    server_state
        Connections, tasks, number of requests and default headers of uvicorn's server.
    app_state
        State that the application's lifespan set.
    _loop
        Event loop; the running one by default.

    Attributes
    ----------
    transport
        Transport of the connection.
    is_write_paused
        Whether the client does not read fast enough.
    """

    transport: asyncio.Transport

    def __init__(
        self,
        config: "uvicorn.Config",
        server_state: Any,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._loop = _loop or asyncio.get_running_loop()
        self._config = config
        self._server = server_state
        self._app_state = app_state
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
        self._headers: ParsedHeaders = []
        self._is_in_head = False
        # Received for the current request besides its body.
        self._excess_bytes = 0
        self._is_upgrade = False
        # Of the body after an upgrade that are not received yet.
        self._raw_body_bytes = 0
        self.is_write_paused = False
        self._drained = asyncio.Event()
        # Closes the connection unless the next request arrives in time.
        self._deadline: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

    # Connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timeout for the first request, or refuse the connection if too many are open."""
        self.transport = cast("asyncio.Transport", transport)
        self._server.connections.add(self)
        if len(self._server.connections) > (self._config.limit_concurrency or max_connections()):
            _log_refusal(len(self._server.connections))
            self.write(_TOO_MANY_CONNECTIONS)
            self.close()
        else:
            self._set_deadline(HEAD_TIMEOUT_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the client may close at any time
        """Cancel timers and notify the application."""
        self._server.connections.discard(self)
        self._disconnect()
        self.resume_writing()
        if self._stall_timer is not None:
            self._stall_timer.cancel()
        # It refers to this object.
        del self._parser

    def close(self) -> None:
        """Close the connection after the written data is read, or after the stall timeout."""
        self._disconnect()
        self.transport.close()
        self._abort_later()

    def _disconnect(self) -> None:
        self._end_input()
        self._cancel_deadline()
        for exchange in self._exchanges:
            exchange.disconnect()
        self._exchanges.clear()

    def shutdown(self) -> None:
        """Finish requests in progress, then close; abort the connection if it stalls."""
        if self._exchanges:
            self._exchanges[-1].keep_alive = False
        else:
            self.close()
        self._loop.call_later(_SHUTDOWN_STALL_SECONDS, self._abort_if_stalled)

    # Input

    def data_received(self, data: bytes) -> None:
        """Parse data, and start the request in it."""
        if not self._is_input_ended:
            self._unparsed = bytes(self._unparsed) + data if self._unparsed else data
            self._parse()

    def _parse(self) -> None:
        """Parse data until a pipelined request has to wait."""
        while self._unparsed and len(self._exchanges) < 2:
            rest = memoryview(self._unparsed)
            self._unparsed = rest[_MAX_PARSED_BYTES:]
            self._feed(rest[:_MAX_PARSED_BYTES])
        if self._is_in_head and not self._exchanges and self._deadline is None:
            self._set_deadline(HEAD_TIMEOUT_SECONDS)
        self.update_reading()

    def _feed(self, data: memoryview) -> None:
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

    def _receive_after_upgrade(self, data: memoryview) -> None:
        """Receive the body of a request with an upgrade, and drop the data that follows.

        Upgrades are ignored, as HTTP allows. The parser stops at the head of such a request, so only the
        length of the body is known.
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
        if receiving is not None and receiving in self._exchanges and receiving is not self._exchanges[0]:
            self._exchanges.remove(receiving)
        before = [exchange for exchange in self._exchanges if exchange is not receiving]
        if before:
            # The connection closes after the last of them.
            before[-1].keep_alive = False
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
        is_paused = bool(self._unparsed) or len(self._exchanges) > 1
        is_paused |= receiving is not None and len(receiving.body) > MAX_UNREAD_BYTES
        if is_paused != self._is_reading_paused and not self.transport.is_closing():
            self._is_reading_paused = is_paused
            (self.transport.pause_reading if is_paused else self.transport.resume_reading)()

    # Callbacks of the parser; an error that one raises refuses the request with a 400

    def on_message_begin(self) -> None:
        """Start a request."""
        self._is_in_head = True
        self._target, self._headers = b"", []
        if not self._exchanges:
            self._set_deadline(HEAD_TIMEOUT_SECONDS)

    def on_url(self, target: bytes) -> None:
        """Receive a part of the target."""
        self._target += target

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header or a trailer."""
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Start the request, or queue it behind those before it."""
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
        expects_continue = version == "1.1" and dict(headers).get(b"expect", b"").lower() == b"100-continue"
        exchange = Exchange(
            self, self._scope(version, method), keep_alive=keep_alive, expects_continue=expects_continue
        )
        self._is_in_head = False
        # Trailers are not headers of the request.
        self._headers = []
        self._receiving = exchange
        self._exchanges.append(exchange)
        if len(self._exchanges) == 1:
            self._run(exchange)

    def _scope(self, version: str, method: bytes) -> dict[str, Any]:
        path, raw_path, query = split_target(self._target)
        root_path: str = self._config.root_path
        transport = self.transport
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": version,
            "method": method.decode(),
            "scheme": "https" if transport.get_extra_info("sslcontext") else "http",
            "path": root_path + path,
            "raw_path": root_path.encode() + raw_path,
            "query_string": query,
            "root_path": root_path,
            "headers": self._headers,
            "client": _address(transport.get_extra_info("peername")),
            "server": _address(transport.get_extra_info("sockname")),
            "state": self._app_state.copy(),
            "extensions": {EXTENSION: {}},
        }

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

    def _run(self, exchange: Exchange) -> None:
        self._cancel_deadline()
        task = self._loop.create_task(exchange.run(self._config.loaded_app))
        # The event loop keeps only weak references.
        self._server.tasks.add(task)
        task.add_done_callback(self._server.tasks.discard)

    def finish(self, exchange: Exchange) -> None:
        """Start the next exchange, or the timeout for the next request: a response is complete."""
        self._server.total_requests += 1
        if not exchange.keep_alive:
            self.close()
            return
        self._exchanges.popleft()
        if self._exchanges:
            self._run(self._exchanges[0])
        else:
            seconds = HEAD_TIMEOUT_SECONDS if self._is_in_head else self._config.timeout_keep_alive
            self._set_deadline(seconds)
        if self._unparsed:
            # Other connections have their turn.
            self._loop.call_soon(self._parse)
        else:
            self.update_reading()

    # Output

    def default_headers(self) -> ParsedHeaders:
        """Return the headers that uvicorn adds to all responses, such as the date."""
        return cast("ParsedHeaders", self._server.default_headers)

    def write(self, data: bytes) -> None:
        """Write a part of a response."""
        if not self.transport.is_closing():
            self.transport.write(data)

    def pause_writing(self) -> None:
        """Start the stall timeout."""
        self.is_write_paused = True
        self._drained.clear()
        self._abort_later()

    def resume_writing(self) -> None:
        """Cancel the stall timeout."""
        self.is_write_paused = False
        self._drained.set()
        if self._stall_timer is not None and not self.transport.is_closing():
            self._stall_timer.cancel()
            self._stall_timer = None

    async def drain(self) -> None:
        """Wait until the client has read enough, or disconnected."""
        await self._drained.wait()

    # Timeouts

    def _set_deadline(self, seconds: float) -> None:
        self._cancel_deadline()
        self._deadline = self._loop.call_later(seconds, self.close)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

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


def _address(name: Any) -> tuple[str, int] | None:
    """Return the host and port of a socket's name; None for a Unix socket."""
    return (str(name[0]), int(name[1])) if isinstance(name, list | tuple) else None


class _RefusalLog:
    """Logs refused connections at most once a minute."""

    def __init__(self) -> None:
        self._last_logged = -_LOG_INTERVAL_SECONDS
        self._refused = 0

    def __call__(self, n_open: int) -> None:
        self._refused += 1
        if monotonic() - self._last_logged >= _LOG_INTERVAL_SECONDS:
            logger.warning("too many connections", extra={"open": n_open, "refused": self._refused})
            self._last_logged, self._refused = monotonic(), 0


_log_refusal: Callable[[int], None] = _RefusalLog()
