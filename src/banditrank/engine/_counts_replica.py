"""A surface's counts in this process, kept in step with the store."""

import threading
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from banditrank.counts._counts import Counts
from banditrank.engine._surface import Surface
from banditrank.errors import PrunedError
from banditrank.storage._base import Store
from banditrank.storage._cells import ArmSums, Totals
from banditrank.storage._records import Change, Snapshot

_MAX_PENDING = 256  # changes
_MIN_CHANGES_PER_SNAPSHOT = 1000


class SurfaceCounts(NamedTuple):
    """The counts of a surface, with its definition at the same moment."""

    surface: Surface
    revision: int
    version: int
    counts: Counts  # of all items, retired ones included, in the order of their numbers
    before_guarantees: Counts | None = None  # of visits before the guarantees took effect


class CountsReplica:
    """Sum of all changes up to a version. Thread-safe.

    Parameters
    ----------
    store, surface_id
        Where changes are read.
    surface
        The surface's definition, for the sizes.
    up_to
        Version to stop at; the latest by default.
    on_change
        Called with every change that is applied, in order of versions; not with those behind a snapshot.

    Raises
    ------
    PrunedError
        If the counts of version `up_to` are no longer stored.
    """

    def __init__(
        self,
        store: Store,
        surface_id: int,
        surface: Surface,
        *,
        up_to: int | None = None,
        on_change: Callable[[Change], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._surface_id = surface_id
        self._on_change = on_change
        self._lock = threading.Lock()
        self._sizes = {
            "n_user_types": len(surface.user_types),
            "n_items": len(surface.items),
            "n_positions": surface.n_positions,
        }
        self._totals = Totals(**self._sizes)
        self._pending: list[
            Change
        ] = []  # adding several takes as long as one: they wait until counts are read
        self.version = 0
        self._latest_snapshot = _SnapshotSize(0, 0)  # that this process knows of
        self._bytes_since_snapshot = 0
        self._restore(store.snapshot(surface_id, up_to=up_to))
        self.catch_up(up_to)
        if up_to is not None and self.version != up_to:
            raise PrunedError(f"counts of version {up_to} were pruned")

    def last_committed_at_ms(self) -> int:
        """Return the time of the latest change, in milliseconds since 1970; 0 if it is unknown."""
        changes = self._store.changes(self._surface_id, after=max(0, self.version - 1), limit=1)
        return changes[0].committed_at_ms if changes else 0

    def apply(self, change: Change) -> bool:
        """Apply a change if it is the next one; return whether changes before it are missing."""
        with self._lock:
            if change.version == self.version + 1:
                self._pending.append(change)
                self._bytes_since_snapshot += len(change.cells)
                self.version = change.version  # before the callback, which may schedule work by it
                self._on_change(change)
                if len(self._pending) >= _MAX_PENDING:
                    self._add_pending()
            return change.version > self.version

    def _add_pending(self) -> None:
        """Add the pending changes to the totals; the caller holds the lock."""
        self._totals.add(b"".join([change.cells for change in self._pending]))
        self._pending.clear()

    def catch_up(self, up_to: int | None = None) -> None:
        """Apply all changes in the store, or those up to a version."""
        while changes := self._store.changes(self._surface_id, after=self.version):
            if changes[0].version > self.version + 1:  # the changes in between were pruned
                before = self.version
                self._restore(self._store.snapshot(self._surface_id, up_to=up_to))
                if self.version == before:
                    return
                continue
            for change in changes:
                if up_to is not None and change.version > up_to:
                    return
                self.apply(change)

    def reach(self, version: int) -> None:
        """Catch up with a store that is known to have counts up to a version."""
        if self.version < version:
            self.catch_up()
        if self.version < version:  # all changes were pruned: a snapshot replaces them
            self._restore(self._store.snapshot(self._surface_id))

    def counts(
        self, surface: Surface, items: tuple[int, ...], codes: Collection[int] | None = None
    ) -> tuple[int, Counts]:
        """Return the version, and the counts of some items and of the surface's user types.

        They depend on the version and the arguments alone, not on later definitions.

        Parameters
        ----------
        surface
            Definition of the surface.
        items
            Numbers of the items.
        codes
            Codes of the arms whose visits are included; all by default.
        """
        version, (counts,) = self.counts_by_codes(surface, items, (codes,))
        return version, counts

    def counts_by_codes(
        self, surface: Surface, items: tuple[int, ...], groups: Sequence[Collection[int] | None]
    ) -> tuple[int, list[Counts]]:
        """Return the version, and what `counts` returns for each group of codes, at the same version."""
        with self._lock:
            self._add_pending()
            self._totals.grow(len(surface.user_types), len(surface.items))
            counts = [self._totals.counts(items, codes) for codes in groups]
            version = self.version
        return version, [_of_user_types(one, len(surface.user_types)) for one in counts]

    def arm_sums(self, surface: Surface, codes: Sequence[int]) -> tuple[int, list[ArmSums]]:
        """Return the version, and the sums over the visits with each code, by the surface's user types."""
        n = len(surface.user_types)
        with self._lock:
            self._add_pending()
            self._totals.grow(n, len(surface.items))
            sums = [self._totals.arm_sums(code) for code in codes]
            version = self.version
        return version, [ArmSums(one.visits[:n], one.rewards[:n], one.squared_rewards[:n]) for one in sums]

    @property
    def rounds(self) -> int:
        """Number of counted rankings."""
        with self._lock:
            self._add_pending()
            return self._totals.rounds

    def surface_counts(self, surface: Surface, revision: int) -> SurfaceCounts:
        """Return the counts of all items of a surface."""
        version, counts = self.counts(surface, tuple(range(len(surface.items))))
        return SurfaceCounts(surface, revision, version, counts)

    @classmethod
    def earliest_counts(cls, store: Store, surface_id: int, surface: Surface, *, since: int) -> Counts | None:
        """Return the counts of a version, or of the earliest one after it that is still stored.

        Parameters
        ----------
        store, surface_id, surface
            As for the replica.
        since
            The version.

        Returns
        -------
        Counts
            Of all items; None if none are stored apart from the latest.
        """
        first = store.changes(surface_id, after=since, limit=1)
        later = [one.version - is_before for one in first for is_before in (1, 0)]  # the latest always stays
        for version in dict.fromkeys((since, *later)):
            try:
                replica = cls(store, surface_id, surface, up_to=version)
            except PrunedError:
                continue
            return replica.counts(surface, tuple(range(len(surface.items))))[1]
        return None

    def cells(self) -> tuple[int, bytes]:
        """Return the version, and all counts as encoded cells."""
        with self._lock:
            self._add_pending()
            return self.version, self._totals.cells()

    @property
    def is_snapshot_due(self) -> bool:
        """Whether a snapshot saves more reading than it costs to store."""
        n_changes = self.version - self._latest_snapshot.version
        return (
            n_changes >= _MIN_CHANGES_PER_SNAPSHOT
            and self._bytes_since_snapshot >= self._latest_snapshot.n_bytes
        )

    def has_newer_snapshot(self) -> bool:
        """Return whether another process saved a snapshot since the latest known one."""
        snapshot = self._store.snapshot(self._surface_id)
        with self._lock:
            return self._register(snapshot)

    def save_snapshot(self, saved_at_ms: int) -> None:
        """Save a snapshot, from which the next process to open the surface starts."""
        with self._lock:
            self._add_pending()
            snapshot = Snapshot(self.version, self._totals.cells(), saved_at_ms)
        if snapshot.version > self._latest_snapshot.version:
            self._store.save_snapshot(self._surface_id, snapshot)
            with self._lock:
                self._register(snapshot)

    def _register(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot is newer than the latest known one; the caller holds the lock."""
        is_newer = snapshot.version > self._latest_snapshot.version
        if is_newer:
            self._latest_snapshot = _SnapshotSize(snapshot.version, len(snapshot.cells))
            self._bytes_since_snapshot = 0
        return is_newer

    def _restore(self, snapshot: Snapshot) -> None:
        totals = Totals(**self._sizes)
        totals.add(snapshot.cells)
        with self._lock:
            if snapshot.version > self.version:
                self._totals = totals
                self._pending.clear()
                self.version = snapshot.version
                self._register(snapshot)


def _of_user_types(counts: Counts, n_user_types: int) -> Counts:
    """Return counts without the user types that were added since."""
    if counts.n_user_types <= n_user_types:
        return counts
    arrivals = counts.arrivals[:n_user_types].copy()
    displays = counts.displays_by_position[:n_user_types].copy()
    rewards = counts.rewards_by_position[:n_user_types].copy()
    return Counts(displays, rewards, arrivals, int(arrivals.sum()))


class _SnapshotSize(NamedTuple):
    """Version and size of a snapshot."""

    version: int
    n_bytes: int
