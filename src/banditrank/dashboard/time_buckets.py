"""Buckets of equal width, from a start on."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard.bucket_table import BucketTable, Kinds, Numbers, table_size
from banditrank.storage.cells import Cells

MAX_BUCKETS = 240


@dataclass(slots=True, eq=False)
class TimeBuckets:
    """What was counted in each of `MAX_BUCKETS` buckets of time.

    Attributes
    ----------
    opened
        Time of the first change, in milliseconds since 1970.
    start, width
        Start of the first bucket and width of each, in milliseconds.
    table
        Counts, a row for each bucket.
    regret
        Regret of each bucket, shape (B,).
    """

    opened: int
    start: int
    width: int
    table: BucketTable
    regret: NDArray[np.float64]

    @classmethod
    def empty(cls, at: int, width: int, *, n_user_types: int, origin: int = 0) -> "TimeBuckets":
        """Return empty buckets from a time on, aligned with others of the same width from an origin on."""
        start = at - (at - origin) % width
        return cls(at, start, width, BucketTable.empty(MAX_BUCKETS, n_user_types), np.zeros(MAX_BUCKETS))

    @classmethod
    def from_numbers(
        cls, opened: int, start: int, width: int, numbers: Numbers, n_user_types: int
    ) -> "TimeBuckets":
        """Return the buckets that were kept as so many numbers."""
        counts, regret = np.split(numbers, [table_size(MAX_BUCKETS, n_user_types)])
        table = BucketTable.from_numbers(counts, MAX_BUCKETS, n_user_types)
        return cls(opened, start, width, table, regret.view("<f8").copy())

    def to_bytes(self) -> bytes:
        """Return all numbers, to be kept."""
        return self.table.to_bytes() + self.regret.tobytes()

    @staticmethod
    def size(n_user_types: int) -> int:
        """Return how many numbers there are to keep."""
        return table_size(MAX_BUCKETS, n_user_types) + MAX_BUCKETS

    @property
    def n_user_types(self) -> int:
        """How many user types the table has room for."""
        return int(self.table.visits.shape[1])

    @property
    def end(self) -> int:
        """End of the last bucket, in milliseconds since 1970."""
        return self.start + MAX_BUCKETS * self.width

    @property
    def latest(self) -> int:
        """Start of the last bucket with visits, in milliseconds since 1970."""
        visited = np.flatnonzero(self.table.visits.any(axis=1))
        return self.start + (int(visited[-1]) if visited.size else 0) * self.width

    def copy(self) -> "TimeBuckets":
        """Return a copy that shares nothing."""
        return replace(self, table=self.table.copy(), regret=self.regret.copy())

    def add(self, at: Numbers, cells: Cells, kinds: Kinds | None) -> None:
        """Add cells, each at a time; what is before the first bucket is counted in it."""
        self.table.add(self._buckets(at), cells, kinds)

    def add_regret(self, at: int, regret: float) -> None:
        """Add regret at a time."""
        self.regret[self._buckets(np.array(at))] += regret

    def widen(self, at: int) -> None:
        """Double the width of buckets until there is one for a time."""
        while at >= self.end:
            self.width *= 2
            half = MAX_BUCKETS // 2
            for table in (*self.table.tables, self.regret):
                table[:half] = table[::2] + table[1::2]
                table[half:] = 0

    def absorb(self, other: "TimeBuckets") -> None:
        """Merge later buckets, widening this series as needed."""
        self.widen(other.latest)
        number = (other.latest - other.start) // other.width + 1
        self._add_rows(other, other.start + other.width * np.arange(number))

    def absorb_at(self, other: "TimeBuckets", at: int) -> None:
        """Merge all counts of other buckets into one time."""
        self._add_rows(other, np.full(MAX_BUCKETS, at))

    def _add_rows(self, other: "TimeBuckets", at: Numbers) -> None:
        rows = self._buckets(at)
        self.table.add_rows(rows, other.table)
        np.add.at(self.regret, rows, other.regret[: len(rows)])

    def _buckets(self, at: Numbers) -> Numbers:
        return np.asarray(((at - self.start) // self.width).clip(0), dtype=np.int64)
