"""Temporary directories of click logs: data that exceeds memory, and copies of logs."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from banditrank.errors import InvalidInputError


@contextmanager
def spill_directory(parent: str | Path | None) -> Iterator[Path]:
    """Yield a directory for temporary files, which is removed at the end.

    Parameters
    ----------
    parent
        Where it is created; by default the system's temporary directory.

    Raises
    ------
    InvalidInputError
        If it cannot be created.
    """
    try:
        directory = tempfile.TemporaryDirectory(prefix="banditrank-", dir=parent)
    except OSError as error:
        name = str(parent or tempfile.gettempdir())
        raise InvalidInputError.from_os("temporary_directory", "must be writable", name, error) from None
    with directory as name:
        yield Path(name)


@contextmanager
def write_copy(path: Path) -> Iterator[Path]:
    """Yield the path of a copy of a log in a directory of `spill_directory`, to be written.

    Raises
    ------
    InvalidInputError
        If it cannot be written.
    """
    try:
        yield path
    except OSError as error:
        rule = "must have free space for a copy of the log"
        raise InvalidInputError.from_os("temporary_directory", rule, path.parent.parent, error) from None
