"""From a click log to a click cube: `count_log`."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer
from banditrank._extras import requires
from banditrank._notebook import notebook_progress
from banditrank._text import plural
from banditrank.counts._click_cube import (
    MAX_POSITIONS,
    UNKNOWN,
    ClickCube,
    CubeCells,
    CubeLists,
    CubeVisits,
    aggregate_cells,
    aggregate_lists,
    aggregate_visits,
    filter_rows,
)
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.logs import _row_groups as groups
from banditrank.logs._count_queries import (
    SAMPLE_BUCKETS,
    VISIT_OK,
    CountQueries,
    QueryOptions,
)
from banditrank.logs._count_warnings import find_warnings
from banditrank.logs._engines.base import CountEngine, OnProgress
from banditrank.logs._engines.duckdb import DuckDBEngine
from banditrank.logs._frame_tables import pandas_table, polars_table
from banditrank.logs._log_columns import LogColumns, resolve_columns
from banditrank.logs._log_files import LogFiles, find_files
from banditrank.logs._public_formats import OpenedLog, SessionLog, open_public_format
from banditrank.logs._readable_log import ReadableLog, read_log
from banditrank.logs._sorted_log import count_sorted_log
from banditrank.logs._user_table import load_with_users

EngineName: TypeAlias = Literal["duckdb", "spark"]
"""Engine that counts."""

Period: TypeAlias = Literal["hour", "day", "week", "month", "auto"]
"""Length of the periods of a cube; ``auto`` chooses one if the log has times."""

BadRows: TypeAlias = Literal["refuse", "drop"]
"""What happens with bad rows."""

MAX_LISTS = 5_000_000
"""Maximum number of visits whose lists are retained."""

_MAX_AUTO_PERIODS = 62  # two months of days
_PERIOD_DAYS: dict[Period, int] = {"day": 1, "week": 7}
_MAX_OUTLYING_SHARE = 0.01  # of the rows, at each end of the time
_MAX_INVALID_NAMES = 10_000  # values that are excluded in a query
_MAX_FLAGGED = 100_000  # visits, and values that are no times, that are searched for in the files
_VISITS_SHARE = 0.4  # of the time, if the log has sessions
_LISTS_SHARE = 0.5


def count_log(
    source: Any,
    columns: LogColumns | None = None,
    *,
    users: Any = None,
    engine: EngineName = "duckdb",
    file_format: str | None = None,
    delimiter: str | None = None,
    first_position: int | None = None,
    n_positions: int | None = None,
    period: Period | None = None,
    time_zone: str = "UTC",
    since: str | None = None,
    until: str | None = None,
    single_click: bool = False,
    bad_rows: BadRows = "refuse",
    max_lists: int = 20_000,
    memory_limit: str = "2GB",
    temporary_directory: str | Path | None = None,
    threads: int | None = None,
    master: str | None = None,
    on_progress: OnProgress | None = None,
) -> ClickCube:
    """Count a click log, and return its cube.

    The log is streamed, and the engine spills what exceeds the memory limit to disk. The cells of the cube
    are held in memory on top of the limit.

    Parameters
    ----------
    source
        Path, glob, directory, or several of them, of CSV, TSV, JSON Lines or Parquet files, compressed or
        not; or a data frame of pandas or Polars, or a table, record batch reader or dataset of Arrow.
    columns
        Names of columns; those that are not given are guessed by their name.
    users
        File or data frame with a row for each user, whose columns may be user types: ``userid_profile.txt``
        of ``kdd2012``. Rows are joined by the column of the user.
    engine
        ``duckdb``: this machine; ``spark``: a Spark cluster, where the data lie.
    file_format
        ``csv``, ``tsv``, ``jsonl`` or ``parquet``, by default that of the file names; or one of the public
        formats ``open-bandit``, ``yandex`` and ``kdd2012``.
    delimiter
        Delimiter of CSV files; by default it is taken from the header.
    first_position
        Number of the first position, 0 or 1; by default 0 if a position is 0, else 1.
    n_positions
        Number of positions to count, the first ones; by default all.
    period
        Length of periods, which needs a time; by default ``day`` if a time column is given, else a single
        period. ``auto``: the shortest of ``day``, ``week`` and ``month`` that makes at most 62 periods of all
        rows but the first and the last percent, or a single period if no time column is given or guessed, or
        less than half of the rows have a time in a guessed one. Rows without a time are bad rows if there are
        periods, or ``since`` or ``until``.
    time_zone
        Name of the time zone in which periods begin: ``Europe/Berlin``.
    since, until
        Dates or times from and before which rows are counted: ``2026-01-31``.
    single_click
        Whether several clicks in a visit are bad.
    bad_rows
        ``refuse``: raise an error that names the first bad row; ``drop``: leave them out, and list their
        number by reason in the metadata of the cube.
    max_lists
        Number of visits, sampled by a hash of their id, whose ranking lists are retained; up to 5,000,000.
        It is met on average; a visit of a log with a row for each visit is sampled by its user if it has no
        id, and at equal steps if it has neither. That no item is twice in a visit is checked in this sample.
    memory_limit, temporary_directory, threads
        See `banditrank.logs._duckdb_session.open_session`; results do not depend on them.
    master
        Address of the Spark master: ``spark://host:7077``, ``local[2]``; by default the active session's.
    on_progress
        Called several times a second with the share of the work that is done. By default a notebook shows a
        progress bar.

    Raises
    ------
    InvalidInputError
        If an argument is invalid, a column is missing, a row is bad, or no row is counted.
    BanditRankError
        If the engine fails.
    MissingDependencyError
        If DuckDB or PySpark is not installed.

    Examples
    --------
    >>> import pandas as pd
    >>> log = pd.DataFrame({"session": [1, 1, 2, 2], "item": ["a", "b", "b", "a"], "slot": [1, 2, 1, 2]})
    >>> log["clicked"] = [0, 1, 0, 0]
    >>> cube = count_log(log)
    >>> cube.items, cube.n_positions, cube.n_visits
    (('a', 'b'), 2, 2.0)
    >>> cube.metadata["rows"]
    {'counted': 4}
    """
    if bad_rows not in get_args(BadRows):
        raise UnknownNameError("bad_rows", bad_rows, get_args(BadRows))
    if period is not None and period not in get_args(Period):
        raise UnknownNameError("period", period, get_args(Period))
    if first_position is not None:
        check_integer("first_position", first_position, 0, 1)
    if n_positions is not None:
        check_integer("n_positions", n_positions, 1, MAX_POSITIONS)
    check_integer("max_lists", max_lists, 0, MAX_LISTS)
    zone = _zone(time_zone)
    bounds = _moment("since", since, zone), _moment("until", until, zone)
    is_dropping = bad_rows == "drop"
    with (
        open_public_format(
            source, file_format, columns or LogColumns(), temporary_directory, is_dropping=is_dropping
        ) as opened,
        notebook_progress("reading the log", on_progress) as report,
    ):

        def count(readable: ReadableLog) -> ClickCube:
            with _open_engine(engine, memory_limit, temporary_directory, threads, master) as running:
                counter = _Counter(
                    running,
                    replace(
                        readable,
                        original=opened.original or readable.original,
                        malformed=opened.malformed + readable.malformed,
                    ),
                    opened.columns,
                    single_click=single_click,
                    report=report,
                )
                return counter.count(
                    first_position=first_position,
                    n_positions=n_positions,
                    period=period,
                    zone=zone,
                    bounds=bounds,
                    is_dropping=is_dropping,
                    max_lists=max_lists,
                )

        cube = read_log(
            count,
            open_source(opened.source, opened.file_format, delimiter, opened.header),
            open_users(users, opened),
            is_dropping=is_dropping,
            temporary_directory=temporary_directory,
        )
    return replace(cube, metadata={**cube.metadata, "engine": engine, "files": _names(source)})


class _Counter:
    """Runs the queries for one log, in order, and makes the cube of their results."""

    def __init__(
        self,
        engine: CountEngine,
        source: ReadableLog,
        columns: LogColumns,
        *,
        single_click: bool,
        report: OnProgress | None,
    ) -> None:
        self._engine = engine
        self._source = source
        self._joined: tuple[str, ...] = ()  # columns of the user table
        if source.users is None:
            self._kinds = engine.load(source.log)
        else:
            self._kinds, self._joined = load_with_users(engine, source.log, source.users, columns)
        self._columns = resolve_columns(columns, self._kinds)
        self._single_click = single_click
        self._report = report
        self._warnings: list[str] = []

    def count(  # noqa: C901 - a line a choice
        self,
        *,
        first_position: int | None,
        n_positions: int | None,
        period: Period | None,
        zone: ZoneInfo,
        bounds: tuple[int | None, int | None],
        is_dropping: bool,
        max_lists: int,
    ) -> ClickCube:
        names, layout = self._columns.names, self._columns.layout
        if "time" not in names and (period not in (None, "auto") or bounds != (None, None)):
            raise InvalidInputError("time column", "must be named for period, since and until", "no time")
        if "time" in names and "time" not in self._columns.guessed and period is None:
            period = "day"
        if layout == "wide":
            first_position = 0
        options = QueryOptions(0, MAX_POSITIONS, None, [(0, 0)], self._single_click, *bounds)
        queries = self._queries(options)
        outside = 0
        if bounds == (None, None):
            self._engine.create_view("log", queries.projection())
        else:
            self._engine.create_view("all_rows", queries.projection())
            self._engine.create_view("log", queries.inside())
            outside = _single(self._engine.fetch(queries.count_outside()))
        if period == "auto":
            period = self._choose_period(queries)
        if period is not None:
            options = replace(options, period=period, offsets=self._offsets(queries, zone))
        elif bounds != (None, None):
            options = replace(options, period="all")
        if first_position is None and n_positions is not None:
            lowest = _single(self._engine.fetch(queries.lowest_position()))
            first_position = 0 if lowest == 0 else 1
        low = 0 if first_position is None else first_position
        maximum = MAX_POSITIONS if first_position is None else first_position + MAX_POSITIONS - 1
        high = maximum if n_positions is None else low + n_positions - 1
        positions = groups.PositionRange(low, high, maximum)
        queries = self._queries(replace(options, low=low, high=high))
        is_whole = bounds == (None, None) and n_positions is None
        cube = self._count_sorted(queries, first_position, max_lists, options) if is_whole else None
        if cube is not None:
            return cube

        def count(queries: CountQueries) -> _Result:
            if layout == "wide":
                return self._count_wide(queries, n_positions, max_lists)
            return self._count_rows(queries, positions, max_lists)

        result = count(queries)
        excluded = self._excluded_names(queries, result.table)
        if excluded and (layout == "wide" or (is_dropping and queries.has_visits)):
            # Their rows are not part of visits: the visits are counted again without them.
            result = count(self._queries(replace(options, low=low, high=high, excluded=excluded)))
        rows = dict(result.rows)
        if outside:
            rows[groups.OUTSIDE] = outside
        found = self._handle_bad_rows(queries, rows, positions, is_dropping=is_dropping)
        self._engine.drop_tables()
        return self._make_cube(queries, result, rows, found, first_position, options)

    def _excluded_names(self, queries: CountQueries, table: "_Groups") -> dict[str, list[str]]:
        """Return the MD5 digests of invalid names, by column: queries must not contain control characters."""
        excluded: dict[str, list[str]] = {}
        for column in ("item", *queries.types):
            values = table.invalid_names(column)
            if len(values) > _MAX_INVALID_NAMES:
                role = "item" if column == "item" else "user_type"
                rule = "must hold printable names"
                raise InvalidInputError(f"{role} column", rule, f"{len(values):,} values that are not")
            if values:
                excluded[column] = [
                    hashlib.md5(value.encode(), usedforsecurity=False).hexdigest() for value in values
                ]
        return excluded

    def _queries(self, options: QueryOptions) -> CountQueries:
        return CountQueries(self._columns, self._kinds, self._engine.dialect, options)

    def _count_rows(  # noqa: C901, PLR0912 - a line a reason
        self, queries: CountQueries, positions: groups.PositionRange, max_lists: int
    ) -> "_Result":
        visits = lists = None
        begin = 0.0
        if queries.has_visits:
            begin = _VISITS_SHARE
            self._engine.create_table("visits", queries.visits(), self._part(0.0, begin))
            if max_lists:
                lists = self._sample_lists(queries, max_lists)
                begin = _LISTS_SHARE
            visits = self._engine.fetch(queries.visit_counts())
            self._engine.create_table("joined", queries.joined_visits())
            has_flags = any(flag != VISIT_OK for flag in set(visits["flag"].to_pylist()))
            has_missing = bool(_single(self._engine.fetch(queries.missing_sessions())))
            query = queries.cells(has_flags=has_flags, has_missing_sessions=has_missing)
        else:
            query = queries.cells()
        table = _Groups(self._engine.fetch(query, self._part(begin, 1.0)))
        self._engine.release_memory()  # the cells come on top of the limit
        reasons = groups.RowReasons(table.n_groups)
        for name in queries.types:
            reasons.mark(table.is_missing(name), groups.missing("user_type"))
        for role in ("item", "position", "clicked"):
            if role in self._columns.names:
                reasons.mark(table.is_missing(role), groups.missing(role))
        for name in queries.types:
            reasons.mark(table.has_invalid_name(name), groups.not_a_name("user_type"))
        reasons.mark(table.has_invalid_name("item"), groups.not_a_name("item"))
        if "is_visit_missing" in table.names:
            reasons.mark(table.booleans("is_visit_missing"), groups.missing("session"))
        position = table.parsed("position", groups.parse_position)
        reasons.mark(position == _NOTHING, groups.NOT_A_POSITION)
        reasons.mark((position < positions.low) | (position > positions.maximum), groups.OUT_OF_RANGE)
        if "clicked" in self._columns.names:
            reasons.mark(table.parsed("clicked", groups.parse_click) == _NOTHING, groups.NOT_A_CLICK)
        if "period" in table.names:
            reasons.mark(table.is_missing("period"), groups.NOT_A_TIME)
        if "has_propensity" in table.names:
            reasons.mark(~table.booleans("has_propensity"), groups.NOT_A_PROPENSITY)
        if "amount_flag" in table.names:
            flag = table.integers("amount_flag")
            reasons.mark(flag == 1, groups.NOT_AMOUNTS)
            reasons.mark(flag == 2, groups.MORE_CLICKS)
        reasons.mark(position > positions.high, groups.BEYOND_LIMIT)
        if "flag" in table.names:
            for flag_value, reason in groups.FLAG_REASONS.items():
                reasons.mark(table.integers("flag", VISIT_OK) == flag_value, reason)
        return _Result(table, reasons.is_counted, reasons.count(table.integers("n")), visits, lists)

    def _count_wide(
        self,
        queries: CountQueries,
        n_positions: int | None,
        max_lists: int,
    ) -> "_Result":
        longest = _single(self._engine.fetch(queries.longest_list())) or 0
        limit = min(int(longest), MAX_POSITIONS, n_positions or MAX_POSITIONS)
        if longest > MAX_POSITIONS and n_positions is None:
            rule = f"must have at most {MAX_POSITIONS} items: give n_positions to count the first ones"
            raise InvalidInputError("items column", rule, int(longest))
        query = queries.wide_visits(int(min(longest, MAX_POSITIONS)), limit)
        self._engine.create_table("visits", query, self._part(0.0, _VISITS_SHARE))
        row_counts = _Groups(self._engine.fetch(queries.wide_rows()))
        reasons = groups.RowReasons(row_counts.n_groups)
        reasons.mark(row_counts.booleans("is_type_missing"), groups.missing("user_type"))
        if "is_time_missing" in row_counts.names:
            reasons.mark(row_counts.booleans("is_time_missing"), groups.NOT_A_TIME)
        for flag, reason in groups.FLAG_REASONS.items():
            reasons.mark(row_counts.integers("flag") == flag, reason)
        visits = self._engine.fetch(queries.visit_counts())
        table = _Groups(self._engine.fetch(queries.cells(), self._part(_VISITS_SHARE, 1.0)))
        self._engine.release_memory()
        is_kept = table.parsed("position", groups.parse_position) < limit
        for name in queries.types:
            is_kept &= ~table.is_missing(name)
        if "period" in table.names:
            is_kept &= ~table.is_missing("period")
        lists = None
        if max_lists:
            n_visits = sum(visits["n"].to_numpy()[visits["flag"].to_numpy() == VISIT_OK].tolist())
            lists = self._engine.fetch(queries.list_counts(n_visits, max_lists, limit))
        rows = reasons.count(row_counts.integers("n"))
        return _Result(table, is_kept, rows, visits, lists)

    def _sample_lists(self, queries: CountQueries, max_lists: int) -> Any:
        """Return rows of a sample of visits; flag visits in which an item is twice."""
        n_visits = _single(self._engine.fetch("SELECT count(*) AS n FROM visits"))
        n_buckets = (
            SAMPLE_BUCKETS if n_visits <= max_lists else SAMPLE_BUCKETS * max_lists // max(n_visits, 1)
        )
        query = queries.list_rows(n_buckets)
        rows = self._engine.fetch(query)
        pairs = rows.group_by(["visit", "item"]).aggregate([([], "count_all")])
        if pairs.num_rows < rows.num_rows:
            self._engine.create_table("duplicates", queries.duplicate_items())
            self._engine.create_table("flagged", queries.flag_duplicates())
            self._engine.create_table("visits", "SELECT * FROM flagged")
            rows = self._engine.fetch(query)
        return rows

    def _offsets(self, queries: CountQueries, zone: ZoneInfo) -> Sequence[tuple[int, int]]:
        """Return the offsets of the time zone during the log."""
        if zone.key == "UTC":
            return [(0, 0)]
        table = self._engine.fetch(queries.time_range())
        first, last = table["first"][0].as_py(), table["last"][0].as_py()
        return _zone_offsets(zone, first or 0, last or 0)

    def _choose_period(self, queries: CountQueries) -> Period | None:
        """Return what ``auto`` chooses: the shortest period of which there are few; None without times."""
        column = self._columns.names.get("time")
        if column is None:
            return None
        table = self._engine.fetch(queries.days())
        n_rows = dict(zip(table["day"].to_pylist(), table["n"].to_pylist(), strict=True))
        missing = n_rows.pop(None, 0)
        n_times = sum(n_rows.values())
        if missing > n_times and "time" in self._columns.guessed:
            self._warnings.append(
                f"column {column} was guessed to be the time, but {plural(missing, 'row')} of "
                f"{missing + n_times:,} have none: the log is counted as one period"
            )
            return None
        if not n_rows:
            return "day"
        first, last = _most_days(n_rows)
        n_days = last - first + 1
        fitting = (period for period, days in _PERIOD_DAYS.items() if n_days <= days * _MAX_AUTO_PERIODS)
        return next(fitting, "month")

    def _handle_bad_rows(
        self,
        queries: CountQueries,
        rows: Mapping[str, int],
        positions: groups.PositionRange,
        *,
        is_dropping: bool,
    ) -> dict[str, groups.BadRow]:
        """Return the first bad row of each reason; raise the error of the first unless they are dropped."""
        bad = [reason for reason, count in rows.items() if count and reason not in groups.ACCEPTED]
        if not bad:
            return {}
        flagged: dict[str, int] = {}
        if queries.has_sessions and self._columns.layout == "long":
            table = self._engine.fetch(queries.flagged_sessions(_MAX_FLAGGED))
            flagged = dict(
                zip(map(str, table["session"].to_pylist()), table["flag"].to_pylist(), strict=True)
            )
        invalid_times: list[str] = []
        if groups.NOT_A_TIME in bad:
            table = self._engine.fetch(queries.invalid_times(_MAX_FLAGGED))
            invalid_times = [value for value in table["value"].to_pylist() if value is not None]
        found: dict[str, groups.BadRow] = {}
        log = self._source.original
        if not (isinstance(log, LogFiles) and log.is_remote):
            own = tuple(name for name in self._columns.user_types if name not in self._joined)
            columns = replace(self._columns, user_types=own)  # rows of files have no joined columns
            found = groups.find_bad_rows(_rows(log), columns, positions, bad, flagged, invalid_times)
        if is_dropping:
            return found
        if found:
            raise next(iter(found.values())).error()
        reason = bad[0]
        raise InvalidInputError(
            "log", "must have no bad rows", groups.describe_rows({reason: rows[reason]}, {})
        )

    def _make_cube(
        self,
        queries: CountQueries,
        result: "_Result",
        rows: dict[str, int],
        found: Mapping[str, groups.BadRow],
        first_position: int | None,
        options: QueryOptions,
    ) -> ClickCube:
        table, kept = result.table, result.is_counted
        if not kept.any():
            first_rows = {reason: bad.place for reason, bad in found.items()}
            malformed = self._source.malformed
            raise groups.nothing_counted(rows | malformed.counts, first_rows | malformed.first_rows)
        position = table.parsed("position", groups.parse_position)[kept]
        first = first_position if first_position is not None else (0 if position.min() == 0 else 1)
        type_values, type_index = table.user_types(queries.types, kept)
        items, item_index = table.names_of("item", kept)
        periods, period_index = _periods(table, kept, options.period)
        n = table.integers("n")[kept].astype(np.float64)
        if "displays" in table.names:
            displays, clicks = (table.floats(name)[kept] for name in ("displays", "clicks"))
        else:
            clicked = table.parsed("clicked", groups.parse_click)[kept]
            displays, clicks = n, n * clicked
        nothing = np.zeros(n.size)
        share = np.divide(clicks, displays, out=np.zeros(n.size), where=displays > 0)
        weights, squared = (
            table.floats(name)[kept] if name in table.names else nothing
            for name in ("weights", "squared_weights")
        )
        above = np.full(n.size, UNKNOWN, dtype=np.int64)
        if queries.has_visits:
            raw = table.integers("above", _NOTHING)[kept]
            above = np.where(raw == _NOTHING, 0, raw - first + 1)
        cells = CubeCells(
            period=period_index,
            fold=table.integers("fold", UNKNOWN)[kept] if "fold" in table.names else above * 0 + UNKNOWN,
            user_type=type_index,
            item=item_index,
            position=position - first,
            above=above,
            displays=displays,
            clicks=clicks,
            examined=table.floats("examined")[kept] if queries.has_visits else nothing,
            last_clicks=table.floats("last_clicks")[kept] if queries.has_visits else nothing,
            weights=weights,
            squared_weights=squared,
            weighted_clicks=weights * share if weights is not nothing else nothing,
            squared_weighted_clicks=squared * share if squared is not nothing else nothing,
        )
        table.clear()
        cells = aggregate_cells(cells)
        width = int(cells.position.max()) + 1
        cube = ClickCube(
            self._columns.user_types,
            type_values,
            items,
            periods,
            width,
            cells,
            _visits(result.visits, queries, type_values, periods, options.period),
            self._lists(queries, result.lists, type_values, items, first, width),
        )
        return self._describe(cube, queries, self._metadata(rows, found, first, options))

    def _count_sorted(
        self, queries: CountQueries, first_position: int | None, max_lists: int, options: QueryOptions
    ) -> ClickCube | None:
        """Return the cube of a log whose visits are contiguous, or None if the queries have to count it."""
        if self._single_click or self._joined or not isinstance(self._engine, DuckDBEngine):
            return None
        counted = count_sorted_log(
            self._source.log,
            self._columns,
            self._kinds,
            first_position=first_position,
            max_lists=max_lists,
            periods=None if options.period is None else partial(_period_numbers, options),
            on_progress=self._report,
        )
        if counted is None:
            return None
        cube = ClickCube(
            self._columns.user_types,
            counted.type_values,
            counted.items,
            tuple(period_name(number, options.period) for number in counted.periods)
            if options.period
            else ("all",),
            counted.n_positions,
            counted.cells,
            counted.visits,
            counted.lists,
        )
        rows = {groups.COUNTED: counted.n_rows}
        return self._describe(cube, queries, self._metadata(rows, {}, counted.first_position, options))

    def _describe(self, cube: ClickCube, queries: CountQueries, metadata: dict[str, Any]) -> ClickCube:
        """Return the cube with its metadata and warnings."""
        if len(cube.items) < cube.n_positions:
            self._warnings.append(f"fewer items ({len(cube.items)}) than positions ({cube.n_positions})")
        busiest = None
        if "user" in self._columns.names:
            busy = self._engine.fetch(queries.busiest_users())
            users, n_rows, most = (busy[name][0].as_py() for name in ("users", "n", "most"))
            if users:
                busiest = {"rows": most, "mean_rows": n_rows / users}
                metadata["busiest_user"] = busiest
        warnings = [*self._warnings, *find_warnings(cube, busiest)]
        return replace(cube, metadata={**metadata, "warnings": warnings})

    def _metadata(
        self, rows: dict[str, int], found: Mapping[str, groups.BadRow], first: int, options: QueryOptions
    ) -> dict[str, Any]:
        return {
            "layout": self._columns.layout,
            "columns": self._columns.describe(),
            "guessed": dict(self._columns.guessed),
            "first_position": first,
            "period": options.period or "all",
            "rows": rows | self._source.malformed.counts,
            "first_rows": {
                **{reason: bad.place for reason, bad in found.items()},
                **self._source.malformed.first_rows,
            },
        }

    def _lists(
        self,
        queries: CountQueries,
        rows: Any,
        type_values: Sequence[tuple[str, ...]],
        items: Sequence[str],
        first: int,
        width: int,
    ) -> CubeLists:
        if rows is None or not rows.num_rows:
            empty = np.zeros(0, dtype=np.int64)
            return CubeLists(empty, empty, np.zeros((0, width), dtype=np.int64), empty, np.zeros(0))
        table = _Groups(rows)
        everything = np.ones(table.n_groups, dtype=np.bool_)
        own_types, type_index = table.user_types(queries.types, everything)
        types = _reindex(own_types, type_values)[type_index]
        fold = table.integers("fold", UNKNOWN) if "fold" in table.names else np.full(types.size, UNKNOWN)
        bits = table.integers("clicks")
        if self._columns.layout == "wide":
            shown = np.full((table.n_groups, width), UNKNOWN, dtype=np.int64)
            index = {name: number for number, name in enumerate(items)}
            for number, values in enumerate(rows["items"].to_pylist()):
                for k, name in enumerate(values[:width]):
                    shown[number, k] = index.get(name, UNKNOWN) if name is not None else UNKNOWN
            bits &= (1 << width) - 1
            lists = CubeLists(fold, types, shown, bits, table.floats("n"))
        else:
            visit = table.codes("visit")
            own_items, item_index = table.names_of("item", everything)
            position = table.integers("position") - first
            _, one, inverse = np.unique(visit, return_index=True, return_inverse=True)
            shown = np.full((one.size, width), UNKNOWN, dtype=np.int64)
            shown[inverse.ravel(), position] = _reindex(own_items, items)[item_index]
            lists = CubeLists(fold[one], types[one], shown, bits[one] >> first, np.ones(one.size))
        known = lists.user_type >= 0
        return aggregate_lists(filter_rows(lists, known))

    def _part(self, begin: float, end: float) -> OnProgress | None:
        report = self._report
        if report is None:
            return None
        return lambda done: report(begin + (end - begin) * done)


_NOTHING = -(10**12)


@dataclass(frozen=True, slots=True)
class _Result:
    """Results of the queries: groups, which of them are counted, rows by reason, visits, and lists."""

    table: "_Groups"
    is_counted: NDArray[np.bool_]
    rows: dict[str, int]
    visits: Any
    lists: Any


class _Groups:
    """Columns of a table of Arrow as arrays, and names as indices."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.names = set(table.column_names)
        self.n_groups: int = table.num_rows
        self._encoded: dict[str, tuple[NDArray[np.int32], list[Any]]] = {}

    def clear(self) -> None:
        """Release the memory of the table."""
        self._table = None
        self._encoded.clear()

    def integers(self, name: str, missing: int = 0) -> NDArray[np.int64]:
        column = self._table[name].cast("int64").combine_chunks().fill_null(missing)
        return np.asarray(column).astype(np.int64)

    def floats(self, name: str) -> NDArray[np.float64]:
        return np.asarray(self._table[name].combine_chunks().fill_null(0)).astype(np.float64)

    def booleans(self, name: str) -> NDArray[np.bool_]:
        return np.asarray(self._table[name].combine_chunks().fill_null(True)).astype(np.bool_)

    def encode(self, name: str) -> tuple[NDArray[np.int32], list[Any]]:
        """Return the index of each group's value, −1 if it is missing, and the values."""
        if name not in self._encoded:
            column = self._table[name].combine_chunks()
            if hasattr(column, "indices"):
                column = column.dictionary_decode()
            encoded = column.dictionary_encode()
            codes = np.asarray(encoded.indices.fill_null(-1))
            values = encoded.dictionary.to_pylist()
            absent = [number for number, value in enumerate(values) if groups.is_missing(value)]
            if absent:
                codes = np.where(np.isin(codes, absent), np.int32(-1), codes)
            self._encoded[name] = codes, values
        return self._encoded[name]

    def codes(self, name: str) -> NDArray[np.int32]:
        return self.encode(name)[0]

    def is_missing(self, name: str) -> NDArray[np.bool_]:
        missing: NDArray[np.bool_] = self.codes(name) < 0
        return missing

    def invalid_names(self, name: str) -> list[str]:
        """Return the values of a column that are not names, without missing ones."""
        values = self.encode(name)[1]
        return [value for value in values if not groups.is_missing(value) and not groups.is_name(value)]

    def has_invalid_name(self, name: str) -> NDArray[np.bool_]:
        """Return which groups have a value that is not a name."""
        codes, values = self.encode(name)
        is_invalid = [not groups.is_name(value) for value in values]
        is_invalid.append(False)  # for index −1, a missing value
        return np.array(is_invalid, dtype=np.bool_)[codes]

    def parsed(self, name: str, parse: Any) -> NDArray[np.int64]:
        """Return the numbers of a column; `_NOTHING` where it has none."""
        codes, values = self.encode(name)
        numbers = [parse(value) for value in values]
        table = np.array([_NOTHING if one is None else one for one in numbers] + [_NOTHING], dtype=np.int64)
        return table[codes]

    def names_of(self, name: str, kept: NDArray[np.bool_]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """Return the sorted texts of a column's kept values, and the index of each kept group."""
        codes, values = self.encode(name)
        used = np.unique(codes[kept])
        texts = {int(code): groups.as_text(values[code]) for code in used}
        names = tuple(sorted(set(texts.values())))
        index = {text: number for number, text in enumerate(names)}
        table = np.zeros(len(values) + 1, dtype=np.int64)
        for code, text in texts.items():
            table[code] = index[text]
        return names, table[codes[kept]]

    def user_types(
        self, columns: Sequence[str], kept: NDArray[np.bool_]
    ) -> tuple[tuple[tuple[str, ...], ...], NDArray[np.int64]]:
        """Return the values of each user type, sorted, and the user type of each kept group."""
        if not columns:
            return (("all",),), np.zeros(int(kept.sum()), dtype=np.int64)
        parts = [self.names_of(column, kept) for column in columns]
        combined = np.zeros(int(kept.sum()), dtype=np.int64)
        for names, index in parts:
            combined = combined * len(names) + index
        used, inverse = np.unique(combined, return_inverse=True)
        values: list[tuple[str, ...]] = []
        for code in used.tolist():
            each: list[str] = []
            rest = code
            for names, _ in reversed(parts):
                rest, number = divmod(rest, len(names))
                each.append(names[number])
            values.append(tuple(reversed(each)))
        return tuple(values), inverse.ravel().astype(np.int64)


def _visits(
    counted: Any,
    queries: CountQueries,
    type_values: Sequence[tuple[str, ...]],
    periods: Sequence[str],
    period: str | None,
) -> CubeVisits:
    if counted is None:
        empty = np.zeros(0, dtype=np.int64)
        return CubeVisits(empty, empty, empty, empty, np.zeros(0))
    table = _Groups(counted)
    kept = table.integers("flag") == VISIT_OK
    for name in queries.types:
        kept &= ~table.is_missing(name)
    if "period" in table.names:
        kept &= ~table.is_missing("period")
    own_types, type_index = table.user_types(queries.types, kept)
    own_periods, period_index = _periods(table, kept, period)
    types = _reindex(own_types, type_values)[type_index]
    fold = table.integers("fold", UNKNOWN)[kept] if "fold" in table.names else np.full(types.size, UNKNOWN)
    visits = CubeVisits(
        _reindex(own_periods, periods)[period_index],
        fold,
        types,
        table.integers("n_clicks")[kept],
        table.floats("n")[kept],
    )
    known = (visits.user_type >= 0) & (visits.period >= 0)
    return aggregate_visits(filter_rows(visits, known))


def _reindex(own: Sequence[Any], names: Sequence[Any]) -> NDArray[np.int64]:
    index = {name: number for number, name in enumerate(names)}
    return np.array([index.get(name, UNKNOWN) for name in own], dtype=np.int64)


def _periods(
    table: _Groups, kept: NDArray[np.bool_], period: str | None
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    if period is None:
        return ("all",), np.zeros(int(kept.sum()), dtype=np.int64)
    numbers, index = np.unique(table.integers("period")[kept], return_inverse=True)
    return tuple(period_name(int(number), period) for number in numbers), index.ravel().astype(np.int64)


def _period_numbers(options: QueryOptions, moments: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the period of each time in seconds since 1970, as the queries number periods."""
    starts, offsets = np.array(options.offsets, dtype=np.int64).T
    local = moments + offsets[np.maximum(np.searchsorted(starts, moments, side="right") - 1, 0)]
    match options.period:
        case "hour":
            return np.asarray(local // 3600)
        case "week":
            return np.asarray((local // 86_400 + 3) // 7)
        case "month":
            months = (local // 86_400).astype("datetime64[D]").astype("datetime64[M]")
            return np.asarray(months.astype(np.int64) + 1970 * 12)
        case _:
            return np.asarray(local // 86_400)


def period_name(number: int, period: str) -> str:
    """Return the name of a period, by its number since 1970; names sort by time.

    Examples
    --------
    >>> period_name(20454, "day"), period_name(2922, "week")
    ('2026-01-01', '2025-12-29')
    >>> period_name(24312, "month"), period_name(5, "hour")
    ('2026-01', '1970-01-01T05')
    """
    if period == "all":
        return period
    if period == "month":
        return f"{number // 12:04d}-{number % 12 + 1:02d}"
    if period == "hour":
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=number)).strftime("%Y-%m-%dT%H")
    days = number * 7 - 3 if period == "week" else number
    return (date(1970, 1, 1) + timedelta(days=days)).isoformat()


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise InvalidInputError("time_zone", "must be a time zone such as Europe/Berlin", name) from None


def _moment(field: str, text: str | None, zone: ZoneInfo) -> int | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(field, "must be a date such as 2026-01-31, or a time", text) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp())


def _most_days(n_rows: Mapping[int, int]) -> tuple[int, int]:
    """Return the first and last day of a log whose rows of each day are given, but a few outlying rows.

    Examples
    --------
    >>> _most_days({0: 2, 20_000: 500, 20_001: 500, 90_000: 1})
    (20000, 20001)
    """
    days = np.array(sorted(n_rows))
    shares = np.cumsum([n_rows[day] for day in days.tolist()]) / sum(n_rows.values())
    first = np.searchsorted(shares, _MAX_OUTLYING_SHARE, side="right")
    last = np.searchsorted(shares, 1 - _MAX_OUTLYING_SHARE, side="left")
    return int(days[first]), int(days[last])


def _zone_offsets(zone: ZoneInfo, first: int, last: int) -> list[tuple[int, int]]:
    """Return the offsets of a time zone between two times: from when each applies, in seconds."""

    def offset(moment: int) -> int:
        delta = datetime.fromtimestamp(moment, tz=zone).utcoffset()
        return int(delta.total_seconds()) if delta is not None else 0

    day = 86_400
    found = [(first, offset(first))]
    for start in range(first, last + day, day):
        if offset(start + day) == found[-1][1]:
            continue
        low, high = start, start + day
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(middle) == found[-1][1] else (low, middle)
        found.append((high, offset(high)))
    return found


def _single(table: Any) -> Any:
    return table.column(0)[0].as_py()


def _names(source: Any) -> list[str]:
    if isinstance(source, str | Path):
        return [str(source)]
    if isinstance(source, list | tuple):
        return [str(each) for each in source]
    return [type(source).__name__]


def open_source(
    source: Any, file_format: str | None, delimiter: str | None, header: Sequence[str]
) -> "LogFiles | Any":
    """Return files, or a table of Arrow.

    Parameters
    ----------
    source
        As for `count_log`.
    file_format, delimiter, header
        As for `find_files`.

    Raises
    ------
    InvalidInputError
        If the source is neither files nor a data frame, or a frame has a column twice.
    """
    is_paths = isinstance(source, list | tuple) and all(isinstance(each, str | Path) for each in source)
    if isinstance(source, str | Path) or is_paths:
        return find_files(source, file_format=file_format, delimiter=delimiter, header=header)
    with requires("logs", "reading click logs"):
        import pyarrow as pa  # noqa: PLC0415 - heavy, and optional
        import pyarrow.dataset as ds  # noqa: PLC0415 - heavy, and optional
    if isinstance(source, pa.Table | ds.Dataset):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    module = type(source).__module__.split(".")[0]
    if module == "pandas" and hasattr(source, "columns"):
        return pandas_table(source)
    if module == "polars" and hasattr(source, "collect"):
        source = source.collect()
    if module == "polars" and hasattr(source, "to_arrow"):
        return polars_table(source)
    raise InvalidInputError(
        "log", "must be files or a data frame of pandas, Polars or Arrow", type(source).__name__
    )


def open_users(users: Any, opened: OpenedLog) -> "LogFiles | Any | None":
    """Return the files of a user table, or a table of Arrow; None without one.

    Raises
    ------
    InvalidInputError
        If it is neither files nor a data frame.
    """
    if users is None:
        return None
    try:
        file_format = opened.file_format if opened.user_header else None
        return open_source(users, file_format, None, opened.user_header)
    except InvalidInputError as error:
        raise InvalidInputError("user table", error.rule, error.value) from None


def _rows(log: "LogFiles | SessionLog | Any") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(log, LogFiles | SessionLog):
        yield from log.rows()
        return
    number = 0
    for batch in log.to_batches():
        for row in batch.to_pylist():
            number += 1
            yield f"row {number:,}", row


def _open_engine(
    engine: str,
    memory_limit: str,
    temporary_directory: str | Path | None,
    threads: int | None,
    master: str | None,
) -> AbstractContextManager[CountEngine]:
    if engine == "spark":
        from banditrank.logs._engines.spark import open_spark  # noqa: PLC0415 - imports PySpark

        return open_spark(master)
    if engine != "duckdb":
        raise UnknownNameError("engine", engine, get_args(EngineName))
    if master is not None:
        raise InvalidInputError("master", "must not be given for the engine duckdb", master)
    from banditrank.logs._engines.duckdb import open_duckdb  # noqa: PLC0415 - imports DuckDB

    return open_duckdb(memory_limit=memory_limit, temporary_directory=temporary_directory, threads=threads)
