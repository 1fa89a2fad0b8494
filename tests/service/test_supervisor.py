"""The supervisor of worker processes, with workers that answer their process ids.

The supervisor runs in a process of its own, which imports this module, as its workers do. Tests learn from its
log which workers it has started and which are ready.
"""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from banditrank.errors import BanditRankError
from banditrank.service._json_logging import configure_json_logging
from banditrank.service._supervisor import Supervisor, WorkerLink

MAX_WAIT_SECONDS = 300.0
# Workers are silent after two seconds in ordinary tests.
HEARTBEAT_SECONDS = 0.2
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")


# In the processes that tests start


def supervise() -> None:
    """Run a supervisor, with options from the command line; print its error."""
    configure_json_logging()
    directory, n_workers, import_seconds, options = json.loads(sys.argv[1])
    handlers = [signal.getsignal(number) for number in SIGNALS]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        logging.getLogger(__name__).info("listening", extra={"port": listening.getsockname()[1]})
        target = SlowImport(import_seconds, partial(work, Path(directory), listening))
        try:
            Supervisor(target, n_workers, **options).run()
        except BanditRankError as error:
            logging.getLogger(__name__).info("error", extra={"error": str(error)})
    is_restored = handlers == [signal.getsignal(number) for number in SIGNALS]
    logging.getLogger(__name__).info("returned", extra={"is_restored": is_restored})


class SlowImport:
    """Target that takes some time to unpickle, as one whose module imports much."""

    def __init__(self, seconds: float, target: Callable[[WorkerLink], None]) -> None:
        self.seconds = seconds
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle_slowly, (self.seconds, self.target)

    def __call__(self, link: WorkerLink) -> None:
        raise AssertionError("not called: unpickled as the target")


def _unpickle_slowly(seconds: float, target: Callable[[WorkerLink], None]) -> Callable[[WorkerLink], None]:
    time.sleep(seconds)
    return target


def work(directory: Path, listening: socket.socket, link: WorkerLink) -> None:
    """Answer connections with the process id; files in the directory change what the worker does."""
    draining = threading.Event()
    link.on_drain(draining.set)
    if (directory / "ignore_sigterm").exists():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if (directory / "fail").exists():
        link.fail("the store\ncannot be opened")
        sys.exit(3)
    if (directory / "raise").exists():
        raise BanditRankError("the key is invalid")
    if (directory / "exit").exists():
        sys.exit(4)
    while (directory / "hold").exists():
        time.sleep(0.01)
    link.ready()
    listening.settimeout(0.05)
    while not draining.is_set() or (directory / "ignore_drain").exists():
        try:
            connection, _ = listening.accept()
        except TimeoutError:
            continue
        with connection:
            connection.sendall(str(os.getpid()).encode())


# In the tests


