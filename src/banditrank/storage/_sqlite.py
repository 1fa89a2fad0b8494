"""The SQLite store, the default: one file, which processes of one machine can share."""

import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from banditrank._files import create_private, is_file, make_private
from banditrank.errors import InvalidInputError, StoreError, StoreUnavailableError
from banditrank.storage._base import WriteResult
from banditrank.storage._cells import encode_cells
from banditrank.storage._connection_pool import ConnectionPool
from banditrank.storage._impression_batches import pack_impressions
from banditrank.storage._records import (
    KEY_BYTES,
    Change,
    Event,
    ImpressionId,
    Outcome,
    expiry_of,
    group_by_surface,
)
from banditrank.storage._sql import Row, SqlStore, Transaction, outcome_number

logger = logging.getLogger(__name__)
# Closing a file drops all locks of the process on it, so that only one thread may create it.
_CREATE_LOCK = threading.Lock()
_TRANSIENT_ERRORS = {  # a retry may succeed, at the latest after an operator intervened
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
}
_BUSY_SECONDS = 0.01  # between two attempts to set the journal mode
_DIALECT = {
    "SERIAL": "INTEGER PRIMARY KEY AUTOINCREMENT",  # ids of deleted surfaces are not reused
    "BIGINT": "INTEGER",
    "BYTES": "BLOB",
    ") CLUSTERED": ") WITHOUT ROWID",
}
# A group of events is inserted as one row of a temporary view: its trigger writes the tables, and fails as a
# whole if one of the outcomes is stored already.
_CONNECTION_SETUP = f"""
    PRAGMA temp_store = MEMORY;
    CREATE TEMP VIEW groups AS SELECT
        0 AS surface, 0 AS version, 0 AS at, 0 AS keys, 0 AS codes, 0 AS cells,
        0 AS first, 0 AS last, 0 AS rankings, 0 AS packed;
    CREATE TEMP TRIGGER write_group INSTEAD OF INSERT ON groups BEGIN
        INSERT INTO outcomes
            SELECT NEW.surface, substr(NEW.keys, 1 + {KEY_BYTES} * key, {KEY_BYTES}), value
            FROM json_each(NEW.codes);
        INSERT INTO shown (surface, first, last, rankings, packed)
            SELECT NEW.surface, NEW.first, NEW.last, NEW.rankings, NEW.packed WHERE NEW.rankings > 0;
        INSERT INTO changes SELECT NEW.surface, NEW.version, NEW.cells, NEW.at WHERE length(NEW.cells) > 0;
        UPDATE surfaces SET version = NEW.version WHERE number = NEW.surface AND length(NEW.cells) > 0;
    END;
"""  # noqa: S608 - formats a constant
_WRITE_GROUP = (
    "INSERT INTO groups SELECT number, version + 1, ?, ?, ?, ?, ?, ?, ?, ? "
    "FROM surfaces WHERE number = ? AND forgotten <= ? RETURNING version"
)


