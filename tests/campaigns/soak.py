"""Soak campaign: hold a share of the service's capacity for a long time and report growth.

``make soak MINUTES=30`` runs a service on SQLite with four surfaces, rankings that are never reported, items
that come and go, and open dashboards. It exits with 1 if memory, file descriptors or threads grow faster than
their limits after the warm-up, or if a request fails. Ctrl-C ends it with what it has so far. Half of the
capacity is sent, or ``--rate``: other programs on the machine change the capacity.
"""

import argparse
import asyncio
import os
import platform
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import uvloop

import banditrank
from campaigns.progress import print_result, show_progress
from campaigns.service_process import ServiceProcess
from campaigns.soak_load import Load, Traffic
from campaigns.soak_report import Sample, SoakRun
from campaigns.soak_visitors import Visitors

SHARE = 0.5  # of the capacity
CAPACITY_SECONDS = 10.0
CONNECTIONS = 32
STREAMS = 2  # for each surface, beside a dashboard that polls
MAX_SAMPLES = 180
_RSS_SECONDS = 0.25  # between two readings; a sample holds the minimum
_COMPILE_SECONDS = 600.0  # until a surface is created
_COMPILE_RANKINGS = 300  # on each surface, so that dashboards have data

USER_TYPES = ("type-1", "type-2", "type-3")
SPARE_ITEMS = ("spare-1", "spare-2", "spare-3")


class SoakSurface(NamedTuple):
    """A surface under load."""

    name: str
    n_items: int
    n_positions: int
    settings: dict[str, Any] = {}  # noqa: RUF012 - is not changed
    reported: float = 1.0  # share of rankings with feedback

    @property
    def items(self) -> list[str]:
        """Initial items."""
        return [f"item-{number}" for number in range(self.n_items)]

    @property
    def definition(self) -> dict[str, Any]:
        """Definition of the surface; windows close within the warm-up, so that memory then is constant."""
        shape = {"items": self.items, "n_positions": self.n_positions, "user_types": USER_TYPES}
        return {"name": self.name, **shape, "attribution_seconds": 60.0, **self.settings}


SURFACES = (
    SoakSurface("personalized", 20, 4),
    SoakSurface("equal", 12, 4, {"treatment": "equal"}),
    SoakSurface("nash", 6, 3, {"treatment": "equal", "utility": "nash"}),
    SoakSurface("expiring", 10, 3, {"attribution_seconds": 5.0}, reported=0.5),
)


def main() -> None:
    """Run, report, and exit with the verdict."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second; by default as above")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    run = SoakRun(chosen.minutes, rate=chosen.rate)
    print_result(
        f"banditrank {banditrank.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"seed {chosen.seed}, {chosen.minutes:g} minutes"
    )
    error: Exception | None = None
    with tempfile.TemporaryDirectory(prefix="banditrank-soak-") as directory:
        service = ServiceProcess(f"sqlite:{directory}/store.db", log=Path(directory) / "log")
        try:
            _compile(f"sqlite:{directory}/compiled.db")
            with service, httpx.Client(timeout=_COMPILE_SECONDS) as http:
                _create_surfaces(service, http)
                uvloop.run(soak(service, Path(directory) / "store.db", run, seed=chosen.seed))
        except (KeyboardInterrupt, asyncio.CancelledError):
            print_result("interrupted")
        except (OSError, AssertionError, httpx.HTTPError) as raised:
            error = raised
    sys.exit(_report(run, error))


def _compile(store: str) -> None:
    """Compile all code in another service first, because the compiler needs much memory."""
    with ServiceProcess(store) as service, httpx.Client(timeout=_COMPILE_SECONDS) as http:
        _create_surfaces(service, http)
        for items in ((), SPARE_ITEMS):
            show_progress(f"compiling what {'other numbers of items take' if items else 'dashboards show'}")
            for one in SURFACES:
                path = f"{service.address}/v1/surfaces/{one.name}"
                if items:
                    http.post(f"{path}/items", json={"items": items}).raise_for_status()
                uvloop.run(_rank(service, one))
                http.get(f"{path}/dashboard").raise_for_status()


def _create_surfaces(service: ServiceProcess, http: httpx.Client) -> None:
    for number, surface in enumerate(SURFACES):
        show_progress(f"creating surface {number + 1} of {len(SURFACES)}; the first of a kind is compiled")
        http.post(f"{service.address}/v1/surfaces", json=surface.definition).raise_for_status()


async def _rank(service: ServiceProcess, surface: SoakSurface) -> None:
    load = Load(service.port, [Traffic(surface.name, USER_TYPES)], seed=0)
    await load.open(1)
    await load.run_rankings(_COMPILE_RANKINGS)
    load.close()


async def soak(service: ServiceProcess, database: Path, run: SoakRun, *, seed: int) -> None:
    """Hold the rate, by default a share of the capacity, and take samples; SIGINT and SIGTERM cancel."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    traffic = [Traffic(one.name, USER_TYPES, one.reported) for one in SURFACES]
    load, visitors = Load(service.port, traffic, seed=seed), Visitors(service.port)
    load.failures = visitors.failures = run.failures
    try:
        await load.open(CONNECTIONS)
        visitors.scrape()
        for one in SURFACES:
            visitors.watch(one.name, streams=STREAMS)
            visitors.rotate_items(one.name, one.items, SPARE_ITEMS)
        if run.rate == 0.0:
            show_progress(f"measuring the capacity for {CAPACITY_SECONDS:.0f} seconds")
            await load.run_seconds(CAPACITY_SECONDS / 2)
            run.capacity = await load.run_seconds(CAPACITY_SECONDS)
            run.rate = SHARE * run.capacity
        await _hold(service, database, run, load, visitors)
    finally:
        load.close()
        await visitors.close()


