"""Runs the command line within a test."""

import re
from pathlib import Path

import pytest

from banditrank._cli.main import main


def run(
    capsys: pytest.CaptureFixture, *arguments: str, is_announcement_kept: bool = False
) -> tuple[int, str, str]:
    """Run a command; return its exit status, standard output and standard error.

    Standard error is without the announcement of compilation, which depends on the cache, unless it is kept.
    """
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    streams = capsys.readouterr()
    error = (
        streams.err
        if is_announcement_kept
        else re.sub(r"^banditrank: compiling .*\n", "", streams.err, flags=re.MULTILINE)
    )
    return stopped.value.code, streams.out, error


def check_refusal(
    capsys: pytest.CaptureFixture, arguments: list[str], message: str, *, lines: int = 1
) -> None:
    """Assert that a command fails with status 2 and one line, and changes no file.

    Parameters
    ----------
    capsys, arguments, message
        Captured streams, the command, and a pattern of the last line.
    lines
        Number of lines: more than one if the command announces something first.
    """
    before = contents()
    status, output, complaint = run(capsys, *arguments)
    assert status == 2
    assert output == ""
    assert complaint.count("\n") == lines
    assert complaint.startswith("banditrank: ")
    assert re.search(message, complaint.splitlines(keepends=True)[-1])
    assert contents() == before, "bad input must change nothing"


def contents() -> dict[Path, bytes | None]:
    """Return all files and directories below the current one, with the content of files."""
    assert not Path("pyproject.toml").exists(), "run in a temporary directory: this one has .venv"
    return {path: path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}
