"""Clients that are slow, long-winded or gone do not hold up the service."""

import threading
from collections.abc import Iterator

import pytest
from raw_requests import connect, received
from running_service import Running, running

from banditrank.service import http_protocol, server
from banditrank.service.server import server_config
from banditrank.service.settings import Settings

NGINX_SECONDS = 60  # for which it keeps connections that are idle

LARGEST_READ = 1 << 18  # bytes, of the event loop

ADS = {"name": "ads", "items": ["a", "b", "c"], "n_positions": 2}
RANK = (
    b"POST /v1/surfaces/ads/rankings HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b'content-length: 25\r\n\r\n{"user_type":"everybody"}'
)
STREAM = b"GET /v1/surfaces/ads/events HTTP/1.1\r\nhost: localhost\r\n\r\n"
HEAD = b"POST /v1/feedback HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


@pytest.fixture
def service() -> Iterator[Running]:
    with running(body_seconds=0.2) as service:
        yield service


@pytest.mark.parametrize("begun", [b"", b"{"])
def test_a_slow_body_is_given_up(service: Running, begun: bytes) -> None:
    with connect(service) as slow:
        slow.sendall(HEAD + b"content-length: 100\r\n\r\n" + begun)
        answer = received(slow)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"urn:banditrank:problem:too-slow" in answer


def test_a_slow_head_is_given_up(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.2)
    with connect(service) as silent, connect(service) as slow, connect(service) as second:
        slow.sendall(b"POST /v1/feedb")
        second.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\nGET /hea")
        assert received(silent) == b""
        assert received(slow) == b""
        assert received(second).count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("after", [b"x", b"x" * 100, b"\r\n"])
def test_what_comes_after_an_answer_is_not_waited_for(
    service: Running, monkeypatch: pytest.MonkeyPatch, after: bytes
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.2)
    with connect(service) as slow:
        slow.sendall(b"POST /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n")
        assert slow.recv(65536).startswith(b"HTTP/1.1 405")
        slow.sendall(after)
        assert received(slow) == b""


def test_a_late_body_is_not_in_the_way_of_the_next_request(service: Running) -> None:
    with connect(service) as late:
        late.sendall(b"POST /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n")
        assert late.recv(65536).startswith(b"HTTP/1.1 405")
        late.sendall(b"{")
        late.sendall(b"}GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert late.recv(65536).startswith(b"HTTP/1.1 200")


def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_IDLE_SECONDS", 0.2)
    ask = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with running() as service, connect(service) as idle:
        idle.sendall(ask)
        assert idle.recv(65536).startswith(b"HTTP/1.1 200")
        assert received(idle) == b""


def test_a_stream_after_a_direct_answer_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_IDLE_SECONDS", 0.2)
    with running(stream_seconds=1.0) as service, connect(service) as busy:
        assert service.ask("POST", "/v1/surfaces", ADS).status_code == 201
        busy.sendall(RANK + STREAM)
        answer = received(busy)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.endswith(b"0\r\n\r\n"), "it was ended, and not cut off"


def test_who_leaves_a_stream_with_requests_behind_it_is_missed_quietly(
    service: Running, caplog: pytest.LogCaptureFixture
) -> None:
    service.ask("POST", "/v1/surfaces", ADS)
    streams = service.application.streams
    with connect(service) as gone:
        gone.sendall(STREAM + RANK)
        assert gone.recv(65536).startswith(b"HTTP/1.1 200")
        assert streams.number == 1
    for _ in range(1000):
        if not streams.number:
            break
        threading.Event().wait(0.03)
    assert streams.number == 0
    assert not [record for record in caplog.records if record.exc_info]


def test_requests_are_not_read_while_many_wait(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 0
    begin = http_protocol.HttpProtocol.on_message_begin

    def watched(self: http_protocol.HttpProtocol) -> None:
        nonlocal most
        most = max(most, len(self.pipeline))
        begin(self)

    monkeypatch.setattr(http_protocol.HttpProtocol, "on_message_begin", watched)
    ask = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    n = 40_000
    with connect(service) as eager:
        sender = threading.Thread(target=lambda: eager.sendall(ask * n))
        sender.start()
        answered, tail = 0, b""
        while answered < n:
            part = eager.recv(1 << 20)
            assert part, f"closed after {answered} answers"
            tail += part
            answered += tail.count(b"HTTP/1.1 200")
            tail = tail[-11:] if not tail.endswith(b"HTTP/1.1 200") else b""
        sender.join()
    assert most * len(ask) <= LARGEST_READ


def test_a_head_is_not_slow_while_it_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.2)
    with running(stream_seconds=1.0) as service, connect(service) as patient:
        assert service.ask("POST", "/v1/surfaces", ADS).status_code == 201
        ask = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
        patient.sendall(STREAM + ask + ask[:10])
        patient.sendall(ask[10:].replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        assert received(patient).count(b"HTTP/1.1 200") == 3


def test_idle_connections_are_kept_for_longer_than_proxies_do() -> None:
    assert server_config("x", Settings()).timeout_keep_alive > NGINX_SECONDS


def test_a_long_head_is_refused(service: Running) -> None:
    with connect(service) as long_winded:
        long_winded.sendall(HEAD)
        long_winded.sendall((b"x-more: " + b"y" * 1000 + b"\r\n") * 66)
        assert received(long_winded).startswith(b"HTTP/1.1 431")


def test_many_requests_on_one_connection(service: Running) -> None:
    with connect(service) as one:
        for _ in range(300):
            one.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert b'"ok"' in one.recv(65536)


def test_what_is_no_http_is_refused(service: Running) -> None:
    with connect(service) as strange:
        strange.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
        assert received(strange).startswith(b"HTTP/1.1 400")


def test_others_are_served_meanwhile(service: Running) -> None:
    waiting = [connect(service) for _ in range(50)]
    for connection in waiting:
        connection.sendall(b"POST /v1/feedback HTTP/1.1\r\n")
    assert service.ask("GET", "/healthz").status_code == 200
    for connection in waiting:
        connection.close()
    assert service.ask("GET", "/readyz").status_code == 200


def test_who_offers_http_2_is_answered_as_others_are(service: Running) -> None:
    offer = b"connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAA\r\n"
    body = b'{"ranking": "none", "clicked": null}'
    with connect(service) as client:
        for _ in range(2):  # the body is not taken for something else, nor is what comes after it
            client.sendall(HEAD + offer + b"content-length: %d\r\n\r\n" % len(body) + body)
            assert client.recv(65536).startswith(b"HTTP/1.1 404")
