"""The store of several machines: a PostgreSQL database."""

import math
import re
import select
import time
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from banditrank.errors import InvalidInputError, StoreError, StoreUnavailableError
from banditrank.storage.addresses import is_relaxed, redacted, without_options
from banditrank.storage.connection_pool import ConnectionPool
from banditrank.storage.records import Outcome, ImpressionId
from banditrank.storage.sql import SqlStore
from banditrank.storage.sql_database import Row, Transaction

_LOCK = 0x62616E64  # of advisory locks: the first of two numbers, so that ours are told from others'
_SECRETS = ("password", "sslpassword")
_TYPES = {
    "SERIAL": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "BYTES": "BYTEA",
    ") CLUSTERED": ")",
}
_PASSING = (  # what may be over when it is tried again, or after somebody mended it
    psycopg.OperationalError,  # not reached, shut down, too slow, disk full, deadlock
    psycopg.InterfaceError,  # the connection was closed
    psycopg.errors.ReadOnlySqlTransaction,  # a standby
)


class PostgresStore(SqlStore):
    """A store in a PostgreSQL database, in a schema of its own.

    Parameters
    ----------
    address
        ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE``, with whatever options libpq knows, and two of ours:
        ``schema``, `banditrank` unless told; and ``durability=relaxed``, which accepts a server that does not
        wait for its disk.
    patience
        How many seconds a connection, and a statement, may take; for bringing the tables up to date there is
        no limit.
    """

    _words = _TYPES

    def __init__(self, address: str, *, patience: float = 5.0) -> None:
        for_driver, options = without_options(address, "schema", "durability")
        try:
            parameters: dict[str, Any] | None = conninfo_to_dict(for_driver)
        except psycopg.Error:  # whose message quotes from the address
            parameters = None
        # Without a host, a password stands where the port belongs; libpq would tell.
        if parameters is None or not re.fullmatch(r"[0-9,]*", str(parameters.get("port") or "")):
            rule = "must be an address that PostgreSQL's libpq can read"
            raise InvalidInputError("store", rule, redacted(address)) from None
        self._schema = options.get("schema", "banditrank")
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", self._schema):
            raise InvalidInputError("schema", "must be small letters, digits and _", self._schema)
        self._relaxed = is_relaxed(options)
        self._patience = patience
        self._parameters: dict[str, Any] = {
            "application_name": "banditrank",
            "connect_timeout": max(2, round(patience)),  # libpq takes whole seconds, and no less than 2
            **parameters,
            "client_encoding": "utf8",
        }
        self._where = (
            f"PostgreSQL at {parameters.get('host') or parameters.get('hostaddr') or 'this machine'}"
        )
        self._connections = ConnectionPool(self._connect, is_stale=_is_stale, patience=patience)
        try:
            self._migrate(self._where)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _transaction(self, *, writes: bool = True) -> Iterator[Transaction]:
        with self._errors(), self._connections.one() as connection:
            if writes:
                with connection.transaction():
                    yield _PostgresTransaction(connection)
            else:  # one statement, which sees one state
                yield _PostgresTransaction(connection)

    @contextmanager
    def _migration(self) -> Iterator[Transaction]:
        with self._errors(), closing(self._connect()) as connection, connection.transaction():
            connection.patience = math.inf
            transaction = _PostgresTransaction(connection)
            transaction.run("SET LOCAL statement_timeout = 0")
            transaction.run("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK, self._schema])
            # IF NOT EXISTS would need the right to create it even where there is nothing to do.
            if transaction.run("SELECT to_regnamespace(%s) IS NULL", [self._schema]) == [(True,)]:
                transaction.run(f"CREATE SCHEMA {self._schema}")
            yield transaction

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            kind = StoreUnavailableError if isinstance(error, _PASSING) else StoreError
            raise kind(f"{self._where}: {self._in_one_line(error)}") from error

    def _in_one_line(self, error: psycopg.Error) -> str:
        message = " ".join(str(error).split())
        for name in _SECRETS:
            if secret := self._parameters.get(name):
                message = message.replace(str(secret), "…")
        return message

    def _connect(self) -> "_Impatient":
        connection = _Impatient.connect(autocommit=True, **self._parameters)
        try:
            # The server stops a statement that takes too long; if it does not even do that, we stop waiting.
            connection.patience = 2 * self._patience
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            ((fsync, *_),) = connection.execute(
                "SELECT current_setting('fsync'), set_config('search_path', %s, false), "
                "set_config('statement_timeout', %s, false), "
                "CASE current_setting('synchronous_commit') WHEN 'off' "  # the others are as safe or safer
                "THEN set_config('synchronous_commit', 'on', false) END",
                [self._schema, f"{round(1000 * self._patience)}ms"],
            ).fetchall()
        except BaseException:
            connection.close()
            raise
        if fsync != "on" and not self._relaxed:
            connection.close()
            raise StoreError(
                f"{self._where} has fsync = {fsync}, so that what it acknowledged can be lost: set it to on, "
                "or accept that with ?durability=relaxed"
            )
        return connection

    def _lock_surfaces(self, transaction: Transaction, numbers: Collection[int]) -> dict[int, int]:
        # Always in this order: two that lock the same surfaces never wait for each other.
        rows = transaction.run(
            "SELECT number, forgotten FROM surfaces WHERE number = ANY(%s::bigint[]) "
            "ORDER BY number FOR UPDATE",
            [_array(sorted(numbers))],
        )
        return dict(rows)

    def _has_settings(self, transaction: Transaction) -> bool:
        rows = transaction.run("SELECT to_regclass(%s) IS NOT NULL", [f"{self._schema}.settings"])
        return bool(rows[0][0])

    def _settle(self, transaction: Transaction, outcomes: Mapping[ImpressionId, Outcome]) -> set[ImpressionId]:
        if not outcomes:
            return set()
        rows = transaction.run(
            "INSERT INTO outcomes SELECT * FROM unnest(%s::bigint[], %s::bytea[], %s::bigint[]) "
            "ON CONFLICT DO EMPTY_SNAPSHOT RETURNING surface, key",
            [
                _array([surface for surface, _ in outcomes]),
                _array([key for _, key in outcomes]),
                _array([outcome.code for outcome in outcomes.values()]),
            ],
        )
        return {(surface, key) for surface, key in rows}

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()


def _array(values: Sequence[int | bytes]) -> str:
    r"""Return an array as PostgreSQL reads it; psycopg's own way takes as long as the rest of a commit.

    Examples
    --------
    >>> print(_array([3, b"\x00\xff"]))
    {3,"\\x00ff"}
    """
    words = [rf'"\\x{value.hex()}"' if isinstance(value, bytes) else str(value) for value in values]
    return f"{{{','.join(words)}}}"


class _Impatient(psycopg.Connection[Row]):
    """A connection that does not wait forever for a server that does not answer."""

    patience = 60.0

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        """Do what psycopg does, for so many seconds."""
        return super().wait(_limited(gen, self.patience), *args, **options)


def _limited(steps: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    end = time.monotonic() + seconds
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > end:
                raise psycopg.OperationalError(f"no answer within {seconds:g} s")
            wanted = steps.send(ready)
    except StopIteration as stop:
        return stop.value


def _is_stale(connection: psycopg.Connection[Row]) -> bool:
    """Return whether there is something to read where nothing was asked: the farewell of the server."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


class _PostgresTransaction:
    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        cursor = self._connection.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []
