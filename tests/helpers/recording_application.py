"""ASGI application that records every request it receives, and HTTP servers for it."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from banditrank.service._request_guard import RequestGuard
from helpers.framing_client import RECORDED, RECORDS_PATH, Address, key
from helpers.framing_vectors import Request

Record = dict[str, Any]

SERVERS: dict[str, dict[str, Any]] = {
    "strict": {"http": "strict"},
    "guarded": {"http": "httptools", "guard": True},
}
"""Arguments of `recording`: the strict protocol, and uvicorn's own behind a `RequestGuard`."""


class RecordingApplication:
    """Responds to requests with their `key`, and to `RECORDS_PATH` with the records since the last call."""

    def __init__(self, delay_seconds: float = 0.0) -> None:
        self._delay_seconds = delay_seconds
        self._records: list[Record] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request, or the lifespan."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        path = scope["raw_path"].decode("latin-1")
        if path == RECORDS_PATH:
            records, self._records = self._records, []
            await _answer(send, json.dumps(records).encode(), {})
            return
        record: Record = {"method": scope["method"], "path": path, "body": "", "complete": False}
        record["headers"] = _headers(scope)
        self._records.append(record)
        body = bytearray()
        while (message := await receive())["type"] == "http.request":
            body += message.get("body", b"")
            record["body"] = body.decode("latin-1")
            if not message.get("more_body", False):
                break
        record["headers"] = _headers(scope)  # a server may have added trailers to them
        if message["type"] == "http.request":
            record["complete"] = True
            recorded = key(Request(record["method"], path, bytes(body)))
            await asyncio.sleep(self._delay_seconds)
            await _answer(send, b'{"answer": true}', {RECORDED: recorded})


def _headers(scope: Any) -> list[tuple[str, str]]:
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]


async def _live(receive: Any, send: Any) -> None:
    while (message := await receive())["type"] != "lifespan.shutdown":
        await send({"type": f"{message['type']}.complete"})
    await send({"type": "lifespan.shutdown.complete"})


async def _answer(send: Any, body: bytes, headers: dict[str, str]) -> None:
    fields = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    lines = [(name.encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": 200, "headers": lines})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def serving(application: Any, *, http: str = "strict", **settings: Any) -> Iterator[tuple[Address, Any]]:
    """Serve an application with uvicorn until the block ends; yield the address and the server.

    `http` is "strict", or the name of one of uvicorn's protocols; `settings` are more of uvicorn's.
    """
    # Other servers run the application without it.
    import uvicorn

    from banditrank.service.strict_http import StrictHttpProtocol

    settings = {"loop": "uvloop", "timeout_keep_alive": 75, "lifespan": "on", **settings}
    protocol: Any = StrictHttpProtocol if http == "strict" else http
    config = uvicorn.Config(application, http=protocol, ws="none", log_config=None, port=0, **settings)
    server = uvicorn.Server(config)
    bound = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            thread.join(0.01)
        yield bound.getsockname(), server
    finally:
        server.should_exit = True
        thread.join(30)
        bound.close()
        assert not thread.is_alive(), "the server did not stop"


@contextmanager
def recording(
    *, http: str = "strict", guard: bool = False, delay_seconds: float = 0.0, loop: str = "uvloop"
) -> Iterator[Address]:
    """Serve a recording application until the block ends, behind a `RequestGuard` or not."""
    application: Any = RecordingApplication(delay_seconds)
    with serving(RequestGuard(application) if guard else application, http=http, loop=loop) as (address, _):
        yield address


application = RecordingApplication()
guarded = RequestGuard(RecordingApplication())
