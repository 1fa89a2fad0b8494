"""What came within the last hour, minute by minute.

The buckets of a series that is old are wider than an hour. What happens now is seen here.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard.bucket_table import BucketTable, Kinds, Numbers, shares_explored
from banditrank.storage.cells import Cells
from banditrank.storage.records import REWARD_UNITS

MINUTES = 60
_MINUTE = 60_000  # milliseconds


class HourTotals(NamedTuple):
    """What came in 60 minutes, of which the last is not over.

    Attributes
    ----------
    visits, clicks
        Of each type, shape (N,).
    other_item, other_order
        Shares of displays; NaN if there were none.
    """

    visits: Numbers
    clicks: NDArray[np.float64]
    other_item: float
    other_order: float


class LastHour:
    """A ring of minutes.

    Parameters
    ----------
    table
        With a row for each minute.
    minutes
        Which minute since 1970 each row is of.
    """

    def __init__(self, table: BucketTable, minutes: list[int] | None = None) -> None:
        self.table = table
        self.minutes = np.array([0] * MINUTES if minutes is None else minutes, dtype=np.int64)

    def add(self, at: Numbers, cells: Cells, kinds: Kinds | None) -> None:
        """Take in cells of some times, in milliseconds since 1970."""
        minutes = at // _MINUTE
        recent = minutes > minutes.max() - MINUTES
        minutes = minutes[recent]
        rows = minutes % MINUTES
        begun = rows[self.minutes[rows] != minutes]  # whatever stood there is of another hour
        for table in self.table.tables:
            table[begun] = 0
        self.minutes[rows] = minutes
        self.table.add(rows, cells[recent], None if kinds is None else kinds[recent])

    def totals(self, now: int) -> HourTotals:
        """Return what came in the hour up to a time, in milliseconds since 1970."""
        ago = now // _MINUTE - self.minutes
        visits, rewards, kinds = (table[(ago >= 0) & (ago < MINUTES)] for table in self.table.tables)
        other_item, other_order = shares_explored(kinds.sum(axis=0, keepdims=True))
        clicks = rewards.sum(axis=0) / REWARD_UNITS
        return HourTotals(visits.sum(axis=0), clicks, float(other_item[0]), float(other_order[0]))
