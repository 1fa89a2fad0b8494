"""No acknowledged feedback is lost or counted twice if processes are killed; `make crash` runs longer."""

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from campaigns.crash_clients import Client
from campaigns.crashes import SET_UPS, STORES, crash, kills_of, left_running
from campaigns.service_process import ServiceProcess
from helpers.servers import PostgresServer, RedisServer

KILLS = 4  # each takes a few seconds, to start again


def test_one_service_on_sqlite(tmp_path: Path) -> None:
    outcome = crash(f"sqlite:{tmp_path / 'store.db'}", kills=KILLS)
    assert outcome.acknowledged > 0


def test_two_services_on_postgresql(postgresql: PostgresServer) -> None:
    outcome = crash(postgresql.address(), kills=KILLS, replicas=2, server=postgresql, seed=1)
    assert outcome.acknowledged > 0
    assert outcome.server_kills == 1


def test_two_services_on_redis(redis: RedisServer) -> None:
    outcome = crash(redis.address(), kills=KILLS, replicas=2, server=redis, seed=2)
    assert outcome.acknowledged > 0
    assert outcome.server_kills == 1


def test_a_service_that_does_not_restart_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, clients = ServiceProcess.start, []

    def start_once(replica: ServiceProcess) -> None:
        if replica.process is not None:
            clients.extend(thread for thread in threading.enumerate() if isinstance(thread, Client))
            raise AssertionError("the service did not start")
        start(replica)

    monkeypatch.setattr(ServiceProcess, "start", start_once)
    with pytest.raises(AssertionError, match="did not start"):
        crash(f"sqlite:{tmp_path / 'store.db'}", kills=1, clients=2)
    assert len(clients) == 2
    for client in clients:  # whose feedback is never acknowledged
        client.join(30)
        assert not client.is_alive()


@pytest.mark.parametrize("kills", [12, 200])
def test_kills_are_divided_among_set_ups(kills: int) -> None:
    shares = {store: [kills_of(one, kills) for one in SET_UPS if one.store == store] for store in STORES}
    assert {store: sum(of_store) for store, of_store in shares.items()} == {
        "SQLite": kills,
        "PostgreSQL": kills // 4,
        "Redis": kills // 4,
    }
    assert all(max(of_store) - min(of_store) <= 1 for of_store in shares.values())


def test_an_orphan_in_a_servers_directory_is_found(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"]
    orphan = int(subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout)
    try:
        assert any(line.startswith("sleep 600") for line in left_running([tmp_path]))
    finally:
        os.kill(orphan, signal.SIGKILL)
