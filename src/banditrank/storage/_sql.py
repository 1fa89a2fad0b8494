"""The base class of the SQLite and the PostgreSQL store.

Statements have the placeholders of PostgreSQL. Impressions without an outcome are rows of the table `shown`,
one for each batch: most have an outcome before they are read, and are never updated.
"""

import secrets
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, ClassVar, Protocol

from banditrank.errors import AlreadyExistsError, StoreError, StoreUnavailableError
from banditrank.storage._base import Store, WriteResult
from banditrank.storage._cells import encode_cells
from banditrank.storage._impression_batches import ImpressionBatch, pack_impressions, unpack_impressions
from banditrank.storage._migrations import MIGRATIONS
from banditrank.storage._records import (
    EMPTY_SNAPSHOT,
    Change,
    Event,
    Impression,
    ImpressionId,
    KeyRecord,
    Outcome,
    SavedTimeSeries,
    Snapshot,
    SurfaceRecord,
    Versions,
    group_by_surface,
    is_storable,
    min_key,
)

_BATCHES_PER_QUERY = 64
_KEYS_PER_QUERY = 1024  # a power of two
_MAX_DELETED_ROWS = 1000  # per transaction: limits the time that writers wait
NO_NUMBER = -1  # in place of the code of an outcome that is not a number
_INFINITY = 1 << 62  # above every time and version
_SELECT_OUTCOMES = (
    "SELECT key, outcome, code FROM outcomes LEFT JOIN outcome_codes USING (surface, key) WHERE surface = %s"
)
_DELETED_PREFIX = "deleted surface "  # of settings that name a deleted surface whose data remain
_SURFACE_TABLES = {  # tables with rows of a surface, and the column that follows the surface in an index
    "definitions": "revision",
    "outcomes": "key",
    "outcome_codes": "key",
    "shown": "first",
    "changes": "version",
    "snapshots": "version",
    "time_series": "version",
}

Row = tuple[Any, ...]


class Transaction(Protocol):
    """An open transaction."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Execute a statement and return its rows."""


