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
from helpers.live import wait_until
from helpers.servers import PostgresServer, RedisServer

LONG = pytest.param(4, 8, marks=pytest.mark.campaign)

# A service takes a second of the processor to restart; the second kill is that of the store's server.
run_lengths = pytest.mark.parametrize(("kills", "clients"), [(2, 4), LONG], ids=["short", "long"])


@pytest.mark.parametrize(("kills", "clients"), [(1, 4), LONG], ids=["short", "long"])
def test_one_service_on_sqlite(tmp_path: Path, kills: int, clients: int) -> None:
    outcome = crash(f"sqlite:{tmp_path / 'store.db'}", kills=kills, clients=clients)
    assert outcome.acknowledged > 0


@run_lengths
def test_two_services_on_postgresql(postgresql: PostgresServer, kills: int, clients: int) -> None:
    outcome = crash(postgresql.address(), kills=kills, replicas=2, clients=clients, server=postgresql, seed=1)
    assert outcome.acknowledged > 0
    assert outcome.server_kills == 1


@run_lengths
def test_two_services_on_redis(redis: RedisServer, kills: int, clients: int) -> None:
    outcome = crash(redis.address(), kills=kills, replicas=2, clients=clients, server=redis, seed=2)
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
        wait_until(lambda: any(line.startswith("sleep 600") for line in left_running([tmp_path])))
    finally:
        os.kill(orphan, signal.SIGKILL)
