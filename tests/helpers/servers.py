"""Private PostgreSQL, Redis and nginx servers, which `make servers` installs.

The databases write durably, and can be killed and restarted on their data.
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

PASSWORD = "not-to-be-shown"  # noqa: S105 - of servers that run during tests only
TIMEOUT_SECONDS = 180.0  # on a busy machine
PORTS = (15_000, 30_000)  # below the ephemeral ports of clients


class PrivateServer(ABC):
    """Server with its data in a directory that listens on the loopback address."""

    STOP_SIGNAL = signal.SIGKILL

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def _command(self) -> list[str]:
        """Return the command that runs the server in the foreground."""

    @abstractmethod
    def _answers(self) -> bool:
        """Return whether the server answers."""

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while not (self._is_running() and self._answers()):
            if time.monotonic() > end:
                log = (self.directory / "log").read_text(errors="replace")
                self.stop()
                pytest.fail(f"{type(self).__name__} did not start:\n{log[-2000:]}")
            # Remains of a killed server can prevent a start for a moment.
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
                **_UNPRIVILEGED,
            )

    def _end(self, by: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(by)
            self._process.wait(TIMEOUT_SECONDS)
            self._process = None

    def kill(self) -> None:
        """Kill the server with SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the server, which closes all connections."""
        self._end(signal.SIGINT)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end(self.STOP_SIGNAL)  # the data are not needed any more

    def restart(self) -> None:
        """Kill the server and restart it on the same data."""
        self.kill()
        self.start()


class DatabaseServer(PrivateServer):
    """Database server with any number of empty stores."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._numbers = count(1)

    @abstractmethod
    def address(self) -> str:
        """Return the address of an empty store."""


class PostgresServer(DatabaseServer):
    """PostgreSQL with durable commits."""

    STOP_SIGNAL = signal.SIGQUIT  # with all of its processes

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._programs = _postgresql_programs()
        (directory / "password").write_text(PASSWORD)
        (directory / "password").chmod(0o644)
        initdb = [str(self._programs / "initdb"), "--pgdata=data", "--username=tester", "--pwfile=password"]
        initdb += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"]
        if self._run(initdb).wait(TIMEOUT_SECONDS):
            pytest.fail((directory / "log").read_text())

    def address(self) -> str:
        """Return the address of a new schema."""
        return f"{self.database}?schema=test_{next(self._numbers)}"

    @property
    def database(self) -> str:
        """Address for libpq."""
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
    """Redis with durable commands."""

    def address(self) -> str:
        """Return the address of an unused prefix."""
        return f"{self.database}?prefix=test{next(self._numbers)}:"

    @property
    def database(self) -> str:
        """Address for redis-py."""
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def _command(self) -> list[str]:
        program = shutil.which("redis-server")
        if program is None:
            pytest.fail("redis-server not found: run `make servers`")
        settings = {"bind": "127.0.0.1", "port": self.port, "requirepass": PASSWORD, "save": ""}
        settings |= {"appendonly": "yes", "appendfsync": "always"}
        options = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        return [program, *options]

    def client(self) -> Redis:
        """Return a client for direct access."""
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
    """nginx with all files in its directory.

    Parameters
    ----------
    directory
        Directory of the configuration, the logs and the temporary files.
    configuration
        Contents of the `http` block.
    ports
        Ports on which the configuration listens.
    """

    STOP_SIGNAL = signal.SIGTERM  # with its worker process

    def __init__(self, directory: Path, configuration: str, ports: Collection[int] = ()) -> None:
        super().__init__(directory)
        self._ports = ports
        (directory / "nginx.conf").write_text(_NGINX_FRAME.replace("CONFIGURATION", configuration))

    def check(self) -> str:
        """Return the errors in the configuration, as `nginx -t` prints them; empty if there are none."""
        is_wrong = self._run([*self._command(), "-t"]).wait(TIMEOUT_SECONDS)
        return (self.directory / "log").read_text() if is_wrong else ""

    def forwarded(self) -> list[str]:
        """Return method and path of all logged requests that were sent upstream."""
        lines = (self.directory / "access.log").read_text().splitlines()
        return [
            request for request, _, upstream in (line.rpartition(" ") for line in lines) if upstream != "-"
        ]

    def finish(self) -> None:
        """Stop after all open requests are answered and logged."""
        self._end(signal.SIGQUIT)

    def _command(self) -> list[str]:
        program = shutil.which("nginx", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
        if program is None:
            pytest.fail("nginx not found: run `make servers`")
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
        pytest.fail("PostgreSQL not found: run `make servers`")
    return found[-1].parent


def _unprivileged_user() -> dict[str, Any]:
    """Return arguments of Popen to run as another user if this is root, which PostgreSQL rejects."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwuid(65534)  # the overflow user, without rights
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


_UNPRIVILEGED = _unprivileged_user()


@contextmanager
def private_directory() -> Iterator[Path]:
    """Create a directory that the server's user can access; pytest's are private to the test's user."""
    with tempfile.TemporaryDirectory(prefix="banditrank-") as name:
        if _UNPRIVILEGED:
            os.chown(name, _UNPRIVILEGED["user"], _UNPRIVILEGED["group"])
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
