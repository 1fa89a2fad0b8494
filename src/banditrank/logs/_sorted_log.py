"""Counting of Parquet files whose visits are contiguous, in one pass without SQL.

Grouping rows by visit, and joining each row with the clicks of its visit, takes a query engine several times
as long as reading the file. Where the rows of a visit follow each other, as logging systems write them, one
pass is enough. It is taken for clean files only: at the first row that is not what it should be (a missing
value, a position twice, a visit that comes back) it gives up, and the queries count the log, with reasons.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._click_cube import (
    N_FOLDS,
    UNKNOWN,
    CubeCells,
    CubeLists,
    CubeVisits,
    aggregate_lists,
    aggregate_visits,
)
from banditrank.counts._visit_table import (
    MAX_GROUPS,
    MAX_ITEMS,
    MAX_ROWS_OF_VISIT,
    Codes,
    VisitTable,
    find_visits,
    hash_numbers,
    hash_texts,
    look_up,
    read_only,
)
from banditrank.logs._count_queries import (
    FOLD_HASH,
    MODULUS,
    SAMPLE_BUCKETS,
    SAMPLE_HASH,
    TIME_RANGE,
    HashParameters,
)
from banditrank.logs._engines.base import OnProgress
from banditrank.logs._log_columns import ColumnKind, ResolvedColumns
from banditrank.logs._log_files import LogFiles
from banditrank.logs._row_groups import as_text, is_missing, is_name

Indices = NDArray[np.int64]

PeriodNumbers: TypeAlias = Callable[[Indices], Indices]
"""Returns the numbers of the periods of times."""

_Name = TypeVar("_Name")

MIN_ROWS = 200_000
"""Number of rows from which on files are counted in one pass: below, a query is as fast."""

_MAX_ROWS = 2**31 - 1
_MAX_CHANGES = 0.75  # share of rows that are followed by one of another visit
_BATCH_ROWS = 2**17
_MAX_FINISHED = 2**10  # visits that are added together
_MAX_NUMBERS = 2**24  # of groups, with gaps: 128 MB
_ROLES = {"item", "position", "clicked", "session", "user", "time"}
_NO_VALUES = np.zeros(0, dtype=np.int64)
_NAMED_KINDS = ("text", "integer", "boolean")


class SortedCounts(NamedTuple):
    """Counts of a log.

    Attributes
    ----------
    type_values, items
        Names, sorted.
    periods
        Numbers of the periods, sorted; a single one without periods.
    first_position
        Number of the first position.
    n_rows
        Number of rows.
    n_positions
        Number of positions.
    cells, visits, lists
        Tables of the cube.
    """

    type_values: tuple[tuple[str, ...], ...]
    items: tuple[str, ...]
    periods: tuple[int, ...]
    first_position: int
    n_rows: int
    n_positions: int
    cells: CubeCells
    visits: CubeVisits
    lists: CubeLists


class _Unsuitable(Exception):  # noqa: N818 - not an error
    """The log cannot be counted in one pass."""


def count_sorted_log(
    log: Any,
    columns: ResolvedColumns,
    kinds: Mapping[str, ColumnKind],
    *,
    first_position: int | None,
    max_lists: int,
    periods: PeriodNumbers | None = None,
    on_progress: OnProgress | None = None,
) -> SortedCounts | None:
    """Return the counts of a log with a row for each display, or None if one pass cannot count it.

    Parameters
    ----------
    log
        The files.
    columns, kinds
        Columns of the log, and the kinds of all columns.
    first_position
        Number of the first position; None to find it.
    max_lists
        Number of visits whose lists are retained.
    periods
        Returns the numbers of the periods of times in seconds since 1970; None for a single period.
    on_progress
        Called with the share of the rows that is read.
    """
    if not isinstance(log, LogFiles) or log.file_format != "parquet" or log.is_remote:
        return None
    names = columns.names
    kind_of = {role: kinds[name] for role, name in names.items()}
    named = [kinds[name] for name in (names.get("item", ""), *columns.user_types) if name]
    if (
        columns.layout != "long"
        or not set(names) <= _ROLES
        or kind_of.get("session") not in ("integer", "text")
        or kind_of.get("user", "integer") != "integer"
        or kind_of["position"] != "integer"
        or kind_of["clicked"] not in ("integer", "boolean")
        or any(kind not in _NAMED_KINDS for kind in named)
        or (periods is not None and kind_of["time"] != "time")
    ):
        return None
    import pyarrow as pa  # noqa: PLC0415 - heavy, and optional

    try:
        return _Stream(log, columns, first_position, max_lists, periods).count(on_progress)
    except (_Unsuitable, pa.ArrowException, OSError, UnicodeDecodeError):
        pa.default_memory_pool().release_unused()  # the queries need the memory
        return None


class _Rows(NamedTuple):
    """Columns of a batch, shape (R,) each; users and periods are empty if the log does not have them."""

    session: Indices
    user_type: Codes
    user: Indices
    period: Indices
    item: Codes
    position: Codes
    clicked: Codes
    texts: Any  # sessions, if they are texts

    def visit_of(self, row: int) -> tuple[int, ...]:
        """Return what is the same in all rows of a visit; the session is first."""
        return tuple(int(column[row]) for column in self[:4] if column.size)


class _Visits(NamedTuple):
    """Visits and their rows."""

    starts: Indices  # first row of each visit and the end of the last one, (V + 1,)
    groups: Indices  # (V,)
    buckets: Indices  # of the sample of lists, (V,)
    items: Codes  # (R,)
    positions: Codes  # (R,)
    clicked: Codes  # (R,)

    def split_last(self) -> tuple["_Visits", "_Visits"]:
        """Return the visits before the last one, and a copy of the last one."""
        starts, groups, buckets, *rows = self
        begin, end = starts[-2:].tolist()
        last = _Visits(
            np.array([0, end - begin]),
            groups[-1:].copy(),
            buckets[-1:].copy(),
            *(column[begin:end].copy() for column in rows),
        )
        return _Visits(starts[:-1], groups[:-1], buckets[:-1], *rows), last

    def extended(self, rows: _Rows, n_rows: int) -> "_Visits":
        """Return the last visit with more rows, the first ones of a batch."""
        more = rows.item[:n_rows], rows.position[:n_rows], rows.clicked[:n_rows]
        columns = [np.concatenate(pair) for pair in zip(self[3:], more, strict=True)]
        return _Visits(np.array([0, columns[0].size]), self.groups, self.buckets, *columns)


def _join(visits: Sequence[_Visits]) -> _Visits:
    """Return several single visits together."""
    starts = np.cumsum([0, *(visit.items.size for visit in visits)])
    _, *columns = zip(*visits, strict=True)
    return _Visits(starts, *map(np.concatenate, columns))


class _Stream:
    """One pass over the files."""

    def __init__(
        self,
        log: LogFiles,
        columns: ResolvedColumns,
        first_position: int | None,
        max_lists: int,
        periods: PeriodNumbers | None,
    ) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415 - heavy, and optional

        self._paths = log.paths
        self._types = columns.user_types
        self._columns = columns.names
        self._period_numbers = periods
        named = [*columns.user_types, columns.names["item"]]
        try:
            self._files = [pq.ParquetFile(path, read_dictionary=named) for path in log.paths]
        except KeyError:  # a file without one of the columns
            raise _Unsuitable from None
        self._n_rows = sum(file.metadata.num_rows for file in self._files)
        self._limits = (
            (0, 62) if first_position is None else (first_position, first_position + 61)
        )  # 62 positions
        self._first_position = first_position
        self._max_lists = max_lists
        self._codes: dict[str, _Names] = {name: _Names() for name in named}
        self._dictionaries: dict[str, tuple[Any, Codes]] = {}  # the last one of each column, with its codes
        self._values: dict[str, Codes] = {}  # see `_encode`
        self._combinations = _Names()  # of the values of the user type
        self._table = VisitTable()
        self._groups: list[tuple[int, int, int]] = []  # user type, period and fold of each
        self._numbers: dict[int, Indices] = {}  # of the groups of a period, by user type and fold
        self._n_numbers = 0  # in all periods
        self._unfinished: _Visits | None = None  # the visit at the end of the last batch
        self._visit: tuple[int, ...] = ()  # that visit; see `_Rows.visit_of`
        self._finished: list[_Visits] = []  # visits that ended a batch, and are not added yet
        self._n_visits = self._n_added = 0  # visits and rows
        self._visit_keys: list[Indices] = []
        self._is_increasing = True
        self._next_check = 0  # number of visits
        self._sample = _ListSample(max_lists)
        self._lowest, self._highest = 62, 0
        self._starts = np.zeros(0, dtype=np.int64)

    def count(self, on_progress: OnProgress | None) -> SortedCounts:
        if not MIN_ROWS <= self._n_rows <= _MAX_ROWS:
            raise _Unsuitable
        self._check_columns()
        done = 0
        for batch in _read_ahead(self._batches()):
            self._add_rows(self._read(batch))
            done += batch.num_rows
            if on_progress is not None:
                on_progress(done / self._n_rows)
        if self._unfinished is None:
            raise _Unsuitable
        self._add(_join([*self._finished, self._unfinished]))
        self._check_visits()
        return self._result()

    def _add_rows(self, rows: _Rows) -> None:
        """Add the visits of a batch but the last, whose other rows may be in the next batch."""
        starts = self._find_visits(rows)
        if self._unfinished is not None:
            if rows.session[0] == self._visit[0]:
                if rows.visit_of(0) != self._visit:
                    raise _Unsuitable  # a visit of two types, users or periods
                self._unfinished = self._unfinished.extended(rows, int(starts[1]))
                if self._unfinished.items.size > MAX_ROWS_OF_VISIT:
                    raise _Unsuitable  # a position twice
                starts = starts[1:]
                if starts.size == 1:
                    return
            self._finished.append(self._unfinished)
        whole, self._unfinished = self._group(rows, starts).split_last()
        self._visit = rows.visit_of(-1)
        self._add(whole)
        if len(self._finished) >= _MAX_FINISHED:
            self._add(_join(self._finished))
            self._finished = []

    def _find_visits(self, rows: _Rows) -> Indices:
        """Return the first row of each visit and the end of the last one."""
        if self._starts.size <= rows.session.size:
            self._starts = np.zeros(rows.session.size + 1, dtype=np.int64)
        n_visits = find_visits(
            read_only(rows.session),
            read_only(rows.user_type),
            read_only(rows.user),
            read_only(rows.period),
            self._starts,
        )
        if n_visits < 0:
            raise _Unsuitable  # a visit of two types, users or periods
        return self._starts[: n_visits + 1]

    def _check_columns(self) -> None:
        """Raise if a column is not once in each file, is a key of a directory, or differs in type."""
        schemas = [file.schema_arrow for file in self._files]
        directories = {part for path in self._paths for part in Path(path).parent.parts}
        keys = {part.partition("=")[0].lower() for part in directories if "=" in part}  # Hive: segment=a
        for name in (*self._types, *self._columns.values()):
            if name.lower() in keys or any(schema.names.count(name) != 1 for schema in schemas):
                raise _Unsuitable
        for name in (*self._codes, self._columns["session"]):
            types = (schema.field(name).type for schema in schemas)
            if len({getattr(one, "value_type", one) for one in types}) > 1:
                raise _Unsuitable  # 1 and "1" are the same name

    def _batches(self) -> Iterator[Any]:
        wanted = [*self._types, *self._columns.values()]
        for file in self._files:
            with file:
                # By row group, because batches end where dictionaries do.
                for number in range(file.num_row_groups):
                    yield from file.iter_batches(
                        batch_size=_BATCH_ROWS, row_groups=[number], columns=wanted, use_threads=False
                    )

    def _read(self, batch: Any) -> _Rows:
        """Return the columns of a batch, most of which are not copied."""
        for role, name in self._columns.items():
            if (role != "time" or self._period_numbers is not None) and batch.column(name).null_count:
                raise _Unsuitable
        position = _small_integers(batch.column(self._columns["position"]))
        low, high = int(position.min()), int(position.max())
        if low < self._limits[0] or high > self._limits[1]:
            raise _Unsuitable
        self._lowest, self._highest = min(self._lowest, low), max(self._highest, high)
        clicked = _small_integers(batch.column(self._columns["clicked"]))
        if clicked.min() < 0 or clicked.max() > 1:
            raise _Unsuitable
        sessions = batch.column(self._columns["session"])
        is_text = str(sessions.type) in ("string", "large_string")
        if not is_text and not str(sessions.type).startswith(("int", "uint")):
            raise _Unsuitable
        if self._unfinished is None:
            _check_contiguous(sessions)  # before compiled code is loaded
        codes = [self._encode(batch, name) for name in self._types]
        user = period = _NO_VALUES
        if "user" in self._columns:
            user = _integers(batch.column(self._columns["user"]))
        if self._period_numbers is not None:
            period = self._period_numbers(_epoch_seconds(batch.column(self._columns["time"])))
        return _Rows(
            _hash_texts(sessions) if is_text else _integers(sessions),
            codes[0] if len(codes) == 1 else self._combine(codes, batch.num_rows),
            user,
            period,
            self._encode(batch, self._columns["item"]),
            position,
            clicked,
            sessions if is_text else None,
        )

    def _encode(self, batch: Any, name: str) -> Codes:
        """Return the codes of the values of a column, in an array that is reused."""
        column = batch.column(name)
        if column.null_count:
            raise _Unsuitable
        if not hasattr(column, "indices"):
            column = column.dictionary_encode()
        previous = self._dictionaries.get(name)
        if previous is None or not previous[0].equals(column.dictionary):
            codes = self._codes[name].codes_of(column.dictionary.to_pylist())
            previous = column.dictionary, codes.astype(np.int32)
            self._dictionaries[name] = previous
        values = self._values.get(name)
        if values is None or values.size < len(column):
            self._values[name] = values = np.empty(len(column), dtype=np.int32)
        values = values[: len(column)]
        indices = _small_integers(column.indices).view(np.uint32)
        if int(indices.max(initial=0)) >= previous[1].size:
            raise _Unsuitable  # a damaged file
        look_up(previous[1], indices, values)
        return values

    def _combine(self, columns: Sequence[Codes], n_rows: int) -> Codes:
        """Return the codes of the combinations of several columns, or of none."""
        if not columns:
            return np.zeros(n_rows, dtype=np.int32)
        combined = np.zeros(n_rows, dtype=np.int64)
        for codes in columns:
            combined = (combined << 12) | codes
            if int(codes.max(initial=0)) >= 1 << 12:
                raise _Unsuitable
        if len(columns) > 5:
            raise _Unsuitable
        values, inverse = np.unique(combined, return_inverse=True)
        return self._combinations.codes_of(values.tolist())[inverse.ravel()].astype(np.int32)

    def _group(self, rows: _Rows, starts: Indices) -> _Visits:
        """Return the visits that begin in a batch."""
        begin = starts[:-1]
        keys = rows.session[begin]
        texts = None if rows.texts is None else rows.texts.take(begin).to_pylist()
        if texts is not None and "" in texts:
            raise _Unsuitable  # a missing session
        self._add_keys(keys)
        folds = _hash(rows.user[begin], FOLD_HASH) if rows.user.size else _hash_visits(keys, texts, FOLD_HASH)
        types = rows.user_type[begin].astype(np.int64)
        periods = rows.period[begin] if rows.period.size else rows.period
        return _Visits(
            starts,
            self._number_groups(types, periods, folds % N_FOLDS),
            _hash_visits(keys, texts, SAMPLE_HASH) % SAMPLE_BUCKETS,
            rows.item,
            rows.position,
            rows.clicked,
        )

    def _add_keys(self, keys: Indices) -> None:
        """Add the sessions of visits, and check from time to time that none comes back."""
        before = self._visit_keys[-1][-1:] if self._visit_keys else keys[:0]
        self._is_increasing &= bool((keys[1:] > keys[:-1]).all() and (keys[:1] > before).all())
        self._visit_keys.append(keys)
        if not self._is_increasing and self._n_visits >= self._next_check:
            self._check_visits()  # early, because a log that is not contiguous would be read in vain
            self._next_check = 2 * self._n_visits + _BATCH_ROWS

    def _add(self, visits: _Visits) -> None:
        """Add whole visits."""
        starts, groups, buckets, items, positions, clicked = visits
        masks = self._table.add(starts, groups, items, positions, clicked)
        if masks is None or int(items.max(initial=0)) >= MAX_ITEMS:
            raise _Unsuitable
        self._n_visits += groups.size
        self._n_added += int(starts[-1] - starts[0])
        if self._max_lists:
            least = self._n_visits + (self._n_rows - self._n_added) // MAX_ROWS_OF_VISIT
            self._sample.add(least, buckets, groups, masks, items, positions, starts)

    def _number_groups(self, types: Indices, periods: Indices, folds: Indices) -> Indices:
        """Return a number for each combination of user type, period and fold, without gaps."""
        combined = types * N_FOLDS + folds
        if not periods.size:
            return self._number_of_period(0, combined)
        groups = np.empty(combined.size, dtype=np.int64)
        for period in np.unique(periods).tolist():
            chosen = periods == period
            groups[chosen] = self._number_of_period(period, combined[chosen])
        return groups

    def _number_of_period(self, period: int, combined: Indices) -> Indices:
        numbers = self._numbers.get(period, _NO_VALUES)
        more = int(combined.max()) + 1 - numbers.size
        if more > 0:
            self._n_numbers += more
            if self._n_numbers > _MAX_NUMBERS:
                raise _Unsuitable
            numbers = np.pad(numbers, (0, more), constant_values=-1)
        groups = numbers[combined]
        if groups.min() < 0:
            for value in np.unique(combined[groups < 0]).tolist():
                user_type, fold = divmod(value, N_FOLDS)
                numbers[value] = len(self._groups)
                self._groups.append((user_type, period, fold))
            if len(self._groups) >= MAX_GROUPS:
                raise _Unsuitable
            groups = numbers[combined]
        self._numbers[period] = numbers
        return groups

    def _check_visits(self) -> None:
        if self._is_increasing:
            return
        keys = np.sort(np.concatenate(self._visit_keys))
        if (keys[1:] == keys[:-1]).any():
            raise _Unsuitable  # a visit whose rows are not contiguous

    def _result(self) -> SortedCounts:
        first = self._first_position
        if first is None:
            first = 0 if self._lowest == 0 else 1
        width = self._highest - first + 1
        type_values, type_of = self._user_types()
        items, item_of = self._codes[self._columns["item"]].sort()
        groups = np.array(self._groups, dtype=np.int64)  # (G, 3)
        group_type, group_fold = type_of[groups[:, 0]], groups[:, 2]
        type_values, number = _drop_unused(type_values, group_type)
        group_type = number[group_type]
        periods, group_period = np.unique(groups[:, 1], return_inverse=True)
        group_period = group_period.ravel()
        order = np.lexsort((group_type, group_fold, group_period))  # that of a cube
        found = self._table.cells(np.argsort(order), item_of, first)
        n_names = len(items)
        items, number = _drop_unused(items, found.item)
        item_of = number[item_of]
        nothing = np.zeros(found.group.size)
        cells = CubeCells(
            period=group_period[order][found.group],
            fold=group_fold[order][found.group],
            user_type=group_type[order][found.group],
            item=found.item if len(items) == n_names else number[found.item],
            position=found.position,
            above=found.above,
            displays=found.displays,
            clicks=found.clicks,
            examined=found.examined,
            last_clicks=found.last_clicks,
            weights=nothing,
            squared_weights=nothing,
            weighted_clicks=nothing,
            squared_weighted_clicks=nothing,
        )
        group, n_clicks, n_visits = self._table.visits()
        visits = CubeVisits(group_period[group], group_fold[group], group_type[group], n_clicks, n_visits)
        sampled = self._sample.lists(self._n_visits, width, first)
        lists = CubeLists(
            group_fold[sampled.fold],
            group_type[sampled.user_type],
            np.where(sampled.items >= 0, item_of[np.maximum(sampled.items, 0)], UNKNOWN),
            sampled.clicks,
            sampled.visits,
        )
        return SortedCounts(
            type_values,
            items,
            tuple(periods.tolist()),
            first,
            self._n_rows,
            width,
            cells,
            aggregate_visits(visits),
            aggregate_lists(lists),
        )

    def _user_types(self) -> tuple[tuple[tuple[str, ...], ...], Indices]:
        """Return the values of each user type, sorted, and the number of each code."""
        if not self._types:
            return (("all",),), np.zeros(1, dtype=np.int64)
        if len(self._types) == 1:
            names, number = self._codes[self._types[0]].sort()
            return tuple((name,) for name in names), number
        texts = [self._codes[name].texts for name in self._types]
        values = []
        for combined in self._combinations.index:
            shifts = range(12 * (len(texts) - 1), -1, -12)
            values.append(
                tuple(
                    of_column[(combined >> shift) & 0xFFF]
                    for of_column, shift in zip(texts, shifts, strict=True)
                )
            )
        ordered = sorted(values)
        index = {value: number for number, value in enumerate(ordered)}
        return tuple(ordered), np.array([index[value] for value in values], dtype=np.int64)


def _drop_unused(names: tuple[_Name, ...], used: Indices) -> tuple[tuple[_Name, ...], Indices]:
    """Return the names whose numbers are used, and new numbers: dictionaries may hold other names."""
    is_used = np.zeros(len(names), dtype=np.bool_)
    is_used[used] = True
    return tuple(compress(names, is_used)), np.cumsum(is_used) - 1


def _check_contiguous(sessions: Any) -> None:
    """Raise if most rows are followed by one of another visit.

    The queries count such a log faster than a pass that gives up at the first visit that comes back, and code
    that is not loaded leaves more memory to them. A log whose visits have hardly more than one row each is
    left to the queries, too: its first rows look the same.
    """
    import pyarrow.compute as pc  # noqa: PLC0415 - heavy, and optional

    n_pairs = len(sessions) - 1
    changes = pc.sum(pc.not_equal(sessions.slice(1), sessions.slice(0, n_pairs))).as_py() or 0
    if changes > _MAX_CHANGES * n_pairs:
        raise _Unsuitable


def _read_ahead(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches with rows, the next of which another thread reads in the meantime."""
    with ThreadPoolExecutor(max_workers=1) as threads:
        upcoming = threads.submit(next, batches, None)
        while (batch := upcoming.result()) is not None:
            upcoming = threads.submit(next, batches, None)
            if batch.num_rows:
                yield batch


