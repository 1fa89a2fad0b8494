"""How files are written: whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a file to write to that takes the place of another once it is written.

    An interruption leaves the old file or the new one, never half of one.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     with replacing(Path(directory) / "a.txt") as path:
    ...         _ = path.write_text("new")
    ...     (Path(directory) / "a.txt").read_text()
    'new'
    """
    new = path.with_name(f"{path.name}.new")
    try:
        yield new
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)  # what was half written
