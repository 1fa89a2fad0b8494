"""Campaign of worker kills: kill or stop workers in each state while a client sends requests.

Each worker must be replaced, the other worker must answer meanwhile, and SIGTERM must end the service in each
state with nothing left running. ``python -m campaigns.worker_kills --kills 100`` kills workers of
``banditrank serve --workers 2`` a hundred times in each state, and with ``--light`` those of
`helpers.supervised_workers`.
"""

import argparse
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

import banditrank
from campaigns.progress import print_result, show_progress
from campaigns.service_process import ServiceProcess

MAX_REPLACEMENT_SECONDS = 10.0
MAX_STOP_SECONDS = 10.0
# Without an answer, while one of two workers is replaced.
MAX_SILENT_SECONDS = 5.0
_N_WORKERS = 2
_KILLS_PER_SERVICE = 10
_MAX_WAIT_SECONDS = 120.0
_REQUEST_SECONDS = 2.0


class Service(ServiceProcess):
    """Service with two workers, whose log states which are ready."""

    def __init__(self, directory: Path, *, is_light: bool) -> None:
        super().__init__(f"sqlite:{directory / 'store.db'}", log=directory / "log")
        self._directory = directory
        self._is_light = is_light

    def command(self) -> list[str]:
        """Return the command that runs the service."""
        if not self._is_light:
            return [*super().command(), "--workers", str(_N_WORKERS)]
        options = json.dumps({"directory": str(self._directory), "port": self.port, "n_workers": _N_WORKERS})
        return [sys.executable, "-m", "helpers.supervised_workers", options]

    def workers(self) -> set[int]:
        """Return the process ids of the workers."""
        children = (self._proc / "task" / self._proc.name / "children").read_text().split()
        return {int(pid) for pid in children if "spawn_main" in _command_line(pid)}

    def ready(self) -> set[int]:
        """Return the workers that serve."""
        assert self.log is not None
        lines = [line for line in self.log.read_text().splitlines() if '"worker ready"' in line]
        return {json.loads(line)["pid"] for line in lines} & self.workers()

    def wait_until_ready(self, *, without: set[int]) -> None:
        """Wait until two other workers serve."""
        wait_for(lambda: len(self.workers()) == len(self.ready() - without) == _N_WORKERS)

    def seconds_to_stop(self) -> float:
        """Send SIGTERM; return the time after which no process of the service is left."""
        assert self.process is not None
        start = time.monotonic()
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired, TimeoutError):
            self.process.wait(_MAX_WAIT_SECONDS)
            wait_for(lambda: not _processes_of_session(self._proc.name))
        return time.monotonic() - start

    def kill_all(self) -> None:
        """Send SIGKILL to all processes of the service."""
        assert self.process is not None
        for pid in _processes_of_session(self._proc.name):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def _command_line(pid: str) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def _processes_of_session(session: str) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, _, _, its_session = (process / "stat").read_text().rpartition(")")[2].split()[:4]
            if its_session == session and state != "Z":
                found.append(int(process.name))
    return found


def wait_for(get: Callable[[], Any]) -> Any:
    """Wait for a value that is true."""
    until = time.monotonic() + _MAX_WAIT_SECONDS
    while not (value := get()):
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.01)
    return value


