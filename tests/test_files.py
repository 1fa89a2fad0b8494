"""Atomic writes."""

import errno
import os
from pathlib import Path

import pytest

from banditrank import InvalidInputError
from banditrank._files import atomic_write, atomic_writes


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write() -> None:
        with atomic_write(path) as new:
            new.write_text("half")
            raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="full"):
        write()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_files_of_other_names_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "a.txt.new").write_text("mine")
    with atomic_write(tmp_path / "a.txt") as new:
        new.write_text("text")
    assert (tmp_path / "a.txt.new").read_text() == "mine"


def test_links_and_modes_are_preserved(tmp_path: Path) -> None:
    path, link = tmp_path / "a.txt", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    with atomic_write(link) as new:
        new.write_text("new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_to_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with atomic_write(pipe) as path:
        assert path == pipe
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["a" * 255, "é" * 127])
def test_names_of_the_maximum_length(tmp_path: Path, name: str) -> None:
    with atomic_write(tmp_path / name) as path:
        path.write_text("new")
    assert (tmp_path / name).read_text() == "new"


def test_files_whose_long_names_begin_alike_are_written_together(tmp_path: Path) -> None:
    contents = {tmp_path / f"{'a' * 60}.{suffix}": suffix for suffix in ("html", "json")}
    with atomic_writes() as stage:
        for path, content in contents.items():
            stage(path).write_text(content)
        assert stage(path) == stage(path)
    assert {path: path.read_text() for path in tmp_path.iterdir()} == contents


def test_the_reason_is_the_message_of_the_operating_system() -> None:
    wordy = OSError(errno.ENOSPC, "Error writing bytes. Detail: [errno 28] No space left on device")
    error = InvalidInputError.from_os("output", "must be writable", "a", wordy)
    assert str(error) == "output must be writable (no space left on device), got 'a'"
    assert "(odd)" in str(InvalidInputError.from_os("output", "must be writable", "a", OSError("odd")))
