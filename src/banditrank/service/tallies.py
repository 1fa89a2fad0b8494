"""What processes counted: each for itself, and all workers of a service together.

A request for metrics reaches one worker. So each writes what it counted to a file of its own, and whichever
is asked adds up all files. Those of workers that are gone stay: what is counted never becomes less.
"""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import TypeAlias

import msgspec

from banditrank.files import atomic_write

SHARING_SECONDS = 1.0
"""Between two writings of what a worker counted."""

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Seconds within which requests are answered; there is one more, for all others."""


class Requests(msgspec.Struct):
    """Requests of one operation that ended with the same status.

    Prometheus' own counters and histograms take as long for a request as all else that is done about it.
    """

    seconds: float = 0.0
    buckets: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BUCKETS) + 1))

    def add(self, other: "Requests") -> None:
        """Count others, too."""
        self.seconds += other.seconds
        self.buckets = [own + more for own, more in zip(self.buckets, other.buckets, strict=True)]


AllRequests: TypeAlias = dict[tuple[str, int], Requests]  # by operation and status


class Tally(msgspec.Struct):
    """What was counted since processes began: requests, and what a journal says of itself."""

    requests: AllRequests = msgspec.field(default_factory=dict)
    groups: int = 0
    entries: int = 0
    dropped: int = 0

    def add(self, other: "Tally") -> None:
        """Count what others counted, too."""
        for kind, alike in list(other.requests.items()):
            self.requests.setdefault(kind, Requests()).add(alike)
        self.groups += other.groups
        self.entries += other.entries
        self.dropped += other.dropped


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Tally).decode


class SharedTallies:
    """What all workers counted, in a directory that they share.

    Parameters
    ----------
    directory
        Where files are; nobody else's.
    own
        Tells what this worker counted.
    """

    def __init__(self, directory: Path, own: Callable[[], Tally]) -> None:
        self._directory = directory
        self._file = directory / f"{token_hex(16)}.tally"  # a worker that comes later may get the same number
        self._own = own
        self._lock = threading.Lock()

    def write(self) -> None:
        """Tell the other workers what this one counted."""
        with self._lock:  # what was counted before is not written after
            self._write(_encode(self._own()))

    def total(self) -> Tally:
        """Return what all workers counted: this one up to now, others when they wrote it last."""
        with self._lock:
            own = _encode(self._own())
            with contextlib.suppress(OSError):  # it is logged by whoever writes every second
                self._write(own)  # what is told now is not to become less when another worker is asked
        total = _decode(own)
        for file in self._directory.glob("*.tally"):
            if file != self._file:
                total.add(_decode(file.read_bytes()))
        return total

    def _write(self, own: bytes) -> None:
        with atomic_write(self._file) as file:
            file.write_bytes(own)
