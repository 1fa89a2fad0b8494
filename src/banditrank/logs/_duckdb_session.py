"""DuckDB sessions with a memory limit: queries over files that are larger than memory.

DuckDB is an optional dependency and is imported on first use.
"""

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from banditrank._checks import check_workers
from banditrank._extras import requires
from banditrank.errors import BanditRankError, InvalidInputError
from banditrank.logs._count_queries import QueryError
from banditrank.logs._spill_directory import spill_directory

OnProgress: TypeAlias = Callable[[float], None]
"""Progress callback; takes the share of the work that is done, from 0 to 1."""

_MEMORY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?B)\s*", re.IGNORECASE)
MIN_MEMORY_BYTES = 100 * 10**6  # DuckDB's buffers for reading a file alone take tens of megabytes
MAX_MEMORY_BYTES = 1000 * 10**12  # DuckDB's own counter overflows above
_ACCOUNTED_SHARE = 0.9  # of the limit: DuckDB does not account for all memory that it allocates
_RELEASE_LIMIT_BYTES = 50 * 10**6  # a limit this low for a moment makes DuckDB spill and free its buffers
_POLL_SECONDS = 0.1
_Result = TypeVar("_Result")


class DuckDBSession:
    """An in-memory database with a memory limit that spills to a temporary directory.

    Not thread-safe. `open_session` creates it.
    """

    def __init__(
        self, connection: Any, duckdb: Any, memory_limit: str, accounted_limit: str, directory: Path
    ) -> None:
        self._connection = connection
        self._duckdb = duckdb
        self._memory_limit = memory_limit
        self._accounted_limit = accounted_limit
        self._directory = directory

    def path_for_reading(self, path: Path) -> str:
        """Return a path that DuckDB does not expand as a glob: a symbolic link if it has wildcards."""
        path = path.absolute()
        if not set("*?[") & set(str(path)):
            return str(path)
        link = self._directory / f"link-{len(list(self._directory.iterdir()))}"
        link.symlink_to(path)
        return str(link)

    def run(
        self,
        query: str,
        parameters: Mapping[str, object] | None = None,
        on_progress: OnProgress | None = None,
    ) -> list[tuple[Any, ...]]:
        """Run a query and return its rows.

        The query runs in a thread of its own, so that progress is reported and Ctrl-C stops it at once.

        Parameters
        ----------
        query
            SQL, with named parameters such as ``$path``.
        parameters
            Values of the named parameters.
        on_progress
            Called several times a second with the share of the query that is done.

        Raises
        ------
        InvalidInputError
            If the memory limit or the temporary directory is too small.
        QueryError
            If DuckDB rejects the query, or a line makes it fail.
        BanditRankError
            If a file cannot be read, or no thread can be started.
        """

        def fetch() -> list[tuple[Any, ...]]:
            rows: list[tuple[Any, ...]] = self._connection.execute(query, dict(parameters or {})).fetchall()
            return rows

        return self._run_in_thread(fetch, on_progress)

    def fetch_arrow(self, query: str, on_progress: OnProgress | None = None) -> Any:
        """Run a query and return its result as a table of Arrow; see `run`."""

        def fetch() -> Any:
            return self._connection.sql(query).to_arrow_table()

        return self._run_in_thread(fetch, on_progress)

    def release_memory(self) -> None:
        """Return memory that no query uses to the operating system; tables are spilled to disk."""
        with suppress(self._duckdb.Error):  # less cannot be released
            self._connection.execute(f"SET memory_limit = '{_RELEASE_LIMIT_BYTES // 10**6}MB'")
        self._connection.execute("SET memory_limit = $value", {"value": self._accounted_limit})

    def register(self, name: str, table: Any) -> None:
        """Make a table of Arrow readable in queries under a name."""
        self._connection.register(name, table)

    def _run_in_thread(self, work: Callable[[], _Result], on_progress: OnProgress | None) -> _Result:
        with ThreadPoolExecutor(max_workers=1) as threads:
            try:
                future = threads.submit(self._translate_errors, work)
            except RuntimeError:
                raise BanditRankError("reading the log failed: no thread could be started") from None
            try:
                self._wait(future, on_progress)
            except BaseException:
                self._connection.interrupt()
                raise
            return future.result()

    def _translate_errors(self, work: Callable[[], _Result]) -> _Result:
        try:
            return work()
        except self._duckdb.OutOfMemoryException:
            rule = "must be larger for this log, or the temporary directory must have more free space"
            raise InvalidInputError("memory_limit", rule, self._memory_limit) from None
        except self._duckdb.IOException as error:
            if os.strerror(errno.ENOSPC) in str(error):
                rule = "must have free space for data that exceeds memory_limit"
                directory = str(self._directory.parent)
                raise InvalidInputError("temporary_directory", rule, directory) from None
            raise BanditRankError(f"reading the log failed: {_first_line(error)}") from None
        except self._duckdb.Error as error:
            raise QueryError(f"reading the log failed: {_first_line(error)}") from None

    def _wait(self, future: "Future[_Result]", on_progress: OnProgress | None) -> None:
        """Wait until the query ends or fails, and report progress."""
        # Available since DuckDB 1.3, and −1 until the query has started.
        poll: Callable[[], float] = getattr(self._connection, "query_progress", lambda: -1.0)
        while True:
            try:
                future.exception(_POLL_SECONDS)
            except NotYet:
                if on_progress is not None:
                    on_progress(max(0.0, poll()) / 100)
            else:
                return