class _Names:
    """Codes of the values of a column, in the order in which they occur."""

    def __init__(self) -> None:
        self.index: dict[Any, int] = {}

    def codes_of(self, values: Sequence[Any]) -> Indices:
        """Return the code of each value; new values get new codes."""
        index = self.index
        for value in values:
            if value not in index:
                if is_missing(value) or not is_name(value):
                    raise _Unsuitable
                index[value] = len(index)
        return np.array([index[value] for value in values], dtype=np.int64)

    @property
    def texts(self) -> list[str]:
        """Texts of the values, by code."""
        return [as_text(value) for value in self.index]

    def sort(self) -> tuple[tuple[str, ...], Indices]:
        """Return the texts, sorted, and the place of each code among them."""
        texts = self.texts
        order = sorted(range(len(texts)), key=texts.__getitem__)
        place = np.empty(len(texts), dtype=np.int64)
        place[order] = np.arange(len(texts))
        return tuple(texts[code] for code in order), place


class _ListSample:
    """Lists of the visits in the first buckets, as many as are wanted on average."""

    def __init__(self, max_lists: int) -> None:
        self._max_lists = max_lists
        self._parts: list[tuple[Indices, Indices, Indices, Indices]] = []  # bucket, group, clicks, items
        self._n_lists = 0

    def _limit(self, n_visits: int) -> int:
        if n_visits <= self._max_lists:
            return SAMPLE_BUCKETS
        return SAMPLE_BUCKETS * self._max_lists // n_visits

    def add(
        self,
        n_visits: int,
        buckets: Indices,
        groups: Indices,
        masks: Indices,
        items: Codes,
        positions: Codes,
        starts: Indices,
    ) -> None:
        """Add the lists of visits that may be in the sample of a log with ``n_visits`` visits or more."""
        chosen = np.flatnonzero(buckets < self._limit(n_visits))
        if not chosen.size:
            return
        sizes = starts[chosen + 1] - starts[chosen]
        owner = np.repeat(np.arange(chosen.size), sizes)
        offsets = np.arange(owner.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        index = np.repeat(starts[chosen], sizes) + offsets
        shown = np.full((chosen.size, int(positions[index].max()) + 1), UNKNOWN, dtype=np.int64)
        shown[owner, positions[index]] = items[index]
        self._parts.append((buckets[chosen], groups[chosen], masks[chosen], shown))
        self._n_lists += chosen.size
        if self._n_lists > 2 * self._max_lists + _BATCH_ROWS:
            self._prune(n_visits)

    def _check(self, items: Indices) -> None:
        """Raise if an item is twice in a list."""
        ordered = np.sort(items, axis=1)
        if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
            raise _Unsuitable

    def _prune(self, n_visits: int) -> None:
        limit = self._limit(n_visits)
        kept = []
        for part in self._parts:
            is_kept = part[0] < limit
            kept.append((part[0][is_kept], part[1][is_kept], part[2][is_kept], part[3][is_kept]))
        self._parts = kept
        self._n_lists = sum(part[0].size for part in kept)

    def lists(self, n_visits: int, width: int, first: int) -> CubeLists:
        """Return the lists, with groups in place of folds and user types, and positions from the first."""
        self._prune(n_visits)
        items = [
            np.pad(part[3], ((0, 0), (0, width + first - part[3].shape[1])), constant_values=UNKNOWN)
            for part in self._parts
        ]
        empty = np.zeros(0, dtype=np.int64)
        group, clicks = (
            np.concatenate([empty, *(part[column] for part in self._parts)]) for column in (1, 2)
        )
        shown = np.concatenate([np.zeros((0, width + first), dtype=np.int64), *items])[:, first:]
        self._check(shown)
        return CubeLists(group, group, shown, clicks >> first, np.ones(group.size))


def _integers(column: Any) -> Indices:
    return np.asarray(column.cast("int64"))


def _small_integers(column: Any) -> Codes:
    return np.asarray(column.cast("int32"))


def _epoch_seconds(column: Any) -> Indices:
    """Return seconds since 1970."""
    name = str(column.type)
    if name.startswith("date32"):
        seconds = np.asarray(column.cast("int32")).astype(np.int64) * 86_400
    elif name.startswith("timestamp"):
        seconds = _integers(column) // {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
    else:
        raise _Unsuitable
    if seconds.min() < TIME_RANGE[0] or seconds.max() > TIME_RANGE[1]:
        raise _Unsuitable  # a bad time
    return seconds


def _hash(values: Indices, parameters: HashParameters) -> Indices:
    """Return the hash of whole numbers, as the queries compute it."""
    hashes = np.empty(values.size, dtype=np.int64)
    hash_numbers(values, MODULUS, parameters.factor, hashes)
    return hashes


def _hash_visits(keys: Indices, texts: list[str] | None, parameters: HashParameters) -> Indices:
    """Return the hash of the ids of visits, as the queries compute it."""
    if texts is None:
        return _hash(keys, parameters)
    begin = parameters.digit - 1
    return np.array(
        [
            int(_hash(np.array([int(text)]), parameters)[0])
            if text.isascii() and text.isdigit() and len(text) <= 18
            else int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[begin : begin + 8], 16)
            for text in texts
        ],
        dtype=np.int64,
    )


def _hash_texts(column: Any) -> Indices:
    """Return a hash of each text, which identifies visits."""
    offset_type = np.int64 if str(column.type) == "large_string" else np.int32
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, dtype=offset_type)[column.offset : column.offset + len(column) + 1]
    hashes = np.empty(len(column), dtype=np.int64)
    content = np.zeros(1, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    hash_texts(ends.astype(np.int64), content, hashes)
    return hashes
