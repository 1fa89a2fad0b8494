"""The memory of the service does not grow with requests; `make soak` runs for longer."""

import asyncio
import math
import time
from itertools import accumulate
from pathlib import Path

import httpx
import numpy as np
import pytest
from campaigns.service_process import ServiceProcess
from campaigns.soak_load import Load, Traffic
from campaigns.soak_report import Sample, SoakRun
from campaigns.soak_trends import Trend, trend
from campaigns.soak_visitors import MAX_STREAM_SECONDS

from banditrank.service._settings import Settings

WARM_UP_CONNECTIONS = 8  # more than later, so that pools of threads and of the store grow before
CHUNK_RANKINGS = 125  # over a connection of its own
USER_TYPES = ["new", "old"]
SURFACE = {
    "items": [f"item-{number}" for number in range(6)],
    "n_positions": 3,
    "user_types": USER_TYPES,
    "refresh_seconds": 0,  # every ranking after a feedback refreshes, however fast the machine is
}
SURFACES = [
    {**SURFACE, "name": "personalized"},
    {**SURFACE, "name": "nash", "treatment": "equal", "utility": "nash"},
]
POOL_THREADS = 13  # maximum of all pools of the service, which start a thread only if the others are busy
FILES_PER_THREAD = 4  # a thread that starts late opens a connection to the store
_CLOSE_SECONDS = 120.0


@pytest.fixture
def service(tmp_path: Path) -> ServiceProcess:
    """Return a service with two surfaces, restarted: freed memory of the compiler would hide a leak."""
    service = ServiceProcess(f"sqlite:{tmp_path / 'store.db'}", log=tmp_path / "log")
    with service:
        for surface in SURFACES:
            created = httpx.post(f"{service.address}/v1/surfaces", json=surface, timeout=300)
            assert created.status_code == 201, created.text
    return service


# A leak of 2.75 KiB for every refreshed view and 64 bytes for every compiled call came to 1,446 bytes per
# request. In three runs a correct service grew by up to 290 while the page cache of SQLite filled, 2 MB a
# connection, so the short run has a higher limit; the campaign first fills the cache.
@pytest.mark.parametrize(
    ("warm_up_rankings", "chunks", "max_bytes_per_request"),
    [(1_000, 12, 600.0), pytest.param(16_000, 32, 50.0, marks=pytest.mark.campaign)],
    ids=["short", "long"],
)
def test_requests_do_not_leak_memory(
    service: ServiceProcess, warm_up_rankings: int, chunks: int, max_bytes_per_request: float
) -> None:
    with service:
        threads, file_descriptors, growth = asyncio.run(_drive(service, warm_up_rankings, chunks))
        assert growth.slope <= max_bytes_per_request, f"{growth} bytes per request"
        assert service.threads() <= threads + POOL_THREADS
        until = time.monotonic() + _CLOSE_SECONDS  # the service may be about to close the last connection
        limit = file_descriptors + FILES_PER_THREAD * POOL_THREADS
        while service.file_descriptors() > limit and time.monotonic() < until:
            time.sleep(0.05)
        assert service.file_descriptors() <= limit


async def _drive(service: ServiceProcess, warm_up_rankings: int, chunks: int) -> tuple[int, int, Trend]:
    """Return the threads and file descriptors after the warm-up, and the growth of memory from then on."""
    await _rank(service, warm_up_rankings, connections=WARM_UP_CONNECTIONS)
    threads, file_descriptors = service.threads(), service.file_descriptors()
    requests, rss = [0], [service.rss()]
    for chunk in range(chunks):
        requests.append(requests[-1] + await _rank(service, CHUNK_RANKINGS, connections=1, seed=1 + chunk))
        rss.append(service.rss())
    return threads, file_descriptors, trend(requests, rss)


