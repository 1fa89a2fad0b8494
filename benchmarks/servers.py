"""HTTP servers with this application on them: strict_http, uvicorn's own protocols, and Granian.

Not part of ``make bench``: ``python benchmarks/bench.py servers``.
"""

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from interleaving import ROUNDS, ratio
from service import HERE, load, our_service, post, running, surface

GRANIAN = ["-m", "granian", "--interface", "asgi", "--no-ws", "asgi_application:application", "--port"]


def measure_servers() -> Iterator[dict[str, float]]:
    """Measure throughput, and latency at half of that of strict_http, of each server, taking turns."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        ports = {
            http: stack.enter_context(
                our_service(Path(directory) / f"{http}.db", surface(20, 4), options=["--http", http])
            )
            for http in ("strict", "uvicorn")
        }
        store = {"BANDITRANK_STORE": f"sqlite:{directory}/granian.db"}
        ports["Granian"] = stack.enter_context(running(GRANIAN, directory=HERE, environment=store))
        post(ports["Granian"], "/v1/surfaces", surface(20, 4))
        rates: dict[str, list[float]] = {name: [] for name in ports}
        slowest: dict[str, list[float]] = {name: [] for name in ports}
        for _ in range(ROUNDS):
            for name, port in ports.items():
                rates[name].append(load(port)["requests_a_second"])
                slowest[name].append(load(port, rate=rates["strict"][-1] / 2)["p99_ms"])
    for name in ports:
        yield {f"{name}, requests a second": statistics.median(rates[name])}
        yield {f"{name} / strict": ratio(rates[name], rates["strict"])}
        yield {f"{name}, 99th percentile at half the load of strict, ms": statistics.median(slowest[name])}
