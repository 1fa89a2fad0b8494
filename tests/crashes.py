"""Kills services at random moments while clients rank and report, and counts what is left.

Every client repeats a feedback until it is acknowledged, so in the end the store must hold exactly what was
acknowledged. ``make crash KILLS=200`` runs this for long; the tests run it briefly.
"""

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain

import httpx
from servers import PostgresServer, PrivateServer, RedisServer, private_directory

from banditrank.storage.cells import Totals
from banditrank.storage.opening import open_store

USER_TYPES = ("new", "old")
ITEMS = tuple(f"item-{number}" for number in range(6))
N_POSITIONS = 3
SURFACE = {
    "name": "crash",
    "items": ITEMS,
    "n_positions": N_POSITIONS,
    "user_types": USER_TYPES,
    "unreported": "discarded",  # so that what is counted is what was reported
}
_START_SECONDS = 60.0
_LONGEST_RUN = 1800.0


@dataclass
class Outcome:
    """What a run came to."""

    kills: int
    acknowledged: int
    repeated: int  # acknowledged as counted before: the first acknowledgement was lost
    displays: Counter = field(default_factory=Counter)
    clicks: Counter = field(default_factory=Counter)


class Replica:
    """A service process at a port of its own."""

    def __init__(self, store: str) -> None:
        self.store = store
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        """Start, and wait until it answers."""
        command = "from banditrank.cli.main import main; main()"
        arguments = ["serve", "--port", str(self.port), "--store", self.store]
        self.process = subprocess.Popen(
            [sys.executable, "-c", command, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            assert self.process.poll() is None, "the service did not start"
            try:
                if httpx.get(f"{self.address}/healthz", timeout=1).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError("the service did not answer in time")

    def kill(self) -> None:
        """Kill it without a warning."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Stop it as one should."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


class Client(threading.Thread):
    """Ranks and reports, again and again; a feedback is repeated until it is acknowledged."""

    def __init__(self, replicas: list[Replica], seed: int, finished: threading.Event) -> None:
        super().__init__()
        self.replicas = replicas
        self.random = random.Random(seed)  # noqa: S311 - no secret
        self.finished = finished
        self.acknowledged: list[tuple[str, tuple[str, ...], str | None]] = []
        self.repeated = 0
        self.refusals: list[str] = []

    def run(self) -> None:
        """Go on until the run is over."""
        with httpx.Client(timeout=5) as http:
            while not self.finished.is_set() and not self.refusals:
                user_type = self.random.choice(USER_TYPES)
                shown = self.ask(http, "/v1/surfaces/crash/rankings", {"user_type": user_type})
                if shown is None:
                    continue
                clicked = self.random.choice((None, *shown["items"]))
                feedback = {"ranking": shown["id"], "clicked": clicked}
                told = None
                while told is None and not self.refusals:
                    told = self.ask(http, "/v1/feedback", feedback)
                if told is not None:
                    self.acknowledged.append((user_type, tuple(shown["items"]), clicked))
                    self.repeated += told["status"] == "repeated"

    def ask(self, http: httpx.Client, path: str, body: dict) -> dict | None:
        """Return an answer, None if there is none."""
        try:
            response = http.post(self.random.choice(self.replicas).address + path, json=body)
        except httpx.TransportError:
            time.sleep(0.02)
            return None
        if response.status_code == 503:
            return None
        if response.status_code != 200:
            self.refusals.append(response.text)
            return None
        return response.json()


def crash(
    store: str,
    *,
    kills: int,
    replicas: int = 1,
    server: PrivateServer | None = None,
    clients: int = 8,
    seed: int = 0,
) -> Outcome:
    """Run services and clients, kill so many times, and check what the store holds.

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
    clients
        How many clients rank and report.
    seed
        For the moments and the clients' choices.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    running = [Replica(store) for _ in range(replicas)]
    finished = threading.Event()
    threads = [Client(running, seed + number, finished) for number in range(clients)]
    try:
        created = httpx.post(f"{running[0].address}/v1/surfaces", json=SURFACE, timeout=60)
        assert created.status_code == 201, created.text
        for thread in threads:
            thread.start()
        for number in range(kills):
            time.sleep(chance.uniform(0.05, 0.6))
            if server is not None and number % 4 == 3:
                server.restart()
            else:
                victim = chance.choice(running)
                victim.kill()
                victim.start()
        time.sleep(0.2)
    finally:
        finished.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join(_LONGEST_RUN)
        for replica in running:
            if replica.process.poll() is None:
                replica.stop()
    assert not any(thread.refusals for thread in threads), [thread.refusals for thread in threads]
    outcome = summed_up(kills, threads)
    check(store, outcome)
    return outcome


def summed_up(kills: int, clients: list[Client]) -> Outcome:
    """Return what clients were told is counted."""
    outcome = Outcome(kills, 0, sum(client.repeated for client in clients))
    for user_type, items, clicked in chain(*(client.acknowledged for client in clients)):
        outcome.acknowledged += 1
        for position, item in enumerate(items):
            outcome.displays[user_type, item, position] += 1
            outcome.clicks[user_type, item, position] += item == clicked
    return outcome


def check(address: str, outcome: Outcome) -> None:
    """Check that the store holds what was acknowledged, no more and no less."""
    with open_store(address) as store:
        surface = store.find_surface("crash")
        assert surface is not None
        assert json.loads(surface.definition)["items"] == list(ITEMS)
        totals = Totals(n_user_types=len(USER_TYPES), n_items=len(ITEMS), n_positions=N_POSITIONS)
        snapshot = store.snapshot(surface.number)
        totals.add(snapshot.cells)
        version = snapshot.version
        while changes := store.changes(surface.number, after=version):
            for change in changes:
                assert change.version == version + 1, "versions have a gap"
                version = change.version
                totals.add(change.cells)
    counts = totals.counts(range(len(ITEMS)))
    assert counts.rounds == outcome.acknowledged, (
        f"{counts.rounds} counted, {outcome.acknowledged} acknowledged"
    )
    for i, user_type in enumerate(USER_TYPES):
        for j, item in enumerate(ITEMS):
            for k in range(N_POSITIONS):
                place = user_type, item, k
                assert counts.displays[i, j, k] == outcome.displays[place], place
                assert counts.rewards[i, j, k] == outcome.clicks[place], place


def run_all(kills: int, seed: int) -> None:
    """Kill services on all stores that outlive them, and say what came of it."""
    with (
        private_directory() as directory,
        private_directory() as for_postgresql,
        private_directory() as for_redis,
        PostgresServer(for_postgresql) as postgresql,
        RedisServer(for_redis) as redis,
    ):
        stores: list[tuple[str, str, int, PrivateServer | None]] = [
            ("SQLite", f"sqlite:{directory / 'one.db'}", 1, None),
            ("SQLite", f"sqlite:{directory / 'two.db'}", 2, None),
            ("PostgreSQL", postgresql.address(), 1, postgresql),
            ("PostgreSQL", postgresql.address(), 2, postgresql),
            ("Redis", redis.address(), 2, redis),
        ]
        for name, store, replicas, server in stores:
            result = crash(store, kills=kills, replicas=replicas, server=server, seed=seed)
            print(  # noqa: T201
                f"{name}, {replicas} service{'s' * (replicas > 1)}: {result.kills} kills, "
                f"{result.acknowledged:,} feedbacks acknowledged, each counted once "
                f"({result.repeated:,} acknowledged only when repeated)",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    run_all(chosen.kills, chosen.seed)