class Service:
    """Running supervisor."""

    def __init__(
        self, directory: Path, n_workers: int = 2, import_seconds: float = 0.0, **options: Any
    ) -> None:
        self.directory = directory
        self.n_workers = n_workers
        self._log_file = directory / "log"
        options = {"heartbeat_seconds": HEARTBEAT_SECONDS, **options}
        arguments = json.dumps([str(directory), n_workers, import_seconds, options])
        with self._log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", "from test_supervisor import supervise; supervise()", arguments],
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
                stdout=log,
                stderr=log,
            )
        self.port = wait_for(lambda: self.log("listening"))[0]["port"]

    def log(self, message: str) -> list[dict[str, Any]]:
        """Return the records with a message."""
        lines = self._log_file.read_text().splitlines(keepends=True)
        records = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]
        return [record for record in records if record["message"] == message]

    def pids(self, message: str) -> list[int]:
        """Return the workers that the records with a message are about."""
        return [record["pid"] for record in self.log(message)]

    def ended(self) -> set[int]:
        return {*self.pids("worker died"), *self.pids("worker stopped"), *self.pids("worker failed to start")}

    def ready(self) -> set[int]:
        return set(self.pids("worker ready")) - self.ended()

    def starting(self) -> set[int]:
        return set(self.pids("worker started")) - set(self.pids("worker ready")) - self.ended()

    def wait_until_ready(self, *, without: set[int] = frozenset()) -> set[int]:
        """Wait until the number of ready workers is complete; return them."""
        wait_for(lambda: len(self.ready() - without) >= self.n_workers)
        assert not self.ready() & without
        return self.ready()

    def replacing(self) -> int:
        """Kill a worker and hold its replacement while that starts; return the replacement."""
        self.set("hold")
        os.kill(min(self.wait_until_ready()), signal.SIGKILL)
        return min(wait_for(self.starting))

    def set(self, *behaviour: str) -> None:
        """Change what workers do."""
        for name in behaviour:
            (self.directory / name).touch()

    def unset(self, *behaviour: str) -> None:
        for name in behaviour:
            (self.directory / name).unlink()

    def ask(self) -> int:
        """Return the process id of a worker."""
        with socket.create_connection(("127.0.0.1", self.port), MAX_WAIT_SECONDS) as connection:
            return int(connection.recv(100))

    def send(self, *signals: int) -> None:
        for number in signals:
            self.process.send_signal(number)

    def end(self) -> int:
        """Wait until the supervisor has ended; return its exit code."""
        exit_code = self.process.wait(MAX_WAIT_SECONDS)
        assert not any(map(is_running, self.pids("worker started")))
        return exit_code


def wait_for(get: Callable[[], Any]) -> Any:
    """Wait for a value that is true."""
    end = time.monotonic() + MAX_WAIT_SECONDS
    while not (value := get()):
        assert time.monotonic() < end, "condition did not hold in time"
        time.sleep(0.01)
    return value


def is_running(pid: int) -> bool:
    """Return whether a process is running, or stopped, but no zombie whose parent has not joined it yet."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc/self/stat").exists()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    services = []

    def start_service(**options: Any) -> Service:
        services.append(Service(tmp_path, **options))
        return services[-1]

    yield start_service
    for service in services:
        service.process.kill()
        service.process.wait()
        for pid in service.pids("worker started"):
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda service=service: not any(map(is_running, service.pids("worker started"))))


Start = Callable[..., Service]


def test_the_module_imports_nothing_that_takes_time() -> None:
    program = (
        "import sys, banditrank.service._supervisor as _; "
        "print(*{'asyncio', 'numpy', 'numba', 'uvicorn', 'typer'} & sys.modules.keys())"
    )
    imported = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert imported.stdout.split() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_workers_serve_until_a_signal(start: Start, number: int) -> None:
    service = start()
    workers = service.wait_until_ready()
    assert len(workers) == 2
    assert service.ask() in workers
    service.send(number)
    assert service.end() == 0
    assert set(service.pids("worker stopped")) == workers
    assert service.log("returned")[0]["is_restored"]
    assert "Traceback" not in (service.directory / "log").read_text()


# Replacement


def test_a_worker_that_is_killed_is_replaced(start: Start) -> None:
    service = start()
    killed, other = service.wait_until_ready()
    os.kill(killed, signal.SIGKILL)
    assert other in service.wait_until_ready(without={killed})
    (record,) = service.log("worker died")
    assert (record["pid"], record["exit_code"], record["state"]) == (killed, -signal.SIGKILL, "ready")


def test_a_worker_that_is_killed_while_starting_once_and_again_is_replaced(start: Start) -> None:
    service = start()
    killed = {service.replacing()}
    (other,) = service.ready()
    for _ in range(2):
        os.kill(max(killed), signal.SIGKILL)
        assert service.ask() == other
        # Started after the first failure to start, the replacement is logged for debugging only.
        killed |= wait_for(lambda: children(service) - killed - {other})
    service.unset("hold")
    assert other in service.wait_until_ready(without=killed)


def children(service: Service) -> set[int]:
    """Return the worker processes, also those that start after a failure, which are not logged."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(service.process.pid)],  # noqa: S607
        check=False,
        capture_output=True,
        text=True,
    )
    return {int(line.split()[0]) for line in listed.stdout.splitlines() if "spawn_main" in line}
