"""Real servers for tests, which `make servers` installs: a private PostgreSQL, Redis and nginx.

The databases write durably, and can be killed and started again on what they have written.
"""

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest
from redis import Redis, RedisError

PASSWORD = "not-to-be-shown"  # noqa: S105 - of servers that live as long as the tests
SECONDS = 60.0  # until a server answers: one that takes longer is broken
PORTS = (
    15_000,
    30_000,
)  # below those that the system gives to clients, which could take one while it is free


class PrivateServer(ABC):
    """A server of our own, that keeps its data in a directory and listens on this machine only."""

    AT_ONCE = signal.SIGKILL

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def _command(self) -> list[str]:
        """Return how the server is called, to run in the foreground."""

    @abstractmethod
    def _answers(self) -> bool:
        """Return whether the server answers."""

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        end = time.monotonic() + SECONDS
        while not (self._is_running() and self._answers()):
            if time.monotonic() > end:
                log = (self.directory / "log").read_text(errors="replace")
                self.stop()
                pytest.fail(f"{type(self).__name__} does not start:\n{log[-2000:]}")
            # What is left of a server that was killed can keep the next from starting for a moment.
            if not self._is_running():
                self._process = self._run(self._command())
            time.sleep(0.02)

    def _is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _run(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.directory / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **_SOMEBODY_ELSE,
            )

    def _end(self, by: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(by)
            self._process.wait(SECONDS)
            self._process = None

    def kill(self) -> None:
        """End the server as a loss of power to it would: kill -9."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the server in peace, which ends all connections."""
        self._end(signal.SIGINT)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end(self.AT_ONCE)  # nobody needs the data any more

    def restart(self) -> None:
        """Kill the server and start it again on the same data."""
        self.kill()
        self.start()


class DatabaseServer(PrivateServer):
    """A server of stores."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._numbers = count(1)

    @abstractmethod
    def address(self) -> str:
        """Return the address of a store that is empty."""


class PostgresServer(DatabaseServer):
    """PostgreSQL, with data that are on disk before a commit is acknowledged."""

    AT_ONCE = signal.SIGQUIT  # with all of its processes

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._programs = _postgresql_programs()
        (directory / "password").write_text(PASSWORD)
        (directory / "password").chmod(0o644)
        initdb = [str(self._programs / "initdb"), "--pgdata=data", "--username=tester", "--pwfile=password"]
        initdb += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"]
        if self._run(initdb).wait(SECONDS):
            pytest.fail((directory / "log").read_text())

    def address(self) -> str:
        """Return the address of a schema that does not exist."""
        return f"{self.database}?schema=test_{next(self._numbers)}"

    @property
    def database(self) -> str:
        """The address as libpq takes it."""
        return f"postgresql://tester:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def _command(self) -> list[str]:
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": ""}
        settings |= {"shared_buffers": "16MB"}
        options = [f"-c{name}={value}" for name, value in settings.items()]
        return [str(self._programs / "postgres"), "-D", "data", *options]

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.database, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


class RedisServer(DatabaseServer):
    """Redis, with data that are on disk before a command is answered."""

    def address(self) -> str:
        """Return the address of a prefix that nothing begins with."""
        return f"{self.database}?prefix=test{next(self._numbers)}:"

    @property
    def database(self) -> str:
        """The address as redis-py takes it."""
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def _command(self) -> list[str]:
        program = shutil.which("redis-server")
        if program is None:
            pytest.fail("there is no redis-server: run `make servers`")
        settings = {"bind": "127.0.0.1", "port": self.port, "requirepass": PASSWORD, "save": ""}
        settings |= {"appendonly": "yes", "appendfsync": "always"}
        options = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        return [program, *options]

    def client(self) -> Redis:
        """Return a connection to do what a store does not."""
        return Redis.from_url(self.database)

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except RedisError:
            return False


_NGINX_FRAME = """
daemon off;
pid nginx.pid;
error_log stderr;
worker_processes 1;
events { worker_connections 512; }
http {
    log_format requests '$request_method $uri $upstream_addr';
    access_log access.log requests;
    client_body_temp_path bodies;
    proxy_temp_path proxied;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    CONFIGURATION
}
"""


class NginxServer(PrivateServer):
    """A reverse proxy that keeps all of its files in its directory.

    Parameters
    ----------
    directory
        Directory of the configuration, the logs and the temporary files.
    configuration
        Contents of the `http` block.
    ports
        Ports on which the configuration listens.
    """

    AT_ONCE = signal.SIGTERM  # with its worker process

    def __init__(self, directory: Path, configuration: str, ports: Collection[int] = ()) -> None:
        super().__init__(directory)
        self._ports = ports
        (directory / "nginx.conf").write_text(_NGINX_FRAME.replace("CONFIGURATION", configuration))

    def check(self) -> str:
        """Return the errors in the configuration, as `nginx -t` prints them; empty if there are none."""
        is_wrong = self._run([*self._command(), "-t"]).wait(SECONDS)
        return (self.directory / "log").read_text() if is_wrong else ""

    def forwarded(self) -> list[str]:
        """Return method and path of every request that was sent upstream, as far as they are logged."""
        lines = (self.directory / "access.log").read_text().splitlines()
        return [
            request for request, _, upstream in (line.rpartition(" ") for line in lines) if upstream != "-"
        ]

    def finish(self) -> None:
        """Stop once all requests under way are answered and logged."""
        self._end(signal.SIGQUIT)

    def _command(self) -> list[str]:
        program = shutil.which("nginx", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
        if program is None:
            pytest.fail("there is no nginx: run `make servers`")
        return [program, "-p", str(self.directory), "-e", "stderr", "-c", "nginx.conf"]

    def _answers(self) -> bool:
        for port in self._ports:
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", port)):
                    return False
        return True


def free_port() -> int:
    """Return a port that nothing listens on."""
    while True:
        port = random.SystemRandom().randrange(*PORTS)
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)):
                return port


def _postgresql_programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    program = shutil.which("initdb")
    if program:
        found.append(Path(program).resolve())
    if not found:
        pytest.fail("there is no PostgreSQL: run `make servers`")
    return found[-1].parent


def _somebody_else() -> dict[str, Any]:
    """Return how to run as somebody else if we are root, whom PostgreSQL refuses."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


_SOMEBODY_ELSE = _somebody_else()


@contextmanager
def private_directory() -> Iterator[Path]:
    """Make a directory for a server; pytest's own are closed to whoever runs it."""
    with tempfile.TemporaryDirectory(prefix="banditrank-") as name:
        if _SOMEBODY_ELSE:
            os.chown(name, _SOMEBODY_ELSE["user"], _SOMEBODY_ELSE["group"])
        yield Path(name)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresServer]:
    """Start a PostgreSQL server."""
    with private_directory() as directory, PostgresServer(directory) as server:
        yield server


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    """Start a Redis server."""
    with private_directory() as directory, RedisServer(directory) as server:
        yield server
