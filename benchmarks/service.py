"""Throughput and latency of the service, beside services with empty handlers.

Those run on uvicorn's own protocol and on the service's protocol, which separates the cost of its limits from
the cost of its handlers.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from interleaving import ROUNDS, ratio
from load import BATCH

HERE = Path(__file__).parent
CONNECTIONS = 32
SECONDS = 2.0  # of each measurement
START_SECONDS = 60.0
_PLAIN = "raw ASGI that does nothing, on uvicorn's own protocol"
_SAME = "raw ASGI that does nothing, on the service's protocol"
_FASTAPI = "FastAPI that does nothing"
USER_TYPES = ["type-1", "type-2", "type-3"]


def measure_service() -> Iterator[dict[str, float]]:
    """Measure all services, taking turns."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        ports = {
            "ours": stack.enter_context(our_service(Path(directory) / "personalized.db", surface(20, 4))),
            "Nash": stack.enter_context(
                our_service(
                    Path(directory) / "nash.db", surface(200, 20) | {"treatment": "equal", "utility": "nash"}
                )
            ),
            # Of rankings alone none is written: a backlog would slow down what is measured next.
            "alone": stack.enter_context(
                our_service(Path(directory) / "alone.db", surface(20, 4) | {"unreported": "discarded"})
            ),
            _PLAIN: stack.enter_context(_noop("asgi")),
            _SAME: stack.enter_context(_noop("limited")),
            _FASTAPI: stack.enter_context(_noop("fastapi")),
        }
        full: dict[str, list[dict[str, float]]] = {name: [] for name in ports}
        half: dict[str, list[dict[str, float]]] = {name: [] for name in ports}
        alone: dict[str, list[float]] = {"rank": [], "batch": []}
        for _ in range(ROUNDS):
            for name, port in ports.items():
                if name == "alone":
                    continue
                full[name].append(load(port))
                if name in ("ours", _PLAIN, _SAME):
                    half[name].append(load(port, rate=full[name][-1]["requests_a_second"] / 2))
            for kind, requests in alone.items():
                requests.append(load(ports["alone"], kind=kind)["requests_a_second"])
    full.pop("alone")
    for name, rounds in full.items():
        yield {f"{name}, requests a second": statistics.median(one["requests_a_second"] for one in rounds)}
    rates = {name: [one["requests_a_second"] for one in rounds] for name, rounds in full.items()}
    yield {f"service / {_PLAIN} (at least 0.2)": ratio(rates["ours"], rates[_PLAIN])}
    yield {f"service / {_SAME}": ratio(rates["ours"], rates[_SAME])}
    yield {f"service / {_FASTAPI} (at least 0.9)": ratio(rates["ours"], rates[_FASTAPI])}
    slower = "service, Nash, 200 items, 20 positions / 20 items, 4 positions (at least 0.5)"
    yield {slower: ratio(rates["Nash"], rates["ours"])}
    batched = [BATCH * requests for requests in alone["batch"]]
    yield {"service, rankings a second, one in a request": statistics.median(alone["rank"])}
    yield {f"rankings a second, {BATCH} in a request / one (at least 6)": ratio(batched, alone["rank"])}
    slowest = {name: [one["p99_ms"] for one in rounds] for name, rounds in half.items()}
    yield {"service, 99th percentile at half load, ms": statistics.median(slowest["ours"])}
    for other, limit in ((_PLAIN, " (at most 5)"), (_SAME, "")):
        yield {f"the same / that of {other}, at its half load{limit}": ratio(slowest["ours"], slowest[other])}


def surface(n_items: int, n_positions: int) -> dict[str, Any]:
    """Return a surface to be created."""
    items = [f"item-{number}" for number in range(n_items)]
    return {"name": "bench", "items": items, "n_positions": n_positions, "user_types": USER_TYPES}


def load(port: int, rate: float | None = None, kind: str = "feedback") -> dict[str, float]:
    """Load a service, and return what was measured."""
    command = [sys.executable, str(HERE / "load.py"), str(port), str(SECONDS), str(CONNECTIONS)]
    command += ["--kind", kind]
    command += [] if rate is None else ["--rate", str(rate)]
    measured: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert not measured["failed"], measured  # noqa: S101 - a refusal is quick
    return measured


@contextmanager
def our_service(store: Path, *surfaces: dict[str, Any], options: Sequence[str] = ()) -> Iterator[int]:
    """Run a service with surfaces, and yield its port."""
    program = "from banditrank._cli.main import main; main()"
    with running(["-c", program, "serve", "--store", f"sqlite:{store}", *options, "--port"]) as port:
        for each in surfaces:
            post(port, "/v1/surfaces", each)
        yield port


@contextmanager
def background(script: str, *arguments: object) -> Iterator[None]:
    """Run a script of this directory that prints ``started`` once it is at work, until the block ends."""
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101
            if process.stdout.readline() != "started\n":
                raise ConnectionError(f"{script} did not start")
            yield
            if process.poll() is not None:
                raise ConnectionError(f"{script} ended too early")
        finally:
            process.terminate()


@contextmanager
def _noop(kind: str) -> Iterator[int]:
    with running([str(HERE / "noop_services.py"), kind]) as port:
        yield port


@contextmanager
def running(
    command: list[str],
    *,
    directory: Path | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[int]:
    """Run a program that takes a port as its last argument, and yield the port when it listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, *command, str(port)],
        cwd=directory,
        env={**os.environ, **environment},
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(process, port)
        yield port
    finally:
        process.terminate()
        process.wait(60)


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    """Return when something listens at a port, or raise an error."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise ConnectionError(f"nothing listens at port {port}: {process.args}")


def post(port: int, path: str, body: dict[str, Any]) -> None:
    """Send a request, and wait for its answer."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    urllib.request.urlopen(request, timeout=600).close()  # noqa: S310 - it may have to be compiled
