"""Nobody waits for what is left of a deleted surface to be thrown away."""

import threading

import psycopg
import pytest
from helpers.servers import PostgresServer

from banditrank.storage.factory import open_store
from banditrank.storage.records import Event, CommitStatus
from banditrank.storage.sql import SqlStore
from banditrank.testing.store_events import CLICK, shown


def outcomes_left(address: str) -> int:
    """Open a store, and return how many outcomes are in its tables."""
    with open_store(address) as store:
        assert isinstance(store, SqlStore)
        ((number,),) = store._read("SELECT count(*) FROM outcomes")
        return int(number)


@pytest.mark.parametrize("address", ["sqlite", "postgresql"], indirect=True)
def test_a_portion_is_thrown_away_whenever_it_is_asked_for(address: str) -> None:
    with open_store(address) as store:
        assert isinstance(store, SqlStore)
        surface = store.create_surface("home", "{}").number
        store.commit([Event(shown(surface, number), CLICK) for number in range(2500)])
        assert store.delete_surface("home")
        left = [outcomes_left(address)]
        while store.purge_deleted():
            left.append(outcomes_left(address))
        assert left == [2500, 1501, 501, 0], "the first portion has a definition in it"
        assert store._read("SELECT count(*) FROM settings") == [(2,)], "the secret and the schema"


def test_nothing_is_counted_for_a_deleted_surface_before_all_is_thrown_away(address: str) -> None:
    with open_store(address) as store:
        surface = store.create_surface("home", "{}").number
        store.commit([Event(shown(surface, number), CLICK) for number in range(10)])
        assert store.delete_surface("home")
        late = [Event(shown(surface, 1), CLICK), Event(shown(surface, 11), CLICK)]
        assert store.commit(late).statuses == [CommitStatus.DELETED] * 2


def test_whoever_tidies_waits_for_whoever_else_does(postgresql: PostgresServer) -> None:
    address = postgresql.address()
    name = address.partition("schema=")[2]
    with (
        open_store(address) as store,
        psycopg.connect(postgresql.database, options=f"-csearch_path={name}") as other,
        psycopg.connect(postgresql.database, autocommit=True) as watching,
    ):
        surface = store.create_surface("home", "{}").number
        store.commit([Event(shown(surface, number), CLICK) for number in range(2500)])
        assert store.delete_surface("home")
        other.execute("UPDATE settings SET value = value WHERE name LIKE 'deleted surface %'")
        other.execute("DELETE FROM outcomes WHERE key IN (SELECT key FROM outcomes ORDER BY key LIMIT 1000)")
        thread = threading.Thread(target=store.purge_deleted)
        thread.start()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while not watching.execute(waiting).fetchone():
            assert thread.is_alive()
        other.commit()
        thread.join()
        assert outcomes_left(address) == 501, "it was taken for all there is that another was just deleting"
        assert store.purge_deleted()
