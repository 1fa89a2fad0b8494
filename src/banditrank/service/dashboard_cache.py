"""What open dashboards are told, made once for all of them.

Making it takes some milliseconds, in a thread. However many pages look at a surface, it is made at most once
a second, and less often where it takes long.
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
from banditrank.service.health_checks import AGES
from banditrank.service.health_monitor import HealthMonitor
from banditrank.service.thread_pools import ThreadPool

_FRESH_SECONDS = 0.9  # for which buckets are told again; less than pages wait
_SHARE_OF_TIME = 0.02  # that the documents of a surface may take

_encode = msgspec.json.Encoder().encode


class EncodedDashboard(NamedTuple):
    """A dashboard document as it is sent; the tag stays while nothing but ages changes."""

    body: bytes
    tag: bytes


@dataclass(slots=True)
class _SurfaceCache:
    """What was made for one surface."""

    live: LiveSurface
    latest: LatestRankings
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    assessment: Assessment | None = None
    pace: Pace = field(default_factory=lambda: Pace(_SHARE_OF_TIME))
    state: EncodedDashboard | None = None
    series: tuple[Buckets, list[Note]] | None = None
    series_made: float = 0.0

    @property
    def is_due(self) -> bool:
        """Whether a state is to be made: at once if the surface was changed, to show nothing that is gone."""
        made_of = None if self.assessment is None else self.assessment.known.revision
        return self.pace.is_due or made_of != self.live.revision


class DashboardCache:
    """Makes documents for pages, off the event loop.

    Parameters
    ----------
    engine
        The surfaces.
    vitals
        Whether all is well.
    pool
        Where documents are made.
    """

    def __init__(self, engine: Engine, vitals: HealthMonitor, pool: ThreadPool) -> None:
        self._engine = engine
        self._vitals = vitals
        self._pool = pool
        self._caches: dict[int, _SurfaceCache] = {}

    async def state(self, live: LiveSurface) -> EncodedDashboard:
        """Return a surface's dashboard document."""
        cache = self._cache(live)
        async with cache.lock:
            if cache.state is None or cache.is_due:
                cache.state = await self._pool.run(self._make_state, cache)
            return cache.state

    async def closed(self, live: LiveSurface) -> Buckets:
        """Return the buckets of a surface's series."""
        cache = self._cache(live)
        async with cache.lock:
            return (await self._closed(cache))[0]

    async def series(self, live: LiveSurface, *, since: float | None = None, first: int = 0) -> bytes:
        """Return a surface's series as it is sent.

        Parameters
        ----------
        live
            The surface.
        since
            Leave out what began before, in seconds since 1970.
        first
            Leave out as many buckets.
        """
        cache = self._cache(live)
        async with cache.lock:
            buckets, notes = await self._closed(cache)
            wanted = max(first, first_wanted(buckets, since))
            return await self._pool.run(_made_series, live, buckets, notes, wanted)

    def _cache(self, live: LiveSurface) -> _SurfaceCache:
        cache = self._caches.get(live.number)
        if cache is None:
            present = {one.number for one in self._engine.surfaces()}
            self._caches = {number: one for number, one in self._caches.items() if number in present}
            cache = self._caches[live.number] = _SurfaceCache(live, LatestRankings(live, self._engine.store))
        return cache

    async def _closed(self, cache: _SurfaceCache) -> tuple[Buckets, list[Note]]:
        if cache.series is None or time.monotonic() - cache.series_made >= _FRESH_SECONDS:
            cache.series = await self._pool.run(cache.live.series)
            cache.series_made = time.monotonic()
        return cache.series

    def _make_state(self, cache: _SurfaceCache) -> EncodedDashboard:
        with cache.pace:
            return self._made_state(cache)

    def _made_state(self, cache: _SurfaceCache) -> EncodedDashboard:
        live = cache.live
        assessment = self._assessed(cache)
        truth = live.watch.truth_of(assessment.known.surface)
        document = dashboard_document(
            assessment,
            truth,
            cache.latest,
            live.last_hour(),
            self._vitals.checks(live),
            now=self._engine.now(),
            counts_age=live.age,
        )
        ages = {key: document[key] for key in ("as_of", "counts_age_s", "health")}
        lasting = _encode({key: value for key, value in document.items() if key not in ages})
        figures = _encode([(one["s"], "" if one["n"] in AGES else one["v"]) for one in document["health"]])
        tag = hashlib.blake2s(lasting + figures, digest_size=12).hexdigest().encode()
        return EncodedDashboard(lasting[:-1] + b"," + _encode(ages)[1:], b'W/"%s"' % tag)

    def _assessed(self, cache: _SurfaceCache) -> Assessment:
        """Return what the latest counts say."""
        live, before = cache.live, cache.assessment
        latest = live.revision, live.version
        if before is None or (before.known.revision, before.known.version) != latest:
            cache.assessment = before = assess(live.known())
        return before


def _made_series(live: LiveSurface, buckets: Buckets, notes: list[Note], first: int) -> bytes:
    types, has_truth = live.surface.user_types, live.watch.has_truth
    return _encode(
        series_document(buckets, notes, n_user_types=len(types), with_regret=has_truth, first=first)
    )
