"""Visits, rewards, displays and regret in buckets of time of equal width."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from banditrank.storage._cells import Cells

MAX_BUCKETS = 240

BEST, OTHER_ORDER, OTHER_ITEM = DISPLAY_KINDS = range(3)
"""A display shows the item that the reference has there, another one of its items, or an item not in it."""

Ints = NDArray[np.int64]
DisplayKinds = NDArray[np.int8]


class ReferenceRankings:
    """Best rankings that displays are compared with.

    Parameters
    ----------
    rankings
        Best ranking for each user type, as item numbers, shape (N, K).
    n_items
        Number of items.

    Examples
    --------
    >>> from banditrank.storage._cells import CELL
    >>> cells = np.array([(0, 0, 4, 1, 0), (0, 1, 4, 1, 0), (0, 1, 3, 1, 0)], dtype=CELL)
    >>> ReferenceRankings(np.array([[4, 2]]), n_items=5).classify(cells).tolist()  # best, order, item
    [0, 1, 2]
    """

    def __init__(self, rankings: NDArray[np.intp], n_items: int) -> None:
        n_user_types, n_positions = rankings.shape
        self.rankings = rankings
        self.n_items = n_items
        self._kinds = np.full((n_user_types, n_positions, n_items), OTHER_ITEM, dtype=np.int8)
        user_types, positions = np.arange(n_user_types)[:, None], np.arange(n_positions)
        for k in range(n_positions):
            self._kinds[user_types, positions, rankings[:, [k]]] = OTHER_ORDER
        self._kinds[user_types, positions, rankings] = BEST

    def classify(self, cells: Cells) -> DisplayKinds:
        """Return the kind of each cell's displays; items and user types added since are `OTHER_ITEM`."""
        kinds = np.full(len(cells), OTHER_ITEM, dtype=np.int8)
        is_covered = (cells["user_type"] < len(self._kinds)) & (cells["item"] < self.n_items)
        covered = cells[is_covered]
        kinds[is_covered] = self._kinds[covered["user_type"], covered["position"], covered["item"]]
        return kinds


@dataclass(slots=True, eq=False)
class BucketTable:
    """Counts of some buckets, one row each.

    Attributes
    ----------
    visits, rewards
        By user type, shape (B, N); rewards are in 1 / `REWARD_UNITS`.
    displays
        By kind, shape (B, 3).
    """

    visits: Ints
    rewards: Ints
    displays: Ints

    @classmethod
    def empty(cls, n_buckets: int, n_user_types: int) -> "BucketTable":
        """Return a table of zeros."""
        visits, rewards, displays = (np.zeros((n_buckets, n), np.int64) for n in _n_columns(n_user_types))
        return cls(visits, rewards, displays)

    @classmethod
    def from_values(cls, values: Ints, n_buckets: int, n_user_types: int) -> "BucketTable":
        """Return the table that `to_bytes` encoded, from its values."""
        parts = np.split(values, np.cumsum([n_buckets * n for n in _n_columns(n_user_types)])[:-1])
        visits, rewards, displays = (part.reshape(n_buckets, -1).copy() for part in parts)
        return cls(visits, rewards, displays)

    @staticmethod
    def n_values(n_buckets: int, n_user_types: int) -> int:
        """Return the number of values of a table."""
        return n_buckets * sum(_n_columns(n_user_types))

    def to_bytes(self) -> bytes:
        """Return all values as 64-bit integers."""
        return b"".join(np.ascontiguousarray(array).tobytes() for array in self.arrays)

    @property
    def n_user_types(self) -> int:
        """Number of user types."""
        return int(self.visits.shape[1])

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints]:
        """The visits, rewards and displays."""
        return self.visits, self.rewards, self.displays

    def add(self, rows: Ints, cells: Cells, kinds: DisplayKinds | None) -> None:
        """Add each cell to a row; its displays are left out if their kinds are unknown."""
        self._grow(int(cells["user_type"].max(initial=0)) + 1)
        user_types, displays = cells["user_type"], cells["displays"]
        is_first = cells["position"] == 0  # every impression displays one item there
        np.add.at(self.visits, (rows[is_first], user_types[is_first]), displays[is_first])
        np.add.at(self.rewards, (rows, user_types), cells["rewards"])
        if kinds is not None:
            np.add.at(self.displays, (rows, kinds), displays)

    def add_rows(self, rows: Ints, other: "BucketTable") -> None:
        """Add the first rows of another table, each to a row of this one."""
        n_rows, n_user_types = len(rows), other.n_user_types
        self._grow(n_user_types)
        np.add.at(self.visits[:, :n_user_types], rows, other.visits[:n_rows])
        np.add.at(self.rewards[:, :n_user_types], rows, other.rewards[:n_rows])
        np.add.at(self.displays, rows, other.displays[:n_rows])

    def copy(self) -> "BucketTable":
        """Return a deep copy."""
        return BucketTable(*(array.copy() for array in self.arrays))

    def _grow(self, n_user_types: int) -> None:
        """Add columns for user types that were added since."""
        n_missing = n_user_types - self.n_user_types
        if n_missing > 0:
            self.visits = np.pad(self.visits, ((0, 0), (0, n_missing)))
            self.rewards = np.pad(self.rewards, ((0, 0), (0, n_missing)))


