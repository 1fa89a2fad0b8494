"""The demo's service, in a thread of this process, which starts faster than a process."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

from banditrank.errors import BanditRankError, InvalidInputError
from banditrank.model._problem import Problem
from banditrank.service._cors import LOOPBACK
from banditrank.service._server import Server, bind
from banditrank.service._service import Service
from banditrank.service._settings import Settings
from banditrank.storage._addresses import redacted

_BUCKET_SECONDS = 1.0  # of the dashboard's time series, so that there is a curve within seconds
_N_PORTS = 20  # to try, from the default on


@contextmanager
def running_service(
    *, port: int | None, store: str, true_problems: Mapping[str, Problem] = MappingProxyType({})
) -> Iterator[str]:
    """Run a service on the loopback address until the block ends, and yield its URL.

    Parameters
    ----------
    port
        Port to listen on; None for the default one, or the next that is free.
    store
        Address of the store.
    true_problems
        True problems by surface name, for the dashboard to show.

    Raises
    ------
    InvalidInputError
        If the port is taken, or the store cannot be opened or holds API keys.
    BanditRankError
        If the service does not start.
    """
    unbound = Settings(store=store, allow_origins=(LOOPBACK,), bucket_seconds=_BUCKET_SECONDS)
    _check_store(unbound)
    settings, listener = _bind_next(unbound) if port is None else _bind(unbound, port)
    server = Server(Service(settings, true_problems, loads_in_background=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="banditrank-service")
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
            if not thread.is_alive():
                raise BanditRankError("the service did not start")
        yield f"http://{settings.host}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def _bind(settings: Settings, port: int) -> tuple[Settings, socket.socket]:
    settings = replace(settings, port=port)
    return settings, bind(settings)


def _bind_next(settings: Settings) -> tuple[Settings, socket.socket]:
    """Listen on the first free port."""
    *others, last = range(settings.port, settings.port + _N_PORTS)
    for port in others:
        try:
            return _bind(settings, port)
        except InvalidInputError:
            continue
    return _bind(settings, last)


def _check_store(settings: Settings) -> None:
    """Raise InvalidInputError if the store cannot be opened or requires API keys."""
    store = settings.open_store()
    try:
        if store.api_keys():
            rule = "must hold no API keys, because the demo's users have none"
            raise InvalidInputError("store", rule, redacted(settings.store))
    finally:
        store.close()
