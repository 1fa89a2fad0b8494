"""Whatever is killed, nothing acknowledged is lost or counted twice; `make crash` kills for long."""

from pathlib import Path

from crashes import crash
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
