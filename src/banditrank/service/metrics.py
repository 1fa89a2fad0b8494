"""What Prometheus is told."""

import time
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from banditrank import __version__
from banditrank.engine.engine import Engine
from banditrank.service.tallies import BUCKETS, AllRequests, Requests, SharedTallies, Tally

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_ANSWERS = ("rank", "feedback", "feedbackBatch")


class Answers(NamedTuple):
    """How rankings and feedback were answered: by time, and how many refused; failures are of any kind."""

    by_time: list[int]  # within each of `BUCKETS`, and beyond
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
        return BUCKETS[min(place, len(BUCKETS) - 1)]


class Metrics:
    """Counts requests, and reads the rest from the engine when asked.

    Parameters
    ----------
    engine
        What is told of.
    shared
        Directory in which workers tell each other what they counted; None if there is but one.
    """

    def __init__(self, engine: Engine, shared: Path | None = None) -> None:
        self._engine = engine
        self._requests: AllRequests = {}
        self._shared = None if shared is None else SharedTallies(shared, self._tally)

    def request(self, operation: str, status: int, seconds: float) -> None:
        """Count a request."""
        alike = self._requests.get((operation, status))
        if alike is None:
            alike = self._requests[operation, status] = Requests()
        alike.seconds += seconds
        alike.buckets[bisect_left(BUCKETS, seconds)] += 1

    def answers(self) -> "Answers":
        """Return how rankings and feedback were answered so far."""
        buckets = [0] * (len(BUCKETS) + 1)
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

    def share(self) -> None:
        """Tell the other workers what was counted, if there are any."""
        if self._shared is not None:
            self._shared.write()

    def text(self) -> bytes:
        """Return all metrics in Prometheus' format."""
        counted = self._tally() if self._shared is None else self._shared.total()
        return generate_latest(_Collected(self._engine, counted))

    def _tally(self) -> Tally:
        committer = self._engine.committer
        return Tally(self._requests, committer.groups, committer.events, committer.dropped)


class _Collected(Collector):
    """What is told once: counters of all workers, gauges of this one."""

    def __init__(self, engine: Engine, counted: Tally) -> None:
        self._engine = engine
        self._counted = counted

    def collect(self) -> Iterator[Metric]:
        yield from self._of_the_process()
        yield from self._of_surfaces()
        yield from self._of_requests()

    def _of_the_process(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("banditrank_info", "1, for version " + __version__, value=1)
        yield GaugeMetricFamily(
            "banditrank_store_sync_age_seconds",
            "Since the store was last looked at for what other replicas wrote.",
            value=time.monotonic() - self._engine.last_sync,
        )
        yield GaugeMetricFamily(
            "banditrank_surfaces_unreadable",
            "Surfaces that are not at work as they are in the store: the log says why.",
            value=len(self._engine.sync_errors),
        )
        for name, text, value in (
            ("groups", "Commits so far.", self._counted.groups),
            ("entries", "Rankings and feedback written in these commits.", self._counted.entries),
            (
                "dropped",
                "Impression rankings that were not noted, because the store was too far behind.",
                self._counted.dropped,
            ),
            ("waiting", "Entries that wait to be written.", self._engine.committer.queued),
        ):
            yield GaugeMetricFamily(f"banditrank_journal_{name}", text, value=value)

    def _of_surfaces(self) -> Iterator[Metric]:
        age = GaugeMetricFamily(
            "banditrank_counts_age_seconds",
            "By how much the counts behind rankings are behind those learned.",
            labels=["surface"],
        )
        versions = GaugeMetricFamily(
            "banditrank_counts_version", "Of the counts learned in this process.", labels=["surface"]
        )
        rounds = GaugeMetricFamily("banditrank_rounds", "Rankings that were counted.", labels=["surface"])
        for live in self._engine.surfaces():
            name = live.surface.name
            age.add_metric([name], live.staleness_seconds)
            versions.add_metric([name], live.version)
            rounds.add_metric([name], live.rounds)
        yield from (age, versions, rounds)

    def _of_requests(self) -> Iterator[Metric]:
        labels = ["operation", "status"]
        counter = CounterMetricFamily(
            "banditrank_requests", "Requests by operation and status.", labels=labels
        )
        histogram = HistogramMetricFamily(
            "banditrank_request_seconds", "How long requests took, by operation and status.", labels=labels
        )
        bounds = [*map(str, BUCKETS), "+Inf"]
        for (operation, status), alike in list(self._counted.requests.items()):
            sums = list(accumulate(alike.buckets))
            counter.add_metric([operation, str(status)], sums[-1])
            buckets = list(zip(bounds, sums, strict=True))
            histogram.add_metric([operation, str(status)], buckets, alike.seconds)
        yield from (counter, histogram)
