"""Logs that an engine can read: as they are, or copied without malformed rows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from banditrank.logs._count_queries import QueryError
from banditrank.logs._log_files import LogFiles, RepairedFiles, repair_files
from banditrank.logs._row_groups import nothing_counted
from banditrank.logs._spill_directory import spill_directory
from banditrank.logs._text_files import MalformedRows

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ReadableLog:
    """A log and its user table.

    Attributes
    ----------
    log, users
        Files or tables of Arrow, which the engine reads; None without a user table.
    original
        The log as it was given, whose lines have the numbers that the user knows.
    malformed
        Rows that the files lack.
    """

    log: Any
    users: Any
    original: Any
    malformed: MalformedRows = field(default_factory=MalformedRows)


def read_log(
    work: Callable[[ReadableLog], _Result],
    log: Any,
    users: Any,
    *,
    is_dropping: bool,
    temporary_directory: str | Path | None,
) -> _Result:
    """Return the result of work on a log, or on a repaired copy if the engine cannot read the log itself.

    Parameters
    ----------
    work
        Work with an engine.
    log, users
        Files or tables of Arrow; None without a user table.
    is_dropping
        Whether malformed rows of the log are left out; else the first one is an error. Those of the user
        table always are.
    temporary_directory
        Where copies are written, which are removed at the end.

    Raises
    ------
    InvalidInputError
        If a compressed file is damaged, or a row is malformed.
    QueryError
        If the engine cannot read the log for another reason.
    """
    for source in (log, users):
        if isinstance(source, LogFiles):
            source.check_compressed()
    try:
        return work(ReadableLog(log, users, log))
    except QueryError:
        with spill_directory(temporary_directory) as of_log, spill_directory(temporary_directory) as of_users:
            repaired = _repair(log, of_log, is_dropping=is_dropping)
            repaired_users = _repair(users, of_users, is_dropping=False)
            if repaired is None and repaired_users is None:
                raise
            return work(
                ReadableLog(
                    repaired.files if repaired else log,
                    repaired_users.files if repaired_users else users,
                    log,
                    repaired.malformed if repaired else MalformedRows(),
                )
            )


def _repair(source: Any, directory: Path, *, is_dropping: bool) -> RepairedFiles | None:
    if not isinstance(source, LogFiles):
        return None
    repaired = repair_files(source, directory, is_dropping=is_dropping)
    if repaired is not None and not any(Path(path).stat().st_size for path in repaired.files.paths):
        raise nothing_counted(repaired.malformed.counts, repaired.malformed.first_rows)
    return repaired
