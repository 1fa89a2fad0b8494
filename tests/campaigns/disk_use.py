"""Measure the bytes that a counted ranking takes in each store.

Run as ``PYTHONPATH=tests python -m campaigns.disk_use``; it prints a Markdown table. Rankings are
committed in groups as by the service: each is noted when it is shown, and counted with the next group.
Then all of them are pruned and as many are written again, which shows whether the space is reused.
"""

import argparse
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
from helpers.servers import PostgresServer, RedisServer, private_directory

from banditrank import Surface, open_store
from banditrank.engine._ranking_ids import NONCE_BYTES, new_key
from banditrank.storage._base import Store
from banditrank.storage._records import (
    NOT_CLICKED,
    REWARD_UNITS,
    Event,
    Impression,
    Outcome,
    Snapshot,
    pack_ranking,
)
from campaigns.progress import print_result, show_progress

N_ITEMS = 20
USER_TYPES = ("type-1", "type-2", "type-3")
START = 1_800_000_000_000  # milliseconds since 1970
WINDOW = 1_800_000  # milliseconds, as of a surface by default
RATE = 1  # rankings per millisecond
CLICKED = 0.3
MAX_COMMITS = 5_000  # each is synchronised to disk


def rankings(surface: int, number: int, n_positions: int, start: int, seed: int) -> Iterator[Event]:
    """Return counted rankings of random items, in order of time."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    for index in range(number):
        key = new_key(start + WINDOW + index // RATE, chance.randbytes(NONCE_BYTES))
        items = tuple(chance.sample(range(N_ITEMS), n_positions))
        shown = Impression(surface, key, pack_ranking(chance.randrange(len(USER_TYPES)), items))
        clicked = Outcome.of(chance.randrange(n_positions), REWARD_UNITS)
        yield Event(shown, clicked if chance.random() < CLICKED else NOT_CLICKED)


def write(store: Store, surface: int, number: int, n_positions: int, group: int, start: int) -> int:
    """Commit rankings in groups, and return when the last of them has expired, in milliseconds since 1970."""
    waiting: list[Event] = []
    new: list[Event] = []
    for event in rankings(surface, number, n_positions, start, seed=start):
        new.append(event)
        if len(new) == group:
            store.commit([*(Event(one.impression, None) for one in new), *waiting], at_ms=start)
            waiting, new = new, []
    store.commit([*new, *waiting], at_ms=start)
    end = start + WINDOW + number // RATE + 1
    # The call also removes batches in which every impression has an outcome.
    assert not store.pending_impressions(surface, since_ms=0, until_ms=end)
    return end


def measure(
    store: Store, size: Callable[[], float], number: int, n_positions: int, group: int
) -> tuple[float, float]:
    """Return the bytes per ranking of an empty store, and of the same store after all were pruned."""
    items = [f"item-{index}" for index in range(N_ITEMS)]
    surface = Surface("disk", items=items, n_positions=n_positions, user_types=USER_TYPES)
    surface_id = store.create_surface(surface.name, surface.definition).surface_id
    before = size()
    end = write(store, surface_id, number, n_positions, group, START)
    first = size()
    version = store.versions()[surface_id].version
    store.save_snapshot(surface_id, Snapshot(version, b"", end))
    store.prune(surface_id, before_ms=end + 1)
    size()  # PostgreSQL reuses space after a vacuum
    write(store, surface_id, number, n_positions, group, end + 1)
    return (first - before) / number, (size() - first) / number


def sqlite_size(path: Path) -> float:
    """Return the size of a file, after its write-ahead log was copied to it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


def postgresql_size(server: PostgresServer) -> float:
    """Return the size of all tables and indexes, after a vacuum as the server makes by itself."""
    with psycopg.connect(server.database, autocommit=True) as connection:
        connection.execute("VACUUM")
        found = connection.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' "
            "AND relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname LIKE 'test%')"
        ).fetchone()
    return float(found[0]) if found and found[0] is not None else 0.0


def redis_size(server: RedisServer) -> float:
    """Return the memory that the data take."""
    with server.client() as client:
        return float(client.info("memory")["used_memory_dataset"])


def main() -> None:
    """Measure all stores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rankings", type=int, default=100_000)
    number = parser.parse_args().rankings
    with (
        private_directory() as directory,
        private_directory() as for_postgresql,
        private_directory() as for_redis,
        PostgresServer(for_postgresql) as postgresql,
        RedisServer(for_redis) as redis,
    ):
        print_result("| positions | rankings a commit | SQLite | PostgreSQL | Redis, memory |")
        print_result("|---|---|---|---|---|")
        for n_positions, group in ((4, 1), (4, 10), (4, 100), (20, 10)):
            path = directory / f"{n_positions}-{group}.db"
            stores: tuple[tuple[str, Callable[[], float]], ...] = (
                (f"sqlite:{path}", lambda path=path: sqlite_size(path)),
                (postgresql.address(), lambda: postgresql_size(postgresql)),
                (redis.address(), lambda: redis_size(redis)),
            )
            cells = []
            for address, size in stores:
                show_progress(f"{n_positions} positions, {group} a commit: {address.partition(':')[0]}")
                with open_store(address) as store:
                    total = min(number, MAX_COMMITS * group)
                    first, again = measure(store, size, total, n_positions, group)
                cells.append(f"{first:,.0f} ({again:+,.0f})")
            print_result(f"| {n_positions} | {group} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
