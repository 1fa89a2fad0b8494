"""Samples of a soak run, their trends, and the verdict."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from campaigns.soak_trends import MIN_SAMPLES, Trend, trend

WARM_UP_MINUTES = 5.0  # or a third of a run, if that is less
_MIB = 1 << 20


class Sample(NamedTuple):
    """Measurements at the end of a window, and of the requests within it."""

    minutes: float  # since the load began
    rss: int  # bytes, the minimum within the window
    file_descriptors: int
    threads: int
    wal: int  # bytes
    database: int  # bytes, without the write-ahead log
    counted: int  # rankings, since the store was created
    requests_a_second: float
    p50: float  # milliseconds
    p99: float


class Measure(NamedTuple):
    """A row of the report."""

    name: str
    value: Callable[[Sample], float]
    digits: int
    limit: float | None = None  # of growth per minute


# Connection pools (two file descriptors per connection) and thread pools fill slowly, up to 16 and 6: these
# limits distinguish a leak from that in runs of 15 minutes.
MEASURES = (
    Measure("RSS, MiB", lambda sample: sample.rss / _MIB, 2, limit=0.05),
    Measure("file descriptors", lambda sample: sample.file_descriptors, 0, limit=2.0),
    Measure("threads", lambda sample: sample.threads, 0, limit=1.0),
    Measure("write-ahead log, MiB", lambda sample: sample.wal / _MIB, 2),
    Measure("latency, median, ms", lambda sample: sample.p50, 2),
    Measure("latency, 99th percentile, ms", lambda sample: sample.p99, 2),
    Measure("requests a second", lambda sample: sample.requests_a_second, 0),
)


@dataclass
class SoakRun:
    """Measurements of a soak run so far."""

    minutes: float  # planned duration
    capacity: float = 0.0  # requests per second, 0 if it was not measured
    rate: float = 0.0  # requests per second that are sent
    samples: list[Sample] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)

    @property
    def warm_up_minutes(self) -> float:
        """The length of the warm-up: a third of a short run."""
        return min(WARM_UP_MINUTES, self.samples[-1].minutes / 3) if self.samples else 0.0

    @property
    def measured(self) -> list[Sample]:
        """The samples after the warm-up."""
        return [sample for sample in self.samples if sample.minutes >= self.warm_up_minutes]

    def trend(self, measure: Measure) -> Trend:
        """Return the growth of a measure per minute, after the warm-up."""
        measured = self.measured
        return trend([sample.minutes for sample in measured], [measure.value(sample) for sample in measured])

    def bytes_per_ranking(self) -> Trend:
        """Return the growth of the database file per counted ranking, after the warm-up."""
        measured = self.measured
        return trend([sample.counted for sample in measured], [sample.database for sample in measured])

    def violations(self) -> list[str]:
        """Return the violated limits, one sentence each."""
        found = []
        if len(self.measured) >= MIN_SAMPLES:
            for measure in MEASURES:
                slope = self.trend(measure).slope
                if measure.limit is not None and slope > measure.limit:
                    found.append(f"{measure.name}: grows by {slope:.3f} a minute, limit {measure.limit}")
        else:
            found.append(f"{len(self.measured)} samples after the warm-up, {MIN_SAMPLES} needed for a trend")
        if total := self.failures.total():
            kinds = "; ".join(f"{times} × {kind}" for kind, times in self.failures.most_common(5))
            found.append(f"{total:,} requests failed: {kinds}")
        return found

    def table(self) -> Iterator[str]:
        """Return the report as the lines of a Markdown table."""
        yield "| | first | last | growth a minute | 95% interval | limit |"
        yield "|---|---|---|---|---|---|"
        measured = self.measured
        if len(measured) < MIN_SAMPLES:
            return
        for measure in MEASURES:
            first, last = measure.value(measured[0]), measure.value(measured[-1])
            limit = "" if measure.limit is None else f"{measure.limit:g}"
            ends = f"{first:,.{measure.digits}f} | {last:,.{measure.digits}f}"
            yield f"| {measure.name} | {ends} | {_slope(self.trend(measure))} | {limit} |"
        sizes = " | ".join(f"{sample.database / _MIB:,.1f}" for sample in (measured[0], measured[-1]))
        growth = trend([one.minutes for one in measured], [one.database / _MIB for one in measured])
        yield f"| database, MiB | {sizes} | {_slope(growth)} | |"
        share = self.bytes_per_ranking()
        counted = f"{measured[0].counted:,} | {measured[-1].counted:,}"
        yield (
            f"| counted rankings; database bytes for each | {counted} | {share.slope:,.0f} bytes each | "
            f"{share.low:,.0f} to {share.high:,.0f} | |"
        )


def _slope(found: Trend) -> str:
    return f"{found.slope:+.3f} | {found.low:+.3f} to {found.high:+.3f}"
