"""Metrics are valid Prometheus text, and their names follow its conventions."""

from collections.abc import Iterator

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from banditrank import __version__
from banditrank.engine._engine import Engine
from banditrank.engine._surface import Surface
from banditrank.service._metrics import Metrics
from banditrank.storage._memory import MemoryStore

UNITS = ("_seconds", "_bytes", "_ratio")
NO_UNIT = {  # numbers of things
    "banditrank_build_info",
    "banditrank_surfaces_out_of_sync",
    "banditrank_surfaces_compiling",
    "banditrank_commit_queue_length",
    "banditrank_counts_version",
}


@pytest.fixture
def families() -> Iterator[list[Metric]]:
    engine = Engine(MemoryStore(), sync_seconds=60.0)
    engine.create_surface(Surface("home", items=["a", "b"], n_positions=1))
    metrics = Metrics(engine)
    metrics.record_request("rank", 200, 0.25)
    yield list(text_string_to_metric_families(metrics.exposition().decode()))
    engine.close()


def test_all_metrics_are_exported_with_their_types(families: list[Metric]) -> None:
    assert {family.name: family.type for family in families} == {
        "banditrank_build_info": "gauge",  # the text format has no type for information
        "banditrank_store_sync_age_seconds": "gauge",
        "banditrank_surfaces_out_of_sync": "gauge",
        "banditrank_surfaces_compiling": "gauge",
        "banditrank_commit_queue_length": "gauge",
        "banditrank_commits": "counter",
        "banditrank_committed_events": "counter",
        "banditrank_dropped_impressions": "counter",
        "banditrank_counts_age_seconds": "gauge",
        "banditrank_counts_version": "gauge",
        "banditrank_rounds": "counter",
        "banditrank_requests": "counter",
        "banditrank_request_duration_seconds": "histogram",
    }


def test_suffixes_agree_with_types(families: list[Metric]) -> None:
    for family in families:
        samples = {sample.name for sample in family.samples}
        assert samples, family.name
        if family.type == "counter":
            assert samples == {f"{family.name}_total"}
            assert not family.name.endswith(UNITS)
        elif family.type == "histogram":
            assert family.name.endswith("_seconds")
            assert samples == {f"{family.name}_{part}" for part in ("bucket", "sum", "count")}
        else:
            assert samples == {family.name}
            assert not family.name.endswith("_total")
            assert family.name.endswith(UNITS) or family.name in NO_UNIT


def test_help_texts_are_sentences(families: list[Metric]) -> None:
    for family in families:
        assert family.documentation[0].isupper(), family.name
        assert family.documentation.endswith("."), family.name


def test_the_version_is_a_label(families: list[Metric]) -> None:
    (build,) = [family for family in families if family.name == "banditrank_build_info"]
    (sample,) = build.samples
    assert (sample.labels, sample.value) == ({"version": __version__}, 1.0)
