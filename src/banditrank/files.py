"""Files: written whole or not at all, and looked for by any name."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a file to write to that takes the place of another once it is written.

    An interruption or a full disk leaves the old file or the new one, never half of one. What a link points
    to is replaced, and not the link. A pipe or a device cannot be replaced: it is written to as it is.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     with replacing(Path(directory) / "a.txt") as path:
    ...         _ = path.write_text("new")
    ...     (Path(directory) / "a.txt").read_text()
    'new'
    """
    if path.exists() and not path.is_file():
        yield path
        return
    path = path.resolve()
    new = path.with_name(f".{path.name[:50]}.{os.getpid()}.new")  # a name that nobody else has
    try:
        yield new
        if path.exists():
            new.chmod(path.stat().st_mode)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)  # what was half written


def is_file(path: Path) -> bool:
    """Return whether there is a file, also for a name that the system refuses."""
    try:
        return path.is_file()
    except OSError:  # the name is too long, or not for us to know
        return False
