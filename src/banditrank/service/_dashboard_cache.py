"""Cache of encoded dashboard documents, shared by all open dashboards.

A document has two parts. What is known at once, such as the number of counted visits, is read at most once a
second. Estimates take some milliseconds to compute, seconds on large surfaces, and a minute if code must be
compiled: they are computed in a thread of their own, at most once a second and less often if it takes long.
A document has the latest ones, and says which counts they are of. However many dashboards of a surface are
open, each part is computed once.
"""

import asyncio
import hashlib
import time
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from banditrank.dashboard._assessment import Assessment, assess
from banditrank.dashboard._document_schemas import EstimatesBasisDocument
from banditrank.dashboard._documents import (
    UNKNOWN_ESTIMATES,
    Compiling,
    counts_document,
    estimates_basis,
    estimates_document,
    first_bucket_since,
    series_document,
)
from banditrank.dashboard._duty_cycle import DutyCycle
from banditrank.dashboard._recent_impressions import RecentImpressions
from banditrank.dashboard._surface_monitor import SurfaceMonitor, SurfaceMonitors
from banditrank.dashboard._time_series import Annotation, ClosedBuckets
from banditrank.engine._engine import Engine
from banditrank.engine._surface import Surface
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.service._health_checks import AGE_CHECKS
from banditrank.service._health_monitor import HealthMonitor
from banditrank.service._thread_pools import ThreadPool

_MAX_SERIES_AGE_SECONDS = 0.9  # less than the interval at which dashboards look for new buckets
_MAX_COUNTS_AGE_SECONDS = 0.9  # likewise
_DUTY_CYCLE = 0.02  # share of the time that the estimates of a surface may take
_ESTIMATES_WAIT_SECONDS = 0.5  # for which a document waits for estimates that are due

_encode = msgspec.json.Encoder().encode


class EncodedDashboard(NamedTuple):
    """An encoded dashboard document.

    Attributes
    ----------
    counts
        The part that is known at once, as JSON.
    estimates
        The estimates as JSON.
    etag
        Weak entity tag; it stays the same while only ages change.
    estimates_tag
        The same of the estimates alone.
    """

    counts: bytes
    estimates: bytes
    etag: bytes
    estimates_tag: bytes

    @property
    def body(self) -> bytes:
        """The whole document as JSON."""
        return self.counts[:-1] + b"," + self.estimates[1:]


class _Estimates(NamedTuple):
    """Encoded estimates of a surface, with their basis."""

    surface: Surface | None
    basis: EstimatesBasisDocument | None
    body: bytes
    tag: bytes


_UNKNOWN = _Estimates(None, None, _encode(UNKNOWN_ESTIMATES), b"unknown")


