"""A surface's counts in this process, kept up to date with the store."""

import threading

from banditrank.engine.surface import Surface
from banditrank.statistics.counts import Counts
from banditrank.storage.base import Store
from banditrank.storage.cells import Totals
from banditrank.storage.records import Change, Snapshot


class Learned:
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
    """

    def __init__(self, store: Store, number: int, surface: Surface, *, up_to: int | None = None) -> None:
        self._store = store
        self._number = number
        self._lock = threading.Lock()
        self._totals = Totals(
            n_user_types=len(surface.user_types), n_items=len(surface.items), n_positions=surface.n_positions
        )
        snapshot = store.snapshot(number, up_to=up_to)
        self._totals.add(snapshot.cells)
        self.version = snapshot.version
        self.snapshot_version = snapshot.version
        self.catch_up(up_to)

    def learn(self, change: Change) -> bool:
        """Add a change if it is the next one; return whether changes before it are missing."""
        with self._lock:
            if change.version == self.version + 1:
                self._totals.add(change.cells)
                self.version = change.version
            return change.version > self.version

    def catch_up(self, up_to: int | None = None) -> None:
        """Add all changes that the store has, or those up to a version."""
        while True:
            changes = self._store.changes(self._number, after=self.version)
            for change in changes:
                if up_to is not None and change.version > up_to:
                    return
                self.learn(change)
            if not changes:
                return

    def grow(self, surface: Surface) -> None:
        """Make room for user types and items that were added."""
        with self._lock:
            self._totals.grow(len(surface.user_types), len(surface.items))

    def counts(self, items: tuple[int, ...]) -> tuple[int, Counts]:
        """Return the version, and the counts of some items."""
        with self._lock:
            return self.version, self._totals.counts(items)

    def save(self, saved: int) -> None:
        """Save a snapshot in the store, so that whoever opens it next has less to add up."""
        with self._lock:
            snapshot = Snapshot(self.version, self._totals.cells(), saved)
        if snapshot.version > self.snapshot_version:
            self._store.save_snapshot(self._number, snapshot)
            self.snapshot_version = snapshot.version
