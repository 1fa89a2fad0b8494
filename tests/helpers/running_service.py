"""Service that runs for a test, in a thread, at a free port of the loopback address."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from banditrank.engine._engine import Engine
from banditrank.service._server import Server, bind
from banditrank.service._service import Service
from banditrank.service._settings import Settings

TIMEOUT_SECONDS = 300.0  # includes compilation on a busy machine


@dataclass
class Running:
    """Running service with its address."""

    address: str
    service: Service
    _client: httpx.Client
    _server: Server

    @property
    def engine(self) -> Engine:
        """The engine of the service."""
        return self.service.engine

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
    service = Service(chosen, loads_in_background=loads_in_background)
    bound = bind(chosen)
    server = Server(service)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the service did not start"
            thread.join(0.01)
        with httpx.Client(timeout=TIMEOUT_SECONDS, verify=False) as client:  # noqa: S501 - no TLS
            yield Running(f"http://127.0.0.1:{bound.getsockname()[1]}", service, client, server)
    finally:
        server.should_exit = True
        thread.join(TIMEOUT_SECONDS)
        bound.close()
        assert not thread.is_alive(), "the service did not stop"
