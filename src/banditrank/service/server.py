"""Runs the service: one process, or several that share the address."""

import logging
import os
import socket
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from uvicorn.supervisors import Multiprocess

from banditrank.errors import InvalidInputError
from banditrank.service.application import Application
from banditrank.service.logs import log_as_json
from banditrank.service.punctual_protocol import PunctualProtocol
from banditrank.service.settings import Settings

_SETTINGS = "BANDITRANK_SERVICE_SETTINGS"  # of worker processes, in their environment
_SHARED = "BANDITRANK_SERVICE_SHARED"  # likewise, their directory
_BACKLOG = 2048
_IDLE_SECONDS = 75  # a connection is kept: longer than proxies do, so that it is they who close it
_STOP_SECONDS = 10  # for requests under way when the service is told to stop
# How long the thread that commits may wait for its turn: commits are what people wait for.
_SWITCH_SECONDS = 0.0005


def make_application() -> Application:
    """Make the application of a worker process."""
    log_as_json()
    sys.setswitchinterval(_SWITCH_SECONDS)
    shared = os.environ.get(_SHARED)
    return Application(
        Settings.from_json(os.environ[_SETTINGS]), shared=None if shared is None else Path(shared)
    )


def serve(settings: Settings) -> None:
    """Serve until a signal says to stop; then answer what was asked, write what is waiting, and return."""
    settings.open_store().close()  # a store that cannot be used is told here, in one line
    bound = bind(settings)
    log_as_json()
    host, port = bound.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    logging.getLogger(__name__).info("listening", extra={"address": address})
    os.environ[_SETTINGS] = settings.to_json()
    config = server_config("banditrank.service.server:make_application", settings)
    if settings.workers == 1:
        uvicorn.Server(config).run(sockets=[bound])
    else:
        with TemporaryDirectory(prefix="banditrank-") as shared:
            os.environ[_SHARED] = shared
            Multiprocess(config, sockets=[bound]).run()


def server_config(application: Application | str, settings: Settings) -> uvicorn.Config:
    """Return how uvicorn is to serve an application, or what a name says makes one."""
    return uvicorn.Config(
        application,
        factory=isinstance(application, str),
        workers=settings.workers,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody asks who the client is
        http=PunctualProtocol,
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
        address = f"{settings.host}:{settings.port}"
        raise InvalidInputError.from_os("port", "must be free to listen on", address, error) from None
    bound.listen(_BACKLOG)
    bound.set_inheritable(True)
    return bound
