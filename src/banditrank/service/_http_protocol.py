"""Limits of an HTTP connection: timeouts, sizes, pipelining and upgrades.

uvicorn's protocol has no timeout for the head of a request or for a client that does not read, no limit on
the size of heads and trailers, reads on while pipelined requests wait, and parses the data after a refused
upgrade as a request. `HttpProtocol` adds these limits. It overrides undocumented methods of
``HttpToolsProtocol``: pyproject.toml therefore bounds the version of uvicorn from both sides, and ``make
test`` runs the tests of this module with the lowest and the highest version.

Requests are never rewritten: all decisions are made from parsed headers, and the connection is closed if the
end of a request is ambiguous.
"""

import logging
import resource
from asyncio import Event, TimerHandle, Transport
from collections.abc import Callable, Collection
from functools import partial
from time import monotonic
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from banditrank.service._buffered_transport import BufferedTransport

HEAD_TIMEOUT_SECONDS = 10.0
"""Timeout for the head of a request, and for a new connection without a request."""

MAX_HEAD_BYTES = 1 << 16
"""Maximum size of a head; chunk headers and trailers may exceed it by one read of the socket."""

STALL_TIMEOUT_SECONDS = 30.0
"""Timeout for a client that does not read its response."""

_SHUTDOWN_STALL_SECONDS = 2.0  # the same timeout while the service stops
_MAX_CONNECTIONS = 10_000
_RESERVED_FILES = 100  # file descriptors for the store, logs and static files
_LOG_INTERVAL_SECONDS = 60.0  # between two log lines about refused connections

_CLOSE = b"connection: close\r\ncontent-length: 0\r\n\r\n"
_HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _CLOSE
_TOO_MANY_CONNECTIONS = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n" + _CLOSE

