"""The PostgreSQL store limits the time of statements, checks durability and needs few privileges."""

import psycopg
import pytest
from helpers.servers import PASSWORD, PostgresServer

from banditrank.errors import StoreError, StoreUnavailableError
from banditrank.storage._factory import open_store
from banditrank.storage._migrations import MIGRATIONS
from banditrank.storage._postgresql import PostgresStore
from banditrank.storage._records import CommitStatus, Event
from banditrank.testing._store_concurrency import run_in_threads
from banditrank.testing._store_events import CLICK, shown


def test_a_slow_statement_is_cancelled_by_the_server(postgresql: PostgresServer) -> None:
    address = postgresql.address()
    table = f"{address.partition('schema=')[2]}.surfaces"
    with open_store(address) as store:
        surface = store.create_surface("home", "{}").surface_id
    with PostgresStore(address, timeout_seconds=1.0) as store, psycopg.connect(postgresql.database) as other:
        other.execute(f"LOCK TABLE {table}")
        with pytest.raises(StoreUnavailableError, match="statement timeout"):
            store.commit([Event(shown(surface, 1), CLICK)])
        other.rollback()
        assert store.commit([Event(shown(surface, 1), CLICK)]).statuses == [CommitStatus.COUNTED]


def test_migrations_have_no_time_limit(postgresql: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    address = postgresql.address()
    open_store(address).close()
    slow_step = "SELECT pg_sleep(2.5)"
    steps = (*MIGRATIONS, slow_step)
    monkeypatch.setattr("banditrank.storage._sql.MIGRATIONS", steps)

    def open_it() -> None:
        with PostgresStore(address, timeout_seconds=1.0) as store:
            assert store._read("SELECT value FROM settings WHERE name = 'schema'") == [(str(len(steps)),)]
            assert store._read("SHOW statement_timeout") == [("1s",)]

    run_in_threads(open_it, open_it)  # one waits for the other


def test_synchronous_commit_is_never_off(postgresql: PostgresServer) -> None:
    with psycopg.connect(postgresql.database, autocommit=True) as connection:
        for given, used in (("off", "on"), ("remote_apply", "remote_apply"), ("on", "on")):
            connection.execute(f"ALTER ROLE tester SET synchronous_commit = {given}")
            with open_store(postgresql.address()) as store:
                assert store._read("SHOW synchronous_commit") == [(used,)]
        connection.execute("ALTER ROLE tester RESET synchronous_commit")


def test_a_read_only_server_is_unavailable(postgresql: PostgresServer) -> None:
    address = postgresql.address()
    open_store(address).close()
    read_only = f"{address}&options=-cdefault_transaction_read_only%3Don"
    with open_store(read_only) as store, pytest.raises(StoreUnavailableError, match="read-only"):
        store.check()


def test_every_check_is_flushed_and_the_table_does_not_grow(postgresql: PostgresServer) -> None:
    with open_store(postgresql.address()) as store:
        assert isinstance(store, PostgresStore)

        def flushed() -> int:
            ((position,),) = store._read("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn")
            return int(position)

        for _ in range(3):
            before = flushed()
            store.check()
            assert flushed() > before
        for _ in range(400):  # their dead rows would fill three pages
            store.check()
        ((size,),) = store._read("SELECT pg_relation_size('settings')")
        assert size <= 2 * 8192


def test_a_server_without_fsync_is_rejected(postgresql: PostgresServer) -> None:
    address = postgresql.address()
    set_fsync(postgresql, "off")
    try:
        with pytest.raises(
            StoreError, match=r"has fsync = off, .* or accept the loss with .durability=relaxed"
        ):
            open_store(address)
        open_store(f"{address}&durability=relaxed").close()
    finally:
        set_fsync(postgresql, "on")
    open_store(address).close()


def set_fsync(server: PostgresServer, value: str) -> None:
    """Change the setting of the server, and wait until new connections have it."""
    with psycopg.connect(server.database, autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET fsync = {value}")
        connection.execute("SELECT pg_reload_conf()")
    while True:
        with psycopg.connect(server.database) as connection:
            if connection.execute("SHOW fsync").fetchone() == (value,):
                return


def test_an_existing_store_needs_no_privilege_to_create(postgresql: PostgresServer) -> None:
    address = postgresql.address()
    schema = address.partition("schema=")[2]
    open_store(address).close()
    with psycopg.connect(postgresql.database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE modest LOGIN PASSWORD '{PASSWORD}'")
        modest = address.replace("tester:", "modest:")
        with pytest.raises(StoreError, match="permission denied") as error:
            open_store(modest)
        assert not isinstance(error.value, StoreUnavailableError)
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO modest")
        connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO modest")
        with open_store(modest) as store:
            surface = store.create_surface("home", "{}").surface_id
            assert store.commit([Event(shown(surface, 1), CLICK)]).statuses == [CommitStatus.COUNTED]
        connection.execute("DROP OWNED BY modest; DROP ROLE modest")