async def _rank(service: ServiceProcess, rankings: int, *, connections: int, seed: int = 0) -> int:
    """Request rankings and report all of them, over new connections; return the number of requests."""
    load = Load(service.port, [Traffic(str(one["name"]), USER_TYPES) for one in SURFACES], seed=seed)
    await load.open(connections)
    await load.run_rankings(rankings)
    load.close()
    assert not load.failures
    assert load.requests == 2 * rankings
    return load.requests


@pytest.mark.parametrize(("leaked", "slope"), [(0, 0.0), (3, 3.0)])
def test_a_trend_is_robust_to_spikes(leaked: int, slope: float) -> None:
    requests = list(range(0, 8000, 250))
    rss = [100_000 + leaked * x + (1_000_000 if x % 1750 == 0 else 0) for x in requests]
    assert trend(requests, rss).slope == slope


# At a level of 95%, fewer than 267 of 300 intervals contain the slope with probability 1e-5. 285, 282 and 277
# do; of intervals that take samples as independent 279, 220 and 144. At a correlation of 0.9, 260 would.
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
def test_the_interval_of_a_trend_covers_correlated_samples(correlation: float) -> None:
    """Finding 17: the interval of level memory includes 0, also if consecutive samples are correlated."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(300):
        shocks = rng.normal(size=160)
        shocks[0] /= math.sqrt(1 - correlation**2)
        rss = list(accumulate(shocks.tolist(), lambda before, shock: correlation * before + shock))
        found = trend(range(160), [1000 + 0.5 * x + y for x, y in enumerate(rss)])
        covered += found.low <= 0.5 <= found.high
    assert covered >= 267


def test_dashboards_of_a_soak_of_hours_reopen_before_the_service_ends_their_streams(tmp_path: Path) -> None:
    """Finding 17: a soak of six hours does not fail because the service ends streams after one."""
    assert Settings(store=f"sqlite:{tmp_path / 'store.db'}").max_stream_seconds > MAX_STREAM_SECONDS


def test_the_trend_of_equal_samples_is_0() -> None:
    assert trend(range(20), [22] * 20) == (0.0, 0.0, 0.0)


def test_a_trend_needs_samples() -> None:
    with pytest.raises(ValueError, match="at least 4 samples, got 3"):
        trend([0, 1, 2], [0, 1, 2])


def _run(*, rss_a_minute: float, minutes: int = 30) -> SoakRun:
    """Return a run whose memory doubles in the warm-up and then grows steadily."""
    run = SoakRun(minutes)
    for minute in range(1, minutes + 1):
        rss = 100 * min(minute, 5) / 5 + rss_a_minute * minute
        run.samples.append(
            Sample(
                minutes=minute,
                rss=int(rss * 2**20),
                file_descriptors=60 + minute % 2,
                threads=12,
                wal=4 << 20,
                database=136 * 1000 * minute,
                counted=1000 * minute,
                requests_a_second=100.0,
                p50=1.0,
                p99=5.0,
            )
        )
    return run


def test_a_soak_run_fails_above_its_limit_after_the_warm_up() -> None:
    assert _run(rss_a_minute=0.04).violations() == []
    (violation,) = _run(rss_a_minute=0.06).violations()
    assert violation == "RSS, MiB: grows by 0.060 a minute, limit 0.05"


def test_a_soak_run_fails_if_a_request_fails() -> None:
    run = _run(rss_a_minute=0.0)
    run.failures["503: unavailable"] += 2
    assert run.violations() == ["2 requests failed: 2 × 503: unavailable"]


def test_a_soak_run_reports_bytes_per_counted_ranking() -> None:
    assert _run(rss_a_minute=0.0).bytes_per_ranking().slope == 136
    *_, last = _run(rss_a_minute=0.0).table()
    assert last.startswith("| counted rankings; database bytes for each | 5,000 | 30,000 | 136 bytes each")


def test_an_interrupted_soak_run_reports_that_it_has_no_trend() -> None:
    run = _run(rss_a_minute=0.0, minutes=3)
    assert run.violations() == ["3 samples after the warm-up, 4 needed for a trend"]
    assert len(list(run.table())) == 2
