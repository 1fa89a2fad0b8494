"""Prometheus metrics."""

import time
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from banditrank import __version__
from banditrank.engine._engine import Engine
from banditrank.service._worker_metrics import (
    BUCKETS,
    RequestHistogram,
    RequestHistograms,
    SharedWorkerMetrics,
    WorkerMetrics,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_RANKING_OPERATIONS = ("rank", "rankBatch", "feedback", "feedbackBatch")


class ResponseStats(NamedTuple):
    """Statistics of responses since the process started.

    Attributes
    ----------
    latencies
        Number of responses to ranking and feedback requests in each of `BUCKETS`, and beyond the last.
    refused
        Number of those with a 4xx status.
    failed
        Number of responses to any request with a 5xx status.
    """

    latencies: list[int]
    refused: int
    failed: int

    def since(self, before: "ResponseStats") -> "ResponseStats":
        """Return the statistics of the responses between two moments."""
        latencies = [now - then for now, then in zip(self.latencies, before.latencies, strict=True)]
        return ResponseStats(latencies, self.refused - before.refused, self.failed - before.failed)

    def latency_quantile(self, q: float) -> float | None:
        """Return an upper bound on a quantile of the latencies in seconds; None without responses.

        Examples
        --------
        >>> ResponseStats([90, 9, 1, *[0] * 11], 0, 0).latency_quantile(0.99)
        0.001
        """
        rank = q * sum(self.latencies)
        if rank == 0:
            return None
        bucket = bisect_left(list(accumulate(self.latencies)), rank)
        return BUCKETS[min(bucket, len(BUCKETS) - 1)]


class Metrics:
    """Counts requests, and exports metrics of them and of the engine.

    Parameters
    ----------
    engine
        Engine whose metrics are exported.
    shared_directory
        Directory in which workers share their counters; None for a single worker.
    """

    def __init__(self, engine: Engine, shared_directory: Path | None = None) -> None:
        self._engine = engine
        self._requests: RequestHistograms = {}
        self._shared = None
        if shared_directory is not None:
            self._shared = SharedWorkerMetrics(shared_directory, self._own_counters)

    def record_request(self, operation_id: str, status: int, seconds: float) -> None:
        """Count a request."""
        histogram = self._requests.get((operation_id, status))
        if histogram is None:
            histogram = self._requests[operation_id, status] = RequestHistogram()
        histogram.seconds += seconds
        histogram.buckets[bisect_left(BUCKETS, seconds)] += 1

    def response_stats(self) -> ResponseStats:
        """Return the statistics of responses so far."""
        latencies = [0] * (len(BUCKETS) + 1)
        refused = failed = 0
        for (operation_id, status), histogram in list(self._requests.items()):
            n_responses = sum(histogram.buckets)
            if status >= 500:
                failed += n_responses
            if operation_id not in _RANKING_OPERATIONS:
                continue
            refused += n_responses if 400 <= status < 500 else 0
            latencies = [before + more for before, more in zip(latencies, histogram.buckets, strict=True)]
        return ResponseStats(latencies, refused, failed)

    def share(self) -> None:
        """Write the counters of this worker for the others; does nothing for a single worker.

        Raises
        ------
        OSError
            If they cannot be written.
        """
        if self._shared is not None:
            self._shared.write()

    def exposition(self) -> bytes:
        """Return all metrics in the Prometheus text format: counters of all workers, gauges of this one."""
        counters = self._own_counters() if self._shared is None else self._shared.total()
        return generate_latest(_Collector(self._engine, counters))

    def _own_counters(self) -> WorkerMetrics:
        committer = self._engine.committer
        return WorkerMetrics(self._requests, committer.groups, committer.events, committer.dropped)


class _Collector(Collector):
    """Metric families for one exposition."""

    def __init__(self, engine: Engine, counters: WorkerMetrics) -> None:
        self._engine = engine
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        yield from self._process_metrics()
        yield from self._surface_metrics()
        yield from self._request_metrics()

    def _process_metrics(self) -> Iterator[Metric]:
        engine, counters = self._engine, self._counters
        yield InfoMetricFamily("banditrank_build", "Version of banditrank.", value={"version": __version__})
        yield GaugeMetricFamily(
            "banditrank_store_sync_age_seconds",
            "Time since the last sync with the store.",
            value=time.monotonic() - engine.last_sync,
        )
        yield GaugeMetricFamily(
            "banditrank_surfaces_out_of_sync",
            "Surfaces that are out of sync with the store.",
            value=len(engine.sync_errors),
        )
        yield GaugeMetricFamily(
            "banditrank_surfaces_compiling",
            "Surfaces whose code is being compiled.",
            value=len(engine.compilations.surfaces),
        )
        yield GaugeMetricFamily(
            "banditrank_commit_queue_length", "Events that wait for a commit.", value=engine.committer.queued
        )
        yield CounterMetricFamily("banditrank_commits", "Group commits.", value=counters.commits)
        yield CounterMetricFamily(
            "banditrank_committed_events", "Rankings and feedback in group commits.", value=counters.events
        )
        yield CounterMetricFamily(
            "banditrank_dropped_impressions",
            "Impressions that were not recorded because the commit queue was full "
            "or the store rejected them.",
            value=counters.dropped,
        )

    def _surface_metrics(self) -> Iterator[Metric]:
        age = GaugeMetricFamily(
            "banditrank_counts_age_seconds",
            "Age of the counts that rankings are made from.",
            labels=["surface"],
        )
        version = GaugeMetricFamily(
            "banditrank_counts_version", "Version of the counts in this process.", labels=["surface"]
        )
        rounds = CounterMetricFamily(
            "banditrank_rounds", "Counted rankings of the surface, over all replicas.", labels=["surface"]
        )
        for runtime in self._engine.surfaces():
            name = runtime.surface.name
            age.add_metric([name], runtime.staleness_seconds)
            version.add_metric([name], runtime.version)
            rounds.add_metric([name], runtime.rounds)
        yield from (age, version, rounds)

    def _request_metrics(self) -> Iterator[Metric]:
        labels = ["operation", "status"]
        counter = CounterMetricFamily(
            "banditrank_requests", "HTTP requests by operation id and status.", labels=labels
        )
        durations = HistogramMetricFamily(
            "banditrank_request_duration_seconds",
            "Duration of HTTP requests by operation id and status.",
            labels=labels,
        )
        bounds = [*map(str, BUCKETS), "+Inf"]
        for (operation_id, status), histogram in list(self._counters.requests.items()):
            sums = list(accumulate(histogram.buckets))
            counter.add_metric([operation_id, str(status)], sums[-1])
            buckets = list(zip(bounds, sums, strict=True))
            durations.add_metric([operation_id, str(status)], buckets, histogram.seconds)
        yield from (counter, durations)
