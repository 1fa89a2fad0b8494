"""Connections that do not get on.

uvicorn waits for ever for the head of a request, for the rest of one that was answered before all of it was
there, and for the end of a stream. For connections that are idle it sets a timer with every response, which
takes long; here there is one for each connection, that looks at the time again when it has run out. And it
reads on with every answer, however many requests are waiting for theirs on the same connection.
"""

import re
from asyncio import Event, TimerHandle, Transport
from collections.abc import Collection
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from banditrank.service.direct_protocol import DirectProtocol

HEAD_SECONDS = 10.0  # for a head, and for a body that nobody waits for
LARGEST_HEAD = 1 << 16
STUCK_SECONDS = 2.0  # for a client to read what it is sent, when the service stops

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
# Some clients offer to go over to HTTP/2, which may be ignored; the parser would take the body for HTTP/2.
_UPGRADE = re.compile(rb"\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n)", re.IGNORECASE)


class PunctualProtocol(DirectProtocol):
    """Closes connections that are idle, or on which the head of a request is slow to come, or too long."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # as uvicorn does
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.flow = _Flow(transport, self.pipeline)
        self._begun: RequestResponseCycle | None = None  # the last request that was, in the usual way
        self._in_head = True
        self._head_bytes = 0
        self._head_timer: TimerHandle | None = self.loop.call_later(HEAD_SECONDS, self._give_up)
        self._idle_since: float | None = None
        self._idle_timer: TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Take in data; the rest of a head must come soon, and that of a request that was answered."""
        if b"h2c" in data:
            data = _UPGRADE.sub(b"", data)
        self._idle_since = None
        self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_head:
            if self._head_bytes > LARGEST_HEAD:
                self.outbox.empty()
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                return
        elif not self.has_answered or self._idle_since is not None:
            return  # the answer is on its way, or was given to all that is there
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def on_message_begin(self) -> None:
        """Note that a head has begun."""
        if not self._in_head:  # the rest of an earlier request, or many more, may have come with it
            self._head_bytes = 0
            self._in_head = True
        self._idle_since = None  # though an earlier request that came with it was answered just now
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that a head is complete."""
        super().on_headers_complete()
        self._in_head = False
        self._stop_waiting()

    def on_response_complete(self) -> None:
        """Begin the next request, or to be idle."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        following = self.pipeline.pop() if self.pipeline else None
        self.flow.resume_reading()
        if following is not None:
            self._start_asgi_task(*following)
            return
        self._idle_since = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._close_if_idle)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._begun = cycle
        super()._start_asgi_task(cycle, app)

    def _close_if_idle(self) -> None:
        self._idle_timer = None
        if self._idle_since is None:
            return  # a request is under way
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._idle_timer = self.loop.call_later(left, self._close_if_idle)
        else:
            self.transport.close()

    def shutdown(self) -> None:
        """Tell streams that the service stops, which they would go on for ever otherwise."""
        stopping: Event | None = self.app_state.get("stopping")
        if stopping is not None:
            stopping.set()
        super().shutdown()
        self.loop.call_later(STUCK_SECONDS, self._drop_if_stuck)

    def _drop_if_stuck(self) -> None:
        """Close a connection to a client that does not read what it is sent."""
        if self.flow.write_paused:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        begun = self._begun
        if begun is not None and not begun.response_complete:  # uvicorn tells the last that came
            begun.disconnected = True
            begun.message_event.set()
        super().connection_lost(exc)

    def _give_up(self) -> None:
        """Close the connection, unless it is not the client that is slow."""
        self._head_timer = None
        if self.flow.read_paused:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._give_up)
        else:
            self.transport.close()

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class _Flow(FlowControl):
    """Reads no further while requests that were read wait for others to be answered."""

    def __init__(self, transport: Transport, waiting: Collection[Any]) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        """Read on, if all requests but the one under way are answered."""
        if not self._waiting:
            super().resume_reading()
