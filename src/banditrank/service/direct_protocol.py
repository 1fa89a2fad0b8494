"""Requests that are answered without a task of their own.

A server runs an ASGI application as a task for every request, and exchanges messages with it. That takes
longer than to make a ranking. So a request that is all there is offered to the application first, which
answers by a call, at once or later, or declines. What it declines, and what is slow to come, takes the usual
way, and so does all that an application which has no ``direct_answer_to`` is asked.
"""

from asyncio import Event, TimerHandle
from typing import Any
from weakref import WeakKeyDictionary

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from banditrank.service.messages import DirectAnswer, FindDirectAnswer, Response
from banditrank.service.whole_responses import Outbox, WholeResponses, in_one_piece

_BODY_SECONDS = 0.05  # for the body, which many clients send after the head, to be there
_LARGEST_BODY = 1 << 16  # bytes of one that is waited for
_MOST_AT_ONCE = 16  # requests that came at once on a connection: all others wait while they are answered
_OUTBOXES: WeakKeyDictionary[ServerState, Outbox] = WeakKeyDictionary()  # one for each server


class DirectProtocol(HttpToolsProtocol):
    """Has requests answered directly where they can be, and responses written in one piece."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.outbox = _OUTBOXES.setdefault(self.server_state, Outbox())
        self._find: FindDirectAnswer | None = getattr(self.app, "direct_answer_to", None)
        self.app = WholeResponses(self.app, self.outbox)
        self._answer: DirectAnswer | None = None  # to the request, once it is all there
        self._head: list[tuple[bytes, bytes]] = []  # its headers
        self._body = bytearray()  # of it, so far: it may come in thousands of parts
        self._patience: TimerHandle | None = None  # with which the rest is waited for
        self._at_once = 0  # requests that were answered of the data that is taken in

    @property
    def has_answered(self) -> bool:
        """Whether nobody waits for an answer, once a head was there."""
        return self._answer is None and self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        """Take in data; a request of which there is only a part is waited for a while."""
        self._at_once = 0
        super().data_received(data)
        if self._answer is not None and self._patience is None:
            self._patience = self.loop.call_later(_BODY_SECONDS, self._take_the_usual_way)

    def on_headers_complete(self) -> None:
        """Wait for the body if there may be a direct answer."""
        self._body = bytearray()
        self._answer = self._find(self.url) if self._find is not None and self._is_plain() else None
        if self._answer is None:
            super().on_headers_complete()
        self._head, self.headers = self.headers, []  # to which trailers are added, that nobody looks at

    def on_body(self, body: bytes) -> None:
        """Take in a part of the body."""
        if self._answer is None:
            super().on_body(body)
            return
        self._body += body
        if len(self._body) > _LARGEST_BODY:
            self._take_the_usual_way()

    def on_message_complete(self) -> None:
        """Offer the request, which is all there."""
        answer = self._answer
        if answer is not None:
            exchange = Exchange(self)
            taken = answer(self._head, bytes(self._body), exchange.send)
            if taken or exchange.response_complete:  # which it is if something failed after that
                self.cycle = exchange  # type: ignore[assignment]
                self._at_once += 1
                self._wait_no_longer()
                return
            self._take_the_usual_way()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not understood, after what was answered before."""
        self.outbox.empty()
        self._wait_no_longer()
        super().send_400_response(msg)

    def shutdown(self) -> None:
        """Answer what was begun, and no more."""
        if self._answer is not None:
            self._take_the_usual_way()
        self.outbox.empty()
        super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what was not all there."""
        self._wait_no_longer()
        super().connection_lost(exc)

    def _is_plain(self) -> bool:
        """Return whether nothing is to be done about the request but to answer it."""
        parser, before = self.parser, self.cycle
        return (
            (before is None or before.response_complete)
            and self._at_once < _MOST_AT_ONCE
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not (parser.should_upgrade() or self.expect_100_continue or self.flow.write_paused)
        )

    def _take_the_usual_way(self) -> None:
        self._wait_no_longer()
        super().on_headers_complete()
        if self._body:
            super().on_body(bytes(self._body))

    def _wait_no_longer(self) -> None:
        self._answer = None
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


class Exchange:
    """A request that is answered directly, with what uvicorn's protocol asks of its cycles."""

    __slots__ = ("_protocol", "disconnected", "keep_alive", "response_complete")
    message_event = Event()  # nobody waits for it

    def __init__(self, protocol: DirectProtocol) -> None:
        self._protocol = protocol
        self.disconnected = self.response_complete = False
        self.keep_alive = True  # until the service stops

    def send(self, response: Response) -> None:
        """Send the response; if nobody is there any more, it is not written."""
        self.response_complete = True
        protocol = self._protocol
        told = in_one_piece(response, protocol.server_state.default_headers, keep_alive=self.keep_alive)
        protocol.outbox.add(protocol.transport, told)
        if not self.keep_alive:
            protocol.outbox.empty()
            protocol.transport.close()
        protocol.on_response_complete()
