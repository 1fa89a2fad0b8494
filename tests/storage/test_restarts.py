"""Servers that are killed, restarted or frozen: no acknowledged event is lost, and stores recover."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.servers import PASSWORD, DatabaseServer, PostgresServer

from banditrank.errors import StoreUnavailableError
from banditrank.storage._factory import open_store
from banditrank.storage._postgresql import PostgresStore
from banditrank.storage._records import CommitStatus, Event
from banditrank.storage._redis import RedisStore
from banditrank.testing._store_events import CLICK, read_rounds, shown


@pytest.fixture(params=["postgresql", "redis"])
def server(request: pytest.FixtureRequest) -> Iterator[DatabaseServer]:
    started: DatabaseServer = request.getfixturevalue(request.param)
    yield started
    started.start()  # in case a test failed while it was down


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(server: DatabaseServer) -> None:
    acknowledged: list[int] = []
    enough = threading.Event()
    with open_store(server.address()) as store:
        surface = store.create_surface("home", "{}").surface_id

        def write() -> None:
            try:
                for number in range(1_000_000):
                    store.commit([Event(shown(surface, number), CLICK)])
                    acknowledged.append(number)
                    if number == 50:
                        enough.set()
            except StoreUnavailableError:
                enough.set()

        thread = threading.Thread(target=write)
        thread.start()
        enough.wait()
        server.kill()
        thread.join()
        assert len(acknowledged) > 50
        for attempt in (store.check, store.surfaces, lambda: store.changes(surface, after=0)):
            with pytest.raises(StoreUnavailableError) as error:
                attempt()
            assert PASSWORD not in str(error.value)
        server.start()
        store.check()
        events = [Event(shown(surface, number), CLICK) for number in range(len(acknowledged) + 1)]
        statuses = store.commit(events).statuses
        assert set(statuses[:-1]) == {CommitStatus.REPEATED}
        # The last one was written or not when the server died; repeating it is safe in either case.
        assert statuses[-1] in {CommitStatus.REPEATED, CommitStatus.COUNTED}
        assert read_rounds(store, surface) == len(events)


def test_an_idle_store_works_after_a_restart_of_its_server(server: DatabaseServer) -> None:
    with open_store(server.address()) as store:
        surface = store.create_surface("home", "{}").surface_id
        server.restart()
        assert store.commit([Event(shown(surface, 1), CLICK)]).statuses == [CommitStatus.COUNTED]
        assert store.find_surface("home") is not None


def processes_of(server: DatabaseServer) -> list[int]:
    """Return the ids of a server's process and its children."""
    assert server._process is not None
    parent = server._process.pid
    found = [parent]
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        if int(fields[1]) == parent:
            found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
def test_calls_to_a_frozen_server_time_out(server: DatabaseServer) -> None:
    kind = PostgresStore if isinstance(server, PostgresServer) else RedisStore
    address = server.address()
    with open_store(address) as store:
        surface = store.create_surface("home", "{}").surface_id
    with kind(address, timeout_seconds=1.0) as store:
        stopped = processes_of(server)
        for process in stopped:
            os.kill(process, signal.SIGSTOP)
        try:
            began = time.monotonic()
            with pytest.raises(StoreUnavailableError):
                store.commit([Event(shown(surface, 1), CLICK)])
            with pytest.raises(StoreUnavailableError):
                store.check()
            assert time.monotonic() - began < 30
        finally:
            for process in stopped:
                os.kill(process, signal.SIGCONT)
        # The event that was sent before may be written only now, so that it is either counted or repeated.
        store.check()
        status = store.commit([Event(shown(surface, 1), CLICK)]).statuses[0]
        assert status in {CommitStatus.COUNTED, CommitStatus.REPEATED}
        assert read_rounds(store, surface) == 1
