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

from banditrank.dashboard.assessment import Assessment, assess
from banditrank.dashboard.documents import dashboard_document, first_bucket_since, series_document
from banditrank.dashboard.duty_cycle import DutyCycle
from banditrank.dashboard.recent_impressions import RecentImpressions
from banditrank.dashboard.surface_monitor import SurfaceMonitor, SurfaceMonitors
from banditrank.dashboard.time_series import Annotation, ClosedBuckets
from banditrank.engine.engine import Engine
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.service.health_checks import AGES
from banditrank.service.pools import Pool
from banditrank.service.vitals import Vitals

_FRESH_SECONDS = 0.9  # for which buckets are told again; less than pages wait
_SHARE_OF_TIME = 0.02  # that the documents of a surface may take

_encode = msgspec.json.Encoder().encode


class State(NamedTuple):
    """A dashboard document as it is sent; the tag stays while nothing but ages changes."""

    body: bytes
    tag: bytes


@dataclass(slots=True)
class _Desk:
    """What was made for one surface."""

    live: SurfaceRuntime
    monitor: SurfaceMonitor
    latest: RecentImpressions
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    assessment: Assessment | None = None
    pace: DutyCycle = field(default_factory=lambda: DutyCycle(_SHARE_OF_TIME))
    state: State | None = None
    series: tuple[ClosedBuckets, list[Annotation]] | None = None
    series_made: float = 0.0

    @property
    def is_due(self) -> bool:
        """Whether a state is to be made: at once if the surface was changed, to show nothing that is gone."""
        made_of = None if self.assessment is None else self.assessment.surface_counts.revision
        return self.pace.is_due or made_of != self.live.revision


class SharedDocuments:
    """Makes documents for pages, off the event loop.

    Parameters
    ----------
    engine
        The surfaces.
    monitors
        Their monitors.
    vitals
        Whether all is well.
    pool
        Where documents are made.
    """

    def __init__(self, engine: Engine, monitors: SurfaceMonitors, vitals: Vitals, pool: Pool) -> None:
        self._engine = engine
        self._monitors = monitors
        self._vitals = vitals
        self._pool = pool
        self._desks: dict[int, _Desk] = {}

    async def state(self, live: SurfaceRuntime) -> State:
        """Return a surface's dashboard document."""
        desk = self._desk(live)
        async with desk.lock:
            if desk.state is None or desk.is_due:
                desk.state = await self._pool.run(self._make_state, desk)
            return desk.state

    async def closed(self, live: SurfaceRuntime) -> ClosedBuckets:
        """Return the buckets of a surface's series."""
        desk = self._desk(live)
        async with desk.lock:
            return (await self._closed(desk))[0]

    async def series(self, live: SurfaceRuntime, *, since: float | None = None, first: int = 0) -> bytes:
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
        desk = self._desk(live)
        async with desk.lock:
            buckets, notes = await self._closed(desk)
            wanted = max(first, first_bucket_since(buckets, since))
            return await self._pool.run(_made_series, desk.monitor, buckets, notes, wanted)

    def _desk(self, live: SurfaceRuntime) -> _Desk:
        desk = self._desks.get(live.surface_id)
        if desk is None:
            present = {one.surface_id for one in self._engine.surfaces()}
            self._desks = {number: one for number, one in self._desks.items() if number in present}
            monitor = self._monitors.of(live)
            desk = self._desks[live.surface_id] = _Desk(live, monitor, RecentImpressions(monitor))
        return desk

    async def _closed(self, desk: _Desk) -> tuple[ClosedBuckets, list[Annotation]]:
        if desk.series is None or time.monotonic() - desk.series_made >= _FRESH_SECONDS:
            desk.series = await self._pool.run(desk.monitor.series)
            desk.series_made = time.monotonic()
        return desk.series

    def _make_state(self, desk: _Desk) -> State:
        with desk.pace:
            return self._made_state(desk)

    def _made_state(self, desk: _Desk) -> State:
        live = desk.live
        assessment = self._assessed(desk)
        truth = desk.monitor.problem_of(assessment.surface_counts.surface)
        document = dashboard_document(
            assessment,
            truth,
            desk.latest,
            desk.monitor.last_hour(),
            self._vitals.checks(live),
            now=self._engine.now(),
            counts_age=live.staleness_seconds,
        )
        ages = {key: document[key] for key in ("as_of", "counts_age_s", "health")}
        lasting = _encode({key: value for key, value in document.items() if key not in ages})
        figures = _encode([(one["s"], "" if one["n"] in AGES else one["v"]) for one in document["health"]])
        tag = hashlib.blake2s(lasting + figures, digest_size=12).hexdigest().encode()
        return State(lasting[:-1] + b"," + _encode(ages)[1:], b'W/"%s"' % tag)

    def _assessed(self, desk: _Desk) -> Assessment:
        """Return what the latest counts say."""
        live, before = desk.live, desk.assessment
        latest = live.revision, live.version
        if before is None or (before.surface_counts.revision, before.surface_counts.version) != latest:
            desk.assessment = before = assess(live.counts())
        return before


def _made_series(
    monitor: SurfaceMonitor, buckets: ClosedBuckets, notes: list[Annotation], first: int
) -> bytes:
    types, has_truth = monitor.runtime.surface.user_types, monitor.has_problem
    return _encode(
        series_document(buckets, notes, n_user_types=len(types), with_regret=has_truth, first=first)
    )
