"""Public formats of click logs: Open Bandit Dataset, Yandex-style session logs, and KDD Cup 2012.

A format is a choice of columns. Session logs, whose lines are queries and clicks, are first converted to a
Parquet file with a row for each query.
"""

import io
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from banditrank._extras import requires
from banditrank.errors import InvalidInputError
from banditrank.logs._log_columns import LogColumns
from banditrank.logs._log_files import find_files, open_text
from banditrank.logs.kdd2012._files import PROFILE_COLUMNS, TRAINING_COLUMNS

OPEN_BANDIT_COLUMNS = LogColumns(
    user_type="",
    item="item_id",
    position="position",
    clicked="click",
    session="",
    user="",
    time="timestamp",
    propensity="propensity_score",
)
"""Columns of the Open Bandit Dataset (Saito et al., 2021); user types are columns as ``user_feature_0``."""

YANDEX_COLUMNS = LogColumns(
    user_type="", items="items", clicked_item="clicked_items", session="visit", user="session", time=""
)
"""Columns of a converted session log; ``query`` and ``region`` are there for user types."""

KDD2012_COLUMNS = LogColumns(
    user_type="",
    item="AdID",
    position="Position",
    displays="Impression",
    clicks="Click",
    user="UserID",
    time="",
)
"""Columns of ``training.txt`` of KDD Cup 2012 track 2; ``Gender`` and ``Age`` are those of the user table."""

PUBLIC_FORMATS = ("open-bandit", "yandex", "kdd2012")
"""Names of the public formats."""

_ROWS_PER_BATCH = 50_000


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """A log as files of an ordinary format, with its columns; or a data frame.

    Attributes
    ----------
    source, file_format, columns, header
        As for `count_log` and `find_files`.
    user_header
        Names of the columns of the user table, if it has no header; its format is that of the log then.
    """

    source: Any
    file_format: str | None
    columns: LogColumns
    header: Sequence[str] = ()
    user_header: Sequence[str] = ()


@contextmanager
def open_public_format(
    source: Any, file_format: str | None, columns: LogColumns, temporary_directory: str | Path | None
) -> Iterator[OpenedLog]:
    """Yield a log of a public format as one of an ordinary format; others are yielded as they are.

    Parameters
    ----------
    source
        Files, or a data frame.
    file_format
        One of `PUBLIC_FORMATS`, an ordinary format, or None.
    columns
        Given columns, which replace those of the format.
    temporary_directory
        Directory of converted files, which are removed at the end.

    Raises
    ------
    InvalidInputError
        If a line of a session log is malformed.
    """
    match file_format:
        case "open-bandit":
            yield OpenedLog(source, "csv", _filled(columns, OPEN_BANDIT_COLUMNS))
        case "kdd2012":
            yield OpenedLog(
                source, "tsv", _filled(columns, KDD2012_COLUMNS), TRAINING_COLUMNS, PROFILE_COLUMNS
            )
        case "yandex":
            with _spill_directory(temporary_directory) as directory:
                converted = Path(directory) / "visits.parquet"
                _convert_sessions(find_files(source, file_format="tsv").paths, converted)
                yield OpenedLog(converted, "parquet", _filled(columns, YANDEX_COLUMNS))
        case _:
            yield OpenedLog(source, file_format, columns)


@contextmanager
def _spill_directory(parent: str | Path | None) -> Iterator[str]:
    try:
        directory = tempfile.TemporaryDirectory(prefix="banditrank-", dir=parent)
    except OSError as error:
        name = str(parent or tempfile.gettempdir())
        raise InvalidInputError.from_os("temporary_directory", "must be writable", name, error) from None
    with directory as name:
        yield name


def _filled(given: LogColumns, of_format: LogColumns) -> LogColumns:
    """Return the given columns, and those of a format where none is given."""
    own = {field.name: getattr(given, field.name) for field in fields(given)}
    return replace(of_format, **{role: name for role, name in own.items() if name is not None})


def _convert_sessions(paths: Sequence[str], target: Path) -> None:
    """Write a row for each query of session logs.

    A line is ``SessionID TimePassed Q QueryID RegionID URL…`` or ``SessionID TimePassed C URL``, with tabs. A
    click belongs to the latest query of its session that showed the URL, and to the latest one if none did.
    """
    with requires("logs", "reading click logs"):
        import pyarrow as pa  # noqa: PLC0415 - heavy, and optional
        import pyarrow.parquet as pq  # noqa: PLC0415 - heavy, and optional
    text = pa.string()
    schema = pa.schema(
        [
            *((name, text) for name in ("visit", "session", "query", "region")),
            *((name, pa.list_(text)) for name in ("items", "clicked_items")),
        ]
    )
    with pq.ParquetWriter(target, schema) as writer:
        batch: list[dict[str, Any]] = []
        for path in paths:
            with open_text(path) as lines:
                for visit in _visits(lines, Path(path).name):
                    batch.append(visit)
                    if len(batch) == _ROWS_PER_BATCH:
                        writer.write_table(pa.Table.from_pylist(batch, schema))
                        batch = []
        writer.write_table(pa.Table.from_pylist(batch, schema))


def _visits(lines: io.TextIOWrapper, name: str) -> Iterator[dict[str, Any]]:
    session: str | None = None
    queries: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        words = line.rstrip("\r\n").split("\t")
        place = f"{name} line {number:,}"
        kind = words[2] if len(words) > 2 else ""
        if (kind == "Q" and len(words) < 6) or (kind == "C" and len(words) != 4) or kind not in ("Q", "C"):
            rule = "must be SessionID, TimePassed, and Q, QueryID, RegionID and URLs, or C and a URL"
            raise InvalidInputError(place, rule, line.strip())
        if words[0] != session:
            yield from queries
            session, queries = words[0], []
        if kind == "Q":
            visit = f"{session}-{len(queries) + 1}"
            items = [url for url in words[5:] if url]
            queries.append(
                {"visit": visit, "session": session, "query": words[3], "region": words[4], "items": items}
                | {"clicked_items": []}
            )
        elif not queries:
            raise InvalidInputError(place, f"must follow a query of session {session}", line.strip())
        else:
            url = words[3]
            shown = [query for query in queries if url in query["items"]] or queries
            if url not in shown[-1]["clicked_items"]:
                shown[-1]["clicked_items"].append(url)
    yield from queries
