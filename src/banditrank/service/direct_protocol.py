"""Requests that are answered without a task of their own.

A server runs an ASGI application as a task for every request, and exchanges messages with it. That takes
longer than to make a ranking. So a request that is all there is offered to the application first, which
answers by a call, at once or later, or declines. What it declines, and what comes in parts, takes the usual
way.
"""

from asyncio import Event
from typing import Any
from weakref import WeakKeyDictionary

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from banditrank.service.messages import AnswerDirectly, Response
from banditrank.service.whole_responses import Outbox, WholeResponses, in_one_piece

_OUTBOXES: WeakKeyDictionary[ServerState, Outbox] = WeakKeyDictionary()  # one for each server


class DirectProtocol(HttpToolsProtocol):
    """Offers requests to an application that has ``answer_directly``, and writes responses in one piece."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.outbox = _OUTBOXES.setdefault(self.server_state, Outbox())
        self._answer_directly: AnswerDirectly | None = getattr(self.app, "answer_directly", None)
        self.app = WholeResponses(self.app, self.outbox)
        self._body: bytes | None = None  # so far, of a request that is to be offered

    def data_received(self, data: bytes) -> None:
        """Take in data; a request of which there is only a part takes the usual way."""
        super().data_received(data)
        if self._body is not None and not self.transport.is_closing():
            self._take_the_usual_way(self._body)

    def on_message_begin(self) -> None:
        """Begin a request; what uvicorn makes for one is left to the usual way."""
        self.url, self.headers, self.expect_100_continue = b"", [], False

    def on_headers_complete(self) -> None:
        """Wait for the body if the request can be offered."""
        if self._can_be_offered():
            self._body = b""
        else:
            self._take_the_usual_way(b"")

    def on_body(self, body: bytes) -> None:
        """Take in a part of the body."""
        if self._body is None:
            super().on_body(body)
        else:
            self._body += body

    def on_message_complete(self) -> None:
        """Offer the request, which is all there."""
        if self._body is not None:
            if self._is_answered(self._body):
                self._body = None
                return
            self._take_the_usual_way(self._body)
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not understood, after what was answered before."""
        self.outbox.empty()
        super().send_400_response(msg)

    def _can_be_offered(self) -> bool:
        """Return whether the request whose head is there is plain: nothing else is to be done about it."""
        parser, before = self.parser, self.cycle
        return (
            self._answer_directly is not None
            and (before is None or before.response_complete)
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not (parser.should_upgrade() or self.expect_100_continue or self.flow.write_paused)
        )

    def _is_answered(self, body: bytes) -> bool:
        exchange = Exchange(self)
        taken = self._answer_directly(self.url, self.headers, body, exchange.answer)  # type: ignore[misc]
        if taken or exchange.response_complete:
            self.cycle = exchange  # type: ignore[assignment]
            return True
        return False

    def _take_the_usual_way(self, body: bytes) -> None:
        self._body = None
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers += headers  # which is part of the scope since
        super().on_headers_complete()
        if body:
            super().on_body(body)


class Exchange:
    """A request that is answered directly, with what uvicorn's protocol asks of its cycles."""

    __slots__ = ("_protocol", "disconnected", "keep_alive", "response_complete")
    message_event = Event()  # nobody waits for it

    def __init__(self, protocol: DirectProtocol) -> None:
        self._protocol = protocol
        self.disconnected = self.response_complete = False
        self.keep_alive = True  # until the service stops

    def answer(self, response: Response) -> None:
        """Send the response, if there is still somebody to send it to."""
        self.response_complete = True
        if self.disconnected:
            return
        protocol = self._protocol
        told = in_one_piece(response, protocol.server_state.default_headers, keep_alive=self.keep_alive)
        protocol.outbox.add(protocol.transport, told)
        if not self.keep_alive:
            protocol.outbox.empty()
            protocol.transport.close()
        protocol.on_response_complete()
