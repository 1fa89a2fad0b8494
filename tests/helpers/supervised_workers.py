"""Supervisor with light workers, which answer HTTP requests with their process ids.

``python -m helpers.supervised_workers '{"directory": "…"}'`` runs it. Files in the directory change what
workers do: see `work`. Workers import this module for as many seconds as the environment sets.
"""

import ctypes
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from banditrank.errors import BanditRankError
from banditrank.service import _supervisor
from banditrank.service._json_logging import configure_json_logging
from banditrank.service._supervisor import Supervisor, WorkerLink

MAX_WAIT_SECONDS = 120.0

logger = logging.getLogger(__name__)
if __name__ != "__main__":
    time.sleep(float(os.environ.get("IMPORT_SECONDS", "0")))


def main(directory: str, *, port: int = 0, n_workers: int = 2, **constants: float) -> None:
    """Run a supervisor, with other constants in its own process; log its error."""
    configure_json_logging()
    logging.getLogger().setLevel(logging.DEBUG)
    vars(_supervisor).update(constants)
    with socket.create_server(("127.0.0.1", port)) as listening:
        logger.info("listening", extra={"port": listening.getsockname()[1]})
        try:
            Supervisor(partial(work, Path(directory), listening), n_workers).run()
        except BanditRankError as error:
            logger.info("error", extra={"error": str(error)})


def work(directory: Path, listening: socket.socket, link: WorkerLink) -> None:
    """Answer requests until the worker drains; files change what it does."""
    draining = Event()
    link.on_drain(draining.set)
    if (directory / "ignore_sigterm").exists():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if (directory / "fail").exists():
        raise BanditRankError("the store\ncannot be opened")
    if (directory / "exit").exists():
        sys.exit(4)
    while (directory / "hold").exists():
        time.sleep(0.01)
    link.ready()
    listening.settimeout(0.05)
    while not draining.is_set() or (directory / "ignore_drain").exists():
        if (directory / "hang").exists():
            # Keeps the interpreter lock, so that no heartbeat is sent.
            ctypes.PyDLL(None).sleep(600)
        try:
            connection, _ = listening.accept()
        except TimeoutError:
            continue
        with connection, connection.makefile("rwb") as file:
            while file.readline().strip():
                pass
            body = b"%d" % os.getpid()
            file.write(
                b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body) + body
            )


class SupervisedService:
    """Process of the supervisor, whose log states which workers it has started and which are ready."""

    def __init__(self, directory: Path, *, import_seconds: float = 0.0, **options: Any) -> None:
        self.directory = directory
        self.log_file = directory / "log"
        self.n_workers = options.get("n_workers", 2)
        arguments = json.dumps({"directory": str(directory), **options})
        path = str(Path(__file__).parents[1])
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "helpers.supervised_workers", arguments],
                env={**os.environ, "PYTHONPATH": path, "IMPORT_SECONDS": str(import_seconds)},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.port = wait_for(lambda: self.log("listening"))[0]["port"]

    def log(self, message: str) -> list[dict[str, Any]]:
        """Return the records with a message."""
        lines = self.log_file.read_text().splitlines(keepends=True)
        records = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]
        return [record for record in records if record["message"] == message]

    def pids(self, *messages: str) -> set[int]:
        """Return the workers that the records with some messages are about."""
        return {record["pid"] for message in messages for record in self.log(message)}

    def ready(self) -> set[int]:
        """Return the workers that serve."""
        return self.pids("worker ready") - self.pids("worker died", "worker stopped")

    def starting(self) -> set[int]:
        """Return the workers that are not ready yet."""
        started = self.pids("worker started")
        return started - self.pids("worker ready", "worker failed to start", "worker stopped")

    def wait_until_ready(self, *, without: set[int] = frozenset()) -> set[int]:
        """Wait until the number of ready workers is complete; return them."""

        def get() -> set[int] | None:
            ready = self.ready()
            return ready if len(ready) == self.n_workers and not ready & without else None

        return wait_for(get)

    def hold_replacement(self) -> int:
        """Kill a serving worker, and hold its replacement while it starts; return the replacement."""
        serving = min(self.wait_until_ready())
        self.set("hold")
        os.kill(serving, signal.SIGKILL)
        return min(wait_for(self.starting))

    def kill_starting(self, pid: int) -> int:
        """Kill a starting worker; return the next one that starts."""
        os.kill(pid, signal.SIGKILL)
        return min(wait_for(lambda: self.starting() - {pid}))

    def set(self, *behaviours: str) -> None:
        """Change what workers do."""
        for name in behaviours:
            (self.directory / name).touch()

    def unset(self, *behaviours: str) -> None:
        """Undo `set`."""
        for name in behaviours:
            (self.directory / name).unlink()

    def ask(self) -> int:
        """Return the process id of the worker that answers a request."""
        with socket.create_connection(("127.0.0.1", self.port), MAX_WAIT_SECONDS) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with connection.makefile() as response:
                return int(response.readlines()[-1])

    def end(self) -> int:
        """Wait until all processes have ended; return the supervisor's exit code."""
        exit_code = self.process.wait(MAX_WAIT_SECONDS)
        wait_for(lambda: not any(map(is_running, self.pids("worker started"))))
        return exit_code


def wait_for(get: Callable[[], Any]) -> Any:
    """Wait for a value that is true."""
    end = time.monotonic() + MAX_WAIT_SECONDS
    while not (value := get()):
        assert time.monotonic() < end, "condition did not hold in time"
        time.sleep(0.02)
    return value


def is_running(pid: int) -> bool:
    """Return whether a process runs or is stopped; zombies have ended."""
    command = ["ps", "-o", "stat=", "-p", str(pid)]
    state = subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()
    return state[:1] not in {"", "Z"}


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