class SqliteStore(SqlStore):
    """A store in an SQLite file, with a write-ahead log that is synced to disk at every commit.

    Parameters
    ----------
    path
        The file, which is created if it does not exist.
    timeout_seconds
        Time to wait for the write lock of another process.

    Raises
    ------
    InvalidInputError
        If the path cannot be a writable file.
    StoreError
        If the file is not a store, or has the schema of a newer version.
    """

    _dialect = _DIALECT

    def __init__(self, path: Path | str, *, timeout_seconds: float = 2.0) -> None:
        self.path = Path(path)
        self._timeout_seconds = timeout_seconds
        self._identity: tuple[int, int] | None = None  # device and inode of the opened file
        self._pool = ConnectionPool(
            self._connect, is_stale=lambda _: self._is_replaced(), timeout_seconds=timeout_seconds
        )
        try:
            self._create()
            self._identity = self._current_identity()
            self._migrate(str(self.path))
            self._make_private()
        except BaseException as error:
            self.close()
            if isinstance(error, StoreUnavailableError) and not is_file(self.path):
                raise InvalidInputError("store", "must be a file that can be written", str(path)) from error
            raise

    def _create(self) -> None:
        """Create a private file: it holds the secret that signs ranking ids, and the hashes of API keys.

        SQLite alone would apply the umask. It gives its -wal and -shm files the permissions of the database.
        """
        with _CREATE_LOCK, suppress(OSError):  # SQLite fails for the same reason, and reports it
            create_private(self.path)

    def _make_private(self) -> None:
        """Revoke the access of other users to files of an older version, or log a warning."""
        path = os.path.realpath(self.path)  # SQLite puts its other files beside the target of a link
        are_private = [make_private(Path(f"{path}{suffix}")) for suffix in ("", "-wal", "-shm")]
        if not all(are_private):
            logger.warning("store file with secrets is accessible to other users: %s", path)

    @contextmanager
    def _transaction(self, *, read_only: bool = False) -> Iterator["_SqliteTransaction"]:
        with self._translate_errors(), self._pool.connection() as connection:
            connection.execute("BEGIN" if read_only else "BEGIN IMMEDIATE")
            yield _SqliteTransaction(connection)
            connection.execute("COMMIT")

    def _migration(self) -> AbstractContextManager[Transaction]:
        return self._transaction()  # SQLite has one writer at a time, and no time limit for it

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extended error code
            kind = StoreUnavailableError if code in _TRANSIENT_ERRORS else StoreError
            raise kind(f"{self.path}: {error}") from error

    def _current_identity(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _is_replaced(self) -> bool:
        """Return whether the path no longer names the file that was opened."""
        return self._identity is not None and self._current_identity() != self._identity

    def _connect(self) -> sqlite3.Connection:
        if self._is_replaced():  # acknowledged events must be in the file that the path names
            raise StoreUnavailableError(f"{self.path}: the file was moved, removed or replaced")
        connection = sqlite3.connect(
            self.path, timeout=self._timeout_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            self._use_write_ahead_log(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(_CONNECTION_SETUP)
        except BaseException:
            connection.close()
            raise
        return connection

    def _use_write_ahead_log(self, connection: sqlite3.Connection) -> None:
        """Set the journal mode, for which SQLite does not wait while another process opens the file."""
        deadline = time.monotonic() + self._timeout_seconds
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > deadline:
                    raise
                time.sleep(_BUSY_SECONDS)
            else:
                return

    def _lock_surfaces(self, transaction: Transaction, surface_ids: Collection[int]) -> dict[int, int]:
        """Return when the surfaces were pruned; a transaction that writes excludes all others already."""
        rows = transaction.run(
            "SELECT number, forgotten FROM surfaces WHERE number IN (SELECT value FROM json_each(%s))",
            [json.dumps(sorted(surface_ids))],
        )
        return dict(rows)

    def _has_settings(self, transaction: Transaction) -> bool:
        return bool(transaction.run("SELECT 1 FROM sqlite_master WHERE name = %s", ["settings"]))

    def _write(self, events: Sequence[Event], at_ms: int) -> WriteResult:
        """Write a group with one statement per surface, on the assumption that all events are new.

        Every statement releases the interpreter lock and waits to get it back, so that fewer are faster; a
        single one is a transaction of its own. If an event is not new, or not as simple as most, the group is
        written step by step.
        """
        groups = []
        for surface_id, group in group_by_surface(events).items():
            encoded = _encode_group(surface_id, group, at_ms)
            if encoded is None:
                return super()._write(events, at_ms)
            groups.append(encoded)
        with self._translate_errors(), self._pool.connection() as connection:
            try:
                if len(groups) > 1:
                    connection.execute("BEGIN IMMEDIATE")
                versions = [connection.execute(_WRITE_GROUP, group).fetchall() for group in groups]
                is_written = all(versions)  # every surface exists, and no impression is pruned
            except sqlite3.IntegrityError:
                is_written = False
            if connection.in_transaction:
                connection.execute("COMMIT" if is_written else "ROLLBACK")
        if not is_written:
            return super()._write(events, at_ms)
        changes = [
            Change(group.surface_id, version, group.cells, at_ms)
            for group, ((version,),) in zip(groups, versions, strict=True)
            if group.cells
        ]
        return WriteResult(changes, {}, set(), set())

    def _insert_outcomes(
        self, transaction: Transaction, outcomes: Mapping[ImpressionId, Outcome]
    ) -> set[ImpressionId]:
        statement = "INSERT INTO outcomes VALUES (%s, %s, %s) ON CONFLICT DO NOTHING RETURNING 1"
        return {
            impression_id
            for impression_id, outcome in outcomes.items()
            if transaction.run(statement, [*impression_id, outcome_number(outcome)])
        }

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(_to_qmark(statement), values).fetchall()


@cache
def _to_qmark(statement: str) -> str:
    return statement.replace("%s", "?")


class _Group(NamedTuple):
    """Events of one surface, as the parameters of `_WRITE_GROUP`."""

    at_ms: int
    keys: bytes  # of the events with an outcome
    codes: str  # JSON list of their outcomes
    cells: bytes
    first: bytes  # batch of the impressions without an outcome
    last: bytes
    n_impressions: int
    packed: bytes
    surface_id: int
    min_expires_at_ms: int


def _encode_group(surface_id: int, events: Sequence[Event], at_ms: int) -> _Group | None:
    """Encode events of one surface; return None if an outcome is not a number, or rankings differ in length.

    Rankings of the same length form one batch.
    """
    outcomes = [event for event in events if event.outcome is not None]
    codes = [event.outcome.code for event in outcomes if event.outcome is not None]
    if codes and not "".join(codes).isdigit():
        return None
    if len({len(event.impression.ranking) for event in events}) > 1:
        return None
    keys = [event.impression.key for event in outcomes]
    batch = pack_impressions([event.impression for event in events if event.outcome is None])
    min_key = min([*keys, batch.first] if batch.n_impressions else keys)
    return _Group(
        at_ms,
        b"".join(keys),
        f"[{','.join(codes)}]",
        encode_cells(outcomes),
        *batch,
        surface_id,
        expiry_of(min_key),
    )