@contextmanager
def open_session(
    *,
    memory_limit: str = "2GB",
    temporary_directory: str | Path | None = None,
    threads: int | None = None,
) -> Iterator[DuckDBSession]:
    """Open an in-memory database; at the end, close it and remove its temporary files.

    Parameters
    ----------
    memory_limit
        Memory of DuckDB, such as ``2GB``; data that exceeds nine tenths of it is spilled to disk. The process
        itself, its libraries and the page cache come on top.
    temporary_directory
        Directory to spill to; the system's temporary directory by default.
    threads
        Number of threads, up to 1,024; one per processor by default. Each has buffers of its own.

    Yields
    ------
    DuckDBSession
        The open session.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range, or the temporary directory is not writable.
    MissingDependencyError
        If DuckDB is not installed.
    """
    limit = f"{parse_memory_limit(memory_limit) * _ACCOUNTED_SHARE / 1e6:.0f}MB"
    threads = check_workers("threads", threads)
    duckdb = import_duckdb()
    with spill_directory(temporary_directory) as directory, duckdb.connect() as connection:
        settings: dict[str, object] = {
            "memory_limit": limit,
            "temp_directory": str(directory),
            "preserve_insertion_order": False,  # rows are written as they come
        }
        if threads is not None:
            settings["threads"] = threads
        for name, value in settings.items():
            connection.execute(f"SET {name} = $value", {"value": value})
        with suppress(duckdb.InvalidInputException):  # in a notebook without ipywidgets there is no progress
            connection.execute("SET enable_progress_bar = true")  # required by query_progress
            connection.execute("SET enable_progress_bar_print = false")
        yield DuckDBSession(connection, duckdb, memory_limit, limit, directory)


def import_duckdb() -> Any:
    """Return the ``duckdb`` module.

    Raises
    ------
    MissingDependencyError
        If DuckDB is not installed.
    """
    with requires("logs", "reading click logs"):
        return import_module("duckdb")


def parse_memory_limit(text: str) -> float:
    """Return a memory limit in bytes.

    Raises
    ------
    InvalidInputError
        If it has no unit, or is not from 100MB to 1000TB.

    Examples
    --------
    >>> parse_memory_limit("2GB"), parse_memory_limit("2GiB")
    (2000000000.0, 2147483648.0)
    >>> parse_memory_limit("2")
    Traceback (most recent call last):
        ...
    banditrank.errors.InvalidInputError: memory_limit must be from 100MB to 1000TB, written like 2GB, got '2'
    """
    found = _MEMORY.fullmatch(text) if isinstance(text, str) else None
    amount = 0.0
    if found is not None:
        unit = found[2].upper()
        amount = float(found[1]) * (1024 if "I" in unit else 1000) ** ("KMGT".index(unit[0]) + 1)
    if not MIN_MEMORY_BYTES <= amount <= MAX_MEMORY_BYTES:
        raise InvalidInputError("memory_limit", "must be from 100MB to 1000TB, written like 2GB", text)
    return amount


def _first_line(error: Exception) -> str:
    missing = re.search(r"install the required extension '(\w+)", str(error))
    if missing is not None:  # the first line ends in the middle of a sentence
        return f"DuckDB could not install its extension {missing[1]}, which this address needs"
    return str(error).strip().split("\n", maxsplit=1)[0]
