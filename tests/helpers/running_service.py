"""Service that runs for a test, in a thread, at a free port of the loopback address."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

from banditrank.service._application import Application
from banditrank.service._server import bind, server_config
from banditrank.service._settings import Settings

TIMEOUT_SECONDS = 300.0  # includes compilation on a busy machine


@dataclass
class Running:
    """Running service with its address and application."""

    address: str
    application: Application
    _client: httpx.Client
    _server: uvicorn.Server

    @property
    def connections(self) -> list[Any]:
        """The protocols of the open connections."""
        return list(self._server.server_state.connections)

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """Send one request."""
        return self._client.request(method, self.address + path, json=body, **options)


@contextmanager
def running(*, loads_in_background: bool = False, **settings: Any) -> Iterator[Running]:
    """Run a service until the block ends."""
    chosen = Settings(**{"port": 0, "store": "memory:", **settings})
    application = Application(chosen, loads_in_background=loads_in_background)
    bound = bind(chosen)
    server = uvicorn.Server(server_config(application, chosen))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the service did not start"
            thread.join(0.01)
        with httpx.Client(timeout=TIMEOUT_SECONDS, verify=False) as client:  # noqa: S501 - no TLS
            yield Running(f"http://127.0.0.1:{bound.getsockname()[1]}", application, client, server)
    finally:
        server.should_exit = True
        thread.join(TIMEOUT_SECONDS)
        bound.close()
        assert not thread.is_alive(), "the service did not stop"
