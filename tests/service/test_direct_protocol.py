"""Requests that may be answered directly: in order, in parts, and from whoever is still there."""

import json
import logging
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from raw_requests import (
    ADS,
    EVERYBODY,
    JSON,
    LAST,
    RANK,
    answers,
    connect,
    feedback,
    message,
    received,
    watch_direct_answers,
)
from running_service import Running, running

from banditrank.service import direct_protocol


@pytest.fixture
def service() -> Iterator[Running]:
    with running() as service:
        assert service.ask("POST", "/v1/surfaces", ADS).status_code == 201
        yield service


@pytest.fixture
def directly(service: Running, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    return watch_direct_answers(service, monkeypatch)


def test_answers_come_in_the_order_of_requests(service: Running, directly: list[bool]) -> None:
    rank, unknown = message(RANK, EVERYBODY, JSON), message(RANK, {"user_type": "x"}, JSON)
    told = answers(service, rank, message("/v1/feedback", feedback(service), JSON), rank, unknown, rank)
    assert [one.split()[1] for one in told] == [b"200", b"200", b"200", b"422", b"200"]
    assert [b"counted" in one for one in told] == [False, True, False, False, False]
    assert True in directly


@pytest.mark.parametrize("parts", [2, 3, 40])
def test_a_body_after_the_head_is_waited_for(
    service: Running, directly: list[bool], monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    monkeypatch.setattr(direct_protocol, "_BODY_SECONDS", 30.0)
    request = message(RANK, EVERYBODY, JSON)
    size = -(-len(request) // parts)
    with connect(service) as slow:
        slow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(request), size):
            slow.sendall(request[start : start + size])
        assert slow.recv(65536).startswith(b"HTTP/1.1 200")
        slow.sendall(request)
        assert slow.recv(65536).startswith(b"HTTP/1.1 200")
    assert directly == [True, True]


def test_a_body_in_chunks_is_answered_directly(service: Running, directly: list[bool]) -> None:
    body = json.dumps(EVERYBODY).encode()
    chunks = b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (5, body[:5], len(body) - 5, body[5:])
    head = f"POST {RANK} HTTP/1.1\r\nhost: localhost\r\n{JSON}\r\ntransfer-encoding: chunked\r\n\r\n"
    (told,) = answers(service, head.encode() + chunks)
    assert told.startswith(b"HTTP/1.1 200")
    assert directly == [True]


def test_trailers_are_no_headers(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(EVERYBODY).encode()
    head = f"POST {RANK} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    request = head.encode() + b"%x\r\n%b\r\n0\r\n%b\r\n\r\n" % (len(body), body, JSON.encode())
    assert answers(service, request)[0].startswith(b"HTTP/1.1 415")
    monkeypatch.setattr(service.application, "direct_answer_to", lambda _: None)
    assert answers(service, request)[0].startswith(b"HTTP/1.1 415")


def test_many_requests_at_once_do_not_hold_up_others(service: Running, directly: list[bool]) -> None:
    told = answers(service, *[message(RANK, EVERYBODY, JSON)] * 1000)
    assert [one.split()[1] for one in told] == [b"200"] * 1000
    assert len(directly) < 500, "the others are tasks, between which the loop turns to other connections"


def test_a_body_that_is_slow_takes_the_usual_way(
    service: Running, directly: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_protocol, "_BODY_SECONDS", 0.0)
    started = threading.Event()
    read = service.application.bodies.read

    def read_watched(*arguments: Any) -> Any:
        started.set()
        return read(*arguments)

    monkeypatch.setattr(service.application.bodies, "read", read_watched)
    request = message(RANK, EVERYBODY, JSON)
    with connect(service) as slow:
        slow.sendall(request[:-5])
        assert started.wait(30)
        slow.sendall(request[-5:] + LAST)
        told = received(slow)
    assert re.findall(rb"HTTP/1.1 (\d+)", told) == [b"200", b"200"]
    assert directly == []


def test_a_large_body_takes_the_usual_way(
    service: Running, directly: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_protocol, "_LARGEST_BODY", 10)
    (told,) = answers(service, message(RANK, EVERYBODY, JSON))
    assert told.startswith(b"HTTP/1.1 200")
    assert directly == []


@pytest.mark.parametrize("more", ["connection: close", "expect: 100-continue"])
def test_what_is_not_plain_takes_the_usual_way(service: Running, directly: list[bool], more: str) -> None:
    with connect(service) as connection:
        connection.sendall(message(RANK, EVERYBODY, JSON, more) + LAST)
        told = re.findall(rb"HTTP/1.1 (\d+)", received(connection))
    assert told == ([b"200"] if "close" in more else [b"100", b"200", b"200"])
    assert directly == []


def test_a_request_of_old_takes_the_usual_way(service: Running, directly: list[bool]) -> None:
    request = message(RANK, EVERYBODY, JSON, "connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0")
    with connect(service) as connection:
        connection.sendall(request)
        assert b"connection: close" in received(connection)
    assert directly == []


class Held:
    """Commits that wait until they are let go."""

    def __init__(self, service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self._go_on = threading.Event(), threading.Event()
        store = service.application.engine.store
        commit = store.commit

        def held(entries: Any, **options: Any) -> Any:
            if any(entry.outcome is not None for entry in entries):
                self.begun.set()
                assert self._go_on.wait(30)
            return commit(entries, **options)

        monkeypatch.setattr(store, "commit", held)

    def let_go(self) -> None:
        self._go_on.set()


def test_feedback_of_whoever_is_gone_is_counted(
    service: Running, directly: list[bool], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said = message("/v1/feedback", feedback(service), JSON)
    directly.clear()
    held = Held(service, monkeypatch)
    with connect(service) as gone:
        gone.sendall(said)
        assert held.begun.wait(30)
    with connect(service) as other:  # answered by the loop after it has seen that the first is gone
        other.sendall(message("/healthz", b"", "connection: close", method="GET"))
        received(other)
    held.let_go()
    (told,) = answers(service, said)
    assert b"repeated" in told
    assert directly == [True, True]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_what_is_under_way_is_answered_when_the_service_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_protocol, "_BODY_SECONDS", 30.0)
    ranking = message(RANK, EVERYBODY, JSON)
    with running() as service:
        service.ask("POST", "/v1/surfaces", ADS)
        said = message("/v1/feedback", feedback(service), JSON)
        held = Held(service, monkeypatch)
        half_is_read = asked_for(service, RANK, monkeypatch)
        waiting, half = connect(service), connect(service)
        waiting.sendall(said)
        half.sendall(ranking[:-5])
        assert held.begun.wait(30)
        assert half_is_read.wait(30)

        def go_on() -> None:
            while not service.application.stopping.is_set():
                threading.Event().wait(0.01)
            half.sendall(ranking[-5:])
            held.let_go()

        threading.Thread(target=go_on).start()
    with waiting, half:
        told = received(waiting)
        assert told.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in told
        assert b"counted" in told
        assert received(half).startswith(b"HTTP/1.1 200")


def asked_for(service: Running, path: str, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return what is set when the head of a request for a path was read."""
    asked = threading.Event()
    find = service.application.direct_answer_to

    def find_watched(given: bytes) -> Any:
        if given == path.encode():
            asked.set()
        return find(given)

    monkeypatch.setattr(service.application, "direct_answer_to", find_watched)
    return asked


def test_nonsense_after_a_request_is_refused_after_its_answer(service: Running) -> None:
    with connect(service) as connection:
        connection.sendall(message(RANK, EVERYBODY, JSON) + b"\x16\x03\x01 nonsense\r\n\r\n")
        told = received(connection)
    assert re.findall(rb"HTTP/1.1 (\d+)", told) == [b"200", b"400"]


CHUNKED = f"POST {RANK} HTTP/1.1\r\nhost: localhost\r\n{JSON}\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("nonsense", [CHUNKED + "zz\r\n", CHUNKED + "5\r\n{xxxxxxx\r\n"])
def test_nonsense_in_a_body_is_refused(service: Running, directly: list[bool], nonsense: str) -> None:
    with connect(service) as connection:
        connection.sendall(nonsense.encode())
        assert received(connection).startswith(b"HTTP/1.1 400")
    assert directly == []


def test_a_path_must_be_ascii(service: Running, directly: list[bool]) -> None:
    with connect(service) as connection:
        connection.sendall(message("/v1/surfaces/\u00e4/rankings", EVERYBODY, JSON))
        assert received(connection).startswith(b"HTTP/1.1 400")
    assert directly == []
