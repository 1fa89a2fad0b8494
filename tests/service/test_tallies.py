"""Whichever worker is asked for metrics tells of all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from banditrank.engine.engine import Engine
from banditrank.service.metrics import Metrics
from banditrank.storage.memory import MemoryStore


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(MemoryStore(), sync_seconds=60.0)
    yield engine
    engine.close()


def told(metrics: Metrics) -> dict[str, float]:
    lines = metrics.text().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


RANKED = '{operation="rank",status="200"}'


def test_counters_of_workers_add_up(engine: Engine, tmp_path: Path) -> None:
    one, two = Metrics(engine, tmp_path), Metrics(engine, tmp_path)
    one.request("rank", 200, 0.25)
    two.request("rank", 200, 0.5)
    two.request("feedback", 503, 2.0)
    engine.committer.groups, engine.committer.entries, engine.committer.dropped = 3, 20, 1  # of each
    two.share()
    for _ in range(2):
        figures = told(one)
        assert figures["banditrank_requests_total" + RANKED] == 2
        assert figures["banditrank_request_seconds_sum" + RANKED] == 0.75
        assert figures['banditrank_request_seconds_bucket{le="0.25",operation="rank",status="200"}'] == 1
        assert figures['banditrank_requests_total{operation="feedback",status="503"}'] == 1
        assert figures["banditrank_journal_groups"] == 6
        assert figures["banditrank_journal_entries"] == 40
        assert figures["banditrank_journal_dropped"] == 2
        assert figures["banditrank_info"] == 1


def test_what_was_told_does_not_become_less(engine: Engine, tmp_path: Path) -> None:
    one, two = Metrics(engine, tmp_path), Metrics(engine, tmp_path)
    one.request("rank", 200, 0.1)
    assert told(one)["banditrank_requests_total" + RANKED] == 1
    two.request("rank", 200, 0.1)
    assert told(two)["banditrank_requests_total" + RANKED] == 2  # although the first has not shared it yet
    later = Metrics(engine, tmp_path)  # takes the place of one that died
    assert told(later)["banditrank_requests_total" + RANKED] == 2


def test_a_worker_that_cannot_write_tells_of_itself(engine: Engine, tmp_path: Path) -> None:
    alone = Metrics(engine, tmp_path / "gone")
    alone.request("rank", 200, 0.1)
    assert told(alone)["banditrank_requests_total" + RANKED] == 1
    with pytest.raises(FileNotFoundError):
        alone.share()
