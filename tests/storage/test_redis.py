"""The Redis store checks the durability of its server, and reports its failures."""

import re

import pytest
from helpers.live import wait_until
from helpers.servers import PASSWORD, RedisServer

from banditrank.errors import StoreError, StoreUnavailableError
from banditrank.storage._factory import open_store
from banditrank.storage._records import CommitStatus, Event
from banditrank.testing._store_events import CLICK, shown


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("appendonly", "no"),
        ("appendfsync", "everysec"),
        ("no-appendfsync-on-rewrite", "yes"),
        ("maxmemory-policy", "allkeys-lru"),
    ],
)
def test_a_server_that_is_not_durable_is_rejected(redis: RedisServer, setting: str, value: str) -> None:
    with redis.client() as client:
        before = client.config_get(setting)[setting]
        client.config_set(setting, value)
        try:
            expected = (
                f"has {setting} {value}, which can lose acknowledged feedback: set it to {before}, or accept"
            )
            with pytest.raises(StoreError, match=re.escape(expected)):
                open_store(redis.address())
            open_store(f"{redis.address()}&durability=relaxed").close()
        finally:
            client.config_set(setting, before)


def test_every_new_connection_checks_the_durability_of_the_server(
    redis: RedisServer,
) -> None:
    with open_store(redis.address()) as store, redis.client() as client:
        surface = store.create_surface("home", "{}").surface_id
        client.config_set("appendfsync", "everysec")
        try:
            client.client_kill_filter(_type="normal", skipme=True)
            for _ in range(2):  # also on the same connection
                with pytest.raises(
                    StoreError,
                    match="has appendfsync everysec, which can lose acknowledged feedback: set it to always",
                ):
                    store.commit([Event(shown(surface, 1), CLICK)])
        finally:
            client.config_set("appendfsync", "always")
        assert store.commit([Event(shown(surface, 1), CLICK)]).statuses == [CommitStatus.COUNTED]


def test_a_server_that_hides_its_settings_is_rejected(redis: RedisServer) -> None:
    with redis.client() as client:
        rights = {"keys": ["*"], "categories": ["+@all"], "commands": ["-config"]}
        client.acl_setuser("modest", enabled=True, passwords=[f"+{PASSWORD}"], **rights)
        address = redis.address().replace("//:", "//modest:")
        with pytest.raises(
            StoreError, match=r"allow CONFIG GET, which checks appendonly, or skip the check"
        ) as error:
            open_store(address)
        assert PASSWORD not in str(error.value)
        open_store(f"{address}&durability=relaxed").close()
        client.acl_deluser("modest")


def test_a_full_server_is_unavailable(redis: RedisServer) -> None:
    with open_store(redis.address()) as store, redis.client() as client:
        surface = store.create_surface("home", "{}").surface_id
        client.config_set("maxmemory", 1)
        try:
            with pytest.raises(StoreUnavailableError, match="maxmemory"):
                store.commit([Event(shown(surface, 1), CLICK)])
            with pytest.raises(StoreUnavailableError, match="maxmemory"):
                store.check()
        finally:
            client.config_set("maxmemory", 0)
        assert store.commit([Event(shown(surface, 1), CLICK)]).statuses == [CommitStatus.COUNTED]


def test_a_server_that_became_a_replica_is_unavailable(redis: RedisServer) -> None:
    with open_store(redis.address()) as store, redis.client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", "1")  # where no server is
        try:
            with pytest.raises(StoreUnavailableError, match=r"(?i)read.?only"):
                store.check()
        finally:
            client.execute_command("REPLICAOF", "NO", "ONE")
        store.check()


def test_a_server_that_cannot_save_is_unavailable(redis: RedisServer) -> None:
    with open_store(redis.address()) as store, redis.client() as client:
        obstacle = redis.directory / "dump.rdb"
        obstacle.mkdir()
        client.config_set("save", "3600 1000000")

        def save() -> str:
            # A rewrite of the append-only file, from an earlier test, would delay the save.
            wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
            client.bgsave(schedule=False)
            wait_until(lambda: not client.info("persistence")["rdb_bgsave_in_progress"])
            return str(client.info("persistence")["rdb_last_bgsave_status"])

        try:
            assert save() == "err"
            with pytest.raises(StoreUnavailableError, match="MISCONF"):
                store.check()
        finally:
            obstacle.rmdir()
            client.config_set("save", "")
            assert save() == "ok"
        store.check()


def test_every_check_is_written_to_the_append_only_file(redis: RedisServer) -> None:
    with open_store(redis.address()) as store, redis.client() as client:

        def size() -> int:
            return int(client.info("persistence")["aof_current_size"])

        for _ in range(3):
            before = size()
            store.check()
            assert size() > before


def test_scripts_are_sent_again_after_the_server_lost_them(redis: RedisServer) -> None:
    with open_store(redis.address()) as store, redis.client() as client:
        surface = store.create_surface("home", "{}").surface_id
        client.script_flush()
        assert store.commit([Event(shown(surface, 1), CLICK)]).statuses == [CommitStatus.COUNTED]
