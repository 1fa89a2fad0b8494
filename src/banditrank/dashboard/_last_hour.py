"""Visits, clicks and exploration of the last hour.

The buckets of an old time series are wider than an hour, so the last hour has buckets of its own.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard._time_buckets import BucketTable, DisplayKinds, Ints, exploration_shares
from banditrank.storage._cells import Cells
from banditrank.storage._records import REWARD_UNITS

N_MINUTES = 60
_MINUTE_MS = 60_000


class HourTotals(NamedTuple):
    """Totals of 60 minutes, the present one included.

    Attributes
    ----------
    visits, clicks
        By user type, shape (N,). Clicks are weighted by their rewards.
    other_item, other_order
        Shares of displays, as `exploration_shares` returns them.
    """

    visits: Ints
    clicks: NDArray[np.float64]
    other_item: float
    other_order: float


class LastHour:
    """Ring buffer with a row of counts for each minute.

    Parameters
    ----------
    table
        Counts, one row for each minute.
    minutes
        Minute since 1970 that each row is of.
    """

    def __init__(self, table: BucketTable, minutes: list[int] | None = None) -> None:
        self.table = table
        self.minutes = np.array([0] * N_MINUTES if minutes is None else minutes, dtype=np.int64)

    def add(self, at_ms: Ints, cells: Cells, kinds: DisplayKinds | None) -> None:
        """Add each cell at a time, in milliseconds since 1970."""
        minutes = at_ms // _MINUTE_MS
        is_recent = minutes > minutes.max() - N_MINUTES
        minutes = minutes[is_recent]
        rows = minutes % N_MINUTES
        outdated = rows[self.minutes[rows] != minutes]
        for array in self.table.arrays:
            array[outdated] = 0
        self.minutes[rows] = minutes
        self.table.add(rows, cells[is_recent], None if kinds is None else kinds[is_recent])

    def totals(self, now_ms: int) -> HourTotals:
        """Return the totals of the hour up to a time, in milliseconds since 1970."""
        age_minutes = now_ms // _MINUTE_MS - self.minutes
        is_recent = (age_minutes >= 0) & (age_minutes < N_MINUTES)
        visits, rewards, displays = (array[is_recent].sum(axis=0) for array in self.table.arrays)
        other_item, other_order = exploration_shares(displays[None])
        return HourTotals(visits, rewards / REWARD_UNITS, float(other_item[0]), float(other_order[0]))
