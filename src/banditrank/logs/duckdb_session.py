"""The door to DuckDB, which runs queries over files that are larger than memory.

DuckDB is imported when it is first asked for, so that nobody else needs it installed.
"""

import errno
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from banditrank.checks import check_workers
from banditrank.errors import BanditRankError, InvalidInputError

OnProgress: TypeAlias = Callable[[float], None]
"""Called with the share of the work that is done, from 0 to 1."""

_MEMORY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?B)\s*", re.IGNORECASE)
_UNITS = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
SMALLEST_MEMORY = 100 * 10**6  # DuckDB's buffers for reading a file alone take tens of megabytes
LARGEST_MEMORY = 1000 * 10**12  # far more than there is, and less than DuckDB can count
_SECONDS_BETWEEN_LOOKS = 0.1


class QueryError(BanditRankError):
    """DuckDB could not run a query; not for want of memory or disk."""


class Session:
    """A database in memory with a limit, that uses a directory for what does not fit."""

    def __init__(self, connection: Any, duckdb: Any, memory_limit: str, directory: Path) -> None:
        self._connection = connection
        self._duckdb = duckdb
        self._memory_limit = memory_limit
        self._directory = directory

    def path_for_reading(self, path: Path) -> str:
        """Return a path that DuckDB takes for that one file, whatever its name is."""
        path = path.absolute()
        if not set("*?[") & set(str(path)):
            return str(path)
        link = self._directory / f"link-{len(list(self._directory.iterdir()))}"
        link.symlink_to(path)  # a pattern that would match other files, or none
        return str(link)

    def run(
        self,
        query: str,
        parameters: Mapping[str, object] | None = None,
        on_progress: OnProgress | None = None,
    ) -> list[tuple[Any, ...]]:
        """Run a query and return its rows.

        The query runs in a thread of its own, so that progress can be told and Ctrl-C stops it at once.
        """
        with ThreadPoolExecutor(max_workers=1) as threads:
            try:
                future = threads.submit(self._rows, query, parameters or {})
            except RuntimeError:
                raise BanditRankError("reading the log failed: the system starts no more threads") from None
            try:
                self._wait(future, on_progress)
            except BaseException:
                self._connection.interrupt()
                raise
            return future.result()

    def _rows(self, query: str, parameters: Mapping[str, object]) -> list[tuple[Any, ...]]:
        try:
            rows: list[tuple[Any, ...]] = self._connection.execute(query, dict(parameters)).fetchall()
        except self._duckdb.OutOfMemoryException:
            rule = "must be larger for this log, or the temporary directory must have more room"
            raise InvalidInputError("memory_limit", rule, self._memory_limit) from None
        except self._duckdb.IOException as error:
            if os.strerror(errno.ENOSPC) in str(error):
                rule = "must have room for what does not fit into memory"
                place = str(self._directory.parent)
                raise InvalidInputError("temporary_directory", rule, place) from None
            raise BanditRankError(f"reading the log failed: {_first_line(error)}") from None
        except self._duckdb.Error as error:
            raise QueryError(f"reading the log failed: {_first_line(error)}") from None
        return rows

    def _wait(self, future: "Future[list[tuple[Any, ...]]]", on_progress: OnProgress | None) -> None:
        """Wait for the query to end, well or badly, and tell how far it is."""
        # Known since DuckDB 1.3, and even then −1 at first.
        look: Callable[[], float] = getattr(self._connection, "query_progress", lambda: -1.0)
        while True:
            try:
                future.exception(_SECONDS_BETWEEN_LOOKS)
            except NotYet:
                if on_progress is not None:
                    on_progress(max(0.0, look()) / 100)
            else:
                return


@contextmanager
def open_session(
    *,
    memory_limit: str = "2GB",
    temporary_directory: str | Path | None = None,
    threads: int | None = None,
) -> Iterator[Session]:
    """Open a database and remove whatever it put on disk.

    Parameters
    ----------
    memory_limit
        What DuckDB may use, such as ``2GB``; what does not fit goes to the disk. The process itself, its
        libraries and the pages of files that the system caches come on top.
    temporary_directory
        Where there is room for what does not fit; the system's when left out.
    threads
        Up to 1,024; one a processor when left out. Each has buffers of its own.
    """
    check_memory_limit(memory_limit)
    threads = check_workers("threads", threads)
    duckdb = import_duckdb()
    try:
        place = tempfile.TemporaryDirectory(prefix="banditrank-", dir=temporary_directory)
    except OSError as error:
        directory = str(temporary_directory or tempfile.gettempdir())
        raise InvalidInputError.from_os("temporary_directory", "must be writable", directory, error) from None
    with place as directory, duckdb.connect() as connection:
        settings: dict[str, object] = {
            "memory_limit": memory_limit,
            "temp_directory": directory,
            "preserve_insertion_order": False,  # rows need not wait for those before them
            "enable_progress_bar": True,  # counted, and shown by nobody but the caller
            "enable_progress_bar_print": False,
        }
        if threads is not None:
            settings["threads"] = threads
        for name, value in settings.items():
            connection.execute(f"SET {name} = $value", {"value": value})
        yield Session(connection, duckdb, memory_limit, Path(directory))


def import_duckdb() -> Any:
    """Return the ``duckdb`` module, or say in one line how to install it."""
    try:
        return import_module("duckdb")  # an optional dependency
    except ImportError:
        raise BanditRankError("reading click logs needs duckdb: pip install banditrank[logs]") from None


def check_memory_limit(text: str) -> None:
    """Raise an error unless the text is an amount of memory that DuckDB can work with.

    Examples
    --------
    >>> check_memory_limit("2GB")
    >>> check_memory_limit("2")
    Traceback (most recent call last):
        ...
    banditrank.errors.InvalidInputError: memory_limit must be from 100MB to 1000TB, written like 2GB, got '2'
    """
    found = _MEMORY.fullmatch(text) if isinstance(text, str) else None
    amount = 0.0 if found is None else float(found[1]) * _UNITS[found[2][0].upper()]
    if not SMALLEST_MEMORY <= amount <= LARGEST_MEMORY:
        raise InvalidInputError("memory_limit", "must be from 100MB to 1000TB, written like 2GB", text)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0]
