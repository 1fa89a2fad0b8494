"""Visits, clicks and how displays compare with the best ranking, for each of some buckets of time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditrank.storage.cells import Cells

BEST, OTHER_ORDER, OTHER_ITEM = KINDS = range(3)

Numbers = NDArray[np.int64]
Kinds = NDArray[np.int8]


class Standard:
    """What displays are compared with.

    Parameters
    ----------
    rankings
        The best ranking for each user type, by numbers of items, shape (N, K).
    n_items
        How many items there are.
    """

    def __init__(self, rankings: NDArray[np.intp], n_items: int) -> None:
        n_user_types, n_positions = rankings.shape
        self.rankings = rankings
        self.n_items = n_items
        self._kinds = np.full((n_user_types, n_positions, n_items), OTHER_ITEM, dtype=np.int8)
        types, positions = np.arange(n_user_types)[:, None], np.arange(n_positions)
        for shown in range(n_positions):  # whatever is in the best ranking, wherever it stands
            self._kinds[types, positions, rankings[:, [shown]]] = OTHER_ORDER
        self._kinds[types, positions, rankings] = BEST

    def kinds_of(self, cells: Cells) -> Kinds:
        """Return how each cell compares; types and items that are new are in no ranking yet."""
        kinds = np.full(len(cells), OTHER_ITEM, dtype=np.int8)
        covered = (cells["user_type"] < len(self._kinds)) & (cells["item"] < self.n_items)
        chosen = cells[covered]
        kinds[covered] = self._kinds[chosen["user_type"], chosen["position"], chosen["item"]]
        return kinds


@dataclass(slots=True, eq=False)
class BucketTable:
    """What was counted in each bucket.

    Attributes
    ----------
    visits, rewards
        Of each user type, shape (B, N).
    kinds
        Displays by how they compare, shape (B, 3).
    """

    visits: Numbers
    rewards: Numbers
    kinds: Numbers

    @classmethod
    def empty(cls, size: int, n_user_types: int) -> "BucketTable":
        """Return a table of so many buckets."""
        visits, rewards, kinds = (np.zeros((size, n), np.int64) for n in _widths(n_user_types))
        return cls(visits, rewards, kinds)

    @classmethod
    def from_numbers(cls, numbers: Numbers, size: int, n_user_types: int) -> "BucketTable":
        """Return the table that was kept as so many numbers."""
        parts = np.split(numbers, np.cumsum([size * n for n in _widths(n_user_types)])[:-1])
        visits, rewards, kinds = (part.reshape(size, -1).copy() for part in parts)
        return cls(visits, rewards, kinds)

    def to_bytes(self) -> bytes:
        """Return all numbers, to be kept."""
        return b"".join(np.ascontiguousarray(table).tobytes() for table in self.tables)

    @property
    def tables(self) -> tuple[Numbers, Numbers, Numbers]:
        """All of them."""
        return self.visits, self.rewards, self.kinds

    def add(self, buckets: Numbers, cells: Cells, kinds: Kinds | None) -> None:
        """Add cells, each to a bucket; kinds are not known while there is nothing to compare with."""
        self._fit(int(cells["user_type"].max(initial=0)) + 1)
        types, displays = cells["user_type"], cells["displays"]
        first_position = cells["position"] == 0  # whoever comes sees one item there
        np.add.at(self.visits, (buckets[first_position], types[first_position]), displays[first_position])
        np.add.at(self.rewards, (buckets, types), cells["rewards"])
        if kinds is not None:
            np.add.at(self.kinds, (buckets, kinds), displays)

    def add_rows(self, buckets: Numbers, other: "BucketTable") -> None:
        """Add the first rows of another table, each to a bucket."""
        n_user_types = other.visits.shape[1]
        self._fit(n_user_types)
        size = len(buckets)
        np.add.at(self.visits[:, :n_user_types], buckets, other.visits[:size])
        np.add.at(self.rewards[:, :n_user_types], buckets, other.rewards[:size])
        np.add.at(self.kinds, buckets, other.kinds[:size])

    def copy(self) -> "BucketTable":
        """Return a copy that shares nothing."""
        return BucketTable(*(table.copy() for table in self.tables))

    def _fit(self, n_user_types: int) -> None:
        """Make room for user types."""
        missing = n_user_types - self.visits.shape[1]
        if missing > 0:
            self.visits = np.pad(self.visits, ((0, 0), (0, missing)))
            self.rewards = np.pad(self.rewards, ((0, 0), (0, missing)))


def table_size(size: int, n_user_types: int) -> int:
    """Return how many numbers a table has."""
    return size * sum(_widths(n_user_types))


def shares_explored(kinds: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the shares of displays of another item and of another order; NaN where there were none.

    Parameters
    ----------
    kinds
        Displays, shape (B, 3).
    """
    displays = kinds.sum(axis=1)
    known = np.where(displays > 0, displays, np.nan)
    return kinds[:, OTHER_ITEM] / known, kinds[:, OTHER_ORDER] / known


def _widths(n_user_types: int) -> tuple[int, int, int]:
    return n_user_types, n_user_types, len(KINDS)
