"""Whatever is killed, nothing acknowledged is lost or counted twice; `make crash` kills for long."""

import threading
from pathlib import Path

import pytest
from crash_clients import Client
from crashes import Replica, crash
from servers import PostgresServer, RedisServer

KILLS = 4  # each takes a few seconds, to start again


def test_one_service_on_sqlite(tmp_path: Path) -> None:
    outcome = crash(f"sqlite:{tmp_path / 'store.db'}", kills=KILLS)
    assert outcome.acknowledged > 0


def test_two_services_on_postgresql(postgresql: PostgresServer) -> None:
    outcome = crash(postgresql.address(), kills=KILLS, replicas=2, server=postgresql, seed=1)
    assert outcome.acknowledged > 0


def test_two_services_on_redis(redis: RedisServer) -> None:
    outcome = crash(redis.address(), kills=KILLS, replicas=2, server=redis, seed=2)
    assert outcome.acknowledged > 0


def test_a_service_that_does_not_start_again_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, clients = Replica.start, []

    def start_once(replica: Replica) -> None:
        if replica.process is not None:
            clients.extend(thread for thread in threading.enumerate() if isinstance(thread, Client))
            raise AssertionError("the service did not start")
        start(replica)

    monkeypatch.setattr(Replica, "start", start_once)
    with pytest.raises(AssertionError, match="did not start"):
        crash(f"sqlite:{tmp_path / 'store.db'}", kills=1, clients=2)
    assert len(clients) == 2
    for client in clients:  # who have a feedback that nobody will ever acknowledge
        client.join(30)
        assert not client.is_alive()