class Client(threading.Thread):
    """Client that sends requests, on a connection each, and notes when they are answered."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.answered_at = [time.monotonic()]
        self.n_lost = 0
        self.is_finished = False
        self._address = address

    def run(self) -> None:
        """Send requests until the client is finished."""
        headers = {"connection": "close"}
        with httpx.Client(timeout=_REQUEST_SECONDS, headers=headers, verify=False) as http:  # noqa: S501 - no TLS
            while not self.is_finished:
                try:
                    http.get(f"{self._address}/healthz").raise_for_status()
                    self.answered_at.append(time.monotonic())
                except httpx.HTTPError:
                    self.n_lost += 1
                time.sleep(0.01)

    def longest_silence(self, since: float) -> float:
        """Return the longest time without an answer since a moment."""
        times = [since, *(at for at in self.answered_at if at > since), time.monotonic()]
        return max(end - start for start, end in pairwise(times))


# Each kills or stops workers in a state, and returns them.


def kill_serving(service: Service, chance: random.Random) -> set[int]:
    victim = chance.choice(sorted(service.ready()))
    os.kill(victim, signal.SIGKILL)
    return {victim}


def stop_serving(service: Service, chance: random.Random) -> set[int]:
    victim = chance.choice(sorted(service.ready()))
    os.kill(victim, signal.SIGSTOP)
    return {victim}


def kill_starting(service: Service, chance: random.Random) -> set[int]:
    return _kill_next_starting(service, chance, kill_serving(service, chance))


def kill_starting_twice(service: Service, chance: random.Random) -> set[int]:
    return _kill_next_starting(service, chance, kill_starting(service, chance))


def _kill_next_starting(service: Service, chance: random.Random, killed: set[int]) -> set[int]:
    starting: int = min(wait_for(lambda: service.workers() - service.ready() - killed))
    time.sleep(chance.uniform(0.0, 0.5))
    os.kill(starting, signal.SIGKILL)
    return killed | {starting}


STATES = {
    "serving": kill_serving,
    "starting": kill_starting,
    "starting, twice": kill_starting_twice,
    "stopped": stop_serving,
}


class Outcome:
    """Times measured in one state, in seconds, and number of requests without an answer."""

    def __init__(self) -> None:
        self.replacements: list[float] = []
        self.silences: list[float] = []
        self.stops: list[float] = []
        self.n_lost = 0

    @property
    def has_passed(self) -> bool:
        """Whether no limit is exceeded."""
        maxima = (*map(max, (self.replacements, self.silences)), max(self.stops, default=math.inf))
        limits = (MAX_REPLACEMENT_SECONDS, MAX_SILENT_SECONDS, MAX_STOP_SECONDS)
        return all(maximum <= limit for maximum, limit in zip(maxima, limits, strict=True))

    def row(self, state: str) -> str:
        """Return a row of the table."""
        times = (
            statistics.median(self.replacements),
            max(self.replacements),
            max(self.silences),
            max(self.stops, default=math.inf),
        )
        cells = (
            state,
            str(len(self.replacements)),
            *(f"{seconds:.1f}" for seconds in times),
            str(self.n_lost),
        )
        return f"| {' | '.join(cells)} | {'passed' if self.has_passed else 'FAILED'} |"


def kill_workers(state: str, kills: int, *, is_light: bool, seed: int) -> Outcome:
    """Kill workers in a state, of a new service after every ten kills."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    outcome = Outcome()
    while len(outcome.replacements) < kills:
        n_left = min(_KILLS_PER_SERVICE, kills - len(outcome.replacements))
        with TemporaryDirectory() as directory:
            service = Service(Path(directory), is_light=is_light)
            try:
                _kill_workers_of(service, state, n_left, chance, outcome)
            finally:
                service.kill_all()
    return outcome


def _kill_workers_of(
    service: Service, state: str, kills: int, chance: random.Random, outcome: Outcome
) -> None:
    service.start()
    service.wait_until_ready(without=set())
    client = Client(service.address)
    client.start()
    try:
        for _ in range(kills):
            start = killed = time.monotonic()
            try:
                victims = STATES[state](service, chance)
                killed = time.monotonic()
                service.wait_until_ready(without=victims)
            finally:
                outcome.replacements.append(time.monotonic() - killed)
                outcome.silences.append(client.longest_silence(start))
            show_progress(f"{state}: {len(outcome.replacements)} kills, {outcome.replacements[-1]:.1f} s")
        outcome.n_lost += client.n_lost
        STATES[state](service, chance)
        outcome.stops.append(service.seconds_to_stop())
    # The next kills are those of a new service.
    except TimeoutError:
        show_progress(f"{state}: {len(outcome.replacements)} kills, not replaced")
    finally:
        client.is_finished = True
        client.join()


def main() -> None:
    """Kill workers in all states; exit with 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=10, help="in each state")
    parser.add_argument("--light", action="store_true", help="of workers that start quickly")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    # Light workers can be killed while they start.
    os.environ["IMPORT_SECONDS"] = "0.5"
    print_result(f"banditrank {banditrank.__version__}, seed {chosen.seed}, seconds\n")
    print_result("| state | kills | replaced: median | max | silent: max | SIGTERM: max | lost requests | |")
    print_result("|---|---|---|---|---|---|---|---|")
    passed = []
    for state in STATES:
        outcome = kill_workers(state, chosen.kills, is_light=chosen.light, seed=chosen.seed)
        passed.append(outcome.has_passed)
        print_result(outcome.row(state))
    print_result("\nall limits kept" if all(passed) else "\nlimits exceeded")
    sys.exit(not all(passed))


if __name__ == "__main__":
    main()
