"""What SQLite and PostgreSQL have in common: the tables, and most statements.

Statements are written with PostgreSQL's placeholders.
"""

import secrets
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from banditrank.errors import NameTakenError, StoreError
from banditrank.storage.base import Store
from banditrank.storage.cells import cells_of
from banditrank.storage.records import (
    NOTHING,
    Change,
    Entry,
    KeyRecord,
    Outcome,
    Shown,
    Snapshot,
    SurfaceRecord,
    Versions,
    first_key,
)

# Steps from an empty database to the present schema; BYTES and SERIAL differ between databases. A step that
# was released is never changed: a store made by an older version is brought up to date by the steps after it.
MIGRATIONS = (
    """
    CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE surfaces (
        number SERIAL,
        name TEXT NOT NULL UNIQUE,
        definition TEXT NOT NULL,
        revision BIGINT NOT NULL,
        version BIGINT NOT NULL
    );
    CREATE TABLE definitions (
        surface BIGINT NOT NULL,
        revision BIGINT NOT NULL,
        definition TEXT NOT NULL,
        PRIMARY KEY (surface, revision)
    );
    CREATE TABLE rankings (
        surface BIGINT NOT NULL,
        key BYTES NOT NULL,
        ranking BYTES NOT NULL,
        outcome BIGINT,
        PRIMARY KEY (surface, key)
    ) CLUSTERED;
    CREATE TABLE changes (
        surface BIGINT NOT NULL,
        version BIGINT NOT NULL,
        cells BYTES NOT NULL,
        PRIMARY KEY (surface, version)
    ) CLUSTERED;
    CREATE TABLE snapshots (
        surface BIGINT NOT NULL,
        version BIGINT NOT NULL,
        cells BYTES NOT NULL,
        saved BIGINT NOT NULL,
        PRIMARY KEY (surface, version)
    )
    """,
    """
    CREATE TABLE keys (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        rights TEXT NOT NULL,
        digest BYTES NOT NULL,
        created BIGINT NOT NULL,
        revoked BIGINT
    )
    """,
)

Row = tuple[Any, ...]


class Transaction(Protocol):
    """A transaction under way."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run a statement and return the rows that it gives."""


