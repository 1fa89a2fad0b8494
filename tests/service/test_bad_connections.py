"""Timeouts and limits of connections: slow, large, malformed and abandoned requests."""

import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from helpers.live import wait_until
from helpers.raw_requests import connect, received
from helpers.running_service import Running, running

from banditrank.service import _http_protocol as http_protocol
from banditrank.service import _server as server
from banditrank.service._server import server_config
from banditrank.service._settings import Settings

NGINX_KEEP_ALIVE_SECONDS = 60

MAX_READ_BYTES = 1 << 18  # of the event loop

ADS = {"name": "ads", "items": ["a", "b", "c"], "n_positions": 2}
RANK = (
    b"POST /v1/surfaces/ads/rankings HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b'content-length: 25\r\n\r\n{"user_type":"everybody"}'
)
STREAM = b"GET /v1/surfaces/ads/events HTTP/1.1\r\nhost: localhost\r\n\r\n"
HEAD = b"POST /v1/feedback HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


@pytest.fixture
def service() -> Iterator[Running]:
    with running() as service:
        yield service


@pytest.mark.parametrize("begun", [b"", b"{"])
def test_a_slow_body_times_out(begun: bytes) -> None:
    with running(body_timeout_seconds=0.2) as service, connect(service) as slow:
        slow.sendall(HEAD + b"content-length: 100\r\n\r\n" + begun)
        answer = received(slow)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"urn:banditrank:problem:too-slow" in answer


