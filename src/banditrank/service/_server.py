"""The HTTP server: one process, or several workers that share a socket."""

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import uvicorn

from banditrank.errors import InvalidInputError
from banditrank.service._application import application_of
from banditrank.service._json_logging import configure_json_logging
from banditrank.service._process_memory import configure_heap
from banditrank.service._service import Service
from banditrank.service._settings import Settings
from banditrank.service._supervisor import STOP_TIMEOUT_SECONDS, Supervisor, WorkerLink
from banditrank.service.strict_http import StrictHttpProtocol

logger = logging.getLogger(__name__)

_BACKLOG = 2048
# Longer than proxies, so that they close idle connections.
_KEEP_ALIVE_SECONDS = 75
# For requests in progress.
_SHUTDOWN_SECONDS = 5
# For kept connections to send a request, whose response closes them, before they are closed without one.
_DRAIN_SECONDS = 5.0
# So that the commit thread soon gets the interpreter lock.
_SWITCH_SECONDS = 0.0005


def serve(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM, then finish requests in progress and commit all pending events.

    Raises
    ------
    InvalidInputError
        If the address is not available.
    BanditRankError
        If the service cannot start, such as without its store.
    """
    # To raise an error before workers start.
    settings.open_store().close()
    with bind(settings) as bound:
        _serve(settings, bound)


def _serve(settings: Settings, bound: socket.socket) -> None:
    configure_json_logging()
    host, port = bound.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    logger.info("service listening", extra={"address": address})
    if settings.workers == 1:
        configure_process()
        server = Server(Service(settings, owns_process=True))
        # There is no other process that could take over.
        signal.signal(signal.SIGHUP, server.handle_exit)
        server.run(sockets=[bound])
    else:
        with TemporaryDirectory(prefix="banditrank-") as directory:
            # Settings are pickled: a password in the address of the store is in no environment.
            target = partial(_work, settings, Path(directory), bound)
            Supervisor(target, settings.workers).run()


def configure_process() -> None:
    """Configure logging and memory of a process that does nothing else."""
    configure_json_logging()
    configure_heap()
    sys.setswitchinterval(_SWITCH_SECONDS)


def _work(settings: Settings, metrics_directory: Path, bound: socket.socket, link: WorkerLink) -> None:
    """Serve in a worker process."""
    configure_process()
    service = Service(settings, metrics_directory=metrics_directory, owns_process=True)
    server = Server(service, on_start=link.ready)
    link.on_drain(lambda: asyncio.run_coroutine_threadsafe(server.drain(), service.loop))
    server.run(sockets=[bound])


class Server(uvicorn.Server):
    """uvicorn's server, which runs a service.

    Parameters
    ----------
    service
        The service.
    on_start
        Called when the server accepts connections.
    """

    def __init__(self, service: Service, *, on_start: Callable[[], None] | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                application_of(service),
                interface="asgi3",
                log_config=None,
                access_log=False,
                server_header=False,
                # Addresses of clients are not used.
                proxy_headers=False,
                http=StrictHttpProtocol if service.settings.http == "strict" else "httptools",
                loop="uvloop",
                lifespan="off",
                ws="none",
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            )
        )
        self._service = service
        self._on_start = on_start

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the service, serve it, and stop it.

        Raises
        ------
        BanditRankError
            If the service cannot start.
        """
        # uvicorn raises signals again once it has served: that must not end the process before the service
        # has stopped.
        with self.capture_signals():
            async with self._service.running():
                await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections."""
        await super().startup(sockets)
        if self._on_start is not None:
            self._on_start()

    async def drain(self) -> None:
        """Let other processes accept connections, and close each one after its next response; then stop."""
        for listener in self.servers:
            listener.close()
        self._service.is_draining = True
        await asyncio.sleep(_DRAIN_SECONDS)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End event streams, finish requests in progress, and close all connections."""
        self._service.stopping.set()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at a signal, also before the service has started."""
        if self._service.owns_process and not self.should_exit:
            _kill_later()
        super().handle_exit(sig, frame)


def _kill_later() -> None:
    """Kill this process unless it ends in time: a thread that compiles cannot be interrupted."""

    def kill() -> None:
        logger.warning("service does not stop", extra={"seconds": STOP_TIMEOUT_SECONDS})
        os.kill(os.getpid(), signal.SIGKILL)

    timer = threading.Timer(STOP_TIMEOUT_SECONDS, kill)
    timer.daemon = True
    timer.start()


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
