"""Runs the service: one process, or several that share the address."""

import errno
import logging
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from banditrank.errors import InvalidInputError
from banditrank.service.application import Application
from banditrank.service.http_protocol import HttpProtocol
from banditrank.service.json_logging import configure_json_logging
from banditrank.service.process_memory import limit_heaps
from banditrank.service.settings import Settings

_BACKLOG = 2048
_IDLE_SECONDS = 75  # a connection is kept: longer than proxies do, so that it is they who close it
_STOP_SECONDS = 10  # for requests under way when the service is told to stop
# How long the thread that commits may wait for its turn: commits are what people wait for.
_SWITCH_SECONDS = 0.0005


def make_application(settings: Settings, shared: Path | None = None) -> Application:
    """Make the application of a worker process."""
    configure_json_logging()
    limit_heaps()
    sys.setswitchinterval(_SWITCH_SECONDS)
    return Application(settings, shared=shared, owns_process=True)


def serve(settings: Settings) -> None:
    """Serve until a signal says to stop; then answer what was asked, write what is waiting, and return."""
    settings.open_store().close()  # a store that cannot be used is told here, in one line
    bound = bind(settings)
    configure_json_logging()
    host, port = bound.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    logging.getLogger(__name__).info("listening", extra={"address": address})
    if settings.workers == 1:
        make = partial(make_application, settings)
        uvicorn.Server(server_config(make, settings, factory=True)).run(sockets=[bound])
    else:
        with TemporaryDirectory(prefix="banditrank-") as shared:
            # Workers get the settings through a pipe: a password in the store's address is in no environment.
            make = partial(make_application, settings, Path(shared))
            Multiprocess(server_config(make, settings, factory=True), sockets=[bound]).run()


def server_config(
    application: Callable[..., Any], settings: Settings, *, factory: bool = False
) -> uvicorn.Config:
    """Return the configuration of uvicorn for an application, or for a function that makes it."""
    return uvicorn.Config(
        application,
        factory=factory,
        workers=settings.workers,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody asks who the client is
        http=HttpProtocol,
        loop="uvloop",
        lifespan="on",
        ws="none",
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )


def bind(settings: Settings) -> socket.socket:
    """Return a socket that listens at the address, or raise an error that names it."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        socket.getaddrinfo(settings.host, settings.port, family)
    except OSError as error:
        raise InvalidInputError("host", f"must be an address ({error.strerror})", settings.host) from None
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((settings.host, settings.port))
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRNOTAVAIL:
            rule = "must be an address of this machine"
            raise InvalidInputError.from_os("host", rule, settings.host, error) from None
        address = f"{settings.host}:{settings.port}"
        raise InvalidInputError.from_os("port", "must be free to listen on", address, error) from None
    bound.listen(_BACKLOG)
    bound.set_inheritable(True)
    return bound
