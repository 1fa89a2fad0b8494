"""Monitoring of a surface at work: recent impressions, the best rankings, and the time series."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from banditrank._text import list_names
from banditrank.dashboard._duty_cycle import DutyCycle
from banditrank.dashboard._estimated_problem import best_rankings, estimated_problem
from banditrank.dashboard._last_hour import HourTotals
from banditrank.dashboard._surface_problem import SurfaceProblem
from banditrank.dashboard._time_buckets import ReferenceRankings
from banditrank.dashboard._time_series import Annotation, ClosedBuckets, TimeSeries
from banditrank.engine._due_queue import DueQueue
from banditrank.engine._observers import IssuedImpression, SurfaceObserver
from banditrank.engine._periodic_task import PeriodicTask
from banditrank.engine._surface import Surface
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.model._problem import Problem
from banditrank.storage._records import Change, Impression, SavedTimeSeries

MAX_RECENT_IMPRESSIONS = 20
MAX_RECENT_RANKINGS = 1000
_MAX_ITERATIONS = 200  # of the estimator
_MAX_NAMES_LISTED = 3  # in an annotation, which is saved with the time series
_MAX_SHARE_OF_TIME = 0.02  # that finding the best rankings may take
_GATHERING_SECONDS = 0.25  # batch window for changes of surfaces
_COMMIT_GRACE_SECONDS = 1.0  # after the end of a bucket, for commits of other processes

BestRankings: TypeAlias = tuple[tuple[int, ...], ...]
"""For each user type the numbers of the items, in order of positions."""


class RecentImpression(NamedTuple):
    """An impression that this process issued."""

    ranking_id: str
    issued_at: float  # seconds since 1970
    impression: Impression
    best: BestRankings | None  # at that time


class SurfaceMonitor(SurfaceObserver):
    """Observes one surface. Thread-safe.

    The time series is folded from the changes of the counts. It is saved when a snapshot of the counts is
    saved, and continues from there after a restart; changes in between are read from the store.

    Parameters
    ----------
    runtime
        The surface.
    clock
        Returns the time in seconds since 1970.
    bucket_seconds
        Initial width of the buckets of the time series.
    problem
        The problem that simulated users act by, if there is one.
    on_due
        Called when `due_in` may have decreased for another reason than time.

    Attributes
    ----------
    recent
        The latest impressions.
    recent_rankings
        The latest rankings, as `Impression.ranking` encodes them.
    best
        The best rankings by the present estimates; None until they were computed.
    """

    def __init__(
        self,
        runtime: SurfaceRuntime,
        clock: Callable[[], float],
        *,
        bucket_seconds: float = 60.0,
        problem: Problem | None = None,
        on_due: Callable[["SurfaceMonitor"], None] = lambda _: None,
    ) -> None:
        self.runtime = runtime
        self.recent: deque[RecentImpression] = deque(maxlen=MAX_RECENT_IMPRESSIONS)
        self.recent_rankings: deque[bytes] = deque(maxlen=MAX_RECENT_RANKINGS)
        self.best: BestRankings | None = None
        self._clock = clock
        self._problem = problem
        self._surface_problem: SurfaceProblem | None = None
        self._on_due = on_due
        self._lock = threading.Lock()
        surface = runtime.surface
        self._series = TimeSeries(round(bucket_seconds * 1000), n_user_types=len(surface.user_types))
        self._series_version = self._saved_version = 0
        self._compared = (0, 0)  # revision and version that `best` is of
        self._duty_cycle = DutyCycle(_MAX_SHARE_OF_TIME)
        self.task = PeriodicTask(
            "search for the best rankings failed", self._compare_in, self._compare, surface=surface.name
        )
        self._set_surface(surface)
        self._restore(runtime.store.time_series(runtime.surface_id))
        self._catch_up()
        if runtime.version > 0:
            self._annotate("service started")
        on_due(self)

    # Events of the surface

    def on_rankings(self, issued: Sequence[IssuedImpression], issued_at: float) -> None:
        """Remember the latest impressions."""
        best = self.best
        self.recent.extend(
            [
                RecentImpression(ranking_id, issued_at, impression, best)
                for ranking_id, impression in issued[-MAX_RECENT_IMPRESSIONS:]
            ]
        )
        self.recent_rankings.extend([one.impression.ranking for one in issued])

    def on_change(self, change: Change) -> None:
        """Fold a change into the time series; if earlier ones are missing, `_catch_up` reads all of them."""
        with self._lock:
            self._add(change)
        self._on_due(self)

    def on_definition(self, before: Surface, after: Surface) -> None:
        """Annotate the time series with what was changed."""
        self._annotate(_difference(before, after))
        with self._lock:
            self._series.fold()  # earlier changes are compared with the earlier problem
            self._set_surface(after)

    def on_snapshot(self) -> None:
        """Save the time series."""
        self._catch_up()
        with self._lock:
            saved = SavedTimeSeries(self._series_version, self._series.to_bytes())
        if saved.version > self._saved_version:
            self.runtime.store.save_time_series(self.runtime.surface_id, saved)
            self._saved_version = saved.version

    # Time series

    def series(self) -> tuple[ClosedBuckets, list[Annotation]]:
        """Return the closed buckets of the time series, and the annotations."""
        self._catch_up()
        now = self._clock()
        with self._lock:
            annotations = [
                one
                for one in self._series.annotations
                if one.at_ms <= now * 1000  # a clock may be ahead
            ]
            return self._series.closed_buckets(int((now - _COMMIT_GRACE_SECONDS) * 1000)), annotations

    def last_hour(self) -> tuple[float | None, HourTotals]:
        """Return the start of the time series in seconds since 1970, and the totals of the last hour."""
        self._catch_up()
        with self._lock:
            start_ms, totals = self._series.start_ms, self._series.last_hour(int(self._clock() * 1000))
            return None if start_ms is None else start_ms / 1000, totals

    def _add(self, change: Change) -> None:
        """Add a change if it is the next one; the caller holds the lock."""
        if change.version == self._series_version + 1:
            self._series.add(change.committed_at_ms, change.cells)
            self._series_version = change.version

    def _catch_up(self) -> None:
        """Read what is missing up to the version of the counts: saved series first, then changes."""
        store, surface_id, version = self.runtime.store, self.runtime.surface_id, self.runtime.version
        while self._series_version < version:
            changes = store.changes(surface_id, after=self._series_version)
            if not changes or changes[0].version > self._series_version + 1:
                if not self._restore(store.time_series(surface_id)):
                    # The changes were pruned, and no saved series covers them: they are not in the series.
                    with self._lock:
                        first = changes[0].version - 1 if changes else version
                        self._series_version = max(self._series_version, first)
                continue
            with self._lock:
                for change in changes:
                    self._add(change)

    def _restore(self, saved: SavedTimeSeries | None) -> bool:
        """Continue from a saved series; return whether it is later than the present one."""
        with self._lock:
            if saved is None or saved.version <= self._series_version:
                return False
            self._series.restore(saved.data)
            self._series_version = self._saved_version = saved.version
        return True

    def _annotate(self, text: str) -> None:
        with self._lock:
            self._series.annotate(int(self._clock() * 1000), text)

    # Best rankings

    def _compare_in(self) -> float:
        is_compared = (self.runtime.revision, self.runtime.version) == self._compared
        return inf if is_compared else self._duty_cycle.due_in

    def _compare(self) -> None:
        """Find the best rankings by the latest counts; the time series compares displays with them."""
        latest = self.runtime.counts()
        surface = latest.surface
        with self._duty_cycle, self.runtime.compilations.track(surface.name):
            problem = estimated_problem(surface, latest.counts, max_iterations=_MAX_ITERATIONS)
            rankings = best_rankings(surface, problem)
            numbers = np.asarray(surface.active_numbers, dtype=np.intp)[rankings]
            reference = ReferenceRankings(numbers, len(surface.items))
        with self._lock:
            self._series.set_reference(reference)
        self.best = tuple(map(tuple, numbers.tolist()))
        self._compared = latest.revision, latest.version

    # Simulated users

    @property
    def has_problem(self) -> bool:
        """Whether users are simulated by a known problem."""
        return self._problem is not None

    def problem_of(self, surface: Surface) -> SurfaceProblem | None:
        """Return the problem of a surface as it is or was defined; None if it is not known."""
        problem = self._surface_problem
        if problem is None or self._problem is None or problem.surface == surface:
            return problem
        return SurfaceProblem(self._problem, surface)

    def _set_surface(self, surface: Surface) -> None:
        if self._problem is not None:
            self._surface_problem = SurfaceProblem(self._problem, surface)
            self._series.regret_of = self._surface_problem.regret


class SurfaceMonitors:
    """Monitors of all surfaces of an engine, and the thread that keeps them up to date.

    Parameters
    ----------
    clock
        Returns the time in seconds since 1970.
    bucket_seconds
        Initial width of the buckets of time series.
    problems
        Problems that simulated users act by, by name of the surface.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        bucket_seconds: float = 60.0,
        problems: Mapping[str, Problem] = MappingProxyType({}),
    ) -> None:
        self._clock = clock
        self._bucket_seconds = bucket_seconds
        self._problems = problems
        self._queue: DueQueue[SurfaceMonitor] = DueQueue(lambda monitor: monitor.task.due_in())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="banditrank-monitor", daemon=True)
        self._thread.start()

    def observe(self, runtime: SurfaceRuntime) -> SurfaceMonitor:
        """Return a monitor of a surface; pass this method to the engine."""
        return SurfaceMonitor(
            runtime,
            self._clock,
            bucket_seconds=self._bucket_seconds,
            problem=self._problems.get(runtime.surface.name),
            on_due=self._queue.mark,
        )

    def of(self, runtime: SurfaceRuntime) -> SurfaceMonitor:
        """Return the monitor of a surface.

        Raises
        ------
        TypeError
            If the engine was created without these monitors.
        """
        observer = runtime.observer
        if not isinstance(observer, SurfaceMonitor):
            raise TypeError(f"surface {runtime.surface.name} is not monitored")
        return observer

    def close(self) -> None:
        """Stop the thread; monitors still observe."""
        self._stop.set()
        self._queue.interrupt()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            for monitor in self._queue.take_due():
                if not (monitor.runtime.is_deleted or self._stop.is_set()):
                    monitor.task.run_if_due()
                    self._queue.mark(monitor)
            if self._queue.wait():
                self._stop.wait(_GATHERING_SECONDS)


def _difference(before: Surface, after: Surface) -> str:
    """Return what was changed about a surface, in a few words.

    Examples
    --------
    >>> before = Surface("home", items=["a", "b", "c", "d", "e"], n_positions=1)
    >>> _difference(before, before.with_retired(["a"]).with_items(["f", "g"]))
    'f and g added, a retired'
    >>> _difference(before, before.with_retired(["a", "b", "c", "d"]))
    'a, b, c and 1 more retired'
    """
    earlier, later = set(before.active_items), set(after.active_items)
    added = [item for item in after.active_items if item not in earlier]
    retired = [item for item in before.active_items if item not in later]
    parts = [
        f"{list_names(names, _MAX_NAMES_LISTED, last=' and ')} {verb}"
        for names, verb in ((added, "added"), (retired, "retired"))
        if names
    ]
    return ", ".join(parts) or "settings changed"
