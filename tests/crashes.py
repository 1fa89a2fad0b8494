"""Kills services at random moments while clients rank and report, and counts what is left.

Every client repeats a feedback until it is acknowledged, so in the end the store must hold exactly what was
acknowledged; where rankings lapse, also those that were shown and not reported. ``make crash KILLS=200`` runs
this for long; the tests run it briefly.
"""

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain

import httpx
from crash_clients import Client, surface
from crash_counts import check, wait_until_settled
from servers import PostgresServer, PrivateServer, RedisServer, private_directory

_START_SECONDS = 60.0
_LONGEST_ANSWER = 60.0  # until a feedback is acknowledged when nothing is killed any more


@dataclass
class Outcome:
    """What a run came to."""

    kills: int
    shown: int
    acknowledged: int
    repeated: int  # acknowledged as counted before: the first acknowledgement was lost


class Replica:
    """A service process at a port of its own."""

    def __init__(self, store: str) -> None:
        self.store = store
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
        command = "from banditrank.cli.main import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", command, "serve", "--port", str(self.port)],
            env={**os.environ, "BANDITRANK_STORE": self.store},  # there may be a password in it
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
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
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Stop it as one should, if it runs."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            finally:
                self.process.kill()


def crash(
    store: str,
    *,
    kills: int,
    replicas: int = 1,
    server: PrivateServer | None = None,
    lapsing: bool = False,
    clients: int = 8,
    seed: int = 0,
    killed: Callable[[int], None] = lambda _: None,
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
    lapsing
        Whether rankings lapse within seconds and count then, and some are reported late or not at all.
    clients
        How many clients rank and report.
    seed
        For the moments and the clients' choices.
    killed
        Is told after each kill how many there were.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    running = [Replica(store) for _ in range(replicas)]
    addresses = [replica.address for replica in running]
    threads = [Client(addresses, seed + number, lapsing=lapsing) for number in range(clients)]
    with ExitStack() as at_the_end:
        for replica in running:
            at_the_end.callback(replica.stop)
            replica.start()
        created = httpx.post(f"{addresses[0]}/v1/surfaces", json=surface(lapsing=lapsing), timeout=60)
        assert created.status_code == 201, created.text
        for thread in threads:
            at_the_end.callback(thread.aborted.set)
            thread.start()
        for number in range(kills):
            time.sleep(chance.uniform(0.05, 0.6))
            if server is not None and number % 4 == 3:
                server.restart()
            else:
                victim = chance.choice(running)
                victim.kill()
                victim.start()
            killed(number + 1)
        time.sleep(0.2)
        end(threads)
        if lapsing:
            wait_until_settled(store)
    assert not any(thread.refusals for thread in threads), [thread.refusals for thread in threads]
    check(store, threads, lapsing=lapsing)
    rankings = list(chain(*(thread.rankings for thread in threads)))
    acknowledged = sum(ranking.acknowledged for ranking in rankings)
    return Outcome(kills, len(rankings), acknowledged, sum(thread.repeated for thread in threads))


def end(threads: list[Client]) -> None:
    """Let clients finish what they began."""
    for thread in threads:
        thread.finished.set()
    until = time.monotonic() + _LONGEST_ANSWER
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads), "a feedback is never acknowledged"


def run_all(kills: int, seed: int) -> None:
    """Kill services on all stores that outlive them, and say what came of it."""
    with (
        private_directory() as directory,
        private_directory() as for_postgresql,
        private_directory() as for_redis,
        PostgresServer(for_postgresql) as postgresql,
        RedisServer(for_redis) as redis,
    ):
        runs: list[tuple[str, str, int, PrivateServer | None, bool]] = [
            ("SQLite", f"sqlite:{directory / 'one.db'}", 1, None, False),
            ("SQLite", f"sqlite:{directory / 'two.db'}", 2, None, False),
            ("SQLite", f"sqlite:{directory / 'three.db'}", 2, None, True),
            ("PostgreSQL", postgresql.address(), 1, postgresql, False),
            ("PostgreSQL", postgresql.address(), 2, postgresql, False),
            ("PostgreSQL", postgresql.address(), 2, postgresql, True),
            ("Redis", redis.address(), 2, redis, False),
            ("Redis", redis.address(), 2, redis, True),
        ]
        for name, store, replicas, server, lapsing in runs:
            run = f"{name}, {replicas} service{'s' * (replicas > 1)}{', rankings lapse' * lapsing}"

            def killed(number: int, run: str = run) -> None:
                print(f"\r{run}: {number} of {kills} kills", end="", file=sys.stderr, flush=True)  # noqa: T201

            result = crash(
                store,
                kills=kills,
                replicas=replicas,
                server=server,
                lapsing=lapsing,
                seed=seed,
                killed=killed,
            )
            print("\r", end="", file=sys.stderr, flush=True)  # noqa: T201
            print(  # noqa: T201
                f"{run}: {result.kills} kills, {result.shown:,} rankings, {result.acknowledged:,} feedbacks "
                f"acknowledged, each counted once ({result.repeated:,} acknowledged only when repeated)",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    try:
        run_all(chosen.kills, chosen.seed)
    except KeyboardInterrupt:
        sys.exit("\nstopped; all that was finished is told above")