logger = logging.getLogger(__name__)


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 protocol with limits on the size and the duration of requests."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.parser = _Parser(self)
        self._excess_bytes = 0  # received for the current request besides its body
        self._in_head = False
        self._is_upgrade = False
        self._is_refused = False
        self._raw_body_bytes = 0  # of the body after an upgrade that are not received yet
        self._head_timer: TimerHandle | None = None
        self._stall_timer: TimerHandle | None = None
        self._idle_timer: TimerHandle | None = None
        self._idle_since: float | None = None
        self._running: RequestResponseCycle | None = None  # the request that the application handles
        self._receiving: RequestResponseCycle | None = None  # the request whose body is received

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # as uvicorn does
        """Start the timeout for the first request, or refuse the connection if too many are open."""
        transport = BufferedTransport(transport, self.loop)
        super().connection_made(transport)
        self.flow = _PipelineFlow(transport, self.pipeline)
        if len(self.connections) > max_connections():
            _log_refusal(len(self.connections))
            transport.write(_TOO_MANY_CONNECTIONS)
            self._close()
            return
        self._start_head_timer()

    def data_received(self, data: bytes) -> None:
        """Parse data within the limits of a head."""
        self._idle_since = None
        if self._is_refused:
            return
        if self._is_upgrade:
            self._receive_after_upgrade(data)
            return
        self._excess_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._excess_bytes > MAX_HEAD_BYTES:
            logger.info("head or trailers too large", extra={"bytes": self._excess_bytes})
            self._refuse(self._send_431_response)
        elif self._in_head or self._awaits_request():
            self._start_head_timer()

    def on_message_begin(self) -> None:
        """Start a request."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Start to handle the request; an error that is raised here refuses it with a 400."""
        if self._excess_bytes > MAX_HEAD_BYTES and _head_bytes(self.url, self.headers) > MAX_HEAD_BYTES:
            self._refuse(self._send_431_response)
            raise ValueError("the head is too large")
        version = self.parser.get_http_version()
        _check_framing(version, self.headers)
        if self.parser.should_upgrade():
            self._is_upgrade = True
            self._raw_body_bytes = _body_bytes(self.parser.get_method(), self.headers)
        super().on_headers_complete()
        self._in_head = False
        self.headers = []  # collects trailers, which are not headers of the request
        self._receiving = self.cycle
        if not self.pipeline:
            self._running = self.cycle
        if self._is_upgrade:
            self.cycle.keep_alive = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def on_body(self, body: bytes) -> None:
        """Receive a part of the body."""
        self._excess_bytes -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Finish a request, unless the parser skipped its body because of an upgrade."""
        if self._raw_body_bytes == 0:
            self._excess_bytes = 0
            self._receiving = None
            super().on_message_complete()

    def _receive_after_upgrade(self, data: bytes) -> None:
        """Receive the body of a request with an upgrade, and drop the data that follows.

        The service ignores upgrades, as HTTP allows. The parser stops at the head of such a request, so only
        the length of the body is known.
        """
        if self._raw_body_bytes > 0:
            body = data[: self._raw_body_bytes]
            self._raw_body_bytes -= len(body)
            self.on_body(body)
            self.on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid data, unless the connection is refused already."""
        if self._is_refused:
            return
        self._refuse(partial(super().send_400_response, msg))

    def _send_431_response(self) -> None:
        self.transport.write(_HEAD_TOO_LARGE)
        self._close()

    def _refuse(self, send_response: Callable[[], None]) -> None:
        """Refuse the current request after the responses to all requests before it."""
        self._is_refused = True
        unanswered = [cycle for cycle in self._unanswered() if cycle is not self._receiving]
        if unanswered:
            for entry in [entry for entry in self.pipeline if entry[0] is self._receiving]:
                self.pipeline.remove(entry)
            unanswered[-1].keep_alive = False  # closes the connection
        elif self._receiving is not None and self._receiving.response_started:
            self._close()
        else:
            send_response()
            self._abort_later()

    def _unanswered(self) -> list[RequestResponseCycle]:
        """Return the requests without a complete response, in order."""
        running = [] if self._running is None or self._running.response_complete else [self._running]
        return [*running, *(cycle for cycle, _ in reversed(self.pipeline))]

    def on_response_complete(self) -> None:
        """Start the next request of the pipeline, or the timeout for the next request."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            self._abort_later()
            return
        following = self.pipeline.pop() if self.pipeline else None
        self.flow.resume_reading()
        if following is not None:
            self._running = following[0]
            self._start_asgi_task(*following)
        elif self._in_head:
            self._start_head_timer()
        else:
            self._idle_since = self.loop.time()
            if self._idle_timer is None:  # one timer, where uvicorn sets one per response
                self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._close_if_idle)

    def pause_writing(self) -> None:
        """Start the stall timeout."""
        super().pause_writing()
        self._abort_later()

    def resume_writing(self) -> None:
        """Cancel the stall timeout."""
        super().resume_writing()
        if self._stall_timer is not None and not self.transport.is_closing():
            self._stall_timer.cancel()
            self._stall_timer = None

    def shutdown(self) -> None:
        """Close event streams, and abort connections of stalled clients."""
        stopping: Event | None = self.app_state.get("stopping")
        if stopping is not None:
            stopping.set()
        super().shutdown()
        self.loop.call_later(_SHUTDOWN_STALL_SECONDS, self._abort_if_stalled)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel timers and notify the running request; uvicorn notifies only the last one received."""
        for timer in (self._head_timer, self._idle_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        running = self._running
        if running is not None and not running.response_complete:
            running.disconnected = True
            running.message_event.set()
        super().connection_lost(exc)

    def _awaits_request(self) -> bool:
        """Return whether no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_TIMEOUT_SECONDS, self._close_slow_head)

    def _close_slow_head(self) -> None:
        self._head_timer = None
        if self.flow.read_paused or self._unanswered():  # the service is slow, not the client
            self._start_head_timer()
        else:
            self._close()

    def _close_if_idle(self) -> None:
        self._idle_timer = None
        if self._idle_since is None:
            return  # the next response sets the timer again
        seconds = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if seconds > 0:
            self._idle_timer = self.loop.call_later(seconds, self._close_if_idle)
        else:
            self._close()

    def _close(self) -> None:
        """Close the connection after the written data is read, or after the stall timeout."""
        self.transport.close()
        self._abort_later()

    def _abort_later(self) -> None:
        if self._stall_timer is None:
            self._stall_timer = self.loop.call_later(STALL_TIMEOUT_SECONDS, self._abort_stalled)

    def _abort_stalled(self) -> None:
        self._stall_timer = None
        logger.info("client does not read its response", extra={"seconds": STALL_TIMEOUT_SECONDS})
        self.transport.abort()

    def _abort_if_stalled(self) -> None:
        if self.transport.get_write_buffer_size() > 0:
            self.transport.abort()


class _Parser(httptools.HttpRequestParser):
    """A parser that passes on the data after the head of an upgrade, instead of raising an error."""

    def __init__(self, protocol: HttpProtocol) -> None:
        super().__init__(protocol)
        self._receive = protocol.data_received
        # As in uvicorn: data after a request with `connection: close` is ignored, not an error.
        self.set_dangerous_leniencies(lenient_data_after_close=True)

    def feed_data(self, data: Any) -> None:
        """Parse data."""
        try:
            super().feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            (offset,) = upgrade.args
            self._receive(data[offset:])


class _PipelineFlow(FlowControl):
    """Flow control that stops reading while pipelined requests wait."""

    def __init__(self, transport: Transport, pipeline: Collection[Any]) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        """Resume reading if no pipelined request waits."""
        if not self._pipeline:
            super().resume_reading()


def max_connections() -> int:
    """Return the maximum number of open connections, from the process's limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(_MAX_CONNECTIONS, soft - _RESERVED_FILES))


def _head_bytes(url: bytes, headers: list[tuple[bytes, bytes]]) -> int:
    """Return the approximate size of a head."""
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)


def _check_framing(version: str, headers: list[tuple[bytes, bytes]]) -> None:
    """Raise if the end or the host of a request is ambiguous."""
    if version not in ("1.1", "1.0"):
        raise ValueError(f"HTTP/{version} is not supported")
    names = [name for name, _ in headers]
    if names.count(b"host") != 1 and (version == "1.1" or b"host" in names):
        raise ValueError("a request must have exactly one host")
    if b"transfer-encoding" not in names:
        return
    encodings = [value for name, value in headers if name == b"transfer-encoding"]
    if version == "1.0" or len(encodings) > 1 or encodings[0].lower() != b"chunked":
        raise ValueError("the transfer encoding must be chunked and the version HTTP/1.1")


def _body_bytes(method: bytes, headers: list[tuple[bytes, bytes]]) -> int:
    """Return the length of the body of a request with an upgrade, or raise if it is ambiguous."""
    if method == b"CONNECT":
        raise ValueError("CONNECT is not supported")
    if any(name == b"transfer-encoding" for name, _ in headers):
        raise ValueError("an upgrade with a chunked body is not supported")
    lengths = [value for name, value in headers if name == b"content-length"]
    if not lengths:
        return 0
    (length,) = lengths  # the parser rejects repeated and invalid ones
    return int(length)


_last_logged = -_LOG_INTERVAL_SECONDS
_refused = 0


def _log_refusal(n_open: int) -> None:
    global _last_logged, _refused  # noqa: PLW0603 - one log line for all connections
    _refused += 1
    if monotonic() - _last_logged >= _LOG_INTERVAL_SECONDS:
        logger.warning("too many connections", extra={"open": n_open, "refused": _refused})
        _last_logged, _refused = monotonic(), 0
