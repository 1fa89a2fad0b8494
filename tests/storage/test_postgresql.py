"""What PostgreSQL is asked for, and what it refuses."""

import psycopg
import pytest
from helpers.servers import PASSWORD, PostgresServer

from banditrank.errors import StoreError, StoreUnavailableError
from banditrank.storage.factory import open_store
from banditrank.storage.postgresql import PostgresStore
from banditrank.storage.records import Event, CommitStatus
from banditrank.storage.migrations import MIGRATIONS
from banditrank.testing.store_concurrency import run_in_threads
from banditrank.testing.store_events import CLICK, shown


def test_a_statement_that_takes_too_long_is_stopped_by_postgresql(postgresql: PostgresServer) -> None:
    address = postgresql.address()
    table = f"{address.partition('schema=')[2]}.surfaces"
    with open_store(address) as patient:
        surface = patient.create_surface("home", "{}").number
    with PostgresStore(address, patience=1.0) as store, psycopg.connect(postgresql.database) as other:
        other.execute(f"LOCK TABLE {table}")
        with pytest.raises(StoreUnavailableError, match="statement timeout"):
            store.commit([Event(shown(surface, 1), CLICK)])
        other.rollback()
        assert store.commit([Event(shown(surface, 1), CLICK)]).statuses == [CommitStatus.COUNTED]


def test_tables_are_brought_up_to_date_however_long_that_takes(
    postgresql: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgresql.address()
    open_store(address).close()
    longer_than_anybody_else_may_take = "SELECT pg_sleep(2.5)"
    steps = (*MIGRATIONS, longer_than_anybody_else_may_take)
    monkeypatch.setattr("banditrank.storage.sql_database.MIGRATIONS", steps)

    def open_it() -> None:
        with PostgresStore(address, patience=1.0) as store:
            assert store._read("SELECT value FROM settings WHERE name = 'schema'") == [(str(len(steps)),)]
            assert store._read("SHOW statement_timeout") == [("1s",)]

    run_in_threads(open_it, open_it)  # one of them waits for the other


def test_postgresql_is_told_to_wait_for_its_disk(postgresql: PostgresServer) -> None:
    with psycopg.connect(postgresql.database, autocommit=True) as connection:
        for given, used in (("off", "on"), ("remote_apply", "remote_apply"), ("on", "on")):
            connection.execute(f"ALTER ROLE tester SET synchronous_commit = {given}")
            with open_store(postgresql.address()) as store:
                assert store._read("SHOW synchronous_commit") == [(used,)]
        connection.execute("ALTER ROLE tester RESET synchronous_commit")


def test_a_postgresql_that_cannot_be_written_is_unavailable(postgresql: PostgresServer) -> None:
    address = postgresql.address()
    open_store(address).close()
    read_only = f"{address}&options=-cdefault_transaction_read_only%3Don"
    with open_store(read_only) as store, pytest.raises(StoreUnavailableError, match="read-only"):
        store.check()


def test_every_check_of_postgresql_is_flushed_and_the_table_does_not_grow(postgresql: PostgresServer) -> None:
    with open_store(postgresql.address()) as store:
        assert isinstance(store, PostgresStore)

        def flushed() -> int:
            ((position,),) = store._read("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn")
            return int(position)

        for _ in range(3):
            before = flushed()
            store.check()
            assert flushed() > before
        for _ in range(400):  # dead rows of which fill three pages
            store.check()
        ((size,),) = store._read("SELECT pg_relation_size('settings')")
        assert size <= 2 * 8192


def test_a_postgresql_that_does_not_wait_for_its_disk_is_refused(postgresql: PostgresServer) -> None:
    address = postgresql.address()
    set_fsync(postgresql, "off")
    try:
        with pytest.raises(StoreError, match=r"has fsync = off, .* or accept that with .durability=relaxed"):
            open_store(address)
        open_store(f"{address}&durability=relaxed").close()
    finally:
        set_fsync(postgresql, "on")
    open_store(address).close()


def set_fsync(server: PostgresServer, value: str) -> None:
    """Change the setting, and wait until new connections have it."""
    with psycopg.connect(server.database, autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET fsync = {value}")
        connection.execute("SELECT pg_reload_conf()")
    while True:
        with psycopg.connect(server.database) as connection:
            if connection.execute("SHOW fsync").fetchone() == (value,):
                return


def test_a_role_that_may_create_nothing_can_use_a_store_that_exists(postgresql: PostgresServer) -> None:
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
            surface = store.create_surface("home", "{}").number
            assert store.commit([Event(shown(surface, 1), CLICK)]).statuses == [CommitStatus.COUNTED]
        connection.execute("DROP OWNED BY modest; DROP ROLE modest")