@dataclass(slots=True)
class _SurfaceCache:
    """Documents of one surface."""

    runtime: SurfaceRuntime
    monitor: SurfaceMonitor
    recent: RecentImpressions
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    assessment: Assessment | None = None
    duty_cycle: DutyCycle = field(default_factory=lambda: DutyCycle(_DUTY_CYCLE))
    estimates: _Estimates = _UNKNOWN
    estimating: asyncio.Future[_Estimates] | None = None
    dashboard: EncodedDashboard | None = None
    dashboard_of: _Estimates | None = None  # the estimates in the document
    counts_read_at: float = 0.0
    series: tuple[ClosedBuckets, list[Annotation]] | None = None
    series_read_at: float = 0.0

    @property
    def is_estimate_due(self) -> bool:
        """Whether estimates must be computed again; at once if the surface was changed."""
        return self.duty_cycle.is_due or self.estimates.surface is not self.runtime.surface

    @property
    def is_document_due(self) -> bool:
        """Whether the document must be made again; at once if there are other estimates."""
        is_old = time.monotonic() - self.counts_read_at >= _MAX_COUNTS_AGE_SECONDS
        return is_old or self.dashboard_of is not self.estimates

    def take_estimates(self) -> None:
        """Take the estimates that a thread has computed, if it has; raise its error if it failed."""
        if self.estimating is not None and self.estimating.done():
            estimating, self.estimating = self.estimating, None
            self.estimates = estimating.result()


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
        Threads that read what is known at once.
    estimates_pool
        Threads that compute estimates, which may compile code.
    """

    def __init__(
        self,
        engine: Engine,
        monitors: SurfaceMonitors,
        health_monitor: HealthMonitor,
        pool: ThreadPool,
        estimates_pool: ThreadPool,
    ) -> None:
        self._engine = engine
        self._monitors = monitors
        self._health_monitor = health_monitor
        self._pool = pool
        self._estimates_pool = estimates_pool
        self._caches: dict[int, _SurfaceCache] = {}

    async def dashboard(self, runtime: SurfaceRuntime) -> EncodedDashboard:
        """Return the dashboard document of a surface: the latest counts, with the latest estimates.

        Estimates that are due are waited for, but not long.
        """
        cache = self._cache(runtime)
        async with cache.lock:
            await self._update_estimates(cache)
            if cache.dashboard is None or cache.is_document_due:
                estimates = cache.estimates
                cache.counts_read_at = time.monotonic()
                cache.dashboard = await self._pool.run(self._document, cache, estimates)
                cache.dashboard_of = estimates
            return cache.dashboard

    async def _update_estimates(self, cache: _SurfaceCache) -> None:
        """Take the estimates that were computed meanwhile, and have them computed again if they are due."""
        cache.take_estimates()
        if cache.estimating is None and cache.is_estimate_due:
            cache.estimating = asyncio.ensure_future(self._estimates_pool.run(self._estimate, cache))
            await asyncio.wait([cache.estimating], timeout=_ESTIMATES_WAIT_SECONDS)
            cache.take_estimates()

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
            present = {other.surface_id for other in self._engine.surfaces()}
            self._caches = {key: kept for key, kept in self._caches.items() if key in present}
            monitor = self._monitors.of(runtime)
            cache = _SurfaceCache(runtime, monitor, RecentImpressions(monitor))
            self._caches[runtime.surface_id] = cache
        return cache

    async def _series(self, cache: _SurfaceCache) -> tuple[ClosedBuckets, list[Annotation]]:
        if cache.series is None or time.monotonic() - cache.series_read_at >= _MAX_SERIES_AGE_SECONDS:
            cache.series = await self._pool.run(cache.monitor.series)
            cache.series_read_at = time.monotonic()
        return cache.series

    def _document(self, cache: _SurfaceCache, estimates: _Estimates) -> EncodedDashboard:
        """Return the document of the latest counts with given estimates."""
        runtime = cache.runtime
        if estimates.surface is not runtime.surface:  # they do not fit items that were added meanwhile
            estimates = _UNKNOWN
        document = counts_document(
            runtime,
            cache.recent,
            cache.monitor.last_hour(),
            self._health_monitor.checks(runtime),
            now=self._engine.now(),
            has_true_values=cache.monitor.has_problem,
            estimated_from=estimates.basis,
            compiling=self._compiling(runtime),
        )
        ages = ("as_of", "counts_age_seconds", "compiling_seconds", "estimated_from", "health")
        others = _encode({key: value for key, value in document.items() if key not in ages})
        health = [
            (check["status"], "" if check["name"] in AGE_CHECKS else check["value"])
            for check in document["health"]
        ]
        digest = _digest(others + _encode(health) + estimates.tag)
        return EncodedDashboard(_encode(document), estimates.body, b'W/"%s"' % digest, estimates.tag)

    def _estimate(self, cache: _SurfaceCache) -> _Estimates:
        """Return the estimates by the latest counts."""
        runtime, now = cache.runtime, self._engine.now()
        with cache.duty_cycle:
            with self._engine.compilations.track(runtime.surface.name):
                assessment = _assess(cache)
            surface, basis = assessment.surface_counts.surface, estimates_basis(assessment, now)
            problem = cache.monitor.problem_of(surface)
            body = _encode(estimates_document(assessment, problem, cache.recent))
            return _Estimates(surface, basis, body, _digest(_encode(basis["version"]) + body))

    def _compiling(self, runtime: SurfaceRuntime) -> Compiling | None:
        compilations = self._engine.compilations
        seconds = compilations.seconds(runtime.surface.name)
        if seconds is not None:
            return Compiling("this-surface", seconds)
        # Without the name of another surface, which the key may not cover.
        seconds = compilations.seconds()
        return None if seconds is None else Compiling("another-surface", seconds)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2s(content, digest_size=12).hexdigest().encode()


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
