"""Temporary directories of click logs."""

import errno
from pathlib import Path

import pytest

from banditrank import InvalidInputError
from banditrank.logs._spill_directory import spill_directory, write_copy


def test_a_directory_is_removed_at_the_end(tmp_path: Path) -> None:
    with spill_directory(tmp_path) as directory:
        (directory / "copy.csv").write_text("item")
        assert directory.parent == tmp_path
    assert not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_created_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # long paths are shortened in messages
    message = r"^temporary_directory must be writable \(no such file or directory\), got 'absent'$"
    with pytest.raises(InvalidInputError, match=message), spill_directory("absent"):
        pass


def test_a_copy_that_does_not_fit_names_the_given_directory(tmp_path: Path) -> None:
    message = "temporary_directory must have free space for a copy of the log (no space left on device)"
    with (
        pytest.raises(InvalidInputError) as caught,
        spill_directory(tmp_path) as directory,
        write_copy(directory / "copy.csv"),
    ):
        raise OSError(errno.ENOSPC, "full")
    assert str(caught.value) == f"{message}, got {str(tmp_path)!r}"
