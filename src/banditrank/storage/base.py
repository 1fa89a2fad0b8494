"""What a store guarantees."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Self

from banditrank.storage.records import (
    Change,
    Event,
    KeyRecord,
    Outcome,
    ImpressionId,
    CommitResult,
    Snapshot,
    SurfaceRecord,
    CommitStatus,
    Versions,
)


class WriteResult(NamedTuple):
    """What came of writing entries of different rankings, beside that all of them were written."""

    changes: list[Change]  # one for each surface to whose counts something was added
    before_ms: Mapping[ImpressionId, Outcome]  # of rankings that had an outcome already: it stays
    gone: AbstractSet[int]  # surfaces that are not there: nothing was written of theirs
    forgotten: AbstractSet[ImpressionId]  # rankings that had an outcome perhaps: nothing was written of these either


class Store(ABC):
    """Where surfaces, the outcomes of rankings and counts are kept.

    What an implementation guarantees. `banditrank.testing.stores` checks it as far as one can who only calls
    the store; that it survives being killed, and is honest when it fails, each store's own tests show.

    *Durable.* When `commit`, or a method that changes surfaces or keys, has returned, what it did survives
    the death of the process and of the machine. Only the memory store is gone with its process.

    *Once.* A ranking is settled by the first outcome committed for it, in whichever process; its counts are
    added in the same transaction. Repeating a commit, in part or as a whole, adds nothing, also after
    outcomes were forgotten.

    *All or nothing.* A call that raises has changed nothing, or all that it was to change: it is safe to
    repeat it.

    *In order.* Versions of a surface are 1, 2, 3, … Whoever reads changes up to a version has all changes
    up to it, also while others write.

    *Shared.* Any number of threads may use one store. Any number of processes may open the same one, but for
    the memory store.

    *Honest.* If the store cannot be reached, is full or too slow, methods raise `StoreUnavailableError`, and
    work again when it can.
    """

    # Surfaces

    @abstractmethod
    def create_surface(self, name: str, definition: str, *, cells: bytes = b"") -> SurfaceRecord:
        """Create a surface, or raise `AlreadyExistsError`. Cells, if there are any, are its first change."""

    @abstractmethod
    def find_surface(self, name: str) -> SurfaceRecord | None:
        """Return a surface, None if there is none of this name."""

    @abstractmethod
    def surfaces(self) -> list[SurfaceRecord]:
        """Return all surfaces, by name."""

    @abstractmethod
    def update_surface(self, before_ms: SurfaceRecord, definition: str) -> SurfaceRecord | None:
        """Replace the definition of a surface that is still of the number and revision that a record says.

        Returns None if it is not: somebody else changed or deleted it, or made another of the same name.
        """

    @abstractmethod
    def definition(self, surface_id: int, *, revision: int) -> str | None:
        """Return the definition that a surface had at a revision, None if there is none."""

    @abstractmethod
    def delete_surface(self, name: str) -> bool:
        """Delete a surface; return whether there was one.

        Nothing is counted for it any more. What was learned of it is gone at once or by and by, with `purge_deleted`;
        until then it is found by whoever knows the number.
        """

    # Learning

    def commit(self, events: Sequence[Event], *, at_ms: int = 0) -> CommitResult:
        """Write what was shown and what became of it, of any surfaces, at once.

        Parameters
        ----------
        entries
            What to write.
        at
            When, in milliseconds since 1970.
        """
        if not events:
            return CommitResult([], [])
        decisive: dict[ImpressionId, Event] = {}  # of each ranking, the first with an outcome
        for event in events:
            place = event.shown.place
            if decisive.setdefault(place, event).outcome is None:
                decisive[place] = event
        changes, before_ms, gone, forgotten = self._write(list(decisive.values()), at_ms)
        if len(decisive) == len(events) and not (before_ms or gone or forgotten):  # nearly always
            told = [CommitStatus.RECORDED if event.outcome is None else CommitStatus.COUNTED for event in events]
            return CommitResult(told, changes)
        statuses = []
        for event in events:
            place = event.shown.place
            if event.shown.surface_id in gone:
                statuses.append(CommitStatus.DELETED)
            elif event.outcome is None:
                statuses.append(CommitStatus.RECORDED)
            elif place in forgotten:
                statuses.append(CommitStatus.PRUNED)
            elif event is decisive[place] and place not in before_ms:
                statuses.append(CommitStatus.COUNTED)
            else:
                counted = before_ms.get(place, decisive[place].outcome)
                statuses.append(CommitStatus.REPEATED if event.outcome == counted else CommitStatus.CONFLICTING)
        return CommitResult(statuses, changes)

    @abstractmethod
    def _write(self, events: Sequence[Event], at_ms: int) -> WriteResult:
        """Write entries of different rankings in one transaction."""

    @abstractmethod
    def outcome(self, surface_id: int, key: bytes) -> Outcome | None:
        """Return what became of a ranking, None if that is open or not known."""

    @abstractmethod
    def versions(self) -> dict[int, Versions]:
        """Return how far each surface is, by number: what a replica looks at to know whether it is behind."""

    @abstractmethod
    def changes(self, surface_id: int, *, after: int, limit: int = 1000) -> list[Change]:
        """Return the first changes after a version, in order.

        If the first is not the very next, those between were forgotten: begin anew with the snapshot.
        """

    @abstractmethod
    def snapshot(self, surface_id: int, *, up_to: int | None = None) -> Snapshot:
        """Return the latest snapshot, or the latest up to a version; version 0 if there is none."""

    @abstractmethod
    def save_snapshot(self, surface_id: int, snapshot: Snapshot) -> None:
        """Keep the sum of all changes up to a version, if the surface still exists; readers begin there."""

    @abstractmethod
    def pending_impressions(self, surface_id: int, *, since_ms: int, until_ms: int, limit: int = 1000) -> list[Event]:
        """Return rankings without an outcome that lapse within [since, until), in milliseconds since 1970."""

    @abstractmethod
    def prune(self, surface_id: int, *, before_ms: int) -> None:
        """Throw away what is older than a time in milliseconds since 1970, and stays in the counts.

        Rankings that lapsed before it: nothing that comes for them is counted any more, for nobody knows
        whether it was before. Changes up to the latest snapshot that was saved before it, and snapshots
        before that one; but never the latest change, so that whoever is behind sees a gap.

        This is done in portions, for others not to wait: if it raises, a part may have been done.
        """

    # Secrets and keys

    @abstractmethod
    def secret(self) -> bytes:
        """Return 32 random bytes, the same for all who open this store."""

    @abstractmethod
    def add_key(self, key: KeyRecord) -> None:
        """Keep an API key; again is as good as once."""

    @abstractmethod
    def api_keys(self) -> list[KeyRecord]:
        """Return all API keys, revoked ones included, oldest first."""

    @abstractmethod
    def revoke_key(self, key_id: str, *, at_ms: int) -> bool:
        """Revoke a key; return whether there was one in force."""

    # The store itself

    @abstractmethod
    def check(self) -> None:
        """Raise `StoreUnavailableError` unless the store can be written to.

        Commits a small change as durably as `commit` does, and takes no more room each time: cheap enough
        for a probe every second.
        """

    def purge_deleted(self) -> bool:
        """Throw away some of what is left of deleted surfaces; return whether there may be more.

        To be called now and then: however much there is, nobody waits for all of it. A store that throws it
        away at once has nothing to do.
        """
        return False

    @abstractmethod
    def close(self) -> None:
        """Let go of all connections. A store that is closed is not used again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
