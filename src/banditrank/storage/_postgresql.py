"""The PostgreSQL store, which several machines can share."""

import math
import re
import select
import time
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from banditrank.errors import InvalidInputError, StoreError, StoreUnavailableError, one_line
from banditrank.storage._addresses import is_relaxed, redacted, split_options
from banditrank.storage._connection_pool import ConnectionPool
from banditrank.storage._records import ImpressionId, Outcome
from banditrank.storage._sql import Row, SqlStore, Transaction, outcome_number

_LOCK_CLASS = 0x62616E64  # first of the two integers of an advisory lock: separates ours from other programs'
_SECRET_PARAMETERS = ("password", "sslpassword")
_DIALECT = {
    "SERIAL": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "BYTES": "BYTEA",
    ") CLUSTERED": ")",
}
_TRANSIENT_ERRORS = (  # a retry may succeed, at the latest after an operator intervened
    psycopg.OperationalError,  # unreachable, shut down, too slow, disk full, deadlock
    psycopg.InterfaceError,  # closed connection
    psycopg.errors.ReadOnlySqlTransaction,  # standby
)


class PostgresStore(SqlStore):
    """A store in a PostgreSQL database, in a schema of its own.

    Parameters
    ----------
    address
        ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE``, with the options of libpq and two more:
        ``schema``, by default `banditrank`, and ``durability=relaxed``, which accepts a server whose fsync is
        off.
    timeout_seconds
        Time limit of opening a connection and of a statement; migrations have none.

    Raises
    ------
    InvalidInputError
        If the address is malformed.
    StoreUnavailableError
        If the server cannot be reached.
    StoreError
        If the schema is not a store, or of a newer version, or the server is not durable.
    """

    _dialect = _DIALECT

    def __init__(self, address: str, *, timeout_seconds: float = 5.0) -> None:
        driver_address, options = split_options(address, "schema", "durability")
        try:
            parameters: dict[str, Any] | None = conninfo_to_dict(driver_address)
        except psycopg.Error:  # its message quotes the address
            parameters = None
        # Without a host the password is parsed as the port, which libpq would quote.
        if parameters is None or not re.fullmatch(r"[0-9,]*", str(parameters.get("port") or "")):
            rule = "must be an address that PostgreSQL's libpq can read"
            raise InvalidInputError("store", rule, redacted(address)) from None
        self._schema = options.get("schema", "banditrank")
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", self._schema):
            raise InvalidInputError("schema", "must be lowercase letters, digits and _", self._schema)
        self._is_relaxed = is_relaxed(options)
        self._timeout_seconds = timeout_seconds
        self._parameters: dict[str, Any] = {
            "application_name": "banditrank",
            "connect_timeout": max(2, round(timeout_seconds)),  # libpq accepts whole seconds from 2
            **parameters,
            "client_encoding": "utf8",
        }
        host = parameters.get("host") or parameters.get("hostaddr") or "localhost"
        self._location = f"PostgreSQL at {host}"
        self._pool = ConnectionPool(self._connect, is_stale=_is_stale, timeout_seconds=timeout_seconds)
        try:
            self._migrate(self._location)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _transaction(self, *, read_only: bool = False) -> Iterator[Transaction]:
        with self._translate_errors(), self._pool.connection() as connection:
            if read_only:  # in autocommit mode: a single statement sees one state of the database
                yield _PostgresTransaction(connection)
            else:
                with connection.transaction():
                    yield _PostgresTransaction(connection)

    @contextmanager
    def _migration(self) -> Iterator[Transaction]:
        with self._translate_errors(), closing(self._connect()) as connection, connection.transaction():
            connection.timeout_seconds = math.inf
            transaction = _PostgresTransaction(connection)
            transaction.run("SET LOCAL statement_timeout = 0")
            transaction.run("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK_CLASS, self._schema])
            # IF NOT EXISTS would need the privilege to create a schema even if it exists.
            if transaction.run("SELECT to_regnamespace(%s) IS NULL", [self._schema]) == [(True,)]:
                transaction.run(f"CREATE SCHEMA {self._schema}")
            yield transaction

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            kind = StoreUnavailableError if isinstance(error, _TRANSIENT_ERRORS) else StoreError
            raise kind(f"{self._location}: {self._redacted_message(error)}") from error

    def _redacted_message(self, error: psycopg.Error) -> str:
        """Return the message of an error in one line, without passwords."""
        message = one_line(error)
        for name in _SECRET_PARAMETERS:
            if secret := self._parameters.get(name):
                message = message.replace(str(secret), "…")
        return message

    def _connect(self) -> "_TimedConnection":
        connection = _TimedConnection.connect(autocommit=True, **self._parameters)
        try:
            # The server cancels a statement that takes too long; this limit is for one that does not respond.
            connection.timeout_seconds = 2 * self._timeout_seconds
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            ((fsync, *_),) = connection.execute(
                "SELECT current_setting('fsync'), set_config('search_path', %s, false), "
                "set_config('statement_timeout', %s, false), "
                "CASE current_setting('synchronous_commit') WHEN 'off' "  # every other value is durable
                "THEN set_config('synchronous_commit', 'on', false) END",
                [self._schema, f"{round(1000 * self._timeout_seconds)}ms"],
            ).fetchall()
        except BaseException:
            connection.close()
            raise
        if fsync != "on" and not self._is_relaxed:
            connection.close()
            raise StoreError(
                f"{self._location} has fsync = {fsync}, which can lose acknowledged feedback: set it to on, "
                "or accept the loss with ?durability=relaxed"
            )
        return connection

    def _lock_surfaces(self, transaction: Transaction, surface_ids: Collection[int]) -> dict[int, int]:
        # Sorted, so that two transactions that lock the same surfaces cannot deadlock.
        rows = transaction.run(
            "SELECT number, forgotten FROM surfaces WHERE number = ANY(%s::bigint[]) "
            "ORDER BY number FOR UPDATE",
            [_array(sorted(surface_ids))],
        )
        return dict(rows)

    def _has_settings(self, transaction: Transaction) -> bool:
        rows = transaction.run("SELECT to_regclass(%s) IS NOT NULL", [f"{self._schema}.settings"])
        return bool(rows[0][0])

    def _insert_outcomes(
        self, transaction: Transaction, outcomes: Mapping[ImpressionId, Outcome]
    ) -> set[ImpressionId]:
        if not outcomes:
            return set()
        rows = transaction.run(
            "INSERT INTO outcomes SELECT * FROM unnest(%s::bigint[], %s::bytea[], %s::bigint[]) "
            "ON CONFLICT DO NOTHING RETURNING surface, key",
            [
                _array([surface_id for surface_id, _ in outcomes]),
                _array([key for _, key in outcomes]),
                _array([outcome_number(outcome) for outcome in outcomes.values()]),
            ],
        )
        return {(surface_id, key) for surface_id, key in rows}

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


def _array(values: Sequence[int | bytes]) -> str:
    r"""Return an array literal of PostgreSQL; psycopg's adapter takes as long as the rest of a commit.

    Examples
    --------
    >>> print(_array([3, b"\x00\xff"]))
    {3,"\\x00ff"}
    """
    words = [rf'"\\x{value.hex()}"' if isinstance(value, bytes) else str(value) for value in values]
    return f"{{{','.join(words)}}}"


class _TimedConnection(psycopg.Connection[Row]):
    """A connection that stops waiting for a server that does not respond."""

    timeout_seconds = 60.0

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        """Wait like psycopg, up to the timeout."""
        return super().wait(_with_timeout(gen, self.timeout_seconds), *args, **options)


def _with_timeout(steps: Generator[Any, Any, Any], timeout_seconds: float) -> Generator[Any, Any, Any]:
    deadline = time.monotonic() + timeout_seconds
    try:
        awaited = next(steps)
        while True:
            ready = yield awaited
            if not ready and time.monotonic() > deadline:
                raise psycopg.OperationalError(f"no response within {timeout_seconds:g} s")
            awaited = steps.send(ready)
    except StopIteration as stop:
        return stop.value


def _is_stale(connection: psycopg.Connection[Row]) -> bool:
    """Return whether an idle connection has data to read, which means that the server closed it."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


class _PostgresTransaction:
    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        cursor = self._connection.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []
