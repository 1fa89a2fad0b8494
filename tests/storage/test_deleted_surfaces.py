"""The data of deleted surfaces is purged in batches, and no call waits for all of it."""

import threading

import psycopg
import pytest
from helpers.servers import PostgresServer

from banditrank.storage._factory import open_store
from banditrank.storage._records import CommitStatus, Event
from banditrank.storage._sql import SqlStore
from banditrank.testing._store_events import CLICK, shown


def outcomes_left(address: str) -> int:
    """Return the number of outcomes in the tables of a store."""
    with open_store(address) as store:
        assert isinstance(store, SqlStore)
        ((count,),) = store._read("SELECT count(*) FROM outcomes")
        return int(count)


@pytest.mark.parametrize("address", ["sqlite", "postgresql"], indirect=True)
def test_each_purge_removes_one_batch(address: str) -> None:
    with open_store(address) as store:
        assert isinstance(store, SqlStore)
        surface = store.create_surface("home", "{}").surface_id
        store.commit([Event(shown(surface, number), CLICK) for number in range(2500)])
        assert store.delete_surface("home")
        left = [outcomes_left(address)]
        while store.purge_deleted():
            left.append(outcomes_left(address))
        assert left == [2500, 1501, 501, 0], "the first batch includes a definition"
        assert store._read("SELECT count(*) FROM settings") == [(2,)], "the secret and the schema"


def test_events_of_a_deleted_surface_are_rejected_before_it_is_purged(address: str) -> None:
    with open_store(address) as store:
        surface = store.create_surface("home", "{}").surface_id
        store.commit([Event(shown(surface, number), CLICK) for number in range(10)])
        assert store.delete_surface("home")
        late = [Event(shown(surface, 1), CLICK), Event(shown(surface, 11), CLICK)]
        assert store.commit(late).statuses == [CommitStatus.DELETED] * 2


def test_a_purge_waits_for_a_concurrent_purge(postgresql: PostgresServer) -> None:
    address = postgresql.address()
    name = address.partition("schema=")[2]
    with (
        open_store(address) as store,
        psycopg.connect(postgresql.database, options=f"-csearch_path={name}") as other,
        psycopg.connect(postgresql.database, autocommit=True) as monitor,
    ):
        surface = store.create_surface("home", "{}").surface_id
        store.commit([Event(shown(surface, number), CLICK) for number in range(2500)])
        assert store.delete_surface("home")
        other.execute("UPDATE settings SET value = value WHERE name LIKE 'deleted surface %'")
        other.execute("DELETE FROM outcomes WHERE key IN (SELECT key FROM outcomes ORDER BY key LIMIT 1000)")
        thread = threading.Thread(target=store.purge_deleted)
        thread.start()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while not monitor.execute(waiting).fetchone():
            assert thread.is_alive()
        other.commit()
        thread.join()
        assert outcomes_left(address) == 501, (
            "rows that a concurrent purge deleted were taken for the last ones"
        )
        assert store.purge_deleted()
