"""Slow and abandoned requests to the service. The limits of connections are those of the strict protocol."""

import asyncio
from typing import Any

import pytest
from helpers.live import wait_until
from helpers.raw_requests import connect, received
from helpers.running_service import running

from banditrank.service._http_errors import HttpError
from banditrank.service._request_body import BodyReader
from banditrank.service._server import server_config
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


@pytest.mark.parametrize("length", [b"3000000", b"0" * 5000 + b"3000000", b"9" * 5000], ids=len)
def test_a_body_that_is_too_large_is_refused_before_it_is_sent(length: bytes) -> None:
    received = []

    async def receive() -> dict[str, Any]:
        received.append(1)
        return {"type": "http.request", "body": b"", "more_body": False}

    reader = BodyReader((), max_bytes=1_000_000, timeout_seconds=1.0)
    headers = {b"content-type": b"application/json", b"content-length": length}
    with pytest.raises(HttpError, match="at most 1,000,000 bytes"):
        asyncio.run(reader.read(headers, receive))
    assert not received


def test_a_disconnect_during_a_stream_with_pipelined_requests_is_not_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running() as service:
        service.ask("POST", "/v1/surfaces", ADS)
        streams = service.application.streams
        with connect(service) as gone:
            gone.sendall(STREAM + RANK)
            assert gone.recv(65536).startswith(b"HTTP/1.1 200")
            assert streams.n_open == 1
        wait_until(lambda: streams.n_open == 0)
    assert not [record for record in caplog.records if record.exc_info]


def test_the_keep_alive_timeout_exceeds_that_of_nginx() -> None:
    assert server_config("x", Settings()).timeout_keep_alive > NGINX_KEEP_ALIVE_SECONDS