class SqlStore(Store):
    """A store in a database with tables."""

    @abstractmethod
    def _transaction(self, *, writes: bool = True) -> AbstractContextManager[Transaction]:
        """Begin a transaction; commit it at the end of the block, or undo all of it if the block raises."""

    @abstractmethod
    def _lock_schema(self, transaction: Transaction) -> None:
        """Let nobody else migrate until the transaction ends."""

    @abstractmethod
    def _has_settings(self, transaction: Transaction) -> bool:
        """Return whether there is a table of settings."""

    @abstractmethod
    def _in_dialect(self, statements: str) -> str:
        """Return statements that create tables as this database wants them."""

    def _migrate(self, where: str) -> None:
        """Bring the tables up to date, or refuse those of a newer version."""
        with self._transaction() as transaction:
            self._lock_schema(transaction)
            done = 0
            if self._has_settings(transaction):
                rows = transaction.run("SELECT value FROM settings WHERE name = %s", ["schema"])
                done = int(rows[0][0]) if rows else 0
            if done > len(MIGRATIONS):
                known = len(MIGRATIONS)
                raise StoreError(f"{where} has schema {done}, this version knows {known}: upgrade banditrank")
            for step in MIGRATIONS[done:]:
                for statement in self._in_dialect(step).split(";"):
                    transaction.run(statement)
            if done == len(MIGRATIONS):
                return
            for name, value in (("schema", str(len(MIGRATIONS))), ("secret", secrets.token_hex(32))):
                update = "value = excluded.value" if name == "schema" else "value = settings.value"
                transaction.run(
                    f"INSERT INTO settings VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET {update}",  # noqa: S608
                    [name, value],
                )

    # Surfaces

    def create_surface(self, name: str, definition: str) -> SurfaceRecord:
        """Create a surface."""
        with self._transaction() as transaction:
            rows = transaction.run(
                "INSERT INTO surfaces (name, definition, revision, version) VALUES (%s, %s, 1, 0) "
                "ON CONFLICT (name) DO NOTHING RETURNING number",
                [name, definition],
            )
            if not rows:
                raise NameTakenError("surface", name)
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
                for table in ("definitions", "rankings", "changes", "snapshots"):
                    transaction.run(f"DELETE FROM {table} WHERE surface = %s", [number])  # noqa: S608
            return bool(rows)

    # Learning

    def _add_changes(self, transaction: Transaction, entries: Sequence[Entry]) -> list[Change]:
        """Add what outcomes that are new mean for the counts."""
        by_surface: dict[int, list[Entry]] = {}
        for entry in entries:
            by_surface.setdefault(entry.shown.surface, []).append(entry)
        changes = []
        for surface in sorted(by_surface):
            if cells := cells_of(by_surface[surface]):
                ((version,),) = transaction.run(
                    "UPDATE surfaces SET version = version + 1 WHERE number = %s RETURNING version", [surface]
                )
                transaction.run("INSERT INTO changes VALUES (%s, %s, %s)", [surface, version, cells])
                changes.append(Change(surface, version, cells))
        return changes

    def outcome(self, surface: int, key: bytes) -> Outcome | None:
        """Return what became of a ranking."""
        rows = self._read("SELECT outcome FROM rankings WHERE surface = %s AND key = %s", [surface, key])
        return Outcome.from_code(rows[0][0]) if rows and rows[0][0] is not None else None

    def versions(self) -> dict[int, Versions]:
        """Return how far each surface is."""
        rows = self._read("SELECT number, revision, version FROM surfaces")
        return {number: Versions(revision, version) for number, revision, version in rows}

    def changes(self, surface: int, *, after: int, limit: int = 1000) -> list[Change]:
        """Return changes after a version."""
        rows = self._read(
            "SELECT surface, version, cells FROM changes WHERE surface = %s AND version > %s "
            "ORDER BY version LIMIT %s",
            [surface, after, limit],
        )
        return [Change(*row) for row in rows]

    def snapshot(self, surface: int, *, up_to: int | None = None) -> Snapshot:
        """Return the latest snapshot that is not after a version."""
        rows = self._read(
            "SELECT version, cells, saved FROM snapshots WHERE surface = %s AND version <= %s "
            "ORDER BY version DESC LIMIT 1",
            [surface, (1 << 62) if up_to is None else up_to],
        )
        return Snapshot(*rows[0]) if rows else NOTHING

    def save_snapshot(self, surface: int, snapshot: Snapshot) -> None:
        """Keep a snapshot."""
        with self._transaction() as transaction:
            transaction.run(
                "INSERT INTO snapshots SELECT number, %s, %s, %s FROM surfaces WHERE number = %s "
                "ON CONFLICT (surface, version) DO NOTHING",
                [*snapshot, surface],
            )

    def open_entries(self, surface: int, *, since: int, until: int, limit: int = 1000) -> list[Entry]:
        """Return rankings without an outcome that lapse within a time."""
        rows = self._read(
            "SELECT surface, key, ranking FROM rankings "
            "WHERE surface = %s AND key >= %s AND key < %s AND outcome IS NULL ORDER BY key LIMIT %s",
            [surface, first_key(since), first_key(until), limit],
        )
        return [Entry(Shown(*row), None) for row in rows]

    def forget(self, surface: int, *, before: int) -> None:
        """Throw away what is old."""
        with self._transaction() as transaction:
            transaction.run(
                "DELETE FROM rankings WHERE surface = %s AND key < %s AND outcome IS NOT NULL",
                [surface, first_key(before)],
            )
            ((version,),) = transaction.run(
                "SELECT max(version) FROM snapshots WHERE surface = %s AND saved < %s", [surface, before]
            )
            if version is not None:
                values = [surface, version]
                transaction.run("DELETE FROM changes WHERE surface = %s AND version <= %s", values)
                transaction.run("DELETE FROM snapshots WHERE surface = %s AND version < %s", values)

    # Secrets and keys

    def secret(self) -> bytes:
        """Return random bytes."""
        ((value,),) = self._read("SELECT value FROM settings WHERE name = %s", ["secret"])
        return bytes.fromhex(value)

    def add_key(self, key: KeyRecord) -> None:
        """Keep an API key."""
        with self._transaction() as transaction:
            transaction.run(
                "INSERT INTO keys VALUES (%s, %s, %s, %s, %s, %s)",
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

    def check(self) -> None:
        """Write a setting."""
        with self._transaction() as transaction:
            transaction.run("UPDATE settings SET value = value WHERE name = %s", ["schema"])

    def _read(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._transaction(writes=False) as transaction:
            return transaction.run(statement, values)
