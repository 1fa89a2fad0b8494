"""Cache of encoded dashboard documents, shared by all open dashboards.

A document takes some milliseconds to compute, in a thread. However many dashboards of a surface are open, it
is computed at most once a second, and less often if it takes long.
"""

import asyncio
import hashlib
import time
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from banditrank.engine.activity import Buckets, Note
from banditrank.engine.assessment import Assessment, assess
from banditrank.engine.dashboard_content import dashboard_document
from banditrank.engine.engine import Engine
from banditrank.engine.latest_rankings import LatestRankings
from banditrank.engine.live_surface import LiveSurface
from banditrank.engine.pace import Pace
from banditrank.engine.series import first_wanted, series_document
from banditrank.service.health_checks import AGE_CHECKS
from banditrank.service.health_monitor import HealthMonitor
from banditrank.service.thread_pools import ThreadPool

_MAX_SERIES_AGE_SECONDS = 0.9  # less than the interval at which dashboards look for new buckets
_DUTY_CYCLE = 0.02  # share of the time that the documents of a surface may take

_encode = msgspec.json.Encoder().encode


class EncodedDashboard(NamedTuple):
    """An encoded dashboard document.

    Attributes
    ----------
    body
        The document as JSON.
    etag
        Weak entity tag; it stays the same while only ages change.
    """

    body: bytes
    etag: bytes


@dataclass(slots=True)
class _SurfaceCache:
    """Documents of one surface."""

    live: LiveSurface
    latest: LatestRankings
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    assessment: Assessment | None = None
    duty_cycle: Pace = field(default_factory=lambda: Pace(_DUTY_CYCLE))
    dashboard: EncodedDashboard | None = None
    series: tuple[Buckets, list[Note]] | None = None
    series_read_at: float = 0.0

    @property
    def is_due(self) -> bool:
        """Whether the dashboard must be computed again; at once if the surface was changed."""
        revision = None if self.assessment is None else self.assessment.known.revision
        return self.duty_cycle.is_due or revision != self.live.revision


class DashboardCache:
    """Computes and caches dashboard documents in threads.

    Parameters
    ----------
    engine
        Engine with the surfaces.
    health_monitor
        Returns the health checks of a surface.
    pool
        Threads that compute the documents.
    """

    def __init__(self, engine: Engine, health_monitor: HealthMonitor, pool: ThreadPool) -> None:
        self._engine = engine
        self._health_monitor = health_monitor
        self._pool = pool
        self._caches: dict[int, _SurfaceCache] = {}

    async def dashboard(self, live: LiveSurface) -> EncodedDashboard:
        """Return the dashboard document of a surface."""
        cache = self._cache(live)
        async with cache.lock:
            if cache.dashboard is None or cache.is_due:
                cache.dashboard = await self._pool.run(self._compute_dashboard, cache)
            return cache.dashboard

    async def closed_buckets(self, live: LiveSurface) -> Buckets:
        """Return the closed buckets of a surface's time series."""
        cache = self._cache(live)
        async with cache.lock:
            return (await self._series(cache))[0]

    async def series(self, live: LiveSurface, *, since: float | None = None, first: int = 0) -> bytes:
        """Return the time series of a surface as JSON.

        Parameters
        ----------
        live
            The surface.
        since
            Omit buckets that began before this time, in seconds since 1970.
        first
            Omit this number of buckets.
        """
        cache = self._cache(live)
        async with cache.lock:
            buckets, notes = await self._series(cache)
            start = max(first, first_wanted(buckets, since))
            return await self._pool.run(_encode_series, live, buckets, notes, start)

    def _cache(self, live: LiveSurface) -> _SurfaceCache:
        cache = self._caches.get(live.number)
        if cache is None:
            present = {one.number for one in self._engine.surfaces()}
            self._caches = {number: one for number, one in self._caches.items() if number in present}
            cache = self._caches[live.number] = _SurfaceCache(live, LatestRankings(live, self._engine.store))
        return cache

    async def _series(self, cache: _SurfaceCache) -> tuple[Buckets, list[Note]]:
        if cache.series is None or time.monotonic() - cache.series_read_at >= _MAX_SERIES_AGE_SECONDS:
            cache.series = await self._pool.run(cache.live.series)
            cache.series_read_at = time.monotonic()
        return cache.series

    def _compute_dashboard(self, cache: _SurfaceCache) -> EncodedDashboard:
        with cache.duty_cycle:
            live = cache.live
            assessment = _assess(cache)
            truth = live.watch.truth_of(assessment.known.surface)
            document = dashboard_document(
                assessment,
                truth,
                cache.latest,
                live.last_hour(),
                self._health_monitor.checks(live),
                now=self._engine.now(),
                counts_age=live.age,
            )
            ages = {key: document[key] for key in ("as_of", "counts_age_s", "health")}
            others = _encode({key: value for key, value in document.items() if key not in ages})
            health = [(one["s"], "" if one["n"] in AGE_CHECKS else one["v"]) for one in document["health"]]
            digest = hashlib.blake2s(others + _encode(health), digest_size=12).hexdigest().encode()
            return EncodedDashboard(others[:-1] + b"," + _encode(ages)[1:], b'W/"%s"' % digest)


def _assess(cache: _SurfaceCache) -> Assessment:
    """Return the assessment of the latest counts."""
    live, assessment = cache.live, cache.assessment
    latest = live.revision, live.version
    if assessment is None or (assessment.known.revision, assessment.known.version) != latest:
        cache.assessment = assessment = assess(live.known())
    return assessment


def _encode_series(live: LiveSurface, buckets: Buckets, notes: list[Note], first: int) -> bytes:
    types, has_truth = live.surface.user_types, live.watch.has_truth
    return _encode(
        series_document(buckets, notes, n_user_types=len(types), with_regret=has_truth, first=first)
    )
