"""What SQLite and PostgreSQL have in common: most statements.

Statements are written with PostgreSQL's placeholders.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from banditrank.errors import NameTakenError, StoreUnavailableError
from banditrank.storage.base import Written
from banditrank.storage.cells import cells_of
from banditrank.storage.packing import Piece, packed, unpacked
from banditrank.storage.records import (
    NOTHING,
    Change,
    Entry,
    KeyRecord,
    Outcome,
    Place,
    Snapshot,
    SurfaceRecord,
    Versions,
    by_surface,
    first_key,
)
from banditrank.storage.sql_database import SqlDatabase, Transaction

_NEVER = 1 << 62  # a time that no ranking lapses at
_PORTION = 1000  # rows that are thrown away at once: others who write wait no longer than that takes
_DELETED = "deleted surface "  # begins the name of a setting: what was learned of it is still to be deleted
_PIECES = 64  # that are read at once
_OF_SURFACES = {
    "definitions": "revision",
    "outcomes": "key",
    "shown": "number",
    "changes": "version",
    "snapshots": "version",
}


class SqlStore(SqlDatabase):
    """A store in a database with tables."""

    def _migrate(self, where: str) -> None:
        super()._migrate(where)
        self._sweep()

    # Surfaces

    def create_surface(self, name: str, definition: str, *, cells: bytes = b"") -> SurfaceRecord:
        """Create a surface."""
        with self._transaction() as transaction:
            rows = transaction.run(
                "INSERT INTO surfaces (name, definition, revision, version) VALUES (%s, %s, 1, %s) "
                "ON CONFLICT (name) DO NOTHING RETURNING number",
                [name, definition, 1 if cells else 0],
            )
            if not rows:
                raise NameTakenError("surface", name)
            if cells:
                transaction.run("INSERT INTO changes VALUES (%s, 1, %s, 0)", [rows[0][0], cells])
            return self._keep_definition(transaction, SurfaceRecord(rows[0][0], name, definition, 1))

    def find_surface(self, name: str) -> SurfaceRecord | None:
        """Return a surface."""
        rows = self._read("SELECT number, name, definition, revision FROM surfaces WHERE name = %s", [name])
        return SurfaceRecord(*rows[0]) if rows else None

    def surfaces(self) -> list[SurfaceRecord]:
        """Return all surfaces."""
        rows = self._read("SELECT number, name, definition, revision FROM surfaces")
        return sorted((SurfaceRecord(*row) for row in rows), key=lambda record: record.name)

    def update_surface(self, name: str, definition: str, *, revision: int) -> SurfaceRecord | None:
        """Replace the definition."""
        with self._transaction() as transaction:
            rows = transaction.run(
                "UPDATE surfaces SET definition = %s, revision = revision + 1 "
                "WHERE name = %s AND revision = %s RETURNING number, name, definition, revision",
                [definition, name, revision],
            )
            return self._keep_definition(transaction, SurfaceRecord(*rows[0])) if rows else None

    def _keep_definition(self, transaction: Transaction, record: SurfaceRecord) -> SurfaceRecord:
        values = [record.number, record.revision, record.definition]
        transaction.run("INSERT INTO definitions VALUES (%s, %s, %s)", values)
        return record

    def definition(self, surface: int, *, revision: int) -> str | None:
        """Return the definition at a revision."""
        rows = self._read(
            "SELECT definition FROM definitions WHERE surface = %s AND revision = %s", [surface, revision]
        )
        return rows[0][0] if rows else None

    def delete_surface(self, name: str) -> bool:
        """Delete a surface."""
        with self._transaction() as transaction:
            rows = transaction.run("DELETE FROM surfaces WHERE name = %s RETURNING number", [name])
            for (number,) in rows:
                transaction.run("INSERT INTO settings VALUES (%s, %s)", [f"{_DELETED}{number}", ""])
        if rows:
            with suppress(StoreUnavailableError):  # it is gone; whoever opens the store next goes on sweeping
                self._sweep()
        return bool(rows)

    def _sweep(self) -> None:
        """Delete what is left of surfaces that are gone."""
        for (name,) in self._read("SELECT name FROM settings WHERE name LIKE %s", [f"{_DELETED}%"]):
            number = int(name.removeprefix(_DELETED))
            for table, column in _OF_SURFACES.items():
                self._delete(number, table, column, "1 = 1", [])
            with self._transaction() as transaction:
                transaction.run("DELETE FROM settings WHERE name = %s", [name])

    def _delete(self, surface: int, table: str, column: str, condition: str, values: Sequence[Any]) -> None:
        """Delete rows of a surface, portion by portion."""
        statement = (
            f"DELETE FROM {table} WHERE (surface, {column}) IN (SELECT surface, {column} FROM {table} "  # noqa: S608
            f"WHERE surface = %s AND {condition} ORDER BY {column} LIMIT %s) RETURNING 1"
        )
        deleted = _PORTION
        while deleted == _PORTION:
            with self._transaction() as transaction:
                self._lock_surfaces(transaction, [surface])
                deleted = len(transaction.run(statement, [surface, *values, _PORTION]))

    # Learning

    def _write(self, entries: Sequence[Entry], at: int) -> Written:
        with self._transaction() as transaction:
            # Whoever writes to a surface is alone with it until the commit. So versions have no gap and are
            # committed in their order, and what is read below cannot change before it is used.
            surfaces = {entry.shown.surface for entry in entries}
            there = self._lock_surfaces(transaction, surfaces)
            present = [
                entry for entry in entries if entry.shown.lapses >= there.get(entry.shown.surface, _NEVER)
            ]
            self._note(transaction, [entry for entry in present if entry.outcome is None])
            outcomes = {one.shown.place: one.outcome for one in present if one.outcome is not None}
            new = self._settle(transaction, outcomes)
            before = self._outcomes(transaction, [place for place in outcomes if place not in new])
            changes = self._add_changes(transaction, [one for one in present if one.shown.place in new], at)
            gone = surfaces - there.keys()
            written = {entry.shown.place for entry in present}
            places = {entry.shown.place for entry in entries if entry.shown.surface not in gone}
            return Written(changes, before, gone, places - written)

    def _note(self, transaction: Transaction, entries: Iterable[Entry]) -> None:
        """Write rankings that were shown, those of a surface in one piece."""
        for surface, shown in by_surface(entries).items():
            transaction.run(
                "INSERT INTO shown (surface, first, last, rankings, packed) VALUES (%s, %s, %s, %s, %s)",
                [surface, *packed([entry.shown for entry in shown])],
            )

    @abstractmethod
    def _settle(self, transaction: Transaction, outcomes: Mapping[Place, Outcome]) -> set[Place]:
        """Write outcomes of rankings that have none; return which."""

    def _outcomes(self, transaction: Transaction, places: Iterable[Place]) -> dict[Place, Outcome]:
        """Return what became of rankings, of those that have an outcome."""
        keys: dict[int, list[bytes]] = {}
        for surface, key in places:
            keys.setdefault(surface, []).append(key)
        found = {}
        for surface, asked in keys.items():
            for start in range(0, len(asked), _PORTION):
                some = asked[start : start + _PORTION]
                marks = ", ".join(["%s"] * len(some))
                rows = transaction.run(
                    f"SELECT key, outcome FROM outcomes WHERE surface = %s AND key IN ({marks})",  # noqa: S608
                    [surface, *some],
                )
                found.update({(surface, key): Outcome.from_code(code) for key, code in rows})
        return found

    def _add_changes(self, transaction: Transaction, entries: Iterable[Entry], at: int) -> list[Change]:
        """Add what outcomes that are new mean for the counts."""
        changes = []
        for surface, counted in by_surface(entries).items():
            if cells := cells_of(counted):
                ((version,),) = transaction.run(
                    "UPDATE surfaces SET version = version + 1 WHERE number = %s RETURNING version", [surface]
                )
                changes.append(Change(surface, version, cells, at))
                transaction.run("INSERT INTO changes VALUES (%s, %s, %s, %s)", changes[-1])
        return changes

    def outcome(self, surface: int, key: bytes) -> Outcome | None:
        """Return what became of a ranking."""
        with self._transaction(writes=False) as transaction:
            return self._outcomes(transaction, [(surface, key)]).get((surface, key))

    def versions(self) -> dict[int, Versions]:
        """Return how far each surface is."""
        rows = self._read("SELECT number, revision, version FROM surfaces")
        return {number: Versions(revision, version) for number, revision, version in rows}

    def changes(self, surface: int, *, after: int, limit: int = 1000) -> list[Change]:
        """Return changes after a version."""
        rows = self._read(
            "SELECT surface, version, cells, at FROM changes WHERE surface = %s AND version > %s "
            "ORDER BY version LIMIT %s",
            [surface, after, limit],
        )
        return [Change(*row) for row in rows]

    def snapshot(self, surface: int, *, up_to: int | None = None) -> Snapshot:
        """Return the latest snapshot that is not after a version."""
        rows = self._read(
            "SELECT version, cells, saved, history FROM snapshots WHERE surface = %s AND version <= %s "
            "ORDER BY version DESC LIMIT 1",
            [surface, (1 << 62) if up_to is None else up_to],
        )
        for version, cells, saved, history in rows:
            return Snapshot(version, cells, saved, history or b"")
        return NOTHING

    def save_snapshot(self, surface: int, snapshot: Snapshot) -> None:
        """Keep a snapshot."""
        with self._transaction() as transaction:
            self._lock_surfaces(transaction, [surface])
            transaction.run(
                "INSERT INTO snapshots SELECT number, %s, %s, %s, %s FROM surfaces WHERE number = %s "
                "ON CONFLICT (surface, version) DO NOTHING",
                [*snapshot, surface],
            )

    def open_entries(self, surface: int, *, since: int, until: int, limit: int = 1000) -> list[Entry]:
        """Return rankings without an outcome that lapse within a time; throw away pieces without any."""
        begin, end = first_key(since), first_key(until)
        found: dict[bytes, Entry] = {}
        finished: list[int] = []
        for number, piece in self._pieces(surface, begin, end):
            if len(found) >= limit and piece.first > sorted(found)[limit - 1]:
                break
            shown = unpacked(surface, piece)
            with self._transaction(writes=False) as transaction:
                settled = self._outcomes(transaction, [one.place for one in shown])
            still_open = [one for one in shown if one.place not in settled]
            if not still_open:
                finished.append(number)
            found.update({one.key: Entry(one, None) for one in still_open if begin <= one.key < end})
        if finished:
            self._remove_pieces(finished)
        return [found[key] for key in sorted(found)[:limit]]

    def _pieces(self, surface: int, begin: bytes, end: bytes) -> Iterator[tuple[int, Piece]]:
        """Give pieces of what was shown, with their numbers: those with keys in [begin, end), in order."""
        statement = (
            "SELECT number, first, last, rankings, packed FROM shown WHERE surface = %s "
            "AND last >= %s AND first < %s AND (first, number) > (%s, %s) ORDER BY first, number LIMIT %s"
        )
        after = (b"", 0)
        while rows := self._read(statement, [surface, begin, end, *after, _PIECES]):
            for number, *piece in rows:
                yield number, Piece(*piece)
            after = (rows[-1][1], rows[-1][0])

    def _remove_pieces(self, numbers: Sequence[int]) -> None:
        with suppress(StoreUnavailableError), self._transaction() as transaction:  # the next who looks will
            for number in numbers:
                transaction.run("DELETE FROM shown WHERE number = %s", [number])

    def forget(self, surface: int, *, before: int) -> None:
        """Throw away what is old."""
        rows = self._read(
            "SELECT max(version) FROM snapshots WHERE surface = %s AND saved < %s", [surface, before]
        )
        version = rows[0][0] or 0
        summed = "version <= %s AND version < (SELECT version FROM surfaces WHERE number = %s)"
        self._forget_rankings(surface, before)
        self._delete(surface, "snapshots", "version", "version < %s", [version])
        self._delete(surface, "changes", "version", summed, [version, surface])

    def _forget_rankings(self, surface: int, before: int) -> None:
        end = first_key(before)
        with self._transaction() as transaction:
            self._lock_surfaces(transaction, [surface])
            transaction.run(
                "UPDATE surfaces SET forgotten = %s WHERE number = %s AND forgotten < %s",
                [before, surface, before],
            )
            for number, *columns in transaction.run(
                "SELECT number, first, last, rankings, packed FROM shown "
                "WHERE surface = %s AND first < %s AND last >= %s",
                [surface, end, end],
            ):
                transaction.run("DELETE FROM shown WHERE number = %s", [number])
                left = [Entry(one, None) for one in unpacked(surface, Piece(*columns)) if one.key >= end]
                self._note(transaction, left)
        self._delete(surface, "shown", "number", "last < %s", [end])
        self._delete(surface, "outcomes", "key", "key < %s", [end])

    # Keys

    def add_key(self, key: KeyRecord) -> None:
        """Keep an API key."""
        with self._transaction() as transaction:
            transaction.run(
                "INSERT INTO keys VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING",
                [key.id, key.name, " ".join(key.rights), key.digest, key.created, key.revoked],
            )

    def api_keys(self) -> list[KeyRecord]:
        """Return all API keys."""
        rows = self._read("SELECT id, name, rights, digest, created, revoked FROM keys ORDER BY created, id")
        return [
            KeyRecord(key, name, tuple(rights.split()), digest, created, revoked)
            for key, name, rights, digest, created, revoked in rows
        ]

    def revoke_key(self, key_id: str, *, at: int) -> bool:
        """Revoke a key."""
        with self._transaction() as transaction:
            return bool(
                transaction.run(
                    "UPDATE keys SET revoked = %s WHERE id = %s AND revoked IS NULL RETURNING id",
                    [at, key_id],
                )
            )
