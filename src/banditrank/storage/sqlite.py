"""The default store: a file, written durably, that several processes of one machine may share."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from banditrank.errors import InvalidInputError, StoreError, StoreUnavailableError
from banditrank.storage.base import Recorded
from banditrank.storage.connections import Connections
from banditrank.storage.records import Change, Entry, Outcome
from banditrank.storage.sql import Row, SqlStore, Transaction

_PASSING = {  # what may be over when it is tried again, or after somebody mended it
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
    patience
        How many seconds to wait for another process that writes.
    """

    _words = _TYPES

    def __init__(self, path: Path | str, *, patience: float = 5.0) -> None:
        self.path = Path(path)
        self._patience = patience
        self._connections = Connections(self._connect, patience=patience)
        try:
            self._migrate(str(self.path))
        except BaseException as error:
            self.close()
            if isinstance(error, StoreUnavailableError) and not self.path.is_file():
                raise InvalidInputError("store", "must be a file that can be written", str(path)) from error
            raise

    @contextmanager
    def _transaction(self, *, writes: bool = True) -> Iterator["_SqliteTransaction"]:
        try:
            with self._connections.one() as connection:
                connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                yield _SqliteTransaction(connection)
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            passing = getattr(error, "sqlite_errorcode", 0) & 0xFF in _PASSING  # the rest says it in detail
            kind = StoreUnavailableError if passing else StoreError
            raise kind(f"{self.path}: {error}") from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=self._patience, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _lock_schema(self, transaction: Transaction) -> None:
        """Do nothing: whoever writes is alone already."""

    def _lock_surfaces(self, transaction: Transaction, numbers: Sequence[int]) -> set[int]:
        """Return which surfaces there are, in one row; whoever writes is alone already."""
        ((found,),) = transaction.run(
            "SELECT json_group_array(number) FROM surfaces WHERE number IN (SELECT value FROM json_each(%s))",
            [json.dumps(sorted(set(numbers)))],
        )
        return set(json.loads(found))

    def _has_settings(self, transaction: Transaction) -> bool:
        return bool(transaction.run("SELECT 1 FROM sqlite_master WHERE name = %s", ["settings"]))

    def _write(self, entries: Sequence[Entry]) -> tuple[list[Recorded | None], list[Change]]:
        with self._transaction() as transaction:
            there = self._lock_surfaces(transaction, [entry.shown.surface for entry in entries])
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
                elif entry.outcome is None or new is settled or entry in new:
                    recorded.append(Recorded(entry.outcome, entry.outcome is not None))
                else:
                    recorded.append(Recorded(_outcome(transaction, entry), new=False))
            return recorded, self._add_changes(transaction, new)

    def _settle(self, transaction: "_SqliteTransaction", entries: list[Entry]) -> list[Entry]:
        """Write outcomes; return those that are new, which nearly always are all: then the same list."""
        transaction.run("SAVEPOINT settling")
        if transaction.insert(entries, _SETTLE) == len(entries):
            return entries
        transaction.run("ROLLBACK TO settling")
        return [entry for entry in entries if transaction.insert([entry], _SETTLE)]

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()


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


def _outcome(transaction: _SqliteTransaction, entry: Entry) -> Outcome:
    ((code,),) = transaction.run(
        "SELECT outcome FROM rankings WHERE surface = %s AND key = %s", [entry.shown.surface, entry.shown.key]
    )
    return Outcome.from_code(code)
