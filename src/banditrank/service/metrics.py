"""What Prometheus is told."""

import time
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from banditrank import __version__
from banditrank.engine.engine import Engine

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


_ANSWERS = ("rank", "feedback", "feedbackBatch")


class Answers(NamedTuple):
    """How rankings and feedback were answered: by time, and how many refused; failures are of any kind."""

    by_time: list[int]  # within each of `_BUCKETS`, and beyond
    refused: int
    failed: int

    def since(self, before: "Answers") -> "Answers":
        """Return what came since."""
        by_time = [now - then for now, then in zip(self.by_time, before.by_time, strict=True)]
        return Answers(by_time, self.refused - before.refused, self.failed - before.failed)

    def slowest(self, share: float) -> float:
        """Return the seconds within which a share of the answers came; 0 if there were none.

        Examples
        --------
        >>> Answers([90, 9, 1, *[0] * 11], 0, 0).slowest(0.99)
        0.001
        """
        wanted = share * sum(self.by_time)
        if wanted == 0:
            return 0.0
        place = bisect_left(list(accumulate(self.by_time)), wanted)
        return _BUCKETS[min(place, len(_BUCKETS) - 1)]


class Metrics:
    """Counts requests, and reads the rest from the engine when asked."""

    def __init__(self, engine: Engine) -> None:
        self._requests: dict[tuple[str, int], _Requests] = {}
        self._registry = CollectorRegistry()
        self._registry.register(_EngineCollector(engine))
        self._registry.register(_RequestCollector(self._requests))

    def request(self, operation: str, status: int, seconds: float) -> None:
        """Count a request."""
        alike = self._requests.get((operation, status))
        if alike is None:
            alike = self._requests[operation, status] = _Requests()
        alike.seconds += seconds
        alike.buckets[bisect_left(_BUCKETS, seconds)] += 1

    def answers(self) -> "Answers":
        """Return how rankings and feedback were answered so far."""
        buckets = [0] * (len(_BUCKETS) + 1)
        refused = failed = 0
        for (operation, status), alike in list(self._requests.items()):
            number = sum(alike.buckets)
            if status >= 500:
                failed += number
            if operation not in _ANSWERS:
                continue
            refused += number if 400 <= status < 500 else 0
            buckets = [before + more for before, more in zip(buckets, alike.buckets, strict=True)]
        return Answers(buckets, refused, failed)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' format."""
        return generate_latest(self._registry)


class _Requests:
    """Requests of one operation that ended with the same status.

    Prometheus' own counters and histograms take as long for a request as all else that is done about it.
    """

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.buckets = [0] * (len(_BUCKETS) + 1)


class _RequestCollector(Collector):
    def __init__(self, requests: dict[tuple[str, int], _Requests]) -> None:
        self._requests = requests

    def collect(self) -> Iterator[Metric]:
        counter = CounterMetricFamily(
            "banditrank_requests", "Requests by operation and status.", labels=["operation", "status"]
        )
        histogram = HistogramMetricFamily(
            "banditrank_request_seconds",
            "How long requests took, by operation and status.",
            labels=["operation", "status"],
        )
        bounds = [*map(str, _BUCKETS), "+Inf"]
        for (operation, status), alike in list(self._requests.items()):
            sums = list(accumulate(alike.buckets))
            counter.add_metric([operation, str(status)], sums[-1])
            buckets = list(zip(bounds, sums, strict=True))
            histogram.add_metric([operation, str(status)], buckets, alike.seconds)
        yield from (counter, histogram)


class _EngineCollector(Collector):
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        journal = self._engine.journal
        yield GaugeMetricFamily("banditrank_info", "1, for version " + __version__, value=1)
        yield GaugeMetricFamily(
            "banditrank_store_sync_age_seconds",
            "Since the store was last looked at for what other replicas wrote.",
            value=time.monotonic() - self._engine.last_sync,
        )
        for name, text, value in (
            ("groups", "Commits so far.", journal.groups),
            ("entries", "Rankings and feedback written in these commits.", journal.entries),
            (
                "dropped",
                "Shown rankings that were not noted, because the store was too far behind.",
                journal.dropped,
            ),
            ("waiting", "Entries that wait to be written.", journal.waiting),
        ):
            yield GaugeMetricFamily(f"banditrank_journal_{name}", text, value=value)
        age = GaugeMetricFamily(
            "banditrank_counts_age_seconds",
            "By how much the counts behind rankings are behind those learned.",
            labels=["surface"],
        )
        versions = GaugeMetricFamily(
            "banditrank_counts_version", "Of the counts learned in this process.", labels=["surface"]
        )
        rounds = GaugeMetricFamily(
            "banditrank_rounds",
            "Rankings that were counted.",
            labels=["surface"],
        )
        for live in self._engine.surfaces():
            name = live.surface.name
            age.add_metric([name], live.age)
            versions.add_metric([name], live.version)
            rounds.add_metric([name], live.rounds)
        yield from (age, versions, rounds)
