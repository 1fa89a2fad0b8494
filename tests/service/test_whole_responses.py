"""Responses are the same whether they are sent in one piece or as uvicorn sends them."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from banditrank.service.punctual_protocol import PunctualProtocol
from banditrank.service.whole_responses import Outbox, _line

REQUESTS = {
    "keep alive": b"GET /whole HTTP/1.1\r\nhost: x\r\n\r\n",
    "close": b"GET /whole HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    "old": b"GET /whole HTTP/1.0\r\nhost: x\r\n\r\n",
    "head": b"HEAD /whole HTTP/1.1\r\nhost: x\r\n\r\n",
    "in parts": b"GET /parts HTTP/1.1\r\nhost: x\r\n\r\n",
    "of unknown length": b"GET /unknown HTTP/1.1\r\nhost: x\r\n\r\n",
    "closed by us": b"GET /closed HTTP/1.1\r\nhost: x\r\n\r\n",
    "wrong length": b"GET /wrong HTTP/1.1\r\nhost: x\r\n\r\n",
    "nothing": b"GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n",
    "nonsense after": b"GET /whole HTTP/1.1\r\nhost: x\r\n\r\n\x16\x03\x01 nonsense\r\n\r\n",
}


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer in the ways that an application may."""
    await receive()
    await asyncio.sleep(0)
    path = scope["path"]
    headers = [] if path == "/unknown" else [(b"content-length", b"7" if path == "/wrong" else b"6")]
    if path == "/closed":
        headers.append((b"connection", b"close"))
    if path == "/nothing":
        return
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if path == "/parts":
        await send({"type": "http.response.body", "body": b"abc", "more_body": True})
        await send({"type": "http.response.body", "body": b"def"})
    else:
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else b"abcdef"})


@contextmanager
def served(protocol: type[HttpToolsProtocol]) -> Iterator[int]:
    """Serve the application until the block ends; give the port."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        config = uvicorn.Config(
            application, http=protocol, lifespan="off", log_config=None, date_header=False
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield bound.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(30)


def answer(port: int, request: bytes) -> bytes:
    """Return all that comes back to a request and another after it, with which the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request + REQUESTS["closed by us"])
        received = b""
        while part := connection.recv(65536):
            received += part
        return received


@pytest.fixture(scope="module")
def ports() -> Iterator[tuple[int, int]]:
    with served(PunctualProtocol) as ours, served(HttpToolsProtocol) as uvicorns:
        yield ours, uvicorns


@pytest.mark.parametrize("kind", REQUESTS)
def test_responses_are_uvicorns(ports: tuple[int, int], kind: str) -> None:
    got, expected = (answer(port, REQUESTS[kind]) for port in ports)
    assert got == expected
    status = {"nothing": b"500", "nonsense after": b"400"}.get(kind, b"200")
    assert got.startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize(("name", "value"), [(b"etag", b"1\r\nset-cookie: a=b"), (b"e tag", b"1")])
def test_what_is_no_header_is_not_sent(name: bytes, value: bytes) -> None:
    with pytest.raises(RuntimeError, match="not a header"):
        _line(name, value)


class Written:
    """A transport that remembers what was written, by whom, in which turn of the loop."""

    def __init__(self, log: list[tuple[str, bytes]], name: str, *, closing: bool = False) -> None:
        self.log, self.name, self.closing = log, name, closing

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: bytes) -> None:
        self.log.append((self.name, data))


def test_responses_of_one_turn_are_written_together_and_in_order() -> None:
    log: list[tuple[str, bytes]] = []
    one, other, gone = Written(log, "one"), Written(log, "other"), Written(log, "gone", closing=True)

    async def answer() -> None:
        outbox = Outbox()
        for transport, response in ((one, b"1"), (other, b"2"), (gone, b"3"), (one, b"4")):
            outbox.add(transport, response)
        assert log == []
        await asyncio.sleep(0)
        assert log == [("one", b"1"), ("other", b"2"), ("one", b"4")]
        outbox.add(other, b"5")
        outbox.empty()
        assert log[3:] == [("other", b"5")]
        await asyncio.sleep(0)
        assert len(log) == 4, "nothing is written twice"

    asyncio.run(answer())
