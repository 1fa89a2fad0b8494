"""The default store: a file, written durably, that several processes of one machine may share."""

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
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


_SETTLE = "ON CONFLICT (surface, key) DO UPDATE SET outcome = excluded.outcome WHERE outcome IS NULL"
_MOST_ROWS = 256  # in one statement


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
    def _transaction(self, *, writes: bool = True) -> Iterator["_SqliteTransaction"]:
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
            there = _surfaces_among({entry.shown.surface for entry in entries}, transaction)
            shown = [entry for entry in entries if entry.outcome is None and entry.shown.surface in there]
            settled = [
                entry for entry in entries if entry.outcome is not None and entry.shown.surface in there
            ]
            transaction.insert(shown, "ON CONFLICT DO NOTHING")
            new = self._settle(transaction, settled)
            recorded: list[Recorded | None] = []
            for entry in entries:
                if entry.shown.surface not in there:
                    recorded.append(None)
                elif entry.outcome is None or entry in new:
                    recorded.append(Recorded(entry.outcome, new=entry.outcome is not None))
                else:
                    recorded.append(Recorded(_outcome(transaction, entry), new=False))
            return recorded, self._add_changes(transaction, list(new))

    def _settle(self, transaction: "_SqliteTransaction", entries: list[Entry]) -> set[Entry]:
        """Write outcomes; return those that are new, which nearly always are all."""
        transaction.run("SAVEPOINT settling")
        if transaction.insert(entries, _SETTLE) == len(entries):
            return set(entries)
        transaction.run("ROLLBACK TO settling")
        return {entry for entry in entries if transaction.insert([entry], _SETTLE)}

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
        return self._connection.execute(_with_marks(statement), values).fetchall()

    def insert(self, entries: Sequence[Entry], on_conflict: str) -> int:
        """Insert rankings; return how many rows were written.

        Every statement lets other threads run, and waits until it is its turn again. So as many rows as
        possible go into one; their number is a power of two, for statements that are prepared already.
        """
        written, done = 0, 0
        while done < len(entries):
            rows = min(1 << (len(entries) - done).bit_length() - 1, _MOST_ROWS)
            values = [value for entry in entries[done : done + rows] for value in _row(entry)]
            written += self._connection.execute(_insertion(rows, on_conflict), values).rowcount
            done += rows
        return written


@cache
def _insertion(rows: int, on_conflict: str) -> str:
    return f"INSERT INTO rankings VALUES {', '.join(['(?, ?, ?, ?)'] * rows)} {on_conflict}"  # noqa: S608


@cache
def _with_marks(statement: str) -> str:
    return statement.replace("%s", "?")


def _row(entry: Entry) -> Row:
    return (*entry.shown, None if entry.outcome is None else entry.outcome.code)


def _surfaces_among(numbers: set[int], transaction: _SqliteTransaction) -> set[int]:
    """Return which surfaces there are, in one row."""
    ((found,),) = transaction.run(
        "SELECT json_group_array(number) FROM surfaces WHERE number IN (SELECT value FROM json_each(%s))",
        [json.dumps(list(numbers))],
    )
    return set(json.loads(found))


def _outcome(transaction: _SqliteTransaction, entry: Entry) -> Outcome:
    ((code,),) = transaction.run(
        "SELECT outcome FROM rankings WHERE surface = %s AND key = %s", [entry.shown.surface, entry.shown.key]
    )
    return Outcome.from_code(code)
