"""Time series of a surface, in a bounded number of buckets.

At most `MAX_BUCKETS` buckets cover all the time since the first change. When time passes the end of the last
one, adjacent buckets are merged, and all become twice as wide.

The clock of a process may be ahead. A change after the last bucket is therefore counted in provisional
buckets. They are merged into the series once later changes confirm them: a change an hour after the first
provisional one, or beyond the last provisional bucket. An earlier change shows instead that the clock was
ahead; the provisional counts are then added at the time of that change. The first changes of a series are
provisional, too. Reading the series at a wrong time changes nothing.

Processes that fold the same changes get the same series, except for the comparison of displays with the best
rankings: each process compares with the `ReferenceRankings` that it has when it folds a change.
"""

import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard._last_hour import N_MINUTES, HourTotals, LastHour
from banditrank.dashboard._time_buckets import (
    MAX_BUCKETS,
    BucketTable,
    Ints,
    ReferenceRankings,
    TimeBuckets,
    exploration_shares,
)
from banditrank.storage._cells import CELL, Cells, decode_cells, visit_cells
from banditrank.storage._records import REWARD_UNITS

MAX_ANNOTATIONS = 50

_BUCKETS_ONLY, _WITH_LAST_HOUR, _WITH_PROVISIONAL = _FORMATS = (1, 2, 3)  # of saved series
_MAX_TRIAL_MS = 3_600_000  # for which buckets are provisional; less if buckets are narrow
_CLOCK_SKEW_MS = 60_000  # by which clocks of processes normally differ
_MAX_PENDING = 256  # changes; folding many at once takes little longer than folding one

Floats = NDArray[np.float64]
RegretFunction: TypeAlias = Callable[[Cells], float]


class Annotation(NamedTuple):
    """An event in the history of a surface, for charts."""

    at_ms: int  # since 1970
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class ClosedBuckets:
    """Buckets that have ended, oldest first.

    Attributes
    ----------
    start_ms, width_ms
        Start of the first bucket in milliseconds since 1970, and width of each.
    is_widened
        Whether buckets were narrower before.
    visits, clicks
        By user type, shape (B, N). Clicks are weighted by their rewards.
    other_item, other_order
        Shares of displays of an item that is not in the best ranking, and of one of its items at another
        position, shape (B,); NaN for buckets without compared displays.
    cumulative_regret
        Regret since the first bucket, shape (B,); None if the problem is unknown.
    """

    start_ms: int
    width_ms: int
    is_widened: bool
    visits: Ints
    clicks: Floats
    other_item: Floats
    other_order: Floats
    cumulative_regret: Floats | None