def exploration_shares(displays: Ints) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the shares of displays of kind `OTHER_ITEM` and `OTHER_ORDER`, each of shape (B,).

    Parameters
    ----------
    displays
        Displays by kind, shape (B, 3). Without any, the shares are NaN.
    """
    total = displays.sum(axis=1)
    total = np.where(total > 0, total, np.nan)
    return displays[:, OTHER_ITEM] / total, displays[:, OTHER_ORDER] / total


@dataclass(slots=True, eq=False)
class TimeBuckets:
    """`MAX_BUCKETS` consecutive buckets of time.

    Attributes
    ----------
    first_change_ms
        Time of the first change, in milliseconds since 1970.
    start_ms, width_ms
        Start of the first bucket, and width of each.
    table
        Counts, a row for each bucket.
    regret
        Regret of each bucket, shape (B,).
    """

    first_change_ms: int
    start_ms: int
    width_ms: int
    table: BucketTable
    regret: NDArray[np.float64]

    @classmethod
    def empty(cls, at_ms: int, width_ms: int, *, n_user_types: int, origin_ms: int = 0) -> "TimeBuckets":
        """Return empty buckets, the first of which contains a time.

        Buckets start at multiples of their width after the origin.
        """
        start_ms = at_ms - (at_ms - origin_ms) % width_ms
        table = BucketTable.empty(MAX_BUCKETS, n_user_types)
        return cls(at_ms, start_ms, width_ms, table, np.zeros(MAX_BUCKETS))

    @classmethod
    def from_values(
        cls, values: Ints, *, first_change_ms: int, start_ms: int, width_ms: int, n_user_types: int
    ) -> "TimeBuckets":
        """Return the buckets that `to_bytes` encoded, from their values."""
        counts, regret = np.split(values, [BucketTable.n_values(MAX_BUCKETS, n_user_types)])
        table = BucketTable.from_values(counts, MAX_BUCKETS, n_user_types)
        return cls(first_change_ms, start_ms, width_ms, table, regret.view("<f8").copy())

    @staticmethod
    def n_values(n_user_types: int) -> int:
        """Return the number of values that `to_bytes` encodes."""
        return BucketTable.n_values(MAX_BUCKETS, n_user_types) + MAX_BUCKETS

    def to_bytes(self) -> bytes:
        """Return the counts as 64-bit integers, then the regret as 64-bit floats."""
        return self.table.to_bytes() + self.regret.tobytes()

    @property
    def end_ms(self) -> int:
        """End of the last bucket, in milliseconds since 1970."""
        return self.start_ms + MAX_BUCKETS * self.width_ms

    @property
    def last_visit_ms(self) -> int:
        """Start of the last bucket with visits, in milliseconds since 1970."""
        visited = np.flatnonzero(self.table.visits.any(axis=1))
        return self.start_ms + (int(visited[-1]) if visited.size else 0) * self.width_ms

    def copy(self) -> "TimeBuckets":
        """Return a deep copy."""
        return replace(self, table=self.table.copy(), regret=self.regret.copy())

    def add(self, at_ms: Ints, cells: Cells, kinds: DisplayKinds | None) -> None:
        """Add each cell at a time; times before the first bucket are counted in it."""
        self.table.add(self._rows(at_ms), cells, kinds)

    def add_regret(self, at_ms: int, regret: float) -> None:
        """Add regret at a time."""
        self.regret[self._rows(np.array(at_ms))] += regret

    def widen(self, at_ms: int) -> None:
        """Double the width until a time lies before the end."""
        while at_ms >= self.end_ms:
            self.width_ms *= 2
            half = MAX_BUCKETS // 2
            for array in (*self.table.arrays, self.regret):
                array[:half] = array[::2] + array[1::2]
                array[half:] = 0

    def merge(self, other: "TimeBuckets") -> None:
        """Add later buckets, widening these as needed."""
        self.widen(other.last_visit_ms)
        n_buckets = (other.last_visit_ms - other.start_ms) // other.width_ms + 1
        self._add_buckets(other, other.start_ms + other.width_ms * np.arange(n_buckets))

    def merge_at(self, other: "TimeBuckets", at_ms: int) -> None:
        """Add all counts of other buckets at one time."""
        self._add_buckets(other, np.full(MAX_BUCKETS, at_ms))

    def _add_buckets(self, other: "TimeBuckets", at_ms: Ints) -> None:
        rows = self._rows(at_ms)
        self.table.add_rows(rows, other.table)
        np.add.at(self.regret, rows, other.regret[: len(rows)])

    def _rows(self, at_ms: Ints) -> Ints:
        return np.asarray(((at_ms - self.start_ms) // self.width_ms).clip(0), dtype=np.int64)


def _n_columns(n_user_types: int) -> tuple[int, int, int]:
    return n_user_types, n_user_types, len(DISPLAY_KINDS)
