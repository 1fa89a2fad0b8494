"""Rankings of a candidate in a column of a log: what it would have shown in each visit, as a target."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from banditrank.counts._click_cube import ClickCube
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.evaluation._targets import FixedTarget, Names, mixture_target
from banditrank.logs._count_log import open_source, open_users
from banditrank.logs._count_queries import CountQueries, QueryOptions
from banditrank.logs._engines.base import CountEngine
from banditrank.logs._engines.duckdb import open_duckdb
from banditrank.logs._log_columns import LogColumns, resolve_columns
from banditrank.logs._public_formats import open_public_format
from banditrank.logs._readable_log import ReadableLog, read_log
from banditrank.logs._user_table import load_with_users


def candidate_target(
    source: Any,
    column: str,
    cube: ClickCube,
    columns: LogColumns | None = None,
    *,
    users: Any = None,
    file_format: str | None = None,
    delimiter: str | None = None,
    memory_limit: str = "2GB",
    temporary_directory: str | Path | None = None,
    threads: int | None = None,
) -> FixedTarget:
    """Return the rankings in a column of a log as a target: for each user type, each with its share.

    Parameters
    ----------
    source
        The log, as for `count_log`.
    column
        Column of the candidate. In a log with a row for each visit, the ranking: a list, or text such as
        ``a|b|c``. In a log with a row for each display, the list of the visit, or the item that the candidate
        would have shown at the position of the row.
    cube
        Counts of the log, whose user types, items and positions are used.
    columns, users, file_format, delimiter, memory_limit, temporary_directory, threads
        As for `count_log`.

    Raises
    ------
    InvalidInputError
        If the log has no visits, a user type has no ranking, or a ranking is not valid.
    UnknownNameError
        If the log has no such column, or never showed an item of the candidate.
    """
    with open_public_format(
        source, file_format, columns or LogColumns(), temporary_directory, is_dropping=True
    ) as opened:

        def count(readable: ReadableLog) -> Mapping[str, Mapping[Sequence[str], int]]:
            with open_duckdb(
                memory_limit=memory_limit, temporary_directory=temporary_directory, threads=threads
            ) as engine:
                return _count_rankings(engine, readable.log, readable.users, opened.columns, column)

        counts = read_log(
            count,
            open_source(opened.source, opened.file_format, delimiter, opened.header),
            open_users(users, opened),
            is_dropping=True,  # `count_log` has refused or counted the malformed rows already
            temporary_directory=temporary_directory,
        )
    names = Names(cube.user_types, cube.items, cube.n_positions)
    return mixture_target(counts, names, name=f"column:{column}")


def _count_rankings(
    engine: CountEngine, log: Any, users: Any, given: LogColumns, column: str
) -> Mapping[str, Mapping[Sequence[str], int]]:
    """Return the number of visits by user type and ranking."""
    kinds = engine.load(log) if users is None else load_with_users(engine, log, users, given)[0]
    if column not in kinds:
        raise UnknownNameError("column", column, kinds)
    columns = resolve_columns(given, kinds)
    queries = CountQueries(columns, kinds, engine.dialect, QueryOptions(0, 0, None, [(0, 0)], False))
    if not queries.has_visits:
        rule = "must have a column of the session for rankings of visits"
        raise InvalidInputError("log", rule, columns.layout)
    types = queries.types
    is_list = columns.layout == "wide" or kinds[column] == "list"
    engine.create_view("log", queries.projection(queries.ranking_of(column, is_list=is_list)))
    visits = "log"
    if columns.layout != "wide":
        keys = "".join(f"min({name}) AS {name}, " for name in types)
        position = "try_cast(position AS DOUBLE)"
        ranking = "min(candidate)" if is_list else f"list(candidate ORDER BY {position})"
        visits = (
            f"(SELECT {keys}{ranking} AS candidate FROM log "  # noqa: S608 - quoted names
            "WHERE session IS NOT NULL GROUP BY session) AS one"
        )
    keys = "".join(f"CAST({name} AS STRING) AS {name}, " for name in types)
    query = f"SELECT {keys}candidate, count(*) AS n FROM {visits} GROUP BY ALL ORDER BY ALL"  # noqa: S608 - above
    table = engine.fetch(query)
    counts: dict[str, dict[Sequence[str], int]] = {}
    for row in table.to_pylist():
        values = [row[name] for name in types] or ["all"]
        shown = tuple(item for item in row["candidate"] or () if item is not None)
        if shown and all(values):
            counts.setdefault("/".join(values), {})[shown] = row["n"]
    return counts
