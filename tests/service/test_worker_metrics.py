"""Every worker exports the counters of all workers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from banditrank import __version__
from banditrank.engine._engine import Engine
from banditrank.service._metrics import Metrics
from banditrank.storage._memory import MemoryStore


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(MemoryStore(), sync_seconds=60.0)
    yield engine
    engine.close()


def samples(metrics: Metrics) -> dict[str, float]:
    lines = metrics.exposition().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


RANKED = '{operation="rank",status="200"}'


def test_counters_of_workers_add_up(engine: Engine, tmp_path: Path) -> None:
    one, two = Metrics(engine, tmp_path), Metrics(engine, tmp_path)
    one.record_request("rank", 200, 0.25)
    two.record_request("rank", 200, 0.5)
    two.record_request("feedback", 503, 2.0)
    engine.committer.groups, engine.committer.events, engine.committer.dropped = 3, 20, 1  # of each
    two.share()
    for _ in range(2):
        values = samples(one)
        assert values["banditrank_requests_total" + RANKED] == 2
        assert values["banditrank_request_duration_seconds_sum" + RANKED] == 0.75
        assert (
            values['banditrank_request_duration_seconds_bucket{le="0.25",operation="rank",status="200"}'] == 1
        )
        assert values['banditrank_requests_total{operation="feedback",status="503"}'] == 1
        assert values["banditrank_commits_total"] == 6
        assert values["banditrank_committed_events_total"] == 40
        assert values["banditrank_dropped_impressions_total"] == 2
        assert values[f'banditrank_build_info{{version="{__version__}"}}'] == 1


def test_counters_never_decrease(engine: Engine, tmp_path: Path) -> None:
    one, two = Metrics(engine, tmp_path), Metrics(engine, tmp_path)
    one.record_request("rank", 200, 0.1)
    assert samples(one)["banditrank_requests_total" + RANKED] == 1
    two.record_request("rank", 200, 0.1)
    assert samples(two)["banditrank_requests_total" + RANKED] == 2  # although the first has not shared it yet
    later = Metrics(engine, tmp_path)  # takes the place of one that died
    assert samples(later)["banditrank_requests_total" + RANKED] == 2


def test_a_worker_that_cannot_write_exports_its_own_counters(engine: Engine, tmp_path: Path) -> None:
    alone = Metrics(engine, tmp_path / "gone")
    alone.record_request("rank", 200, 0.1)
    assert samples(alone)["banditrank_requests_total" + RANKED] == 1
    with pytest.raises(FileNotFoundError):
        alone.share()