async def _hold(
    service: ServiceProcess, database: Path, run: SoakRun, load: Load, visitors: Visitors
) -> None:
    """Send requests at the rate of the run, and take a sample at the end of every window."""
    width = max(1.0, run.minutes * 60 / MAX_SAMPLES)
    start = time.monotonic()
    sending = asyncio.create_task(load.run_seconds(run.minutes * 60, rate=run.rate))
    try:
        while not sending.done():
            begun, requests, rss = time.monotonic(), load.requests, []
            load.latencies.clear()
            while time.monotonic() < begun + width:
                service.check_running()
                rss.append(service.rss())
                await asyncio.sleep(_RSS_SECONDS)
            if sending.done():
                break  # the load ended within this window
            seconds, latencies = time.monotonic() - begun, sorted(load.latencies) or [float("nan")]
            run.samples.append(
                Sample(
                    minutes=(time.monotonic() - start) / 60,
                    rss=min(rss),
                    file_descriptors=service.file_descriptors(),
                    threads=service.threads(),
                    wal=_size(database.with_name(f"{database.name}-wal")),
                    database=_size(database),
                    counted=await visitors.counted(),
                    requests_a_second=(load.requests - requests) / seconds,
                    p50=latencies[len(latencies) // 2] * 1e3,
                    p99=latencies[int(len(latencies) * 0.99)] * 1e3,
                )
            )
            last = run.samples[-1]
            show_progress(
                f"{last.minutes:.1f} of {run.minutes:g} minutes: RSS {last.rss / 2**20:.2f} MiB, "
                f"{last.requests_a_second:,.0f} requests a second of {run.rate:,.0f}, "
                f"99th percentile {last.p99:.1f} ms, {run.failures.total()} failed"
            )
        await sending
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _report(run: SoakRun, error: Exception | None) -> int:
    """Print the report and return the exit code."""
    done = run.samples[-1].minutes if run.samples else 0.0
    capacity = f", {SHARE:.0%} of a capacity of {run.capacity:,.0f}" if run.capacity else ""
    print_result(
        f"{run.rate:,.0f} requests a second{capacity}, with all dashboards open; "
        f"{done:.1f} of {run.minutes:g} minutes, trends without the first {run.warm_up_minutes:.1f}"
    )
    for line in run.table():
        print_result(line)
    violations = run.violations()
    if error is not None:
        violations.append(f"{type(error).__name__}: {error}")
    for violation in violations:
        print_result(f"failed: {violation}")
    if not violations:
        print_result("passed")
    return 1 if violations else 0


if __name__ == "__main__":
    main()
