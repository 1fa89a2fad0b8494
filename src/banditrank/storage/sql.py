"""What SQLite and PostgreSQL have in common: most statements.

Statements are written with PostgreSQL's placeholders.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from banditrank.errors import AlreadyExistsError
from banditrank.storage.base import WriteResult
from banditrank.storage.cells import cells_of
from banditrank.storage.records import (
    EMPTY_SNAPSHOT,
    Change,
    Event,
    KeyRecord,
    Outcome,
    ImpressionId,
    Snapshot,
    SurfaceRecord,
    Versions,
    group_by_surface,
    is_storable,
)
from banditrank.storage.sql_database import Transaction
from banditrank.storage.sql_forgetting import SqlForgetting

_NEVER = 1 << 62  # a time that no ranking lapses at


class SqlStore(SqlForgetting):
    """A store in a database with tables."""

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
                raise AlreadyExistsError("surface", name)
            if cells:
                transaction.run("INSERT INTO changes VALUES (%s, 1, %s, 0)", [rows[0][0], cells])
            return self._keep_definition(transaction, SurfaceRecord(rows[0][0], name, definition, 1))

    def find_surface(self, name: str) -> SurfaceRecord | None:
        """Return a surface."""
        if not is_storable(name):
            return None
        rows = self._read("SELECT number, name, definition, revision FROM surfaces WHERE name = %s", [name])
        return SurfaceRecord(*rows[0]) if rows else None

    def surfaces(self) -> list[SurfaceRecord]:
        """Return all surfaces."""
        rows = self._read("SELECT number, name, definition, revision FROM surfaces")
        return sorted((SurfaceRecord(*row) for row in rows), key=lambda record: record.name)

    def update_surface(self, before: SurfaceRecord, definition: str) -> SurfaceRecord | None:
        """Replace the definition."""
        with self._transaction() as transaction:
            rows = transaction.run(
                "UPDATE surfaces SET definition = %s, revision = revision + 1 "
                "WHERE number = %s AND revision = %s RETURNING number, name, definition, revision",
                [definition, before.number, before.revision],
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

    # Learning

    def _write(self, events: Sequence[Event], at: int) -> WriteResult:
        with self._transaction() as transaction:
            # Whoever writes to a surface is alone with it until the commit. So versions have no gap and are
            # committed in their order, and what is read below cannot change before it is used.
            surfaces = {event.shown.surface for event in events}
            there = self._lock_surfaces(transaction, surfaces)
            present = [
                event for event in events if event.shown.expires_at_ms >= there.get(event.shown.surface, _NEVER)
            ]
            self._note(transaction, [event for event in present if event.outcome is None])
            outcomes = {one.shown.place: one.outcome for one in present if one.outcome is not None}
            new = self._settle(transaction, outcomes)
            before = self._outcomes(transaction, [place for place in outcomes if place not in new])
            changes = self._add_changes(transaction, [one for one in present if one.shown.place in new], at)
            gone = surfaces - there.keys()
            written = {event.shown.place for event in present}
            places = {event.shown.place for event in events if event.shown.surface not in gone}
            return WriteResult(changes, before, gone, places - written)

    @abstractmethod
    def _settle(self, transaction: Transaction, outcomes: Mapping[ImpressionId, Outcome]) -> set[ImpressionId]:
        """Write outcomes of rankings that have none; return which."""

    def _add_changes(self, transaction: Transaction, events: Iterable[Event], at: int) -> list[Change]:
        """Add what outcomes that are new mean for the counts."""
        changes = []
        for surface, counted in group_by_surface(events).items():
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
        return EMPTY_SNAPSHOT

    def save_snapshot(self, surface: int, snapshot: Snapshot) -> None:
        """Keep a snapshot."""
        with self._transaction() as transaction:
            self._lock_surfaces(transaction, [surface])
            transaction.run(
                "INSERT INTO snapshots SELECT number, %s, %s, %s, %s FROM surfaces WHERE number = %s "
                "ON CONFLICT (surface, version) DO NOTHING",
                [*snapshot, surface],
            )

    # Keys

    def add_key(self, key: KeyRecord) -> None:
        """Keep an API key."""
        with self._transaction() as transaction:
            transaction.run(
                "INSERT INTO keys (id, name, rights, digest, created, revoked, expires_at_ms, surfaces) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING",
                [
                    *(key.id, key.name, " ".join(key.rights), key.digest, key.created, key.revoked),
                    *(key.expires_at_ms, " ".join(key.surfaces)),
                ],
            )

    def api_keys(self) -> list[KeyRecord]:
        """Return all API keys."""
        rows = self._read(
            "SELECT id, name, rights, digest, created, revoked, expires_at_ms, surfaces FROM keys "
            "ORDER BY created, id"
        )
        return [
            KeyRecord(
                key, name, tuple(rights.split()), digest, created, revoked, expires, tuple(surfaces.split())
            )
            for key, name, rights, digest, created, revoked, expires, surfaces in rows
        ]

    def revoke_key(self, key_id: str, *, at: int) -> bool:
        """Revoke a key."""
        if not is_storable(key_id):
            return False
        with self._transaction() as transaction:
            return bool(
                transaction.run(
                    "UPDATE keys SET revoked = %s WHERE id = %s AND revoked IS NULL RETURNING id",
                    [at, key_id],
                )
            )
