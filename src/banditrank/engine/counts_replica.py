"""A surface's counts in this process, kept up to date with the store."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from banditrank.dashboard.time_series import TimeSeries
from banditrank.engine.surface import Surface
from banditrank.errors import PurgedError
from banditrank.counts.counts import Counts
from banditrank.storage.base import Store
from banditrank.storage.cells import Totals
from banditrank.storage.records import Change, Snapshot

_MOST_WAITING = 256  # changes
_CHANGES_A_SNAPSHOT = 1000  # at least


class SurfaceCounts(NamedTuple):
    """The counts of a surface, and what they are of, at one moment."""

    surface: Surface
    revision: int
    version: int
    counts: Counts  # of all items there ever were, in the order of their numbers


class CountsReplica:
    """The sum of all changes up to a version.

    Parameters
    ----------
    store
        Where changes come from.
    number
        The surface's.
    surface
        Its definition, for the size.
    up_to
        A version to stay at; the latest if there is none.
    activity
        The series that is folded from the changes; None if nobody asks for it.
    """

    def __init__(
        self,
        store: Store,
        number: int,
        surface: Surface,
        *,
        up_to: int | None = None,
        time_series: TimeSeries | None = None,
    ) -> None:
        self._store = store
        self._number = number
        self._lock = threading.Lock()
        self._size = {
            "n_user_types": len(surface.user_types),
            "n_items": len(surface.items),
            "n_positions": surface.n_positions,
        }
        self._totals = Totals(**self._size)
        self._waiting: list[Change] = []  # adding several takes as long as one: they wait till asked for
        self._time_series = time_series
        self.version = 0
        self._summed_up = _Extent(0, 0)  # by the latest snapshot that is known here
        self._bytes_since = 0
        self._start_from(store.snapshot(number, up_to=up_to))
        self.catch_up(up_to)
        if up_to is not None and self.version != up_to:
            raise PurgedError(f"counts of version {up_to} were thrown away, later ones are kept")

    def latest_change(self) -> int:
        """Return when the latest of these changes was made, in milliseconds since 1970; 0 if nobody knows."""
        changes = self._store.changes(self._number, after=max(0, self.version - 1), limit=1)
        return changes[0].at if changes else 0

    def learn(self, change: Change) -> bool:
        """Add a change if it is the next one; return whether changes before it are missing."""
        with self._lock:
            if change.version == self.version + 1:
                self._waiting.append(change)
                self._bytes_since += len(change.cells)
                if self._time_series is not None:
                    self._time_series.add(change.at, change.cells)
                self.version = change.version
                if len(self._waiting) >= _MOST_WAITING:
                    self._add_up()
            return change.version > self.version

    def _add_up(self) -> None:
        """Take in the changes that wait; whoever calls has the lock."""
        self._totals.add(b"".join([change.cells for change in self._waiting]))
        self._waiting.clear()

    def catch_up(self, up_to: int | None = None) -> None:
        """Add all changes that the store has, or those up to a version."""
        while changes := self._store.changes(self._number, after=self.version):
            if changes[0].version > self.version + 1:  # those between were thrown away: too far behind
                before = self.version
                self._start_from(self._store.snapshot(self._number, up_to=up_to))
                if self.version == before:
                    return
                continue
            for change in changes:
                if up_to is not None and change.version > up_to:
                    return
                self.learn(change)

    def reach(self, version: int) -> None:
        """Add what the store has, which is known to have counts up to a version."""
        if self.version < version:
            self.catch_up()
        if self.version < version:  # all changes were thrown away: a snapshot stands for them
            self._start_from(self._store.snapshot(self._number))

    def counts(self, surface: Surface, items: tuple[int, ...]) -> tuple[int, Counts]:
        """Return the version, and the counts of some items of a surface, and of its user types.

        They depend on the version and the arguments alone, and not on what was defined since.
        """
        with self._lock:
            self._add_up()
            self._totals.grow(len(surface.user_types), len(surface.items))
            counts = self._totals.counts(items)
            version = self.version
        if counts.n_user_types > (n := len(surface.user_types)):  # types that were added since
            arrivals = counts.arrivals[:n].copy()
            displays, rewards = counts.displays_by_position[:n].copy(), counts.rewards_by_position[:n].copy()
            counts = Counts(displays, rewards, arrivals, int(arrivals.sum()))
        return version, counts

    @property
    def rounds(self) -> int:
        """How many rankings were counted."""
        with self._lock:
            self._add_up()
            return self._totals.rounds

    def known(self, surface: Surface, revision: int) -> SurfaceCounts:
        """Return the counts of all items of a surface."""
        version, counts = self.counts(surface, tuple(range(len(surface.items))))
        return SurfaceCounts(surface, revision, version, counts)

    def cells(self) -> tuple[int, bytes]:
        """Return the version, and all counts as a list of cells."""
        with self._lock:
            self._add_up()
            return self.version, self._totals.cells()

    @contextmanager
    def time_series(self) -> Iterator[TimeSeries]:
        """Give the series to whoever asks, and nobody else meanwhile."""
        with self._lock:
            if self._time_series is None:
                raise AssertionError("no series is folded from these changes")
            yield self._time_series

    @property
    def is_to_save(self) -> bool:
        """Whether a snapshot is worth its room: there is more to add up without it than it holds."""
        many = self.version - self._summed_up.version >= _CHANGES_A_SNAPSHOT
        return many and self._bytes_since >= self._summed_up.size

    def is_summed_up(self) -> bool:
        """Return whether somebody else saved a snapshot since the latest that was known here."""
        theirs = self._store.snapshot(self._number)
        with self._lock:
            return self._take_note(theirs)

    def save(self, saved: int) -> None:
        """Save a snapshot in the store, so that whoever opens it next has less to add up."""
        with self._lock:
            self._add_up()
            history = b"" if self._time_series is None else self._time_series.to_bytes()
            snapshot = Snapshot(self.version, self._totals.cells(), saved, history)
        if snapshot.version > self._summed_up.version:
            self._store.save_snapshot(self._number, snapshot)
            with self._lock:
                self._take_note(snapshot)

    def _take_note(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot is later than the latest that was known; whoever calls has the lock."""
        is_later = snapshot.version > self._summed_up.version
        if is_later:
            self._summed_up = _Extent(snapshot.version, len(snapshot.cells) + len(snapshot.history))
            self._bytes_since = 0
        return is_later

    def _start_from(self, snapshot: Snapshot) -> None:
        totals = Totals(**self._size)
        totals.add(snapshot.cells)
        with self._lock:
            if snapshot.version > self.version:
                self._totals = totals
                self._waiting.clear()
                if self._time_series is not None and snapshot.history:
                    self._time_series.restore(snapshot.history)
                self.version = snapshot.version
                self._take_note(snapshot)


class _Extent(NamedTuple):
    """How far a snapshot goes, and how large it is."""

    version: int
    size: int  # bytes