class TimeSeries:
    """Time series of one surface. Not thread-safe.

    Parameters
    ----------
    width_ms
        Initial width of the buckets.
    n_user_types
        Initial number of user types.

    Attributes
    ----------
    regret_of
        Returns the regret of a change, if the problem is known.
    annotations
        The latest annotations, oldest first.

    Examples
    --------
    >>> from banditrank.storage._cells import encode_cells
    >>> from banditrank.storage._records import Event, Outcome, Impression, pack_ranking
    >>> impression = Impression(1, b"", pack_ranking(0, (4, 2)))
    >>> time_series = TimeSeries(1000, n_user_types=1)
    >>> time_series.add(5000, encode_cells([Event(impression, Outcome.of(1, REWARD_UNITS))]))
    >>> time_series.add(6500, encode_cells([Event(impression, Outcome())]))
    >>> closed = time_series.closed_buckets(7000)
    >>> closed.start_ms, closed.visits.tolist(), closed.clicks.tolist()
    (5000, [[1], [1]], [[1.0], [0.0]])
    """

    def __init__(self, width_ms: int, *, n_user_types: int) -> None:
        self._initial_width_ms = width_ms
        self._n_user_types = n_user_types
        self._buckets: TimeBuckets | None = None
        self._provisional: TimeBuckets | None = None
        self._last_hour = LastHour(BucketTable.empty(N_MINUTES, n_user_types))
        self._has_regret = False
        self._reference: ReferenceRankings | None = None
        self._pending: list[tuple[int, bytes]] = []
        self.regret_of: RegretFunction | None = None
        self.annotations: list[Annotation] = []

    def add(self, committed_at_ms: int, cells: bytes) -> None:
        """Add a change of the counts; it is ignored if its time is unknown (0)."""
        if committed_at_ms > 0 and cells:
            self._pending.append((committed_at_ms, cells))
            if len(self._pending) >= _MAX_PENDING:
                self.fold()

    def set_reference(self, reference: ReferenceRankings) -> None:
        """Compare the displays of later changes with these rankings."""
        self.fold()
        self._reference = reference

    def annotate(self, at_ms: int, text: str) -> None:
        """Add an annotation."""
        self.annotations = [*self.annotations, Annotation(at_ms, text)][-MAX_ANNOTATIONS:]

    @property
    def start_ms(self) -> int | None:
        """Start of the first bucket, in milliseconds since 1970; None without any change."""
        self.fold()
        return None if self._buckets is None else self._buckets.start_ms

    def closed_buckets(self, now_ms: int) -> ClosedBuckets:
        """Return the buckets that have ended at a time, in milliseconds since 1970."""
        self.fold()
        buckets, provisional = self._buckets, self._provisional
        if buckets is None:
            buckets = TimeBuckets.empty(now_ms, self._initial_width_ms, n_user_types=self._n_user_types)
            buckets.start_ms = now_ms
        elif now_ms > buckets.end_ms or (provisional is not None and now_ms >= provisional.start_ms):
            buckets = buckets.copy()  # the reader's clock may be ahead, too
            if provisional is not None and now_ms >= provisional.start_ms:
                buckets.merge(provisional)
            buckets.widen(now_ms - 1)  # a bucket that ends now has ended
        n_closed = max(0, (now_ms - buckets.start_ms) // buckets.width_ms)
        table = buckets.table
        other_item, other_order = exploration_shares(table.displays[:n_closed])
        return ClosedBuckets(
            start_ms=buckets.start_ms,
            width_ms=buckets.width_ms,
            is_widened=buckets.width_ms > self._initial_width_ms,
            visits=table.visits[:n_closed].copy(),
            clicks=table.rewards[:n_closed] / REWARD_UNITS,
            other_item=other_item,
            other_order=other_order,
            cumulative_regret=np.cumsum(buckets.regret[:n_closed]) if self._has_regret else None,
        )

    def last_hour(self, now_ms: int) -> HourTotals:
        """Return the totals of the hour up to a time, in milliseconds since 1970."""
        self.fold()
        return self._last_hour.totals(now_ms)

    # Folding

    def fold(self) -> None:
        """Add the pending changes to the buckets."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        begin = 0
        for index, (at_ms, _) in enumerate(pending):
            if not self._accepts(at_ms):
                self._add_to_current(pending[begin:index])
                begin = index
                if not self._accepts(at_ms):  # which may depend on the changes added just now
                    self._switch_buckets(at_ms)
        self._add_to_current(pending[begin:])

    @property
    def _current(self) -> TimeBuckets | None:
        return self._buckets if self._provisional is None else self._provisional

    def _accepts(self, at_ms: int) -> bool:
        """Return whether a change at a time belongs to the current buckets as they are."""
        current = self._current
        if current is None or at_ms >= current.end_ms:
            return False
        if at_ms < current.first_change_ms - _CLOCK_SKEW_MS:
            return current.last_visit_ms - current.first_change_ms >= self._trial_ms(current)
        return current is self._buckets or at_ms - current.first_change_ms < self._trial_ms(current)

    def _switch_buckets(self, at_ms: int) -> None:
        """Make those buckets the current ones that a change at a time belongs to."""
        misdated: TimeBuckets | None = None
        current = self._current
        if current is not None and at_ms < current.first_change_ms - _CLOCK_SKEW_MS:
            misdated = current  # by a clock that was ahead
            if self._provisional is None:
                self._buckets = None
        elif self._buckets is not None and self._provisional is not None:
            self._buckets.merge(self._provisional)  # later changes confirm them
        self._provisional = None
        if self._buckets is None:
            self._buckets = self._new_buckets(at_ms)
        elif at_ms >= self._buckets.end_ms:
            self._provisional = self._new_buckets(at_ms)
        if misdated is not None and self._current is not None:
            self._current.merge_at(misdated, at_ms)

    def _new_buckets(self, at_ms: int) -> TimeBuckets:
        width_ms, origin_ms = self._initial_width_ms, 0
        if self._buckets is not None:
            width_ms, origin_ms = self._buckets.width_ms, self._buckets.start_ms
        return TimeBuckets.empty(at_ms, width_ms, n_user_types=self._n_user_types, origin_ms=origin_ms)

    @staticmethod
    def _trial_ms(buckets: TimeBuckets) -> int:
        return min(_MAX_TRIAL_MS, MAX_BUCKETS // 2 * buckets.width_ms)

    def _add_to_current(self, changes: list[tuple[int, bytes]]) -> None:
        if not changes or self._current is None:
            return
        times, parts = zip(*changes, strict=True)
        cells, is_display = visit_cells(decode_cells(b"".join(parts)))
        n_cells = [len(part) // CELL.itemsize for part in parts]
        at_ms = np.repeat(np.array(times, dtype=np.int64), n_cells)[is_display]
        kinds = None if self._reference is None else self._reference.classify(cells)
        self._current.add(at_ms, cells, kinds)
        self._last_hour.add(at_ms, cells, kinds)
        if self.regret_of is not None:
            self._has_regret = True
            for time, part in zip(times, parts, strict=True):
                self._current.add_regret(time, self.regret_of(visit_cells(decode_cells(part))[0]))

    # Encoding

    def to_bytes(self) -> bytes:
        """Return the series encoded, to be saved."""
        self.fold()
        buckets, provisional, reference = self._buckets, self._provisional, self._reference
        header = {
            # Earlier releases read series without provisional buckets.
            "format": _WITH_LAST_HOUR if provisional is None else _WITH_PROVISIONAL,
            "start": None if buckets is None else buckets.start_ms,
            "width": self._initial_width_ms if buckets is None else buckets.width_ms,
            "first_width": self._initial_width_ms,
            "n_user_types": self._n_user_types if buckets is None else buckets.table.n_user_types,
            "n_user_types_last_hour": self._last_hour.table.n_user_types,
            "minutes": self._last_hour.minutes.tolist(),
            "regret_known": self._has_regret,
            "rankings": None if reference is None else reference.rankings.tolist(),
            "n_items": None if reference is None else reference.n_items,
            "notes": self.annotations,
            "opened": [one.first_change_ms for one in (buckets, provisional) if one is not None],
        }
        values = (buckets or self._new_buckets(0)).to_bytes() + self._last_hour.table.to_bytes()
        if provisional is not None:
            header["ahead_start"] = provisional.start_ms
            header["n_user_types_ahead"] = provisional.table.n_user_types
            values += provisional.to_bytes()
        text = json.dumps(header).encode()
        return zlib.compress(struct.pack("<I", len(text)) + text + values, level=1)

    def restore(self, data: bytes) -> None:
        """Continue from a saved series; one of a later, unknown format is ignored."""
        raw = zlib.decompress(data)
        (size,) = struct.unpack_from("<I", raw)
        header = json.loads(raw[4 : 4 + size])
        if header["format"] not in _FORMATS:
            return
        self._pending = []
        self._initial_width_ms, self._n_user_types = header["first_width"], header["n_user_types"]
        self._has_regret = header["regret_known"]
        self.annotations = [Annotation(*annotation) for annotation in header["notes"]]
        if header["rankings"] is not None:
            rankings = np.array(header["rankings"], dtype=np.intp)
            self._reference = ReferenceRankings(rankings, header["n_items"])
        start_ms, width_ms = header["start"], header["width"]
        first_changes_ms = header.get("opened", [start_ms])
        values = np.frombuffer(raw[4 + size :], dtype="<i8")
        end = TimeBuckets.n_values(self._n_user_types)
        buckets, values = values[:end], values[end:]
        self._buckets = self._provisional = None
        if start_ms is not None:
            self._buckets = TimeBuckets.from_values(
                buckets,
                first_change_ms=first_changes_ms[0],
                start_ms=start_ms,
                width_ms=width_ms,
                n_user_types=self._n_user_types,
            )
        if header["format"] != _BUCKETS_ONLY:
            n_user_types = header["n_user_types_last_hour"]
            end = BucketTable.n_values(N_MINUTES, n_user_types)
            table = BucketTable.from_values(values[:end], N_MINUTES, n_user_types)
            self._last_hour, values = LastHour(table, header["minutes"]), values[end:]
        if header["format"] == _WITH_PROVISIONAL:
            self._provisional = TimeBuckets.from_values(
                values,
                first_change_ms=first_changes_ms[1],
                start_ms=header["ahead_start"],
                width_ms=width_ms,
                n_user_types=header["n_user_types_ahead"],
            )