def test_a_slow_head_times_out(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_SECONDS", 0.2)
    with connect(service) as silent, connect(service) as slow, connect(service) as second:
        slow.sendall(b"POST /v1/feedb")
        second.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\nGET /hea")
        assert received(silent) == b""
        assert received(slow) == b""
        assert received(second).count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("method", [b"POST", b"PUT"])
def test_a_response_before_the_body_closes_the_connection(service: Running, method: bytes) -> None:
    with connect(service) as early:
        early.sendall(method + b" /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n")
        answer = received(early)
    assert answer.startswith(b"HTTP/1.1 405")
    assert b"\r\nconnection: close\r\n" in answer


def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_KEEP_ALIVE_SECONDS", 0.2)
    ask = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with running() as service, connect(service) as idle:
        idle.sendall(ask)
        assert idle.recv(65536).startswith(b"HTTP/1.1 200")
        assert received(idle) == b""


def test_a_stream_after_a_response_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_KEEP_ALIVE_SECONDS", 0.2)
    with running(max_stream_seconds=1.0) as service:
        assert service.ask("POST", "/v1/surfaces", ADS).status_code == 201
        with connect(service) as busy:
            busy.sendall(RANK + STREAM)
            answer = received(busy)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.endswith(b"0\r\n\r\n"), "it was ended, and not cut off"


def test_a_disconnect_during_a_stream_with_pipelined_requests_is_not_an_error(
    service: Running, caplog: pytest.LogCaptureFixture
) -> None:
    service.ask("POST", "/v1/surfaces", ADS)
    streams = service.application.streams
    with connect(service) as gone:
        gone.sendall(STREAM + RANK)
        assert gone.recv(65536).startswith(b"HTTP/1.1 200")
        assert streams.n_open == 1
    for _ in range(1000):
        if not streams.n_open:
            break
        threading.Event().wait(0.03)
    assert streams.n_open == 0
    assert not [record for record in caplog.records if record.exc_info]


def test_reading_pauses_while_pipelined_requests_wait(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    max_pipelined = 0
    begin = http_protocol.HttpProtocol.on_message_begin

    def watched(self: http_protocol.HttpProtocol) -> None:
        nonlocal max_pipelined
        max_pipelined = max(max_pipelined, len(self.pipeline))
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
    assert 0 < max_pipelined * len(ask) <= MAX_READ_BYTES


def test_the_head_timeout_does_not_apply_while_reading_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_SECONDS", 0.2)
    with running(max_stream_seconds=1.0) as service:
        assert service.ask("POST", "/v1/surfaces", ADS).status_code == 201
        ask = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
        with connect(service) as patient:
            patient.sendall(STREAM + ask + ask[:10])
            patient.sendall(ask[10:].replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
            assert received(patient).count(b"HTTP/1.1 200") == 3


def test_the_keep_alive_timeout_exceeds_that_of_nginx() -> None:
    assert server_config("x", Settings()).timeout_keep_alive > NGINX_KEEP_ALIVE_SECONDS


@pytest.mark.parametrize("end", [b"", b"content-length: 0\r\n\r\n"])
def test_a_large_head_is_refused(service: Running, end: bytes) -> None:
    with connect(service) as long_winded:
        long_winded.sendall(HEAD + (b"x-more: " + b"y" * 1000 + b"\r\n") * 66 + end)
        answer = received(long_winded)
    assert answer.startswith(b"HTTP/1.1 431")
    assert answer.count(b"HTTP/1.1") == 1


def test_many_requests_on_one_connection(service: Running) -> None:
    with connect(service) as one:
        for _ in range(300):
            one.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert b'"ok"' in one.recv(65536)


def test_data_that_is_not_http_is_refused(service: Running) -> None:
    with connect(service) as strange:
        strange.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
        assert received(strange).startswith(b"HTTP/1.1 400")


def test_slow_connections_do_not_block_others(service: Running) -> None:
    waiting = [connect(service) for _ in range(50)]
    for connection in waiting:
        connection.sendall(b"POST /v1/feedback HTTP/1.1\r\n")
    assert service.ask("GET", "/healthz").status_code == 200
    for connection in waiting:
        connection.close()
    assert service.ask("GET", "/readyz").status_code == 200


OFFERS = {
    "h2c": b"connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAA\r\n",
    "websocket": b"connection: upgrade\r\nupgrade: websocket\r\n",
    "foo": b"connection: upgrade\r\nupgrade: foo\r\n",
}


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
@pytest.mark.parametrize("packets", [1, 2, 30])
def test_an_upgrade_is_ignored_and_closes_the_connection(
    service: Running, offer: bytes, packets: int
) -> None:
    service.ask("POST", "/v1/surfaces", ADS)
    body = b'{"ranking": "none", "clicked": null}'
    smuggled = b"DELETE /v1/surfaces/ads HTTP/1.1\r\nhost: localhost\r\n\r\n"
    request = HEAD + offer + b"content-length: %d\r\n\r\n" % len(body) + body
    size = -(-len(request) // packets)
    with connect(service) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(request), size):
            client.sendall(
                request[start : start + size] + (smuggled if start + size >= len(request) else b"")
            )
        answer = received(client)
    assert answer.startswith(b"HTTP/1.1 404")
    assert b"unknown-ranking" in answer
    assert answer.count(b"HTTP/1.1") == 1
    assert service.ask("GET", "/v1/surfaces/ads").status_code == 200


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
def test_an_upgrade_with_a_chunked_body_is_refused(service: Running, offer: bytes) -> None:
    with connect(service) as client:
        client.sendall(HEAD + offer + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
        answer = received(client)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


def test_invalid_data_is_refused_after_earlier_responses(service: Running) -> None:
    service.ask("POST", "/v1/surfaces", ADS)
    with connect(service) as client:
        client.sendall(RANK + RANK + b"nonsense\r\n\r\n")
        answer = received(client)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.count(b"connection: close") == 1
    assert b"HTTP/1.1 400" not in answer


def test_trailers_are_bounded(service: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    chunked = HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n"
    with connect(service) as client:
        client.sendall(chunked)
        with suppress(OSError):  # closed meanwhile
            for _ in range(100):
                client.sendall(b"x-more: " + b"y" * 10_000 + b"\r\n")
        with suppress(ConnectionResetError):  # more was sent than was read
            assert client.recv(65536).startswith(b"HTTP/1.1 431")
    assert "head or trailers too large" in caplog.messages


def test_a_large_head_during_a_stream_gets_no_response_within_it(service: Running) -> None:
    service.ask("POST", "/v1/surfaces", ADS)
    with connect(service) as client:
        client.sendall(STREAM)
        assert client.recv(65536).startswith(b"HTTP/1.1 200")
        client.sendall(HEAD + b"x-more: " + b"y" * 70_000)
        service.service.stopping.set()  # ends the stream
        rest = received(client)
    assert b"HTTP/1.1" not in rest
    assert rest.endswith(b"0\r\n\r\n")


def test_a_client_that_does_not_read_is_disconnected(
    service: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_protocol, "STALL_TIMEOUT_SECONDS", 0.1)
    caplog.set_level("INFO")
    ask = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with connect(service) as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            silent.sendall(ask * 1_000_000)
    assert "client does not read its response" in caplog.messages


def test_a_client_that_does_not_read_the_end_of_a_response_is_disconnected(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "STALL_TIMEOUT_SECONDS", 0.1)
    ask = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n"
    with connect(service) as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        unsent = 0
        while unsent == 0:  # until the system takes no more
            silent.sendall(ask + b"\r\n")
            threading.Event().wait(0.01)
            unsent = sum(one.transport.get_write_buffer_size() for one in service.connections)
        with suppress(OSError):
            silent.sendall(ask + b"connection: close\r\n\r\n")
        wait_until(lambda: not service.connections)


def test_a_partial_head_does_not_truncate_the_response_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_SECONDS", 0.1)
    with running(max_stream_seconds=1.0) as service:
        service.ask("POST", "/v1/surfaces", ADS)
        with connect(service) as client:
            client.sendall(STREAM + b"GET /he")
            assert received(client).endswith(b"0\r\n\r\n")


def test_connections_beyond_the_limit_are_refused(
    service: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert service.ask("GET", "/healthz").status_code == 200  # on a connection that is kept
    monkeypatch.setattr(http_protocol, "max_connections", lambda: 2)
    with connect(service) as second, connect(service) as third:
        assert received(third).startswith(b"HTTP/1.1 503")
        second.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        assert received(second).startswith(b"HTTP/1.1 200")
    assert "too many connections" in caplog.messages


def test_the_connection_limit_is_below_the_limit_of_open_files() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert http_protocol.max_connections() < soft
