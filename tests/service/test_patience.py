"""For how long connections are waited for: by a clock that goes on when it is told to."""

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.server import ServerState

from banditrank.service.messages import DirectAnswer, RawHeaders, Response
from banditrank.service.punctual_protocol import HEAD_SECONDS, PunctualProtocol

IDLE_SECONDS = 75
REQUEST = b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"
OTHER = REQUEST.replace(b"/x", b"/y")  # to which there is no direct answer

Send = Callable[[Response], None]


class Timer:
    """What is to be done at a time."""

    def __init__(self, loop: "Loop", at: float, work: Callable[[], None]) -> None:
        self._loop, self.at, self.work = loop, at, work

    def cancel(self) -> None:
        if self in self._loop.timers:
            self._loop.timers.remove(self)


class Loop:
    """An event loop whose time goes on when it is told to; tasks are not run."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[Timer] = []
        self.tasks = 0

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, work: Callable[[], None]) -> Timer:
        timer = Timer(self, self.now + seconds, work)
        self.timers.append(timer)
        return timer

    def create_task(self, work: Any) -> Mock:
        work.close()
        self.tasks += 1
        return Mock()

    def go_on(self, seconds: float) -> None:
        until = self.now + seconds
        while due := sorted(
            (timer for timer in self.timers if timer.at <= until), key=lambda timer: timer.at
        ):
            self.now = due[0].at
            self.timers.remove(due[0])
            due[0].work()
        self.now = until


class Connection:
    """A connection to an application that answers in a way."""

    def __init__(self, answer: DirectAnswer) -> None:
        async def application(scope: Any, receive: Any, send: Any) -> None:
            """Answer nothing."""

        application.direct_answer_to = lambda path: answer if path == b"/x" else None
        config = uvicorn.Config(application, lifespan="off", log_config=None, timeout_keep_alive=IDLE_SECONDS)
        config.load()
        config.loaded_app = application
        self.loop = Loop()
        self.transport = Mock()
        self.transport.is_closing = lambda: self.is_closed
        self.transport.get_extra_info.return_value = None
        self.protocol = PunctualProtocol(config, ServerState(), {}, self.loop)
        self.protocol.outbox = Mock()
        self.protocol.connection_made(self.transport)

    @property
    def is_closed(self) -> bool:
        return bool(self.transport.close.called)

    def take(self, data: bytes, *, at_a_time: int = 1 << 16) -> None:
        for start in range(0, len(data), at_a_time):
            self.protocol.data_received(data[start : start + at_a_time])


def at_once(_: RawHeaders, __: bytes, send: Send) -> bool:
    """Answer a request at once."""
    send(Response(200, b"{}"))
    return True


class Later:
    """Answers requests when it is told to."""

    def __init__(self) -> None:
        self.sends: list[Send] = []

    def __call__(self, _: RawHeaders, __: bytes, send: Send) -> bool:
        self.sends.append(send)
        return True

    def answer(self) -> None:
        self.sends.pop(0)(Response(200, b"{}"))


@pytest.fixture
def connection() -> Connection:
    return Connection(at_once)


def test_who_never_asks_is_not_waited_for(connection: Connection) -> None:
    connection.loop.go_on(HEAD_SECONDS - 0.1)
    assert not connection.is_closed
    connection.loop.go_on(0.2)
    assert connection.is_closed


def test_every_answer_begins_the_time_of_being_idle_anew(connection: Connection) -> None:
    for _ in range(3):
        connection.take(REQUEST)
        connection.loop.go_on(IDLE_SECONDS - 10)
        assert not connection.is_closed
    connection.loop.go_on(11)
    assert connection.is_closed


def test_one_timer_is_set_however_many_parts_there_are(connection: Connection) -> None:
    connection.take(REQUEST * 3, at_a_time=1)
    assert [timer.at for timer in connection.loop.timers] == [IDLE_SECONDS]
    assert connection.loop.tasks == 0


def test_an_answer_is_waited_for_as_long_as_it_takes() -> None:
    later = Later()
    connection = Connection(later)
    connection.take(REQUEST)
    connection.loop.go_on(1000)
    assert not connection.is_closed
    later.answer()
    connection.loop.go_on(IDLE_SECONDS - 1)
    assert not connection.is_closed
    connection.loop.go_on(2)
    assert connection.is_closed


def test_who_was_answered_before_is_waited_for_as_well() -> None:
    later = Later()
    connection = Connection(later)
    connection.take(REQUEST)
    later.answer()
    connection.loop.go_on(1)
    connection.take(REQUEST)
    connection.loop.go_on(1000)
    assert not connection.is_closed


def test_a_body_is_waited_for_a_moment_and_then_by_a_task(connection: Connection) -> None:
    connection.take(REQUEST[:-1])
    assert len(connection.loop.timers) == 1
    connection.loop.go_on(1)
    assert (connection.loop.tasks, connection.loop.timers) == (1, [])
    assert not connection.is_closed


def test_what_was_answered_is_not_asked_again(connection: Connection) -> None:
    connection.take(REQUEST, at_a_time=len(REQUEST) - 1)
    connection.loop.go_on(1)
    assert connection.loop.tasks == 0


@pytest.mark.parametrize("sent", [b"", REQUEST[:10], REQUEST[:-1], REQUEST, REQUEST + OTHER])
def test_nothing_is_waited_for_when_the_client_is_gone(connection: Connection, sent: bytes) -> None:
    connection.take(sent)
    connection.protocol.connection_lost(None)
    assert connection.loop.timers == []


def test_nothing_is_waited_for_after_nonsense(connection: Connection) -> None:
    chunked = b"POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    connection.take(chunked)
    connection.take(b"zz\r\n")
    assert connection.is_closed
    assert connection.loop.timers == []


def test_a_client_that_does_not_read_is_not_answered_directly(connection: Connection) -> None:
    connection.protocol.pause_writing()
    connection.take(REQUEST)
    assert connection.loop.tasks == 1


def test_the_heads_of_two_requests_are_measured_apart(connection: Connection) -> None:
    long = REQUEST.replace(b"host: x", b"host: x\r\nx: " + b"x" * 40_000)
    connection.take(long * 2, at_a_time=20_000)
    assert not connection.is_closed


def test_an_answer_that_was_given_counts_whatever_fails_after_it() -> None:
    def fail_late(_: RawHeaders, __: bytes, send: Send) -> bool:
        send(Response(200, b"{}"))
        return False

    connection = Connection(fail_late)
    connection.take(REQUEST)
    assert connection.loop.tasks == 0
    assert connection.protocol.outbox.add.call_count == 1
