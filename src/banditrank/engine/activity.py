"""How a surface fared over time: a series of buckets, folded from its changes.

There are never more than `MOST_BUCKETS`. When time goes on beyond the last, buckets become twice as wide,
each the sum of two. So the series covers all the time since the first change, at any age, in bounded room.

The fold depends on the changes alone, whoever folds them, but for what displays are compared with
(`Standard`): whatever was best when a change came in, by the estimates of the process that looked.
"""

import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank.engine.bucket_table import BucketTable, Standard, shares_explored, table_size
from banditrank.engine.last_hour import MINUTES, HourTotals, LastHour
from banditrank.storage.cells import CELL, Cells, decoded
from banditrank.storage.records import REWARD_UNITS

MOST_BUCKETS = 240
MOST_NOTES = 50

_FORMAT = 2
_WITHOUT_LAST_HOUR = 1  # a format that can be read, too
_PENDING = 256  # changes that are folded at once: one at a time would take as long each

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
GivenUp: TypeAlias = Callable[[Cells], float]


class Note(NamedTuple):
    """Something that happened to a surface."""

    at: int  # milliseconds since 1970
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """Buckets that are closed, oldest first.

    Attributes
    ----------
    start, width
        Of the first, in milliseconds since 1970, and of each.
    doubled
        Whether buckets were narrower once.
    visits, clicks
        Of each type, shape (B, N); clicks are weighed with what they were worth.
    other_item, other_order
        Shares of displays that showed an item that is not in the best ranking, or one of its items at
        another position, shape (B,); NaN where there were none to compare.
    regret
        What was given up since the first bucket, shape (B,); None if the truth is not known.
    """

    start: int
    width: int
    doubled: bool
    visits: Numbers
    clicks: Floats
    other_item: Floats
    other_order: Floats
    regret: Floats | None


