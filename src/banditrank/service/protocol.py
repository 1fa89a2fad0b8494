"""Connections that do not get on.

uvicorn waits for ever for the head of a request, for the rest of one that was answered before all of it was
there, and for the end of a stream.
"""

import re
from asyncio import Event, TimerHandle, Transport
from typing import Any
from weakref import WeakKeyDictionary

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from banditrank.service.whole_responses import Outbox, WholeResponses

HEAD_SECONDS = 10.0  # for a head, and for a body that nobody waits for
LARGEST_HEAD = 1 << 16
STUCK_SECONDS = 2.0  # for a client to read what it is sent, when the service stops

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
# Some clients offer to go over to HTTP/2, which may be ignored; the parser would take the body for HTTP/2.
_UPGRADE = re.compile(rb"\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n)", re.IGNORECASE)
_OUTBOXES: WeakKeyDictionary[ServerState, Outbox] = WeakKeyDictionary()  # one for each server


class PunctualProtocol(HttpToolsProtocol):
    """Closes connections on which the head of a request is slow to come, or too long."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._outbox = _OUTBOXES.setdefault(self.server_state, Outbox())
        self.app = WholeResponses(self.app, self._outbox)

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # as uvicorn does
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._in_head = True
        self._head_bytes = 0
        self._timer: TimerHandle | None = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def data_received(self, data: bytes) -> None:
        """Take in data; the rest of a head must come soon, and that of a request that was answered."""
        if b"h2c" in data:
            data = _UPGRADE.sub(b"", data)
        self._outbox.empty()  # what is not understood is refused at once, but after what was answered before
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > LARGEST_HEAD:
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                return
        elif not self.cycle.response_complete:
            return
        if self._timer is None:
            self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def on_message_begin(self) -> None:
        """Note that a head has begun."""
        self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that a head is complete."""
        super().on_headers_complete()
        self._in_head = False
        self._stop_waiting()

    def shutdown(self) -> None:
        """Tell streams that the service stops, which they would go on for ever otherwise."""
        stopping: Event | None = self.app_state.get("stopping")
        if stopping is not None:
            stopping.set()
        self._outbox.empty()
        super().shutdown()
        self.loop.call_later(STUCK_SECONDS, self._drop_if_stuck)

    def _drop_if_stuck(self) -> None:
        """Close a connection to a client that does not read what it is sent."""
        if self.flow.write_paused:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
