"""The default store: a file, written durably, that several processes of one machine may share."""

import json
import logging
import os
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from banditrank.errors import InvalidInputError, StoreError, StoreUnavailableError
from banditrank.files import create_private, is_file, make_private
from banditrank.storage.base import WriteResult
from banditrank.storage.cells import cells_of
from banditrank.storage.connection_pool import ConnectionPool
from banditrank.storage.impression_batches import packed
from banditrank.storage.records import KEY_BYTES, Change, Event, Outcome, ImpressionId, group_by_surface, expiry_of
from banditrank.storage.sql import SqlStore
from banditrank.storage.sql_database import Row, Transaction

_log = logging.getLogger(__name__)
# Closing a file drops all locks that the process has on it: no other thread may use it while it is created.
_CREATING = threading.Lock()
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
# A group of entries as one row of a view: a trigger puts it into the tables, and refuses all of it if one of
# the outcomes is known already. It belongs to the connection, not to the file.
_WAY_IN = f"""
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
"""  # noqa: S608 - only a number of ours
_WRITE_GROUP = (
    "INSERT INTO groups SELECT number, version + 1, ?, ?, ?, ?, ?, ?, ?, ? "
    "FROM surfaces WHERE number = ? AND forgotten <= ? RETURNING version"
)


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

    def __init__(self, path: Path | str, *, patience: float = 2.0) -> None:
        self.path = Path(path)
        self._patience = patience
        self._identity: tuple[int, int] | None = None  # of the file that was opened
        self._connections = ConnectionPool(
            self._connect, is_stale=lambda _: self._is_replaced(), patience=patience
        )
        try:
            self._create()
            self._identity = self._present_identity()
            self._migrate(str(self.path))
            self._make_private()
        except BaseException as error:
            self.close()
            if isinstance(error, StoreUnavailableError) and not is_file(self.path):
                raise InvalidInputError("store", "must be a file that can be written", str(path)) from error
            raise

    def _create(self) -> None:
        """Create the file as a private one: it holds the secret that signs ranking ids, and hashes of keys.

        SQLite would create it with the permissions that the umask leaves. It gives its -wal and -shm files
        those of the database.
        """
        with _CREATING, suppress(OSError):  # SQLite fails for the same reason, and says which
            create_private(self.path)

    def _make_private(self) -> None:
        """Take the permissions of other users from files of an older version, or warn about them."""
        path = os.path.realpath(self.path)  # SQLite's other files are beside what a link points to
        are_private = [make_private(Path(f"{path}{suffix}")) for suffix in ("", "-wal", "-shm")]
        if not all(are_private):
            _log.warning("store file is accessible to other users, and holds secrets: %s", path)

    @contextmanager
    def _transaction(self, *, writes: bool = True) -> Iterator["_SqliteTransaction"]:
        with self._errors(), self._connections.one() as connection:
            connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            yield _SqliteTransaction(connection)
            connection.execute("COMMIT")

    def _migration(self) -> AbstractContextManager[Transaction]:
        return self._transaction()  # whoever writes is alone, and nobody stops it

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            passing = getattr(error, "sqlite_errorcode", 0) & 0xFF in _PASSING  # the rest says it in detail
            kind = StoreUnavailableError if passing else StoreError
            raise kind(f"{self.path}: {error}") from error

    def _present_identity(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _is_replaced(self) -> bool:
        """Return whether the path names another file than the one that was opened, or none."""
        return self._identity is not None and self._present_identity() != self._identity

    def _connect(self) -> sqlite3.Connection:
        if self._is_replaced():  # what is acknowledged must be in the file that the path names
            raise StoreUnavailableError(f"{self.path}: the file was moved, removed or replaced")
        connection = sqlite3.connect(
            self.path, timeout=self._patience, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(_WAY_IN)
        except BaseException:
            connection.close()
            raise
        return connection

    def _lock_surfaces(self, transaction: Transaction, numbers: Collection[int]) -> dict[int, int]:
        """Do not lock: whoever writes is alone already."""
        rows = transaction.run(
            "SELECT number, forgotten FROM surfaces WHERE number IN (SELECT value FROM json_each(%s))",
            [json.dumps(sorted(numbers))],
        )
        return dict(rows)

    def _has_settings(self, transaction: Transaction) -> bool:
        return bool(transaction.run("SELECT 1 FROM sqlite_master WHERE name = %s", ["settings"]))

    def _write(self, events: Sequence[Event], at: int) -> WriteResult:
        """Write a group as if all of it were new, as it nearly always is; if it is not, step by step.

        Every statement lets other threads run, and waits until it is its turn again. So there is one for each
        surface, which `_WAY_IN` takes apart; if there is only one, it is a transaction of its own.
        """
        groups = [_group(surface, some, at) for surface, some in group_by_surface(events).items()]
        with self._errors(), self._connections.one() as connection:
            try:
                if len(groups) > 1:
                    connection.execute("BEGIN IMMEDIATE")
                versions = [connection.execute(_WRITE_GROUP, group).fetchall() for group in groups]
                is_written = all(versions)  # no surface is gone, no ranking forgotten
            except sqlite3.IntegrityError:
                is_written = False
            if connection.in_transaction:
                connection.execute("COMMIT" if is_written else "ROLLBACK")
        if not is_written:
            return super()._write(events, at)
        changes = [
            Change(group.surface, version, group.cells, at)
            for group, ((version,),) in zip(groups, versions, strict=True)
            if group.cells
        ]
        return WriteResult(changes, {}, set(), set())

    def _settle(self, transaction: Transaction, outcomes: Mapping[ImpressionId, Outcome]) -> set[ImpressionId]:
        statement = "INSERT INTO outcomes VALUES (%s, %s, %s) ON CONFLICT DO NOTHING RETURNING 1"
        return {
            place for place, outcome in outcomes.items() if transaction.run(statement, [*place, outcome.code])
        }

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()


class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(_with_marks(statement), values).fetchall()


@cache
def _with_marks(statement: str) -> str:
    return statement.replace("%s", "?")


class _Group(NamedTuple):
    """Entries of one surface, as `_WRITE_GROUP` takes them."""

    at: int
    keys: bytes  # of those that have an outcome
    codes: str  # of their outcomes
    cells: bytes
    first: bytes  # and what else there is of a piece, of those that have none
    last: bytes
    rankings: int
    packed: bytes
    surface: int
    earliest: int  # when the first of them lapses


def _group(surface: int, events: Sequence[Event], at: int) -> _Group:
    settled = [event for event in events if event.outcome is not None]
    keys = b"".join([event.shown.key for event in settled])
    codes = ",".join([str(event.outcome.code) for event in settled if event.outcome is not None])
    shown = [event.shown for event in events if event.outcome is None]
    earliest = expiry_of(min([event.shown.key for event in events]))
    return _Group(at, keys, f"[{codes}]", cells_of(settled), *packed(shown), surface, earliest)
