"""Counters of one worker process, and their sum over all workers of a service.

A request for metrics reaches one worker. Each worker therefore writes its counters to a file in a shared
directory, and the worker that is asked adds up all files. Files of workers that exited are kept, so that
counters never decrease.
"""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import TypeAlias

import msgspec

from banditrank._files import atomic_write

SHARE_INTERVAL_SECONDS = 1.0
"""Seconds between two writes of a worker's counters."""

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds of the latency buckets in seconds; the last bucket has no bound."""


class RequestHistogram(msgspec.Struct):
    """Latency histogram of the requests with one operation id and status.

    The metric classes of ``prometheus_client`` would take as long per request as all other work.

    Attributes
    ----------
    seconds
        Sum of the durations.
    buckets
        Number of requests in each of `BUCKETS`, and beyond the last.
    """

    seconds: float = 0.0
    buckets: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BUCKETS) + 1))

    def add(self, other: "RequestHistogram") -> None:
        """Add the requests of another histogram."""
        self.seconds += other.seconds
        self.buckets = [own + more for own, more in zip(self.buckets, other.buckets, strict=True)]


RequestHistograms: TypeAlias = dict[tuple[str, int], RequestHistogram]
"""Histograms by operation id and status."""


class WorkerMetrics(msgspec.Struct):
    """Counters of a worker since it started.

    Attributes
    ----------
    requests
        Latency histograms of requests.
    commits
        Number of group commits.
    events
        Number of events in these commits.
    dropped
        Number of impressions that were not recorded, because the commit queue was full or the store
        rejected them.
    """

    requests: RequestHistograms = msgspec.field(default_factory=dict)
    commits: int = 0
    events: int = 0
    dropped: int = 0

    def add(self, other: "WorkerMetrics") -> None:
        """Add the counters of another worker."""
        for labels, histogram in list(other.requests.items()):
            self.requests.setdefault(labels, RequestHistogram()).add(histogram)
        self.commits += other.commits
        self.events += other.events
        self.dropped += other.dropped


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(WorkerMetrics).decode


class SharedWorkerMetrics:
    """Counters of all workers, in a directory that they share.

    Parameters
    ----------
    directory
        Directory that contains nothing else.
    own
        Returns the counters of this worker.
    """

    def __init__(self, directory: Path, own: Callable[[], WorkerMetrics]) -> None:
        self._directory = directory
        self._file = directory / f"{token_hex(16)}.metrics"  # random: process ids are reused
        self._own = own
        self._lock = threading.Lock()

    def write(self) -> None:
        """Write the counters of this worker for the others.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        with self._lock:  # older counters must not replace newer ones
            self._write(_encode(self._own()))

    def total(self) -> WorkerMetrics:
        """Return the sum over all workers: this one's current counters and the last written of the others."""
        with self._lock:
            own = _encode(self._own())
            with contextlib.suppress(OSError):  # the periodic task logs it
                self._write(own)  # so that the total does not decrease when another worker is asked next
        total = _decode(own)
        for file in self._directory.glob("*.metrics"):
            if file != self._file:
                total.add(_decode(file.read_bytes()))
        return total

    def _write(self, content: bytes) -> None:
        with atomic_write(self._file) as file:
            file.write_bytes(content)
