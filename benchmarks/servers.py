"""HTTP servers with this application on them: uvicorn, and Granian over ASGI and over RSGI.

Not part of ``make bench``: ``pip install granian``, then ``python benchmarks/bench.py servers``.
"""

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from interleaving import ROUNDS, ratio
from service import HERE, load, our_service, post, running, surface


def measure_servers() -> Iterator[dict[str, float]]:
    """Measure throughput, and latency at half of it, of each server, taking turns."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        ports = {"uvicorn": stack.enter_context(our_service(Path(directory) / "uvicorn.db", surface(20, 4)))}
        for kind in ("asgi", "rsgi"):
            command = [str(HERE / "granian_service.py"), kind, f"{directory}/{kind}.db"]
            port = ports[f"Granian, {kind.upper()}"] = stack.enter_context(running(command))
            post(port, "/v1/surfaces", surface(20, 4))
        rates: dict[str, list[float]] = {name: [] for name in ports}
        slowest: dict[str, list[float]] = {name: [] for name in ports}
        for _ in range(ROUNDS):
            for name, port in ports.items():
                rates[name].append(load(port)["requests_a_second"])
                slowest[name].append(load(port, rate=rates[name][-1] / 2)["p99_ms"])
    for name in ports:
        yield {f"{name}, requests a second": statistics.median(rates[name])}
        yield {f"{name} / uvicorn": ratio(rates[name], rates["uvicorn"])}
        yield {f"{name}, 99th percentile at half load, ms": statistics.median(slowest[name])}
