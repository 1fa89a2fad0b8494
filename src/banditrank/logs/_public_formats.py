"""Public formats of click logs: Open Bandit Dataset, Yandex-style session logs, and KDD Cup 2012.

A format is a choice of columns. Session logs, whose lines are queries and clicks, are first converted to a
Parquet file with a row for each query.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from banditrank._extras import requires
from banditrank.logs._log_columns import LogColumns
from banditrank.logs._log_files import find_files
from banditrank.logs._spill_directory import spill_directory, write_copy
from banditrank.logs._text_files import MalformedRows, TextRow, read_lines
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
_NEITHER = "line is neither a query nor a click"
_NO_QUERY = "click before the first query of its session"
_LINE_RULE = "must be SessionID, TimePassed, and Q, QueryID, RegionID and URLs, or C and a URL"


@dataclass(frozen=True, slots=True)
class SessionLog:
    """Session logs, whose lines are queries and clicks.

    Attributes
    ----------
    paths
        The files.
    """

    paths: Sequence[str]

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the place of each query (``sessions.tsv line 7``) and its row, without malformed lines."""
        for path in self.paths:
            for visit in _visits(path):
                if not isinstance(visit, TextRow):
                    yield TextRow(visit["line"]).place(path), visit


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """A log as files of an ordinary format, with its columns; or a data frame.

    Attributes
    ----------
    source, file_format, columns, header
        As for `count_log` and `find_files`.
    user_header
        Names of the columns of the user table, if it has no header; its format is that of the log then.
    malformed
        Lines that a converted log lacks.
    original
        The log that was converted; None if the log is as it was given.
    """

    source: Any
    file_format: str | None
    columns: LogColumns
    header: Sequence[str] = ()
    user_header: Sequence[str] = ()
    malformed: MalformedRows = field(default_factory=MalformedRows)
    original: SessionLog | None = None


@contextmanager
def open_public_format(
    source: Any,
    file_format: str | None,
    columns: LogColumns,
    temporary_directory: str | Path | None,
    *,
    is_dropping: bool = False,
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
    is_dropping
        Whether malformed lines of a session log are left out; else the first one is an error.

    Raises
    ------
    InvalidInputError
        If a line of a session log is malformed, unless they are left out.
    """
    match file_format:
        case "open-bandit":
            yield OpenedLog(source, "csv", _filled(columns, OPEN_BANDIT_COLUMNS))
        case "kdd2012":
            yield OpenedLog(
                source, "tsv", _filled(columns, KDD2012_COLUMNS), TRAINING_COLUMNS, PROFILE_COLUMNS
            )
        case "yandex":
            with spill_directory(temporary_directory) as directory:
                converted = directory / "visits.parquet"
                log = SessionLog(find_files(source, file_format="tsv").paths)
                malformed = _convert_sessions(log.paths, converted, is_dropping=is_dropping)
                filled = _filled(columns, YANDEX_COLUMNS)
                yield OpenedLog(converted, "parquet", filled, malformed=malformed, original=log)
        case _:
            yield OpenedLog(source, file_format, columns)


def _filled(given: LogColumns, of_format: LogColumns) -> LogColumns:
    """Return the given columns, and those of a format where none is given."""
    own = {field.name: getattr(given, field.name) for field in fields(given)}
    return replace(of_format, **{role: name for role, name in own.items() if name is not None})


def _convert_sessions(paths: Sequence[str], target: Path, *, is_dropping: bool) -> MalformedRows:
    """Write a row for each query of session logs; return the malformed lines.

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
    malformed = MalformedRows()
    with write_copy(target), pq.ParquetWriter(target, schema) as writer:
        batch: list[dict[str, Any]] = []
        for path in paths:
            for visit in _visits(path):
                if isinstance(visit, TextRow):
                    if not is_dropping:
                        raise visit.error(path)
                    malformed.add(visit, path)
                    continue
                batch.append(visit)
                if len(batch) == _ROWS_PER_BATCH:
                    writer.write_table(pa.Table.from_pylist(batch, schema))
                    batch = []
        writer.write_table(pa.Table.from_pylist(batch, schema))
    return malformed


def _visits(path: str) -> Iterator[dict[str, Any] | TextRow]:
    """Yield the visits of a session log with the lines of their queries, and its malformed lines."""
    session: str | None = None
    queries: list[dict[str, Any]] = []
    for line in read_lines(path):
        if line.reason:
            yield line
            continue
        words = line.text.split("\t")
        kind = words[2] if len(words) > 2 else ""
        if (kind == "Q" and len(words) < 6) or (kind == "C" and len(words) != 4) or kind not in ("Q", "C"):
            yield line._replace(reason=_NEITHER, rule=_LINE_RULE, value=line.text.strip())
            continue
        if words[0] != session:
            yield from queries
            session, queries = words[0], []
        if kind == "Q":
            visit = f"{session}-{len(queries) + 1}"
            items = [url for url in words[5:] if url]
            queries.append(
                {"visit": visit, "session": session, "query": words[3], "region": words[4], "items": items}
                | {"clicked_items": [], "line": line.line}
            )
        elif not queries:
            rule = f"must follow a query of session {session}"
            yield line._replace(reason=_NO_QUERY, rule=rule, value=line.text.strip())
        else:
            url = words[3]
            shown = [query for query in queries if url in query["items"]] or queries
            if url not in shown[-1]["clicked_items"]:
                shown[-1]["clicked_items"].append(url)
    yield from queries
