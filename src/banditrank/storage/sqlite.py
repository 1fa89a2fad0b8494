"""The default store: a file, written durably, that several processes of one machine may share."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from banditrank.errors import InvalidInputError, StoreError, StoreUnavailableError
from banditrank.storage.base import Recorded
from banditrank.storage.records import Change, Entry, Outcome
from banditrank.storage.sql import Row, SqlStore, Transaction

_WAIT_SECONDS = 5.0  # for another process that writes
_TYPES = {
    "SERIAL": "INTEGER PRIMARY KEY AUTOINCREMENT",  # numbers of surfaces that were deleted do not come back
    "BIGINT": "INTEGER",
    "BYTES": "BLOB",
    ") CLUSTERED": ") WITHOUT ROWID",
}


class SqliteStore(SqlStore):
    """A store in an SQLite file: write-ahead log, synchronised with the disk at every commit.

    Parameters
    ----------
    path
        The file; it is made if there is none.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._own = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._opening = threading.Lock()
        try:
            self._migrate(str(self.path))
        except StoreUnavailableError as error:
            if not self.path.exists():
                raise InvalidInputError("store", "must be a file that can be written", str(path)) from error
            raise

    @contextmanager
    def _transaction(self, *, writes: bool = True) -> Iterator[Transaction]:
        try:
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            try:
                yield _SqliteTransaction(connection)
            except BaseException:
                connection.rollback()
                raise
            try:
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
        except sqlite3.OperationalError as error:  # locked, full, unreadable
            raise StoreUnavailableError(f"{self.path}: {error}") from error
        except sqlite3.DatabaseError as error:  # no database at all, damaged
            raise StoreError(f"{self.path}: {error}") from error

    def _connection(self) -> sqlite3.Connection:
        """Return this thread's connection."""
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = sqlite3.connect(
                self.path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            self._own.connection = connection
            with self._opening:
                self._connections.append(connection)
        return connection

    def _lock_schema(self, transaction: Transaction) -> None:
        """Do nothing: whoever writes is alone already."""

    def _has_settings(self, transaction: Transaction) -> bool:
        return bool(transaction.run("SELECT 1 FROM sqlite_master WHERE name = %s", ["settings"]))

    def _in_dialect(self, statements: str) -> str:
        for word, ours in _TYPES.items():
            statements = statements.replace(word, ours)
        return statements

    def _write(self, entries: Sequence[Entry]) -> tuple[list[Recorded | None], list[Change]]:
        with self._transaction() as transaction:
            there = {number for (number,) in transaction.run("SELECT number FROM surfaces")}
            recorded = [
                self._write_one(transaction, entry) if entry.shown.surface in there else None
                for entry in entries
            ]
            new = [entry for entry, result in zip(entries, recorded, strict=True) if result and result.new]
            return recorded, self._add_changes(transaction, new)

    def _write_one(self, transaction: Transaction, entry: Entry) -> Recorded:
        shown, outcome = entry
        code = None if outcome is None else outcome.code
        written = transaction.run(
            "INSERT INTO rankings VALUES (%s, %s, %s, %s) ON CONFLICT (surface, key) "
            "DO UPDATE SET outcome = excluded.outcome WHERE outcome IS NULL RETURNING 1",
            [shown.surface, shown.key, shown.ranking, code],
        )
        if written:
            return Recorded(outcome, new=outcome is not None)
        ((before,),) = transaction.run(
            "SELECT outcome FROM rankings WHERE surface = %s AND key = %s", [shown.surface, shown.key]
        )
        return Recorded(Outcome.from_code(before), new=False)

    def close(self) -> None:
        """Close all threads' connections."""
        with self._opening:
            for connection in self._connections:
                connection.close()
            self._connections.clear()


class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(statement.replace("%s", "?"), values).fetchall()

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement.replace("%s", "?"), rows)
