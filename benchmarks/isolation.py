"""Isolation: latencies of other clients while one requests reports as fast as possible.

Latencies of rankings and feedback at a quarter of the capacity, of readiness, and how long a revoked key is
accepted: beside the same without reports, interleaved.
"""

import statistics
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from interleaving import ROUNDS, ratio
from service import SECONDS, background, load, our_service, surface

from banditrank.engine._api_keys import create_key
from banditrank.storage._factory import open_store

REPORTERS = 20
_CATALOG = surface(2_000, 4) | {"name": "catalog"}  # its reports take long
_REVOCATIONS = 3  # in each round


def measure_isolation() -> Iterator[dict[str, float]]:
    """Measure latencies with and without reports, taking turns."""
    with tempfile.TemporaryDirectory() as directory:
        store = Path(directory) / "store.db"
        with our_service(store, surface(20, 4), _CATALOG) as port:
            rate = load(port)["requests_a_second"] / 4
            quiet: dict[str, list[float]] = {"rank": [], "ready": []}
            busy: dict[str, list[float]] = {"rank": [], "ready": []}
            for _ in range(ROUNDS):
                _measure_into(quiet, port, rate)
                with _reports(port):
                    _measure_into(busy, port, rate)
        revocations = _revocations(store)
    for kind, name in (
        ("rank", "rankings and feedback at a quarter of the capacity"),
        ("ready", "readiness"),
    ):
        yield {f"{name}, 99th percentile, ms": statistics.median(quiet[kind])}
        yield {
            f"the same while {REPORTERS} clients request reports / without (at most 2)": ratio(
                busy[kind], quiet[kind]
            )
        }
    yield {"a revoked key is accepted, seconds at most (at most 2)": max(revocations["quiet"])}
    yield {"the same while reports are requested (at most 2)": max(revocations["busy"])}


def _measure_into(latencies: dict[str, list[float]], port: int, rate: float) -> None:
    ready: list[float] = []
    stop = threading.Event()

    def check() -> None:
        while not stop.wait(0.02):
            start = time.perf_counter()
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60).close()
            ready.append(1e3 * (time.perf_counter() - start))

    thread = threading.Thread(target=check)
    thread.start()
    latencies["rank"].append(load(port, rate=rate)["p99_ms"])
    stop.set()
    thread.join()
    latencies["ready"].append(sorted(ready)[int(len(ready) * 0.99)])


def _revocations(store: Path) -> dict[str, list[float]]:
    """Measure how long revoked keys are accepted by a service that demands keys."""
    seconds: dict[str, list[float]] = {"quiet": [], "busy": []}
    with open_store(f"sqlite:{store}") as opened:
        reader = create_key(opened, "reader", ["read"])
        with our_service(store) as port:
            for _ in range(ROUNDS):
                for kind, measured in seconds.items():
                    with _reports(port, reader) if kind == "busy" else nullcontext():
                        time.sleep(SECONDS / 4)
                        for _ in range(_REVOCATIONS):
                            key = create_key(opened, "short-lived", ["read"])
                            _wait(lambda key=key: _is_accepted(port, key))
                            opened.revoke_key(key.split("_")[1], revoked_at_ms=1)
                            measured.append(_wait(lambda key=key: not _is_accepted(port, key)))
    return seconds


def _wait(condition: Callable[[], bool]) -> float:
    start = time.perf_counter()
    while not condition():
        time.sleep(0.01)
    return time.perf_counter() - start


def _is_accepted(port: int, key: str) -> bool:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/surfaces/bench", headers={"authorization": f"Bearer {key}"}
    )
    try:
        urllib.request.urlopen(request, timeout=60).close()  # noqa: S310 - loopback
    except urllib.error.HTTPError as error:
        error.close()
        return False
    return True


def _reports(port: int, key: str = "none") -> AbstractContextManager[None]:
    return background("report_flood.py", port, REPORTERS, key)
