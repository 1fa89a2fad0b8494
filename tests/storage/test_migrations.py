"""Stores of older versions are migrated with their data; stores of newer versions are rejected."""

import json
import sqlite3
from dataclasses import replace

import psycopg
import pytest
from redis import Redis

from banditrank.errors import StoreError, StoreUnavailableError
from banditrank.storage import _redis_scripts as redis_scripts
from banditrank.storage._addresses import split_options
from banditrank.storage._base import Store
from banditrank.storage._factory import open_store
from banditrank.storage._migrations import MIGRATIONS
from banditrank.storage._records import Event, KeyRecord, SavedTimeSeries, Snapshot
from banditrank.storage._redis import RedisStore
from banditrank.storage._sql import SqlStore
from banditrank.testing._store_concurrency import run_in_threads
from banditrank.testing._store_events import CLICK, read_rounds, shown


def set_schema(address: str, version: int) -> None:
    """Change the schema version of a store without its code."""
    driver_address, options = split_options(address, "schema", "prefix")
    if address.startswith("redis"):
        with Redis.from_url(driver_address) as client:
            client.set(f"{options['prefix']}schema", version)
    elif address.startswith("postgresql"):
        with psycopg.connect(driver_address, options=f"-csearch_path={options['schema']}") as connection:
            connection.execute("UPDATE settings SET value = %s WHERE name = 'schema'", [str(version)])
    else:
        file = sqlite3.connect(address.removeprefix("sqlite:"))
        with file:
            file.execute("UPDATE settings SET value = ? WHERE name = 'schema'", [str(version)])
        file.close()


def test_data_of_an_older_version_is_kept(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if address.startswith("redis"):
        monkeypatch.setattr(redis_scripts, "MIGRATIONS", redis_scripts.MIGRATIONS[:1])
    else:
        monkeypatch.setattr("banditrank.storage._sql.MIGRATIONS", MIGRATIONS[:1])
    with open_store(address) as old:
        surface = old.create_surface("home", "{}").surface_id
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
        assert new.pending_impressions(surface, since_ms=0, until_ms=5000) == [shown(surface, 2)]
        assert new.commit([Event(shown(surface, 2), CLICK)]).changes[0].version == 2
        assert new.create_surface("about", "{}").surface_id != surface
    with open_store(address) as again:
        assert [key.id for key in again.api_keys()] == ["k"]


def test_keys_of_an_older_version_never_expire_and_cover_all_surfaces(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_scripts, "MIGRATIONS", redis_scripts.MIGRATIONS[:1])
    monkeypatch.setattr("banditrank.storage._sql.MIGRATIONS", MIGRATIONS[:3])
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
            old._call("HSET", "keys", "k", json.dumps(["page", ["rank", "read"], "00ff", 5]))
    monkeypatch.undo()
    scoped = KeyRecord("s", "ads", ("rank",), b"\x01", 6, expires_at_ms=9, surfaces=("ads",))
    with open_store(address) as new:
        assert new.api_keys() == [old_key]
        new.add_key(scoped)
        assert new.revoke_key("k", revoked_at_ms=7)
        assert new.api_keys() == [replace(old_key, revoked_at_ms=7), scoped]


def write_snapshot(store: Store, surface_id: int, version: int, history: bytes) -> None:
    """Write a snapshot as the versions did whose snapshots had a history."""
    if isinstance(store, SqlStore):
        with store._transaction() as transaction:
            values = [surface_id, version, b"cells", 5, history]
            transaction.run("INSERT INTO snapshots VALUES (%s, %s, %s, %s, %s)", values)
    else:
        assert isinstance(store, RedisStore)
        store._call("HSET", f"{surface_id}:sums", version, b"cells")
        store._call("HSET", f"{surface_id}:histories", version, history)
        store._call("ZADD", f"{surface_id}:snapshots", version, f"{version}:5")


def test_the_latest_history_of_snapshots_becomes_the_time_series(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_scripts, "MIGRATIONS", redis_scripts.MIGRATIONS[:2])
    monkeypatch.setattr("banditrank.storage._sql.MIGRATIONS", MIGRATIONS[:4])
    with open_store(address) as old:
        home, ads, new_surface, deleted = (
            old.create_surface(name, "{}").surface_id for name in ("home", "ads", "new", "deleted")
        )
        for version, history in ((9, b"ninth"), (10, b"\x00tenth"), (2, b"second")):
            write_snapshot(old, home, version, history)
        for version, history in ((3, b"third"), (4, b"")):
            write_snapshot(old, ads, version, history)
        write_snapshot(old, deleted, 1, b"first")
        assert old.delete_surface("deleted")
    monkeypatch.undo()
    with open_store(address) as new:
        assert new.time_series(home) == SavedTimeSeries(10, b"\x00tenth")
        assert new.time_series(ads) == SavedTimeSeries(3, b"third")
        assert new.time_series(new_surface) is None
        assert new.time_series(deleted) is None
        assert new.snapshot(home) == Snapshot(10, b"cells", 5)
        new.save_snapshot(home, Snapshot(11, b"more", 6))
        assert new.snapshot(home) == Snapshot(11, b"more", 6)
        if isinstance(new, SqlStore):
            histories = new._read("SELECT history FROM snapshots WHERE surface = %s AND version = 11", [home])
            assert histories == [(None,)], "replicas of the previous version cannot read the snapshot"
        else:
            assert isinstance(new, RedisStore)
            assert not new._call("EXISTS", f"{home}:histories")


def test_a_version_without_scoped_keys_rejects_a_store_that_may_have_them(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(address).close()
    monkeypatch.setattr(redis_scripts, "MIGRATIONS", redis_scripts.MIGRATIONS[:1])
    monkeypatch.setattr("banditrank.storage._sql.MIGRATIONS", MIGRATIONS[:3])
    with pytest.raises(StoreError, match="upgrade banditrank"):
        open_store(address)


def test_a_newer_schema_is_rejected_and_unchanged(address: str) -> None:
    with open_store(address) as store:
        surface = store.create_surface("home", "{}").surface_id
        store.commit([Event(shown(surface, 1), CLICK)])
    set_schema(address, 99)
    with pytest.raises(
        StoreError, match=r"has schema 99, this version knows \d+: upgrade banditrank"
    ) as error:
        open_store(address)
    assert not isinstance(error.value, StoreUnavailableError), "a retry would not help"
    known = len(redis_scripts.MIGRATIONS if address.startswith("redis") else MIGRATIONS)
    set_schema(address, known)
    with open_store(address) as store:
        assert read_rounds(store, surface) == 1


def test_several_processes_may_open_a_new_store_at_once(address: str) -> None:
    secrets: list[bytes] = []

    def open_it() -> None:
        with open_store(address) as store:
            secrets.append(store.secret())

    run_in_threads(*[open_it] * 4)
    assert len(secrets) == 4
    assert len(set(secrets)) == 1
