"""ASGI application that records every request it receives."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from helpers.framing_client import RECORDED, RECORDS_PATH, Address, key
from helpers.framing_vectors import Request

Record = dict[str, Any]


class RecordingApplication:
    """Responds to requests with their `key`, and to `RECORDS_PATH` with the records since the last call."""

    def __init__(self) -> None:
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
def recording() -> Iterator[Address]:
    """Serve a recording application with the service's server until the block ends."""
    import uvicorn  # here: other servers run the application without it

    from banditrank.service._server import bind, server_config
    from banditrank.service._settings import Settings

    settings = Settings(port=0, store="memory:")
    bound = bind(settings)
    server = uvicorn.Server(server_config(RecordingApplication(), settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            thread.join(0.01)
        yield bound.getsockname()
    finally:
        server.should_exit = True
        thread.join(30)
        bound.close()
        assert not thread.is_alive(), "the server did not stop"


application = RecordingApplication()
