"""Stores made by an older version are brought up to date with what is in them; newer ones are refused."""

import json
import sqlite3
from dataclasses import replace

import psycopg
import pytest
from redis import Redis

from banditrank.errors import StoreError, StoreUnavailableError
from banditrank.storage import redis_scripts
from banditrank.storage.addresses import without_options
from banditrank.storage.factory import open_store
from banditrank.storage.records import Event, KeyRecord, Snapshot
from banditrank.storage.redis import RedisStore
from banditrank.storage.sql import SqlStore
from banditrank.storage.migrations import MIGRATIONS
from banditrank.testing.store_concurrency import run_in_threads
from banditrank.testing.store_events import CLICK, rounds_of, shown


def set_schema(address: str, number: int) -> None:
    """Change the number of a store's schema behind its back."""
    for_driver, options = without_options(address, "schema", "prefix")
    if address.startswith("redis"):
        with Redis.from_url(for_driver) as client:
            client.set(f"{options['prefix']}schema", number)
    elif address.startswith("postgresql"):
        with psycopg.connect(for_driver, options=f"-csearch_path={options['schema']}") as connection:
            connection.execute("UPDATE settings SET value = %s WHERE name = 'schema'", [str(number)])
    else:
        file = sqlite3.connect(address.removeprefix("sqlite:"))
        with file:
            file.execute("UPDATE settings SET value = ? WHERE name = 'schema'", [str(number)])
        file.close()


def test_what_an_older_version_wrote_stays(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if address.startswith("redis"):
        monkeypatch.setattr(redis_scripts, "MIGRATIONS", redis_scripts.MIGRATIONS[:1])
    else:
        monkeypatch.setattr("banditrank.storage.sql_database.MIGRATIONS", MIGRATIONS[:1])
    with open_store(address) as old:
        surface = old.create_surface("home", "{}").number
        if isinstance(old, SqlStore):
            with old._transaction() as transaction:
                transaction.run(
                    "INSERT INTO rankings VALUES (%s, %s, %s, %s)", [*shown(surface, 1), CLICK.code]
                )
                transaction.run("INSERT INTO rankings VALUES (%s, %s, %s, NULL)", shown(surface, 2))
                transaction.run("INSERT INTO changes VALUES (%s, 1, %s)", [surface, b"cells"])
                transaction.run("INSERT INTO snapshots VALUES (%s, 1, %s, 5)", [surface, b""])
                transaction.run("UPDATE surfaces SET version = 1")
        else:
            old.commit([Event(shown(surface, 1), CLICK), Event(shown(surface, 2), None)])
            old.save_snapshot(surface, Snapshot(1, b"", 5))
        secret = old.secret()
    monkeypatch.undo()
    if address.startswith("redis"):
        step = "redis.call('SET', KEYS[1] .. ':step', 'taken')"
        monkeypatch.setattr(redis_scripts, "MIGRATIONS", (*redis_scripts.MIGRATIONS, step))
    with open_store(address) as new:
        new.add_key(KeyRecord("k", "page", ("rank",), b"\x00", 5))
        assert new.secret() == secret
        assert new.snapshot(surface) == Snapshot(1, b"", 5)
        assert new.outcome(surface, shown(surface, 1).key) == CLICK
        assert new.pending_impressions(surface, since=0, until=5000) == [Event(shown(surface, 2), None)]
        assert new.commit([Event(shown(surface, 2), CLICK)]).changes[0].version == 2
        assert new.create_surface("about", "{}").number != surface
    with open_store(address) as again:
        assert [key.id for key in again.api_keys()] == ["k"]


def test_keys_of_an_older_version_never_expire_and_cover_all_surfaces(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_scripts, "MIGRATIONS", redis_scripts.MIGRATIONS[:1])
    monkeypatch.setattr("banditrank.storage.sql_database.MIGRATIONS", MIGRATIONS[:3])
    old_key = KeyRecord("k", "page", ("rank", "read"), b"\x00\xff", 5)
    with open_store(address) as old:
        if isinstance(old, SqlStore):
            with old._transaction() as transaction:
                transaction.run(
                    "INSERT INTO keys VALUES (%s, %s, %s, %s, %s, NULL)",
                    ["k", "page", "rank read", b"\x00\xff", 5],
                )
        else:
            assert isinstance(old, RedisStore)
            old._server.call("HSET", "keys", "k", json.dumps(["page", ["rank", "read"], "00ff", 5]))
    monkeypatch.undo()
    scoped = KeyRecord("s", "ads", ("rank",), b"\x01", 6, expires_at_ms=9, surfaces=("ads",))
    with open_store(address) as new:
        assert new.api_keys() == [old_key]
        new.add_key(scoped)
        assert new.revoke_key("k", at=7)
        assert new.api_keys() == [replace(old_key, revoked=7), scoped]


def test_a_version_without_scoped_keys_refuses_a_store_that_may_have_them(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(address).close()
    monkeypatch.setattr(redis_scripts, "MIGRATIONS", redis_scripts.MIGRATIONS[:1])
    monkeypatch.setattr("banditrank.storage.sql_database.MIGRATIONS", MIGRATIONS[:3])
    with pytest.raises(StoreError, match="upgrade banditrank"):
        open_store(address)


def test_a_newer_schema_is_refused_and_left_alone(address: str) -> None:
    with open_store(address) as store:
        surface = store.create_surface("home", "{}").number
        store.commit([Event(shown(surface, 1), CLICK)])
    set_schema(address, 99)
    with pytest.raises(
        StoreError, match=r"has schema 99, this version knows \d+: upgrade banditrank"
    ) as error:
        open_store(address)
    assert not isinstance(error.value, StoreUnavailableError), "trying again would not help"
    known = len(redis_scripts.MIGRATIONS if address.startswith("redis") else MIGRATIONS)
    set_schema(address, known)
    with open_store(address) as store:
        assert rounds_of(store, surface) == 1


def test_several_may_open_a_new_store_at_once(address: str) -> None:
    found: list[bytes] = []

    def open_it() -> None:
        with open_store(address) as store:
            found.append(store.secret())

    run_in_threads(*[open_it] * 4)
    assert len(found) == 4
    assert len(set(found)) == 1
