"""How a surface fared over time: a series of buckets, folded from its changes.

There are never more than `MAX_BUCKETS`. When time goes on beyond the last, buckets become twice as wide,
each the sum of two. So the series covers all the time since the first change, at any age, in bounded room.

A change that lies beyond the last bucket may be of a clock that is ahead. It is held in buckets of its own,
and the series becomes wider only when time has gone on from there for a trial of an hour, or further ahead.
If an earlier time comes before that, the clock was set right: what was held is counted at that time. So are
the first changes of all, if an earlier time comes within an hour. Being asked by a clock that is ahead
changes nothing.

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

from banditrank.dashboard.bucket_table import BucketTable, Standard, shares_explored, table_size
from banditrank.dashboard.last_hour import MINUTES, HourTotals, LastHour
from banditrank.dashboard.time_buckets import MAX_BUCKETS, TimeBuckets
from banditrank.storage.cells import CELL, Cells, decoded
from banditrank.storage.records import REWARD_UNITS

MAX_NOTES = 50

_WITHOUT_LAST_HOUR, _WITHOUT_AHEAD, _FORMAT = _FORMATS = (1, 2, 3)  # all can be read
_TRIAL = 3_600_000  # milliseconds, at most: half of the buckets
_SKEW = 60_000  # milliseconds by which clocks of replicas differ
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


class TimeSeries:
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
    >>> from banditrank.storage.records import Event, Outcome, Impression, pack_ranking
    >>> shown = Impression(1, b"", pack_ranking(0, (4, 2)))
    >>> time_series = TimeSeries(1000, n_user_types=1)
    >>> time_series.add(5000, cells_of([Event(shown, Outcome(1, REWARD_UNITS))]))
    >>> time_series.add(6500, cells_of([Event(shown, Outcome(-1, 0))]))
    >>> closed = time_series.closed(7000)
    >>> closed.start, closed.visits.tolist(), closed.clicks.tolist()
    (5000, [[1], [1]], [[1.0], [0.0]])
    """

    def __init__(self, width: int, *, n_user_types: int) -> None:
        self._first_width = width
        self._n_user_types = n_user_types
        self._buckets: TimeBuckets | None = None
        self._ahead: TimeBuckets | None = None
        self._last_hour = LastHour(BucketTable.empty(MINUTES, n_user_types))
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
        self.notes = [*self.notes, Note(at, text)][-MAX_NOTES:]

    @property
    def rankings(self) -> NDArray[np.intp] | None:
        """The best rankings that displays are compared with, if there are any."""
        return None if self._standard is None else self._standard.rankings

    def closed(self, now: int) -> Buckets:
        """Return the buckets that ended at a time, in milliseconds since 1970, or before."""
        self.fold()
        buckets, ahead = self._buckets, self._ahead
        if buckets is None:
            buckets = TimeBuckets.empty(now, self._first_width, n_user_types=self._n_user_types)
            buckets.start = now
        elif now > buckets.end or (ahead is not None and now >= ahead.start):
            buckets = buckets.copy()  # the time of asking may be wrong, too: it changes nothing
            if ahead is not None and now >= ahead.start:
                buckets.absorb(ahead)
            buckets.widen(now - 1)  # the last that ended lies before
        number = max(0, (now - buckets.start) // buckets.width)
        table = buckets.table
        other_item, other_order = shares_explored(table.kinds[:number])
        return Buckets(
            start=buckets.start,
            width=buckets.width,
            doubled=buckets.width > self._first_width,
            visits=table.visits[:number].copy(),
            clicks=table.rewards[:number] / REWARD_UNITS,
            other_item=other_item,
            other_order=other_order,
            regret=np.cumsum(buckets.regret[:number]) if self._regret_known else None,
        )

    def last_hour(self, now: int) -> HourTotals:
        """Return what came in the hour up to a time, in milliseconds since 1970."""
        self.fold()
        return self._last_hour.totals(now)

    @property
    def began(self) -> int | None:
        """When the first bucket begins, in milliseconds since 1970; None if nothing came yet."""
        self.fold()
        return None if self._buckets is None else self._buckets.start

    # Folding

    def fold(self) -> None:
        """Fold the changes that are waiting."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        begin = 0
        for place, (at, _) in enumerate(pending):
            if not self._takes(at):
                self._fold_into_current(pending[begin:place])
                begin = place
                if not self._takes(at):  # which may depend on what was folded just now
                    self._move_to(at)
        self._fold_into_current(pending[begin:])

    @property
    def _current(self) -> TimeBuckets | None:
        return self._buckets if self._ahead is None else self._ahead

    def _takes(self, at: int) -> bool:
        """Return whether a change at a time belongs to the current buckets as they are."""
        current = self._current
        if current is None or at >= current.end:
            return False
        if at < current.opened - _SKEW:
            return current.latest - current.opened >= self._trial(current)
        return current is self._buckets or at - current.opened < self._trial(current)

    def _move_to(self, at: int) -> None:
        """Have current buckets that take a change at a time."""
        wrong: TimeBuckets | None = None
        current = self._current
        if current is not None and at < current.opened - _SKEW:  # the clock was ahead till now
            wrong = current
            if self._ahead is None:
                self._buckets = None
        elif self._buckets is not None and self._ahead is not None:  # time went on from there
            self._buckets.absorb(self._ahead)
        self._ahead = None
        if self._buckets is None:
            self._buckets = self._new_buckets(at)
        elif at >= self._buckets.end:
            self._ahead = self._new_buckets(at)
        if wrong is not None and self._current is not None:
            self._current.absorb_at(wrong, at)

    def _new_buckets(self, at: int) -> TimeBuckets:
        width, origin = self._first_width, 0
        if self._buckets is not None:
            width, origin = self._buckets.width, self._buckets.start
        return TimeBuckets.empty(at, width, n_user_types=self._n_user_types, origin=origin)

    @staticmethod
    def _trial(buckets: TimeBuckets) -> int:
        return min(_TRIAL, MAX_BUCKETS // 2 * buckets.width)

    def _fold_into_current(self, changes: list[tuple[int, bytes]]) -> None:
        if not changes or self._current is None:
            return
        times, parts = zip(*changes, strict=True)
        cells = decoded(b"".join(parts))
        at = np.repeat(np.array(times, dtype=np.int64), [len(part) // CELL.itemsize for part in parts])
        kinds = None if self._standard is None else self._standard.kinds_of(cells)
        self._current.add(at, cells, kinds)
        self._last_hour.add(at, cells, kinds)
        if self.given_up is not None:
            self._regret_known = True
            for time, part in zip(times, parts, strict=True):
                self._current.add_regret(time, self.given_up(decoded(part)))

    # Keeping

    def to_bytes(self) -> bytes:
        """Return all of it, to be kept beside the counts."""
        self.fold()
        rankings = self.rankings
        series = [one for one in (self._buckets, self._ahead) if one is not None]
        head = {
            "format": _WITHOUT_AHEAD if self._ahead is None else _FORMAT,  # earlier versions read the one
            "start": None if self._buckets is None else self._buckets.start,
            "width": self._first_width if self._buckets is None else self._buckets.width,
            "first_width": self._first_width,
            "n_user_types": self._n_user_types if self._buckets is None else self._buckets.n_user_types,
            "n_user_types_last_hour": self._last_hour.table.visits.shape[1],
            "minutes": self._last_hour.minutes.tolist(),
            "regret_known": self._regret_known,
            "rankings": None if rankings is None else rankings.tolist(),
            "n_items": None if self._standard is None else self._standard.n_items,
            "notes": self.notes,
            "opened": [one.opened for one in series],
        }
        raw = self._last_hour.table.to_bytes()
        raw = (self._buckets or self._new_buckets(0)).to_bytes() + raw
        if self._ahead is not None:
            head |= {"ahead_start": self._ahead.start, "n_user_types_ahead": self._ahead.n_user_types}
            raw += self._ahead.to_bytes()
        text = json.dumps(head).encode()
        return zlib.compress(struct.pack("<I", len(text)) + text + raw, level=1)

    def restore(self, kept: bytes) -> None:
        """Go on from what was kept, unless this version cannot read it."""
        raw = zlib.decompress(kept)
        (size,) = struct.unpack_from("<I", raw)
        head = json.loads(raw[4 : 4 + size])
        if head["format"] not in _FORMATS:
            return
        self._pending = []
        self._first_width, self._n_user_types = head["first_width"], head["n_user_types"]
        self._regret_known = head["regret_known"]
        self.notes = [Note(*note) for note in head["notes"]]
        if head["rankings"] is not None:
            self._standard = Standard(np.array(head["rankings"], dtype=np.intp), head["n_items"])
        start, width = head["start"], head["width"]
        opened = head.get("opened", [start])
        numbers = np.frombuffer(raw[4 + size :], dtype="<i8")
        end = TimeBuckets.size(self._n_user_types)
        buckets, numbers = numbers[:end], numbers[end:]
        self._buckets = self._ahead = None
        if start is not None:
            self._buckets = TimeBuckets.from_numbers(opened[0], start, width, buckets, self._n_user_types)
        if head["format"] != _WITHOUT_LAST_HOUR:
            n = head["n_user_types_last_hour"]
            end = table_size(MINUTES, n)
            self._last_hour = LastHour(BucketTable.from_numbers(numbers[:end], MINUTES, n), head["minutes"])
            numbers = numbers[end:]
        if head["format"] == _FORMAT:
            self._ahead = TimeBuckets.from_numbers(
                opened[1], head["ahead_start"], width, numbers, head["n_user_types_ahead"]
            )
