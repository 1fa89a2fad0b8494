"""Spark engine: the queries run in a Spark session, and only the cube is collected.

PySpark is an optional dependency and is imported on first use.
"""

import contextlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from banditrank._extras import requires
from banditrank.errors import BanditRankError, InvalidInputError, one_line
from banditrank.logs._count_queries import Dialect, QueryError
from banditrank.logs._engines.base import OnProgress
from banditrank.logs._log_columns import ColumnKind
from banditrank.logs._log_files import LogFiles

SPARK_DIALECT = Dialect(
    quote="`",
    shift_left="shiftleft({}, {})",
    shift_right="shiftright({}, {})",
    matches="({} RLIKE '^(?:{})$')",
    hexadecimal="CAST(conv({}, 16, 10) AS BIGINT)",
    epoch="unix_seconds(CAST({} AS TIMESTAMP))",
    parse_time="try_cast({} AS TIMESTAMP)",
    element="get({}, {})",
    size="array_size({})",
    n_distinct="array_size(array_distinct(array_compact({})))",
    make_list="array({})",
    text_list="CAST({} AS ARRAY<STRING>)",
    split="split(nullif(trim(regexp_replace({}, '[\\\\[\\\\]\"\\']', '')), ''), '[|;, ]+')",
    mixed_text="CAST({} AS STRING)",  # Spark reads such columns as text
    unnest="posexplode(items) AS (position, item)",
)
_KINDS: dict[str, ColumnKind] = {
    "tinyint": "integer",
    "smallint": "integer",
    "int": "integer",
    "bigint": "integer",
    "float": "number",
    "double": "number",
    "boolean": "boolean",
    "string": "text",
    "timestamp": "time",
    "timestamp_ntz": "time",
    "date": "time",
}
_VIEWS = (
    *("source", "log_rows", "user_rows", "user_attributes"),
    *("all_rows", "log", "visits", "joined", "duplicates", "flagged"),
)
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
}


class SparkEngine:
    """Counts in a Spark session.

    Parameters
    ----------
    session
        The session.
    errors
        Class of the errors of Spark.
    """

    def __init__(self, session: Any, errors: type[Exception]) -> None:
        self._session = session
        self._errors = errors
        self._cached: list[Any] = []
        self.dialect = SPARK_DIALECT

    def load(self, source: LogFiles | Any, name: str = "source") -> dict[str, ColumnKind]:
        """Create a view; return its columns."""
        if not isinstance(source, LogFiles):
            raise InvalidInputError("log", "must be files for the engine spark", type(source).__name__)
        with self._one_line_errors():
            frame = self._read(source)
            frame.createOrReplaceTempView(name)
            return {column: _kind(type_name) for column, type_name in frame.dtypes}

    def _read(self, files: LogFiles) -> Any:
        paths = [path if "://" in path else Path(path).absolute().as_uri() for path in files.paths]
        reader = self._session.read
        match files.file_format:
            case "parquet":
                return reader.parquet(*paths)
            case "jsonl":
                return reader.option("mode", "FAILFAST").json(paths)
            case _:
                reader = (
                    reader.option("sep", files.delimiter).option("escape", '"').option("mode", "FAILFAST")
                )
                if files.header:
                    names = ", ".join(f"`{name}` STRING" for name in files.header)
                    return reader.schema(names).csv(paths)
                return reader.option("header", True).csv(paths)

    def create_view(self, name: str, query: str) -> None:
        """Create a view."""
        with self._one_line_errors():
            self._session.sql(query).createOrReplaceTempView(name)

    def create_table(self, name: str, query: str, on_progress: OnProgress | None = None) -> None:  # noqa: ARG002 - Spark reports none
        """Create a view whose rows the cluster caches, and recomputes if a worker is lost."""
        with self._one_line_errors():
            frame = self._session.sql(query).persist()
            self._cached.append(frame)
            frame.createOrReplaceTempView(name)

    def fetch(self, query: str, on_progress: OnProgress | None = None) -> Any:
        """Return the result of a query as a table of Arrow."""
        with self._one_line_errors():
            result = self._session.sql(query).toArrow()
        if on_progress is not None:
            on_progress(1.0)
        return result

    def release_memory(self) -> None:
        """Do nothing: the memory is that of the cluster."""

    def drop_tables(self) -> None:
        """Release cached tables."""
        with contextlib.suppress(Exception):
            while self._cached:
                self._cached.pop().unpersist()

    def close(self) -> None:
        """Release cached tables and views."""
        self.drop_tables()
        with contextlib.suppress(Exception):
            for name in _VIEWS:
                self._session.catalog.dropTempView(name)

    @contextlib.contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            text = one_line(error)
            is_malformed = "malformed" in text.lower() or "COLUMN_ALREADY_EXISTS" in text  # a key twice
            kind = QueryError if is_malformed else BanditRankError
            raise kind(f"reading the log with Spark failed: {text[:300]}") from None


@contextlib.contextmanager
def open_spark(master: str | None) -> Iterator[SparkEngine]:
    """Open a Spark session, or use the active one; a session that is opened here is stopped at the end.

    Parameters
    ----------
    master
        Address of the master; by default that of the active session or of the configuration.

    Yields
    ------
    SparkEngine
        The engine.

    Raises
    ------
    BanditRankError
        If the session cannot be started.
    MissingDependencyError
        If PySpark is not installed.
    """
    with requires("spark", "the engine spark"):
        sql = import_module("pyspark.sql")
        errors: type[Exception] = import_module("pyspark.errors").PySparkException
        java_errors: type[Exception] = import_module("py4j.protocol").Py4JError
    active = sql.SparkSession.getActiveSession()
    session = active
    if active is None:
        builder = sql.SparkSession.builder.appName("banditrank")
        if master is not None:
            builder = builder.master(master)
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        try:
            session = builder.getOrCreate()
        except (errors, java_errors, OSError) as error:
            raise BanditRankError(f"starting Spark failed: {one_line(error)[:300]}") from None
    elif master is not None and active.sparkContext.master != master:
        rule = f"must be that of the active session, {active.sparkContext.master}"
        raise InvalidInputError("master", rule, master)
    before = {name: session.conf.get(name, None) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    engine = SparkEngine(session, (errors, java_errors))  # type: ignore[arg-type] # both are caught
    try:
        yield engine
    finally:
        engine.close()
        if active is None:
            session.stop()
        else:
            for name, old in before.items():
                if old is None:
                    session.conf.unset(name)
                else:
                    session.conf.set(name, old)


def _kind(type_name: str) -> ColumnKind:
    if type_name.startswith(("struct<", "map<", "array<struct<", "array<map<", "array<array<")):
        return "nested"
    if type_name.startswith("array<"):
        return "list"
    if type_name.startswith("decimal"):
        return "number"
    return _KINDS.get(type_name, "other")
