"""DuckDB engine: one machine, files of any size, a memory limit."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from banditrank.errors import InvalidInputError
from banditrank.logs._count_queries import Dialect, QueryError
from banditrank.logs._duckdb_session import DuckDBSession, OnProgress, open_session
from banditrank.logs._log_columns import ColumnKind
from banditrank.logs._log_files import LogFiles
from banditrank.logs._text_files import compression_of

DUCKDB_DIALECT = Dialect(
    quote='"',
    shift_left="({} << {})",
    shift_right="({} >> {})",
    matches="regexp_full_match({}, '{}')",
    hexadecimal="CAST('0x' || {} AS BIGINT)",
    epoch="CAST(floor(epoch({})) AS BIGINT)",
    parse_time="try_cast({} AS TIMESTAMP)",
    element="{}[{} + 1]",
    size="len({})",
    n_distinct="len(list_distinct({}))",
    make_list="list_value({})",
    text_list="CAST({} AS VARCHAR[])",
    split="string_split_regex(nullif(trim(regexp_replace({}, '[\\[\\]\"'']', '', 'g')), ''), '[|;, ]+')",
    mixed_text="if(json_type({0}) IN ('OBJECT', 'ARRAY'), chr(1), '') || json_extract_string({0}, '$')",
    unnest="unnest(items) AS item, generate_subscripts(items, 1) - 1 AS position",
)
_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_NUMBERS = {"FLOAT", "DOUBLE", "HUGEINT", "UBIGINT", "UHUGEINT"}


class DuckDBEngine:
    """Counts in a session of DuckDB."""

    def __init__(self, session: DuckDBSession) -> None:
        self._session = session
        self._tables: set[str] = set()
        self.dialect = DUCKDB_DIALECT

    def load(self, source: LogFiles | Any, name: str = "source") -> dict[str, ColumnKind]:
        """Create a view; return its columns."""
        if isinstance(source, LogFiles):
            self._session.run(f"CREATE VIEW {name} AS FROM {self._reader(source)}")
        else:
            self._session.register(name, source)
        described = self._session.run(f"DESCRIBE SELECT * FROM {name}")  # noqa: S608 - a constant
        is_json = isinstance(source, LogFiles) and source.file_format == "jsonl" and not source.is_remote
        if is_json and [column for column, *_ in described] == ["json"]:  # lines that are no objects
            raise QueryError("reading the log failed: a line is not a JSON object")
        return {column: _kind(type_name) for column, type_name, *_ in described}

    def create_view(self, name: str, query: str) -> None:
        """Create a view."""
        self._session.run(f"CREATE OR REPLACE VIEW {name} AS {query}")

    def create_table(self, name: str, query: str, on_progress: OnProgress | None = None) -> None:
        """Create a temporary table, which spills to disk."""
        self._session.run(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}", None, on_progress)
        self._tables.add(name)

    def fetch(self, query: str, on_progress: OnProgress | None = None) -> Any:
        """Return the result of a query as a table of Arrow."""
        return self._session.fetch_arrow(query, on_progress)

    def release_memory(self) -> None:
        """Spill tables to disk, and return memory to the operating system."""
        self._session.release_memory()

    def drop_tables(self) -> None:
        """Drop all created tables, and return their memory."""
        for name in self._tables:
            self._session.run(f"DROP TABLE IF EXISTS {name}")
        self._tables.clear()
        self._session.release_memory()

    def _reader(self, files: LogFiles) -> str:
        paths = ", ".join(_literal(self._path(path)) for path in files.paths)
        match files.file_format:
            case "parquet":
                return f"read_parquet([{paths}], union_by_name = {len(files.paths) > 1})"
            case "jsonl":
                return (
                    f"read_json([{paths}], format = 'newline_delimited', "
                    f"union_by_name = {len(files.paths) > 1}, maximum_depth = 3"
                    f"{', sample_size = -1' if files.reads_all_types else ''})"
                )
            case _ if files.is_remote:
                return self._csv_reader(files, files.paths, files.header)
            case _:
                # Detection would skip first rows that have another number of values than later ones.
                by_header: dict[tuple[str, ...], list[str]] = {}
                for path, header in files.headers().items():
                    by_header.setdefault(header, []).append(path)
                readers = [self._csv_reader(files, group, header) for header, group in by_header.items()]
                return (
                    readers[0] if len(readers) == 1 else f"(FROM {' UNION ALL BY NAME FROM '.join(readers)})"
                )

    def _csv_reader(self, files: LogFiles, paths: Sequence[str], header: Sequence[str]) -> str:
        """Return a reader of files with the same columns, which are detected if there is no header."""
        listed = ", ".join(_literal(self._path(path)) for path in paths)
        options = [
            f"delim = {_literal(files.delimiter)}, quote = '\"', escape = '\"', header = {not files.header}"
        ]
        if header:
            columns = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in header)
            options.append(f"columns = {{{columns}}}, auto_detect = false")
        else:
            options.append(f"all_varchar = true, union_by_name = {len(paths) > 1}")
        return f"read_csv([{listed}], {', '.join(options)})"

    def _path(self, path: str) -> str:
        if compression_of(path) == "bz2":
            raise InvalidInputError("log", "must be plain, .gz or .zst for the engine duckdb", path)
        return path if "://" in path else self._session.path_for_reading(Path(path))


@contextmanager
def open_duckdb(
    *, memory_limit: str, temporary_directory: str | Path | None, threads: int | None
) -> Iterator[DuckDBEngine]:
    """Open a session of DuckDB with a memory limit; see `open_session`."""
    with open_session(
        memory_limit=memory_limit, temporary_directory=temporary_directory, threads=threads
    ) as session:
        yield DuckDBEngine(session)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _kind(type_name: str) -> ColumnKind:  # noqa: PLR0911 - a line a kind
    base = type_name.upper()
    if base.startswith(("STRUCT", "MAP")) or base.endswith("[][]"):
        return "nested"
    if base.endswith("[]"):
        return "list"
    if base == "JSON":
        return "mixed"
    if base in _INTEGERS:
        return "integer"
    if base in _NUMBERS or base.startswith("DECIMAL"):
        return "number"
    if base.startswith(("TIMESTAMP", "DATE")):
        return "time"
    if base == "BOOLEAN":
        return "boolean"
    return "text" if base == "VARCHAR" or base.startswith("ENUM") else "other"
