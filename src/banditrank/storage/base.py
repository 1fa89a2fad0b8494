"""What a store guarantees."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from banditrank.storage.records import (
    Change,
    Entry,
    KeyRecord,
    Outcome,
    Receipt,
    Snapshot,
    SurfaceRecord,
    Verdict,
    Versions,
)


class Recorded(NamedTuple):
    """What a store holds of a ranking after an entry was written."""

    outcome: Outcome | None  # None while it is open
    new: bool  # whether this entry settled it


class Store(ABC):
    """Where surfaces, the outcomes of rankings and counts are kept.

    What an implementation guarantees, and `banditrank.testing.stores` checks:

    *Durable.* When `commit`, or a method that changes surfaces or keys, has returned, what it did survives
    the death of the process and of the machine. Only the memory store is gone with its process.

    *Once.* A ranking is settled by the first outcome committed for it, in whichever process; its counts are
    added in the same transaction. Repeating a commit, in part or as a whole, adds nothing.

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
        """Create a surface, or raise `NameTakenError`. Cells, if there are any, are its first change."""

    @abstractmethod
    def find_surface(self, name: str) -> SurfaceRecord | None:
        """Return a surface, None if there is none of this name."""

    @abstractmethod
    def surfaces(self) -> list[SurfaceRecord]:
        """Return all surfaces, by name."""

    @abstractmethod
    def update_surface(self, name: str, definition: str, *, revision: int) -> SurfaceRecord | None:
        """Replace the definition, if the surface exists and its revision is still the one given.

        Returns None if it is not: somebody else changed or deleted it.
        """

    @abstractmethod
    def definition(self, surface: int, *, revision: int) -> str | None:
        """Return the definition that a surface had at a revision, None if there is none."""

    @abstractmethod
    def delete_surface(self, name: str) -> bool:
        """Delete a surface and all that is known of it; return whether there was one."""

    # Learning

    def commit(self, entries: Sequence[Entry], *, at: int = 0) -> Receipt:
        """Write what was shown and what became of it, of any surfaces, at once.

        Parameters
        ----------
        entries
            What to write.
        at
            When, in milliseconds since 1970.
        """
        if not entries:
            return Receipt([], [])
        unique: dict[Any, Entry] = {}
        for entry in entries:
            place = entry.shown[:2]  # the surface and the key
            before = unique.setdefault(place, entry)
            if before.outcome is None:
                unique[place] = entry
        recorded, changes = self._write(list(unique.values()), at)
        if len(unique) == len(entries):  # nearly always
            told = [_verdict(*both, settled_by=both[0]) for both in zip(entries, recorded, strict=True)]
            return Receipt(told, changes)
        by_place = dict(zip(unique, recorded, strict=True))
        places = [entry.shown[:2] for entry in entries]
        verdicts = [
            _verdict(entry, by_place[place], settled_by=unique[place])
            for entry, place in zip(entries, places, strict=True)
        ]
        return Receipt(verdicts, changes)

    @abstractmethod
    def _write(self, entries: Sequence[Entry], at: int) -> tuple[list[Recorded | None], list[Change]]:
        """Write entries of different rankings in one transaction.

        Returns for each what is now recorded, None if its surface is gone; and for each surface with
        outcomes that are new the change that was added to its counts, if any.
        """

    @abstractmethod
    def outcome(self, surface: int, key: bytes) -> Outcome | None:
        """Return what became of a ranking, None if that is open or not known."""

    @abstractmethod
    def versions(self) -> dict[int, Versions]:
        """Return how far each surface is, by number: what a replica looks at to know whether it is behind."""

    @abstractmethod
    def changes(self, surface: int, *, after: int, limit: int = 1000) -> list[Change]:
        """Return the first changes after a version, in order.

        If the first is not the very next, those between were forgotten: begin anew with the snapshot.
        """

    @abstractmethod
    def snapshot(self, surface: int, *, up_to: int | None = None) -> Snapshot:
        """Return the latest snapshot, or the latest up to a version; version 0 if there is none."""

    @abstractmethod
    def save_snapshot(self, surface: int, snapshot: Snapshot) -> None:
        """Keep the sum of all changes up to a version, if the surface still exists; readers begin there."""

    @abstractmethod
    def open_entries(self, surface: int, *, since: int, until: int, limit: int = 1000) -> list[Entry]:
        """Return rankings without an outcome that lapse within [since, until), in milliseconds since 1970."""

    @abstractmethod
    def forget(self, surface: int, *, before: int) -> None:
        """Throw away what is older than a time in milliseconds since 1970, and stays in the counts.

        Settled rankings that lapsed before it: a repeated feedback is no longer known as such. Changes up to
        the latest snapshot that was saved before it, and snapshots before that one; but never the latest
        change, so that whoever is behind sees a gap.

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
    def revoke_key(self, key_id: str, *, at: int) -> bool:
        """Revoke a key; return whether there was one in force."""

    # The store itself

    @abstractmethod
    def check(self) -> None:
        """Raise `StoreUnavailableError` unless the store can be written to."""

    @abstractmethod
    def close(self) -> None:
        """Let go of all connections. A store that is closed is not used again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _verdict(entry: Entry, recorded: Recorded | None, *, settled_by: Entry) -> Verdict:
    if recorded is None:
        return Verdict.GONE
    if entry.outcome is None:
        return Verdict.NOTED
    if recorded.new and entry is settled_by:
        return Verdict.COUNTED
    return Verdict.REPEATED if recorded.outcome == entry.outcome else Verdict.CONTRADICTED