class Activity:
    """The series of one surface. Whoever uses it sees to it that nobody else does at the same time.

    Parameters
    ----------
    width
        Of the first buckets, in milliseconds.
    n_user_types
        To begin with; more may come.

    Attributes
    ----------
    given_up
        Returns what a change gave up by not showing what is best, where the truth is known.
    notes
        What happened, oldest first.

    Examples
    --------
    >>> from banditrank.storage.cells import cells_of
    >>> from banditrank.storage.records import Entry, Outcome, Shown, pack_ranking
    >>> shown = Shown(1, b"", pack_ranking(0, (4, 2)))
    >>> activity = Activity(1000, n_user_types=1)
    >>> activity.add(5000, cells_of([Entry(shown, Outcome(1, REWARD_UNITS))]))
    >>> activity.add(6500, cells_of([Entry(shown, Outcome(-1, 0))]))
    >>> closed = activity.closed(7000)
    >>> closed.start, closed.visits.tolist(), closed.clicks.tolist()
    (5000, [[1], [1]], [[1.0], [0.0]])
    """

    def __init__(self, width: int, *, n_user_types: int) -> None:
        self._first_width = self._width = width
        self._start: int | None = None
        self._table = BucketTable.empty(MOST_BUCKETS, n_user_types)
        self._last_hour = LastHour(BucketTable.empty(MINUTES, n_user_types))
        self._regret = np.zeros(MOST_BUCKETS)
        self._regret_known = False
        self._standard: Standard | None = None
        self._pending: list[tuple[int, bytes]] = []
        self.given_up: GivenUp | None = None
        self.notes: list[Note] = []

    def add(self, at: int, cells: bytes) -> None:
        """Take in a change that was committed at a time: milliseconds since 1970, 0 if that is not known."""
        if at > 0 and cells:
            self._pending.append((at, cells))
            if len(self._pending) >= _PENDING:
                self.fold()

    def compare_with(self, standard: Standard) -> None:
        """Compare displays with this from now on."""
        self.fold()
        self._standard = standard

    def note(self, at: int, text: str) -> None:
        """Remember what happened."""
        self.notes = [*self.notes, Note(at, text)][-MOST_NOTES:]

    @property
    def rankings(self) -> NDArray[np.intp] | None:
        """The best rankings that displays are compared with, if there are any."""
        return None if self._standard is None else self._standard.rankings

    def closed(self, now: int) -> Buckets:
        """Return the buckets that ended at a time, in milliseconds since 1970, or before."""
        self.fold()
        number = 0
        if self._start is not None:
            self._make_room(now - 1)  # the last that ended lies before
            number = max(0, (now - self._start) // self._width)
        other_item, other_order = shares_explored(self._table.kinds[:number])
        return Buckets(
            start=now if self._start is None else self._start,
            width=self._width,
            doubled=self._width > self._first_width,
            visits=self._table.visits[:number].copy(),
            clicks=self._table.rewards[:number] / REWARD_UNITS,
            other_item=other_item,
            other_order=other_order,
            regret=np.cumsum(self._regret[:number]) if self._regret_known else None,
        )

    def last_hour(self, now: int) -> HourTotals:
        """Return what came in the hour up to a time, in milliseconds since 1970."""
        self.fold()
        return self._last_hour.totals(now)

    @property
    def began(self) -> int | None:
        """When the first bucket begins, in milliseconds since 1970; None if nothing came yet."""
        self.fold()
        return self._start

    # Folding

    def fold(self) -> None:
        """Fold the changes that are waiting."""
        if not self._pending:
            return
        times, parts = zip(*self._pending, strict=True)
        self._pending = []
        cells = decoded(b"".join(parts))
        at = np.repeat(np.array(times, dtype=np.int64), [len(part) // CELL.itemsize for part in parts])
        if self._start is None:
            first = min(times)
            self._start = first - first % self._width
        self._make_room(max(times))
        buckets = ((at - self._start) // self._width).clip(0)  # a clock may have been set back
        kinds = None if self._standard is None else self._standard.kinds_of(cells)
        self._table.add(buckets, cells, kinds)
        self._last_hour.add(at, cells, kinds)
        if self.given_up is not None:
            self._regret_known = True
            for time, part in zip(times, parts, strict=True):
                self._regret[max(0, (time - self._start) // self._width)] += self.given_up(decoded(part))

    def _make_room(self, at: int) -> None:
        """Widen buckets until there is one for a time."""
        while self._start is not None and (at - self._start) // self._width >= MOST_BUCKETS:
            self._width *= 2
            for table in (*self._table.tables, self._regret):
                half = MOST_BUCKETS // 2
                table[:half] = table[::2] + table[1::2]
                table[half:] = 0

    # Keeping

    def to_bytes(self) -> bytes:
        """Return all of it, to be kept beside the counts."""
        self.fold()
        rankings = self.rankings
        head = {
            "format": _FORMAT,
            "start": self._start,
            "width": self._width,
            "first_width": self._first_width,
            "n_user_types": self._table.visits.shape[1],
            "n_user_types_last_hour": self._last_hour.table.visits.shape[1],
            "minutes": self._last_hour.minutes.tolist(),
            "regret_known": self._regret_known,
            "rankings": None if rankings is None else rankings.tolist(),
            "n_items": None if self._standard is None else self._standard.n_items,
            "notes": self.notes,
        }
        text = json.dumps(head).encode()
        raw = self._table.to_bytes() + self._regret.tobytes() + self._last_hour.table.to_bytes()
        return zlib.compress(struct.pack("<I", len(text)) + text + raw, level=1)

    def restore(self, kept: bytes) -> None:
        """Go on from what was kept, unless this version cannot read it."""
        raw = zlib.decompress(kept)
        (size,) = struct.unpack_from("<I", raw)
        head = json.loads(raw[4 : 4 + size])
        if head["format"] not in (_FORMAT, _WITHOUT_LAST_HOUR):
            return
        self._pending = []
        self._start, self._width, self._first_width = head["start"], head["width"], head["first_width"]
        self._regret_known = head["regret_known"]
        self.notes = [Note(*note) for note in head["notes"]]
        if head["rankings"] is not None:
            self._standard = Standard(np.array(head["rankings"], dtype=np.intp), head["n_items"])
        n = head["n_user_types"]
        numbers = np.frombuffer(raw[4 + size :], dtype="<i8")
        end = table_size(MOST_BUCKETS, n)
        buckets, regret, last_hour = np.split(numbers, [end, end + MOST_BUCKETS])
        self._table = BucketTable.from_numbers(buckets, MOST_BUCKETS, n)
        self._regret = regret.view("<f8").copy()
        if head["format"] == _FORMAT:
            table = BucketTable.from_numbers(last_hour, MINUTES, head["n_user_types_last_hour"])
            self._last_hour = LastHour(table, head["minutes"])