class SqlStore(Store):
    """A store in an SQL database. Subclasses provide transactions, locks and the bulk insert of outcomes."""

    _dialect: ClassVar[dict[str, str]]  # words of the migrations, and those of this database

    # Transactions and schema

    @abstractmethod
    def _transaction(self, *, read_only: bool = False) -> AbstractContextManager[Transaction]:
        """Begin a transaction; commit it at the end of the block, or roll it back if the block raises."""

    @abstractmethod
    def _migration(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction that excludes other migrations and has no time limit."""

    @abstractmethod
    def _lock_surfaces(self, transaction: Transaction, surface_ids: Collection[int]) -> dict[int, int]:
        """Lock surfaces for writing until the transaction ends.

        Returns
        -------
        dict
            For each of them that exists, the time before which its impressions are pruned.
        """

    @abstractmethod
    def _has_settings(self, transaction: Transaction) -> bool:
        """Return whether the table of settings exists."""

    def _migrate(self, location: str) -> None:
        """Apply missing migrations, or raise if the schema is newer than this version."""
        with self._transaction(read_only=True) as transaction:
            if self._schema_version(transaction, location) == len(MIGRATIONS):
                return  # nearly always: without waiting for a writer
        with self._migration() as transaction:
            current = self._schema_version(transaction, location)
            for step in MIGRATIONS[current:]:
                for statement in _translate(step, self._dialect).split(";"):
                    transaction.run(statement)
            if current == 0:
                transaction.run("INSERT INTO settings VALUES (%s, %s)", ["secret", secrets.token_hex(32)])
                transaction.run("INSERT INTO settings VALUES (%s, %s)", ["schema", "0"])
            transaction.run(
                "UPDATE settings SET value = %s WHERE name = %s", [str(len(MIGRATIONS)), "schema"]
            )

    def _schema_version(self, transaction: Transaction, location: str) -> int:
        """Return the number of applied migrations, or raise if the tables are not from this version."""
        if not self._has_settings(transaction):
            return 0
        rows = transaction.run("SELECT value FROM settings WHERE name = %s", ["schema"])
        if not rows:
            raise StoreError(f"{location} has tables that are not banditrank's")
        version, known = int(rows[0][0]), len(MIGRATIONS)
        if version > known:
            raise StoreError(
                f"{location} has schema {version}, this version knows {known}: upgrade banditrank"
            )
        return version

    def _read(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._transaction(read_only=True) as transaction:
            return transaction.run(statement, values)

    # Surfaces

    def create_surface(self, name: str, definition: str, *, cells: bytes = b"") -> SurfaceRecord:
        """Create a surface and return its record."""
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
            return self._insert_definition(transaction, SurfaceRecord(rows[0][0], name, definition, 1))

    def find_surface(self, name: str) -> SurfaceRecord | None:
        """Return the surface with a name."""
        if not is_storable(name):
            return None
        rows = self._read("SELECT number, name, definition, revision FROM surfaces WHERE name = %s", [name])
        return SurfaceRecord(*rows[0]) if rows else None

    def surfaces(self) -> list[SurfaceRecord]:
        """Return all surfaces."""
        rows = self._read("SELECT number, name, definition, revision FROM surfaces")
        return sorted((SurfaceRecord(*row) for row in rows), key=lambda record: record.name)

    def update_surface(self, record: SurfaceRecord, definition: str) -> SurfaceRecord | None:
        """Replace the definition of a surface."""
        with self._transaction() as transaction:
            rows = transaction.run(
                "UPDATE surfaces SET definition = %s, revision = revision + 1 "
                "WHERE number = %s AND revision = %s RETURNING number, name, definition, revision",
                [definition, record.surface_id, record.revision],
            )
            return self._insert_definition(transaction, SurfaceRecord(*rows[0])) if rows else None

    def _insert_definition(self, transaction: Transaction, record: SurfaceRecord) -> SurfaceRecord:
        values = [record.surface_id, record.revision, record.definition]
        transaction.run("INSERT INTO definitions VALUES (%s, %s, %s)", values)
        return record

    def definition(self, surface_id: int, *, revision: int) -> str | None:
        """Return the definition at a revision."""
        rows = self._read(
            "SELECT definition FROM definitions WHERE surface = %s AND revision = %s", [surface_id, revision]
        )
        return rows[0][0] if rows else None

    def delete_surface(self, name: str) -> bool:
        """Delete a surface, and leave its data to `purge_deleted`."""
        if not is_storable(name):
            return False
        with self._transaction() as transaction:
            rows = transaction.run("DELETE FROM surfaces WHERE name = %s RETURNING number", [name])
            for (surface_id,) in rows:
                transaction.run(
                    "INSERT INTO settings VALUES (%s, %s)", [f"{_DELETED_PREFIX}{surface_id}", ""]
                )
        return bool(rows)

    def purge_deleted(self) -> bool:
        """Remove one batch of the data of deleted surfaces; return whether there may be more."""
        names = self._read("SELECT name FROM settings WHERE name LIKE %s LIMIT 1", [f"{_DELETED_PREFIX}%"])
        for (name,) in names:
            self._purge_batch(name)
        return bool(names)

    def _purge_batch(self, name: str) -> None:
        with self._transaction() as transaction:
            # Excludes other purges: a batch smaller than the limit must mean that no rows are left.
            if not transaction.run("UPDATE settings SET value = value WHERE name = %s RETURNING 1", [name]):
                return
            surface_id, limit = int(name.removeprefix(_DELETED_PREFIX)), _MAX_DELETED_ROWS
            for table, column in _SURFACE_TABLES.items():
                limit -= len(transaction.run(_delete_statement(table, column), [surface_id, limit]))
                if limit <= 0:
                    return
            transaction.run("DELETE FROM settings WHERE name = %s", [name])

    # Learning

    def _write(self, events: Sequence[Event], at_ms: int) -> WriteResult:
        with self._transaction() as transaction:
            # The lock keeps versions in order and without a gap, and what is read below unchanged.
            surface_ids = {event.impression.surface_id for event in events}
            pruned_before_ms = self._lock_surfaces(transaction, surface_ids)
            accepted = [
                event
                for event in events
                if event.impression.expires_at_ms
                >= pruned_before_ms.get(event.impression.surface_id, _INFINITY)
            ]
            self._insert_impressions(
                transaction, [event.impression for event in accepted if event.outcome is None]
            )
            outcomes = {event.impression.id: event.outcome for event in accepted if event.outcome is not None}
            new = self._insert_outcomes(transaction, outcomes)
            existing = self._find_outcomes(transaction, [one for one in outcomes if one not in new])
            merged = _merge_open(existing, outcomes)
            self._update_outcomes(transaction, merged)
            written = {impression_id: outcomes[impression_id] for impression_id in new} | merged
            self._write_codes(transaction, written)
            counted = [Event(one.impression, written.get(one.impression.id)) for one in accepted]
            is_open = {impression_id for impression_id, outcome in written.items() if not outcome.is_final}
            self._insert_impressions(
                transaction, [one.impression for one in accepted if one.impression.id in is_open]
            )
            changes = self._insert_changes(transaction, counted, at_ms)
            deleted_surfaces = surface_ids - pruned_before_ms.keys()
            accepted_ids = {event.impression.id for event in accepted}
            pruned = {
                event.impression.id
                for event in events
                if event.impression.surface_id not in deleted_surfaces
                and event.impression.id not in accepted_ids
            }
            return WriteResult(changes, existing, deleted_surfaces, pruned)

    @abstractmethod
    def _insert_outcomes(
        self, transaction: Transaction, outcomes: Mapping[ImpressionId, Outcome]
    ) -> set[ImpressionId]:
        """Insert the outcomes of impressions that have none; return these impressions."""

    def _insert_changes(self, transaction: Transaction, events: Iterable[Event], at_ms: int) -> list[Change]:
        """Insert what outcomes add to the counts, one change for each surface."""
        changes = []
        for surface_id, group in group_by_surface(events).items():
            if cells := encode_cells(group):
                ((version,),) = transaction.run(
                    "UPDATE surfaces SET version = version + 1 WHERE number = %s RETURNING version",
                    [surface_id],
                )
                changes.append(Change(surface_id, version, cells, at_ms))
                transaction.run("INSERT INTO changes VALUES (%s, %s, %s, %s)", changes[-1])
        return changes

    def _find_outcomes(
        self, transaction: Transaction, impression_ids: Iterable[ImpressionId]
    ) -> dict[ImpressionId, Outcome]:
        """Return the outcomes of those impressions that have one, final or not."""
        keys: dict[int, list[bytes]] = {}
        for surface_id, key in impression_ids:
            keys.setdefault(surface_id, []).append(key)
        outcomes = {}
        for surface_id, all_keys in keys.items():
            for start in range(0, len(all_keys), _KEYS_PER_QUERY):
                some_keys = all_keys[start : start + _KEYS_PER_QUERY]
                values = [surface_id, *_padded(some_keys)]
                placeholders = ", ".join(["%s"] * (len(values) - 1))
                rows = transaction.run(f"{_SELECT_OUTCOMES} AND key IN ({placeholders})", values)
                outcomes.update(
                    {
                        (surface_id, key): Outcome.from_code(code if number == NO_NUMBER else str(number))
                        for key, number, code in rows
                    }
                )
        return outcomes

    def _update_outcomes(self, transaction: Transaction, outcomes: Mapping[ImpressionId, Outcome]) -> None:
        for impression_id, outcome in outcomes.items():
            transaction.run(
                "UPDATE outcomes SET outcome = %s WHERE surface = %s AND key = %s",
                [outcome_number(outcome), *impression_id],
            )

    def _write_codes(self, transaction: Transaction, outcomes: Mapping[ImpressionId, Outcome]) -> None:
        """Write the codes that are not numbers; an earlier one stays, unread, once the code is a number."""
        for impression_id, outcome in outcomes.items():
            if outcome_number(outcome) == NO_NUMBER:
                transaction.run(
                    "INSERT INTO outcome_codes VALUES (%s, %s, %s) "
                    "ON CONFLICT (surface, key) DO UPDATE SET code = excluded.code",
                    [*impression_id, outcome.code],
                )

    def outcome(self, surface_id: int, key: bytes) -> Outcome | None:
        """Return the outcome of an impression."""
        with self._transaction(read_only=True) as transaction:
            return self._find_outcomes(transaction, [(surface_id, key)]).get((surface_id, key))

    def versions(self) -> dict[int, Versions]:
        """Return the current versions of each surface."""
        rows = self._read("SELECT number, revision, version FROM surfaces")
        return {surface_id: Versions(revision, version) for surface_id, revision, version in rows}

    def changes(self, surface_id: int, *, after: int, limit: int = 1000) -> list[Change]:
        """Return the first changes after a version."""
        rows = self._read(
            "SELECT surface, version, cells, at FROM changes WHERE surface = %s AND version > %s "
            "ORDER BY version LIMIT %s",
            [surface_id, after, limit],
        )
        return [Change(*row) for row in rows]

    def snapshot(self, surface_id: int, *, up_to: int | None = None) -> Snapshot:
        """Return the latest snapshot up to a version."""
        rows = self._read(
            "SELECT version, cells, saved FROM snapshots WHERE surface = %s AND version <= %s "
            "ORDER BY version DESC LIMIT 1",
            [surface_id, _INFINITY if up_to is None else up_to],
        )
        return Snapshot(*rows[0]) if rows else EMPTY_SNAPSHOT

    def save_snapshot(self, surface_id: int, snapshot: Snapshot) -> None:
        """Save a snapshot."""
        with self._transaction() as transaction:
            self._lock_surfaces(transaction, [surface_id])
            transaction.run(
                "INSERT INTO snapshots (surface, version, cells, saved) "
                "SELECT number, %s, %s, %s FROM surfaces WHERE number = %s "
                "ON CONFLICT (surface, version) DO NOTHING",
                [*snapshot, surface_id],
            )

    def time_series(self, surface_id: int) -> SavedTimeSeries | None:
        """Return the time series of a surface."""
        rows = self._read("SELECT version, data FROM time_series WHERE surface = %s", [surface_id])
        return SavedTimeSeries(*rows[0]) if rows else None

    def save_time_series(self, surface_id: int, series: SavedTimeSeries) -> None:
        """Save the time series of a surface if it is newer than the stored one."""
        with self._transaction() as transaction:
            self._lock_surfaces(transaction, [surface_id])
            transaction.run(
                "INSERT INTO time_series SELECT number, %s, %s FROM surfaces WHERE number = %s "
                "ON CONFLICT (surface) DO UPDATE SET version = excluded.version, data = excluded.data "
                "WHERE time_series.version < excluded.version",
                [*series, surface_id],
            )

    # Pending impressions

    def _insert_impressions(self, transaction: Transaction, impressions: Iterable[Impression]) -> None:
        """Insert impressions without a final outcome, one batch for each surface and length of rankings."""
        groups: dict[tuple[int, int], list[Impression]] = {}
        for impression in impressions:
            groups.setdefault((impression.surface_id, len(impression.ranking)), []).append(impression)
        for (surface_id, _), group in groups.items():
            transaction.run(
                "INSERT INTO shown (surface, first, last, rankings, packed) VALUES (%s, %s, %s, %s, %s)",
                [surface_id, *pack_impressions(group)],
            )

    def pending_impressions(
        self, surface_id: int, *, since_ms: int, until_ms: int, limit: int = 1000
    ) -> list[Impression]:
        """Return the first impressions without a final outcome that expire within a time.

        Removes the batches in which every impression has one.
        """
        start, end = min_key(since_ms), min_key(until_ms)
        found: dict[bytes, Impression] = {}
        completed: list[int] = []
        for number, batch in self._batches(surface_id, start, end):
            if len(found) >= limit and batch.first > sorted(found)[limit - 1]:
                break
            impressions = unpack_impressions(surface_id, batch)
            with self._transaction(read_only=True) as transaction:
                outcomes = self._find_outcomes(transaction, [one.id for one in impressions])
            pending = [one for one in impressions if one.id not in outcomes or not outcomes[one.id].is_final]
            if not pending:
                completed.append(number)
            found.update({one.key: one for one in pending if start <= one.key < end})
        if completed:
            self._delete_batches(completed)
        return [found[key] for key in sorted(found)[:limit]]

    def _batches(self, surface_id: int, start: bytes, end: bytes) -> Iterator[tuple[int, ImpressionBatch]]:
        """Yield the numbers and batches that have keys in [start, end), in the order of their first keys."""
        statement = (
            "SELECT number, first, last, rankings, packed FROM shown WHERE surface = %s "
            "AND last >= %s AND first < %s AND (first, number) > (%s, %s) ORDER BY first, number LIMIT %s"
        )
        after = (b"", 0)
        while rows := self._read(statement, [surface_id, start, end, *after, _BATCHES_PER_QUERY]):
            for number, *columns in rows:
                yield number, ImpressionBatch(*columns)
            after = (rows[-1][1], rows[-1][0])

    def _delete_batches(self, numbers: Sequence[int]) -> None:
        with suppress(StoreUnavailableError), self._transaction() as transaction:  # the next reader retries
            for number in numbers:
                transaction.run("DELETE FROM shown WHERE number = %s", [number])

    def _trim_batches(self, transaction: Transaction, surface_id: int, end: bytes) -> None:
        """Remove the keys below a bound from batches that also have others."""
        for number, *columns in transaction.run(
            "SELECT number, first, last, rankings, packed FROM shown "
            "WHERE surface = %s AND first < %s AND last >= %s",
            [surface_id, end, end],
        ):
            transaction.run("DELETE FROM shown WHERE number = %s", [number])
            impressions = unpack_impressions(surface_id, ImpressionBatch(*columns))
            self._insert_impressions(transaction, [one for one in impressions if one.key >= end])

    # Pruning

    def prune(self, surface_id: int, *, before_ms: int) -> None:
        """Remove what is older than a time."""
        rows = self._read(
            "SELECT max(version) FROM snapshots WHERE surface = %s AND saved < %s", [surface_id, before_ms]
        )
        version, end = rows[0][0] or 0, min_key(before_ms)
        with self._transaction() as transaction:
            if not self._lock_surfaces(transaction, [surface_id]):
                return  # deleted: `purge_deleted` removes all of its rows
            transaction.run(
                "UPDATE surfaces SET forgotten = %s WHERE number = %s AND forgotten < %s",
                [before_ms, surface_id, before_ms],
            )
            self._trim_batches(transaction, surface_id, end)
        in_snapshot = "version <= %s AND version < (SELECT version FROM surfaces WHERE number = %s)"
        self._delete_rows(surface_id, "shown", "number", "last < %s", [end])
        self._delete_rows(surface_id, "outcomes", "key", "key < %s", [end])
        self._delete_rows(surface_id, "outcome_codes", "key", "key < %s", [end])
        self._delete_rows(surface_id, "snapshots", "version", "version < %s", [version])
        self._delete_rows(surface_id, "changes", "version", in_snapshot, [version, surface_id])

    def _delete_rows(
        self, surface_id: int, table: str, column: str, condition: str, values: Sequence[Any]
    ) -> None:
        """Delete the rows of a surface that meet a condition, in batches."""
        statement = _delete_statement(table, column, condition)
        deleted = _MAX_DELETED_ROWS
        while deleted == _MAX_DELETED_ROWS:
            with self._transaction() as transaction:
                self._lock_surfaces(transaction, [surface_id])
                deleted = len(transaction.run(statement, [surface_id, *values, _MAX_DELETED_ROWS]))

    # Secrets and keys

    def secret(self) -> bytes:
        """Return the random bytes of this store."""
        ((value,),) = self._read("SELECT value FROM settings WHERE name = %s", ["secret"])
        return bytes.fromhex(value)

    def add_key(self, key: KeyRecord) -> None:
        """Add an API key."""
        with self._transaction() as transaction:
            transaction.run(
                "INSERT INTO keys (id, name, rights, digest, created, revoked, expires_at_ms, surfaces) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING",
                [
                    *(key.id, key.name, " ".join(key.rights), key.digest, key.created_at_ms),
                    *(key.revoked_at_ms, key.expires_at_ms, " ".join(key.surfaces)),
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
                key_id,
                name,
                tuple(rights.split()),
                digest,
                created,
                revoked,
                expires,
                tuple(surfaces.split()),
            )
            for key_id, name, rights, digest, created, revoked, expires, surfaces in rows
        ]

    def revoke_key(self, key_id: str, *, revoked_at_ms: int) -> bool:
        """Revoke an API key."""
        if not is_storable(key_id):
            return False
        with self._transaction() as transaction:
            return bool(
                transaction.run(
                    "UPDATE keys SET revoked = %s WHERE id = %s AND revoked IS NULL RETURNING id",
                    [revoked_at_ms, key_id],
                )
            )

    # Maintenance

    def check(self) -> None:
        """Commit a random value of a setting: SQLite would not write one that is unchanged."""
        with self._transaction() as transaction:
            transaction.run(
                "INSERT INTO settings VALUES (%s, %s) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                ["check", secrets.token_hex(8)],
            )


def _merge_open(
    stored: Mapping[ImpressionId, Outcome], outcomes: Mapping[ImpressionId, Outcome]
) -> dict[ImpressionId, Outcome]:
    """Return the stored outcomes that are not final and that others change, merged with these."""
    merged = {
        impression_id: before.merge(outcomes[impression_id])
        for impression_id, before in stored.items()
        if not before.is_final
    }
    return {impression_id: after for impression_id, after in merged.items() if after != stored[impression_id]}


def outcome_number(outcome: Outcome) -> int:
    """Return the code of an outcome as a number, `NO_NUMBER` if it is not one."""
    code = outcome.code
    return int(code) if code.isdigit() else NO_NUMBER


def _padded(keys: Sequence[bytes]) -> list[bytes]:
    """Return keys with the last one repeated, so that their number is a power of two.

    Every connection caches the statements that it ran, and each number of keys takes another statement.

    Examples
    --------
    >>> _padded([b"a", b"b", b"c"])
    [b'a', b'b', b'c', b'c']
    """
    n_keys = 1 << (len(keys) - 1).bit_length()
    return [*keys, *[keys[-1]] * (n_keys - len(keys))]


def _translate(statements: str, dialect: Mapping[str, str]) -> str:
    """Return statements in the words of a database."""
    for word, replacement in dialect.items():
        statements = statements.replace(word, replacement)
    return statements


def _delete_statement(table: str, column: str, condition: str = "1 = 1") -> str:
    """Return the statement that deletes a limited number of a surface's rows."""
    return (
        f"DELETE FROM {table} WHERE (surface, {column}) IN (SELECT surface, {column} FROM {table} "  # noqa: S608
        f"WHERE surface = %s AND {condition} ORDER BY {column} LIMIT %s) RETURNING 1"
    )
