"""Atomic writes and private files."""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_PRIVATE = 0o600
_OTHERS = 0o077  # permissions of the group and of all other users


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary file that replaces the target when the block ends without an error.

    An interruption or a full disk leaves the old file intact. A symbolic link stays: its target is replaced.
    A pipe or a device is written to directly.

    Parameters
    ----------
    path
        The file to replace; it may not exist yet.

    Raises
    ------
    OSError
        If the file cannot be replaced.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     with atomic_write(Path(directory) / "a.txt") as path:
    ...         _ = path.write_text("new")
    ...     (Path(directory) / "a.txt").read_text()
    'new'
    """
    with atomic_writes() as stage:
        yield stage(path)


@contextmanager
def atomic_writes() -> Iterator[Callable[[Path], Path]]:
    """Yield a function that returns a temporary file for a target; all replace their targets at the end.

    If the block ends with an error, as with a full disk, all targets stay as they are. Links, pipes and
    devices are those of `atomic_write`.

    Raises
    ------
    OSError
        If a file cannot be replaced.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     with atomic_writes() as stage:
    ...         for name in ("a.txt", "b.txt"):
    ...             _ = stage(Path(directory, name)).write_text("new")
    ...     sorted(path.name for path in Path(directory).iterdir())
    ['a.txt', 'b.txt']
    """
    staged: dict[Path, Path] = {}

    def stage(path: Path) -> Path:
        if path.exists() and not path.is_file():
            return path
        path = path.resolve()
        name = f".{path.name[:50]}.{os.getpid()}.{len(staged)}.new"  # unique to this process and target
        return staged.setdefault(path, path.with_name(name))

    try:
        yield stage
        for path, new in staged.items():
            if path.exists():
                new.chmod(path.stat().st_mode)
        for path, new in staged.items():
            new.replace(path)
    finally:
        for new in staged.values():
            new.unlink(missing_ok=True)  # left behind by an error


def is_file(path: Path) -> bool:
    """Return whether a file exists; False for a name that the system rejects."""
    try:
        return path.is_file()
    except OSError:  # the name is too long, or a directory is not readable
        return False


def create_private(path: Path) -> None:
    """Create an empty file that only its owner can read and write, whatever the umask.

    Does nothing if the file exists. Symbolic links are followed.

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
        os.fchmod(descriptor, _PRIVATE)  # the umask may have removed permissions of the owner
    finally:
        os.close(descriptor)


def make_private(path: Path) -> bool:
    """Remove the permissions of group and others; return whether the file is private now."""
    if is_private(path):
        return True
    with contextlib.suppress(OSError):  # another user's file, or a read-only file system
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~_OTHERS)
    return is_private(path)


def is_private(path: Path) -> bool:
    """Return whether group and others have no permission on a file; True if it does not exist.

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
