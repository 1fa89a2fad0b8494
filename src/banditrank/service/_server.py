"""The HTTP server: one process, or several workers that share a socket."""

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
from banditrank.service._application import Application
from banditrank.service._http_protocol import HttpProtocol
from banditrank.service._json_logging import configure_json_logging
from banditrank.service._process_memory import configure_heap
from banditrank.service._settings import Settings

_BACKLOG = 2048
_KEEP_ALIVE_SECONDS = 75  # longer than proxies, so that they close idle connections
_SHUTDOWN_SECONDS = 10  # for requests in progress
# After which a worker that does not answer is replaced. Five seconds by default, which workers take to start
# on a slow or busy machine: they would be replaced for ever.
_HEALTH_CHECK_SECONDS = 60
_SWITCH_SECONDS = 0.0005  # so that the commit thread soon gets the interpreter lock


def make_application(settings: Settings, metrics_directory: Path | None = None) -> Application:
    """Return the application of a worker process, and configure logging and memory of the process."""
    configure_json_logging()
    configure_heap()
    sys.setswitchinterval(_SWITCH_SECONDS)
    return Application(
        settings, metrics_directory=metrics_directory, owns_process=True, loads_in_background=True
    )


def serve(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM, then finish requests in progress and commit all pending events.

    Raises
    ------
    InvalidInputError
        If the address is not available.
    StoreError
        If the store cannot be opened.
    """
    settings.open_store().close()  # to raise an error before workers start
    bound = bind(settings)
    configure_json_logging()
    host, port = bound.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    logging.getLogger(__name__).info("service listening", extra={"address": address})
    if settings.workers == 1:
        make = partial(make_application, settings)
        uvicorn.Server(server_config(make, settings, factory=True)).run(sockets=[bound])
    else:
        with TemporaryDirectory(prefix="banditrank-") as directory:
            # Settings are pickled: a password in the address of the store is in no environment.
            make = partial(make_application, settings, Path(directory))
            Multiprocess(server_config(make, settings, factory=True), sockets=[bound]).run()


def server_config(
    application: Callable[..., Any], settings: Settings, *, factory: bool = False
) -> uvicorn.Config:
    """Return the uvicorn configuration of an application.

    Parameters
    ----------
    application
        ASGI application, or a function that returns it if `factory`.
    settings
        Settings of the service.
    factory
        Whether `application` is called in each worker.
    """
    return uvicorn.Config(
        application,
        factory=factory,
        interface="asgi3",
        workers=settings.workers,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # addresses of clients are not used
        http=HttpProtocol,
        loop="uvloop",
        lifespan="on",
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        timeout_worker_healthcheck=_HEALTH_CHECK_SECONDS,
    )


def bind(settings: Settings) -> socket.socket:
    """Return a socket that listens at the address in the settings.

    Raises
    ------
    InvalidInputError
        If the address is not available.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        socket.getaddrinfo(settings.host, settings.port, family)
    except OSError as error:
        raise InvalidInputError("host", f"must be an address ({error.strerror})", settings.host) from None
    except ValueError:  # not a name that can be looked up, such as a..b
        raise InvalidInputError("host", "must be an address", settings.host) from None
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
