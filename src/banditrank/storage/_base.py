"""Base class of stores, and the guarantees of an implementation."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Self

from banditrank.errors import UnknownSurfaceError
from banditrank.storage._records import (
    Change,
    CommitResult,
    CommitStatus,
    Event,
    Impression,
    ImpressionId,
    KeyRecord,
    Outcome,
    SavedTimeSeries,
    Snapshot,
    SurfaceRecord,
    Versions,
)


class WriteResult(NamedTuple):
    """Result of writing events of distinct impressions."""

    changes: list[Change]  # one per surface whose counts changed
    existing: Mapping[ImpressionId, Outcome]  # outcomes that were stored before; those that are final stay
    deleted_surfaces: AbstractSet[int]  # surfaces that do not exist: none of their events was written
    pruned: AbstractSet[ImpressionId]  # may have been counted before: none of these was written


class Store(ABC):
    """Storage of surfaces, impressions, outcomes, counts and API keys.

    An implementation guarantees the following. `banditrank.testing._stores` checks what is observable through
    this interface; the tests of each store cover crashes and failures.

    *Durable.* Once `commit`, or a method that changes surfaces or keys, has returned, its effect survives a
    crash of the process and of the machine. The exception is the memory store, which ends with its process.

    *Exactly once.* The first final outcome committed for an impression, by any process, stays, merged with
    the outcomes recorded for it before, and the same transaction adds it to the counts. Repeating a commit,
    in part or as a whole, adds nothing, even after outcomes were pruned.

    *Atomic.* A call that raises has changed nothing, or everything that it was meant to change, so that it is
    safe to repeat. `prune` and `purge_deleted` work in batches, and each batch is atomic.

    *Ordered.* The versions of a surface are 1, 2, 3, … and become visible in this order: a reader that gets a
    change can get all changes before it, also during concurrent writes.

    *Shared.* A store is thread-safe. Several processes may open the same store, except `MemoryStore`.

    *Honest about failure.* Methods raise `StoreUnavailableError` while the store is unreachable, full or too
    slow, and succeed again as soon as it is not.
    """

    # Surfaces

    @abstractmethod
    def create_surface(self, name: str, definition: str, *, cells: bytes = b"") -> SurfaceRecord:
        """Create a surface and return its record.

        Parameters
        ----------
        name
            Name, unique among surfaces.
        definition
            First definition.
        cells
            Counts to start from: the first change, unless empty.

        Raises
        ------
        AlreadyExistsError
            If a surface has this name.
        """

    @abstractmethod
    def find_surface(self, name: str) -> SurfaceRecord | None:
        """Return the surface with a name, None if there is none."""

    def read_surface(self, name: str, *, known: Iterable[str] | None = None) -> SurfaceRecord:
        """Return the surface with a name.

        Parameters
        ----------
        name
            Name of the surface.
        known
            Names that the error may suggest; all names in the store by default.

        Raises
        ------
        UnknownSurfaceError
            If there is none.
        """
        record = self.find_surface(name)
        if record is None:
            names = [other.name for other in self.surfaces()] if known is None else known
            raise UnknownSurfaceError("surface", name, names)
        return record

    @abstractmethod
    def surfaces(self) -> list[SurfaceRecord]:
        """Return all surfaces, sorted by name."""

    @abstractmethod
    def update_surface(self, record: SurfaceRecord, definition: str) -> SurfaceRecord | None:
        """Replace the definition of a surface whose id and revision are still those of a record.

        Returns
        -------
        SurfaceRecord or None
            The new record; None if the surface was updated, deleted or replaced since.
        """

    @abstractmethod
    def definition(self, surface_id: int, *, revision: int) -> str | None:
        """Return the definition of a surface at a revision, None if there is none."""

    @abstractmethod
    def delete_surface(self, name: str) -> bool:
        """Delete a surface; return whether it existed.

        Later events for it are rejected. Its data may remain readable by id until `purge_deleted` removes it.
        """

    # Learning

    def commit(self, events: Sequence[Event], *, at_ms: int = 0) -> CommitResult:
        """Commit a group of events, of any surfaces, in one transaction.

        A second transaction has the events whose impressions were left unchanged by the first, because an
        earlier event of the group contradicts what is stored.

        Parameters
        ----------
        events
            Events; an impression may occur several times.
        at_ms
            Time of the commit.

        Returns
        -------
        CommitResult
            Status of each event, and the changes of the counts.
        """
        if not events:
            return CommitResult([], [])
        merged = _merge_by_impression(events)
        changes, existing, deleted_surfaces, pruned = self._write(merged, at_ms)
        is_new = len(merged) == len(events) and not (existing or deleted_surfaces or pruned)
        if is_new:  # nearly always
            recorded, counted = CommitStatus.RECORDED, CommitStatus.COUNTED
            outcomes = [event.outcome for event in events]
            statuses = [recorded if one is None or not one.is_final else counted for one in outcomes]
            return CommitResult(statuses, changes)
        stored = dict(existing)
        if left := _left_by_contradiction(events, merged, existing):
            written = self._write(_merge_by_impression(left), at_ms)
            changes, stored = [*changes, *written.changes], stored | dict(written.existing)
        statuses = []
        for event in events:
            impression_id = event.impression.id
            if event.impression.surface_id in deleted_surfaces:
                statuses.append(CommitStatus.DELETED)
            elif event.outcome is None:
                statuses.append(CommitStatus.RECORDED)
            elif impression_id in pruned:
                statuses.append(CommitStatus.PRUNED)
            else:
                before = stored.get(impression_id)
                statuses.append(_status(event.outcome, before))
                if before is None or not before.is_final:
                    stored[impression_id] = event.outcome if before is None else before.merge(event.outcome)
        return CommitResult(statuses, changes)

    @abstractmethod
    def _write(self, events: Sequence[Event], at_ms: int) -> WriteResult:
        """Write events of distinct impressions in one transaction.

        An outcome is merged with the one that is stored; a stored outcome that is final stays. Clicks of an
        outcome that is not final are kept, and their impression is pending.
        """

    @abstractmethod
    def outcome(self, surface_id: int, key: bytes) -> Outcome | None:
        """Return the outcome of an impression, None if it has none, is pruned or unknown.

        An outcome that is not final has the clicks so far.
        """

    @abstractmethod
    def versions(self) -> dict[int, Versions]:
        """Return the current versions of each surface, by id; replicas poll them for new changes."""

    @abstractmethod
    def changes(self, surface_id: int, *, after: int, limit: int = 1000) -> list[Change]:
        """Return the first changes after a version, in order.

        A gap after that version means that changes were pruned: the reader continues from the snapshot.
        """

    @abstractmethod
    def snapshot(self, surface_id: int, *, up_to: int | None = None) -> Snapshot:
        """Return the latest snapshot, or the latest up to a version; `EMPTY_SNAPSHOT` if there is none."""

    @abstractmethod
    def save_snapshot(self, surface_id: int, snapshot: Snapshot) -> None:
        """Save the sum of all changes up to a version, unless it is stored already or the surface deleted."""

    @abstractmethod
    def pending_impressions(
        self, surface_id: int, *, since_ms: int, until_ms: int, limit: int = 1000
    ) -> list[Impression]:
        """Return impressions without a final outcome that expire within [since_ms, until_ms), in order."""

    @abstractmethod
    def prune(self, surface_id: int, *, before_ms: int) -> None:
        """Remove what is older than a time; the counts keep its sum.

        Removes impressions that expired before it: the store no longer knows which of them were counted, and
        counts no later outcome. Removes changes up to the latest snapshot saved before it, and earlier
        snapshots. The latest change always stays, so that a replica that is behind finds a gap.

        Works in batches, so that writers do not wait; an error may leave some batches done.
        """

    @abstractmethod
    def time_series(self, surface_id: int) -> SavedTimeSeries | None:
        """Return the time series of a surface, None if there is none."""

    @abstractmethod
    def save_time_series(self, surface_id: int, series: SavedTimeSeries) -> None:
        """Save the time series of a surface, unless one as recent is stored or the surface is deleted."""

    # Secrets and keys

    @abstractmethod
    def secret(self) -> bytes:
        """Return the 32 random bytes that all processes with this store share."""

    @abstractmethod
    def add_key(self, key: KeyRecord) -> None:
        """Add an API key, unless its id is stored already."""

    @abstractmethod
    def api_keys(self) -> list[KeyRecord]:
        """Return all API keys, including revoked ones, oldest first."""

    @abstractmethod
    def revoke_key(self, key_id: str, *, revoked_at_ms: int) -> bool:
        """Revoke an API key; return whether it existed and was not revoked before."""

    # Maintenance

    @abstractmethod
    def check(self) -> None:
        """Check that the store accepts writes.

        Commits a small change as durably as `commit` does, without growing the store: cheap enough for a
        probe every second.

        Raises
        ------
        StoreUnavailableError
            If the store cannot be written to.
        """

    def purge_deleted(self) -> bool:
        """Remove one batch of the data of deleted surfaces; return whether there may be more.

        Stores that remove all data with the surface return False.
        """
        return False

    @abstractmethod
    def close(self) -> None:
        """Close all connections. A closed store cannot be used again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _merge_by_impression(events: Sequence[Event]) -> Sequence[Event]:
    """Return one event for each impression, with its outcomes merged up to the first that is final."""
    if len({event.impression[:2] for event in events}) == len(events):  # nearly always
        return events
    merged: dict[ImpressionId, Event] = {}
    for event in events:
        impression_id = event.impression.id
        earlier = merged.get(impression_id)
        if earlier is None or earlier.outcome is None:
            merged[impression_id] = event
        elif event.outcome is not None and not earlier.outcome.is_final:
            merged[impression_id] = Event(event.impression, earlier.outcome.merge(event.outcome))
    return list(merged.values())


def _left_by_contradiction(
    events: Sequence[Event], merged: Sequence[Event], existing: Mapping[ImpressionId, Outcome]
) -> list[Event]:
    """Return the events that do not contradict the stored outcome, but were merged with one that does."""
    contradicted = {
        event.impression.id: stored
        for event in merged
        if (stored := existing.get(event.impression.id)) is not None
        and event.outcome is not None
        and stored.contradicts(event.outcome)
    }
    return [
        event
        for event in events
        if (stored := contradicted.get(event.impression.id)) is not None
        and event.outcome is not None
        and not stored.contradicts(event.outcome)
    ]


def _status(outcome: Outcome, stored: Outcome | None) -> CommitStatus:
    """Return the status of an outcome, given the one that was stored before it."""
    if stored is not None and stored.is_final:
        return CommitStatus.REPEATED if stored.covers(outcome) else CommitStatus.CONFLICTING
    if stored is not None and stored.contradicts(outcome):
        return CommitStatus.CONFLICTING
    if outcome.is_final:
        return CommitStatus.COUNTED
    is_known = stored is not None and stored.covers(outcome)
    return CommitStatus.REPEATED if is_known else CommitStatus.RECORDED
