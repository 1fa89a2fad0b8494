"""Slow and abandoned requests to the service. The limits of connections are those of the strict protocol."""

import pytest
from helpers.live import wait_until
from helpers.raw_requests import connect, received
from helpers.running_service import running

from banditrank.service._server import Server
from banditrank.service._service import Service
from banditrank.service._settings import Settings

NGINX_KEEP_ALIVE_SECONDS = 60

ADS = {"name": "ads", "items": ["a", "b", "c"], "n_positions": 2}
RANK = (
    b"POST /v1/surfaces/ads/rankings HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b'content-length: 25\r\n\r\n{"user_type":"everybody"}'
)
STREAM = b"GET /v1/surfaces/ads/events HTTP/1.1\r\nhost: localhost\r\n\r\n"
HEAD = b"POST /v1/feedback HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize("begun", [b"", b"{"])
def test_a_slow_body_times_out(begun: bytes) -> None:
    with running(body_timeout_seconds=0.2) as service, connect(service) as slow:
        slow.sendall(HEAD + b"content-length: 100\r\n\r\n" + begun)
        answer = received(slow)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"urn:banditrank:problem:too-slow" in answer


def test_a_body_that_is_too_large_is_refused_before_it_is_sent() -> None:
    with running(max_body_bytes=1024) as service, connect(service) as waiting:
        waiting.sendall(HEAD + b"expect: 100-continue\r\ncontent-length: 1025\r\n\r\n")
        answer = received(waiting)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"a body must be at most 1,024 bytes" in answer


def test_a_disconnect_during_a_stream_with_pipelined_requests_is_not_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running() as service:
        service.ask("POST", "/v1/surfaces", ADS)
        with connect(service) as gone:
            gone.sendall(STREAM + RANK)
            assert gone.recv(65536).startswith(b"HTTP/1.1 200")
            assert service.service.n_open_streams == 1
        wait_until(lambda: service.service.n_open_streams == 0)
    assert not [record for record in caplog.records if record.exc_info]


def test_the_keep_alive_timeout_exceeds_that_of_nginx() -> None:
    server = Server(Service(Settings()))
    assert server.config.timeout_keep_alive > NGINX_KEEP_ALIVE_SECONDS
