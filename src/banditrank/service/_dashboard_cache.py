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

from banditrank.dashboard._assessment import Assessment, assess
from banditrank.dashboard._document_schemas import CompilingState
from banditrank.dashboard._documents import dashboard_document, first_bucket_since, series_document
from banditrank.dashboard._duty_cycle import DutyCycle
from banditrank.dashboard._recent_impressions import RecentImpressions
from banditrank.dashboard._surface_monitor import SurfaceMonitor, SurfaceMonitors
from banditrank.dashboard._time_series import Annotation, ClosedBuckets
from banditrank.engine._engine import Engine
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.service._health_checks import AGE_CHECKS
from banditrank.service._health_monitor import HealthMonitor
from banditrank.service._thread_pools import ThreadPool

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

    runtime: SurfaceRuntime
    monitor: SurfaceMonitor
    recent: RecentImpressions
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    assessment: Assessment | None = None
    duty_cycle: DutyCycle = field(default_factory=lambda: DutyCycle(_DUTY_CYCLE))
    dashboard: EncodedDashboard | None = None
    series: tuple[ClosedBuckets, list[Annotation]] | None = None
    series_read_at: float = 0.0

    @property
    def is_due(self) -> bool:
        """Whether the dashboard must be computed again; at once if the surface was changed."""
        revision = None if self.assessment is None else self.assessment.surface_counts.revision
        return self.duty_cycle.is_due or revision != self.runtime.revision


class DashboardCache:
    """Computes and caches dashboard documents in threads.

    Parameters
    ----------
    engine
        Engine with the surfaces.
    monitors
        Monitors of the surfaces.
    health_monitor
        Returns the health checks of a surface.
    pool
        Threads that compute the documents.
    """

    def __init__(
        self, engine: Engine, monitors: SurfaceMonitors, health_monitor: HealthMonitor, pool: ThreadPool
    ) -> None:
        self._engine = engine
        self._monitors = monitors
        self._health_monitor = health_monitor
        self._pool = pool
        self._caches: dict[int, _SurfaceCache] = {}

    async def dashboard(self, runtime: SurfaceRuntime) -> EncodedDashboard:
        """Return the dashboard document of a surface."""
        cache = self._cache(runtime)
        async with cache.lock:
            if cache.dashboard is None or cache.is_due:
                cache.dashboard = await self._pool.run(self._compute_dashboard, cache)
            return cache.dashboard

    async def closed_buckets(self, runtime: SurfaceRuntime) -> ClosedBuckets:
        """Return the closed buckets of a surface's time series."""
        cache = self._cache(runtime)
        async with cache.lock:
            return (await self._series(cache))[0]

    async def series(self, runtime: SurfaceRuntime, *, since: float | None = None, first: int = 0) -> bytes:
        """Return the time series of a surface as JSON.

        Parameters
        ----------
        runtime
            The surface.
        since
            Omit buckets that began before this time, in seconds since 1970.
        first
            Omit this number of buckets.
        """
        cache = self._cache(runtime)
        async with cache.lock:
            buckets, annotations = await self._series(cache)
            start = max(first, first_bucket_since(buckets, since))
            return await self._pool.run(_encode_series, cache.monitor, buckets, annotations, start)

    def _cache(self, runtime: SurfaceRuntime) -> _SurfaceCache:
        cache = self._caches.get(runtime.surface_id)
        if cache is None:
            present = {one.surface_id for one in self._engine.surfaces()}
            self._caches = {key: one for key, one in self._caches.items() if key in present}
            monitor = self._monitors.of(runtime)
            cache = _SurfaceCache(runtime, monitor, RecentImpressions(monitor))
            self._caches[runtime.surface_id] = cache
        return cache

    async def _series(self, cache: _SurfaceCache) -> tuple[ClosedBuckets, list[Annotation]]:
        if cache.series is None or time.monotonic() - cache.series_read_at >= _MAX_SERIES_AGE_SECONDS:
            cache.series = await self._pool.run(cache.monitor.series)
            cache.series_read_at = time.monotonic()
        return cache.series

    def _compute_dashboard(self, cache: _SurfaceCache) -> EncodedDashboard:
        with cache.duty_cycle:
            runtime = cache.runtime
            with self._engine.compilations.track(runtime.surface.name):
                assessment = _assess(cache)
            problem = cache.monitor.problem_of(assessment.surface_counts.surface)
            document = dashboard_document(
                assessment,
                problem,
                cache.recent,
                cache.monitor.last_hour(),
                self._health_monitor.checks(runtime),
                now=self._engine.now(),
                counts_age=runtime.staleness_seconds,
                compiling=self._compiling(runtime),
            )
            ages = {key: document[key] for key in ("as_of", "counts_age_seconds", "health")}
            others = _encode({key: value for key, value in document.items() if key not in ages})
            health = [
                (one["status"], "" if one["name"] in AGE_CHECKS else one["value"])
                for one in document["health"]
            ]
            digest = hashlib.blake2s(others + _encode(health), digest_size=12).hexdigest().encode()
            return EncodedDashboard(others[:-1] + b"," + _encode(ages)[1:], b'W/"%s"' % digest)

    def _compiling(self, runtime: SurfaceRuntime) -> CompilingState | None:
        surfaces = self._engine.compilations.surfaces
        if not surfaces:
            return None
        # Without the name of another surface, which the key may not cover.
        return "this-surface" if runtime.surface.name in surfaces else "another-surface"


def _assess(cache: _SurfaceCache) -> Assessment:
    """Return the assessment of the latest counts."""
    runtime, assessment = cache.runtime, cache.assessment
    if assessment is not None:
        counts = assessment.surface_counts
        if (counts.revision, counts.version) == (runtime.revision, runtime.version):
            return assessment
    cache.assessment = assess(runtime.counts())
    return cache.assessment


def _encode_series(
    monitor: SurfaceMonitor, buckets: ClosedBuckets, annotations: list[Annotation], first: int
) -> bytes:
    document = series_document(
        buckets,
        annotations,
        n_user_types=len(monitor.runtime.surface.user_types),
        with_regret=monitor.has_problem,
        first=first,
    )
    return _encode(document)
