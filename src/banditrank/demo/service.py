"""The demo's service: in a thread of this process, where it is sooner there than in a process of its own."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

import uvicorn

from banditrank.errors import BanditRankError, InvalidInputError
from banditrank.model.problem import Problem
from banditrank.service.application import Application
from banditrank.service.cors import LOOPBACK
from banditrank.service.server import bind, server_config
from banditrank.service.settings import Settings
from banditrank.storage.addresses import redacted

_BUCKET_SECONDS = 1.0  # of the learning curve: there is one to see within seconds
_PORTS = 20  # that are tried, from the usual one on, unless one is asked for


@contextmanager
def running_service(
    *, port: int | None, store: str, truths: Mapping[str, Problem] = MappingProxyType({})
) -> Iterator[str]:
    """Run a service on the loopback address until the block ends; give its address.

    Parameters
    ----------
    port
        Where to listen; None for the usual one, or the next that is free.
    store
        Address of the store.
    truths
        The worlds of surfaces, by their names, for the page to show.
    """
    wanted = Settings(store=store, allow_origins=(LOOPBACK,), bucket_seconds=_BUCKET_SECONDS)
    _check_store(wanted)
    settings, bound = _bind_next(wanted) if port is None else _bind(wanted, port)
    server = uvicorn.Server(server_config(Application(settings, true_problems=truths), settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="banditrank-service")
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
            if not thread.is_alive():
                raise BanditRankError("the service did not start")
        yield f"http://{settings.host}:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        bound.close()


def _bind(settings: Settings, port: int) -> tuple[Settings, socket.socket]:
    settings = replace(settings, port=port)
    return settings, bind(settings)


def _bind_next(settings: Settings) -> tuple[Settings, socket.socket]:
    """Listen at the first port that is free."""
    *others, last = range(settings.port, settings.port + _PORTS)
    for port in others:
        try:
            return _bind(settings, port)
        except InvalidInputError:
            continue
    return _bind(settings, last)


def _check_store(settings: Settings) -> None:
    """Raise an error in one line if the store cannot be used, or not by the demo's users."""
    store = settings.open_store()
    try:
        if store.api_keys():
            rule = "must be without API keys, which users of the demo do not have"
            raise InvalidInputError("store", rule, redacted(settings.store))
    finally:
        store.close()
