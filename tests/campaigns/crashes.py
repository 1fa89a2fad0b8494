"""Crash campaign: kill services at random moments while clients rank and report, then check the counts.

Every client retries feedback until it is acknowledged, so at the end the store must hold exactly the
acknowledged feedback; where impressions expire, also those without feedback.

``make crash KILLS=200`` makes 200 kills on SQLite, divided among its set-ups, and a quarter of them each on
PostgreSQL and on Redis, whose servers are killed, too. The tests run it briefly.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import httpx
from helpers.servers import PostgresServer, PrivateServer, RedisServer, private_directory

import banditrank
from campaigns.crash_clients import Client, surface
from campaigns.crash_counts import check, wait_until_settled
from campaigns.progress import print_result, show_progress
from campaigns.service_process import ServiceProcess

_ORPHAN_SECONDS = 10.0
_MAX_RESPONSE_SECONDS = 60.0  # until feedback is acknowledged after the last kill


@dataclass
class Outcome:
    """Result of a run."""

    kills: int
    server_kills: int  # of these, of the store's server
    shown: int
    acknowledged: int
    repeated: int  # acknowledged as counted before: the first acknowledgement was lost
    seconds: float  # duration of the kills with all restarts


def crash(
    store: str,
    *,
    kills: int,
    replicas: int = 1,
    server: PrivateServer | None = None,
    expiring: bool = False,
    clients: int = 8,
    seed: int = 0,
    killed: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Run services and clients, kill some of them, and check the store.

    Parameters
    ----------
    store
        Address of an empty store.
    kills
        How often one of the services is killed, and started again.
    replicas
        How many services share the store.
    server
        The store's server, which is killed now and then in the place of a service.
    expiring
        Whether rankings expire within seconds and count then, and some are reported late or not at all.
    clients
        How many clients rank and report.
    seed
        For the moments and the clients' choices.
    killed
        Is told after each kill how many there were.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    running = [ServiceProcess(store) for _ in range(replicas)]
    addresses = [replica.address for replica in running]
    threads = [Client(addresses, seed + number, expiring=expiring) for number in range(clients)]
    server_kills = 0
    with ExitStack() as at_the_end:
        for replica in running:
            at_the_end.callback(replica.stop)
            replica.start()
        created = httpx.post(f"{addresses[0]}/v1/surfaces", json=surface(expiring=expiring), timeout=300)
        assert created.status_code == 201, created.text
        for thread in threads:
            at_the_end.callback(thread.aborted.set)
            thread.start()
        began = time.monotonic()
        for number in range(kills):
            time.sleep(chance.uniform(0.05, 0.6))
            if server is not None and number % 4 == 1:
                server.restart()
                server_kills += 1
            else:
                victim = chance.choice(running)
                victim.kill()
                victim.start()
            killed(number + 1)
        seconds = time.monotonic() - began
        time.sleep(0.2)
        end(threads)
        if expiring:
            wait_until_settled(store)
    assert not any(thread.refusals for thread in threads), [thread.refusals for thread in threads]
    check(store, threads, expiring=expiring)
    rankings = list(chain(*(thread.rankings for thread in threads)))
    acknowledged = sum(ranking.acknowledged for ranking in rankings)
    repeated = sum(thread.repeated for thread in threads)
    return Outcome(kills, server_kills, len(rankings), acknowledged, repeated, seconds)


def end(threads: list[Client]) -> None:
    """Wait for pending requests of clients."""
    for thread in threads:
        thread.finished.set()
    until = time.monotonic() + _MAX_RESPONSE_SECONDS
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads), "a feedback is never acknowledged"


class SetUp(NamedTuple):
    """Set-up of services and store for a run."""

    store: str
    services: int
    expiring: bool

    @property
    def name(self) -> str:
        """Name of the set-up in the report."""
        return (
            f"{self.store}, {self.services} service{'s' * (self.services > 1)}{', expiring' * self.expiring}"
        )


STORES = ("SQLite", "PostgreSQL", "Redis")
FORMS = ((1, False), (2, False), (2, True))  # services, and whether impressions expire
SET_UPS = tuple(SetUp(store, *form) for store in STORES for form in FORMS)


def kills_of(set_up: SetUp, kills: int) -> int:
    """Return the number of kills of a set-up: all are divided on SQLite, a quarter on each server.

    Examples
    --------
    >>> [kills_of(set_up, 200) for set_up in SET_UPS]
    [67, 67, 66, 17, 17, 16, 17, 17, 16]
    """
    total = kills if set_up.store == "SQLite" else -(-kills // 4)
    share, left = divmod(total, len(FORMS))
    return share + (FORMS.index(set_up[1:]) < left)


def run_all(kills: int, seed: int) -> None:
    """Run all set-ups and print the result of each as a row of a Markdown table."""
    with (
        private_directory() as directory,
        private_directory() as for_postgresql,
        private_directory() as for_redis,
    ):
        try:
            with PostgresServer(for_postgresql) as postgresql, RedisServer(for_redis) as redis:
                servers: dict[str, PrivateServer] = {"PostgreSQL": postgresql, "Redis": redis}
                for number, set_up in enumerate(SET_UPS):
                    server = servers.get(set_up.store)
                    store = f"sqlite:{directory / f'{number}.db'}" if server is None else server.address()
                    _run(set_up, store, server, kills_of(set_up, kills), seed + number)
        finally:
            check_nothing_runs([for_postgresql, for_redis])


def _run(set_up: SetUp, store: str, server: PrivateServer | None, kills: int, seed: int) -> None:
    def killed(number: int) -> None:
        show_progress(f"{set_up.name}: {number} of {kills} kills")

    outcome = crash(
        store,
        kills=kills,
        replicas=set_up.services,
        server=server,
        expiring=set_up.expiring,
        seed=seed,
        killed=killed,
    )
    print_result(
        f"| {set_up.name} | {outcome.kills:,} | {outcome.server_kills:,} | {outcome.shown:,} | "
        f"{outcome.acknowledged:,} | {outcome.repeated:,} | {outcome.seconds / kills:.1f} |"
    )


def check_nothing_runs(directories: list[Path]) -> None:
    """Assert that no process is left; children of a killed server end after a moment."""
    until = time.monotonic() + _ORPHAN_SECONDS
    while (left := left_running(directories)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left, f"still running: {left}"


def left_running(directories: list[Path]) -> list[str]:
    """Return child processes, and processes that work in one of some directories."""
    places = tuple(map(str, directories))
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() or str((process / "cwd").readlink()).startswith(places):
                found.append((process / "cmdline").read_text().replace("\0", " ") or process.name)
    return found


def main() -> None:
    """Run all set-ups; exit with 1 if feedback was lost or counted twice."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20, help="on SQLite; a quarter on each server")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    print_result(f"banditrank {banditrank.__version__}, seed {chosen.seed}\n")
    print_result(
        "| set-up | kills | of the server | rankings | acknowledged | when repeated | seconds a kill |"
    )
    print_result("|---|---|---|---|---|---|---|")
    try:
        run_all(chosen.kills, chosen.seed)
    except KeyboardInterrupt:
        print_result("\ninterrupted; the set-ups above were finished")
        sys.exit(130)
    print_result("\nnothing lost, nothing counted twice, nothing left running")


if __name__ == "__main__":
    main()
