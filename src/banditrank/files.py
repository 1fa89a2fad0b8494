"""Files: written whole or not at all, looked for by any name, and kept from other users."""

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PRIVATE = 0o600
_OTHERS = 0o077  # permissions of the group and of all other users


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Give a file to write to that takes the place of another once it is written.

    An interruption or a full disk leaves the old file or the new one, never half of one. What a link points
    to is replaced, and not the link. A pipe or a device cannot be replaced: it is written to as it is.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     with atomic_write(Path(directory) / "a.txt") as path:
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


def create_private(path: Path) -> None:
    """Create an empty file that only its owner may access, whatever the umask.

    Does nothing if the file exists. A link is followed.

    Raises
    ------
    OSError
        If the file cannot be created.
    """
    try:
        descriptor = os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE)
    except FileExistsError:
        return
    try:
        os.fchmod(descriptor, _PRIVATE)  # a umask may have taken permissions of the owner
    finally:
        os.close(descriptor)


def make_private(path: Path) -> bool:
    """Take all permissions of other users from a file; return whether they have none now."""
    if is_private(path):
        return True
    with contextlib.suppress(OSError):  # another user's file, or a read-only file system
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~_OTHERS)
    return is_private(path)


def is_private(path: Path) -> bool:
    """Return whether other users have no permission on a file, or there is no file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory) / "secret"
    ...     create_private(path)
    ...     is_private(path), path.chmod(0o644), is_private(path)
    (True, None, False)
    """
    try:
        return not path.stat().st_mode & _OTHERS
    except OSError:
        return True
