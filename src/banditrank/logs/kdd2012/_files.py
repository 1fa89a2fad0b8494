"""The two files of KDD Cup 2012 track 2: their columns, their format, and validation line by line.

Both files are text without a header, with a tab between columns and a newline after each line. Every column
holds integers of up to 64 bits; Impression is at most `MAX_IMPRESSIONS`.

The queries validate every line that DuckDB passes to them, but cannot tell a line's number, because DuckDB
reads a file in several chunks at a time. Only when a query fails is the file read again, line by line, at
about a million lines a second.

DuckDB does not pass every line on unchanged: it silently drops a last line of several buffers (32 MB each),
and a `SEPARATOR` at the end of a line. `check_all_was_read` counts newlines and searches for that byte, which
takes seconds for a gigabyte.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from banditrank.errors import BanditRankError, InvalidInputError

TRAINING_COLUMNS = (
    "Click",
    "Impression",
    "DisplayURL",
    "AdID",
    "AdvertiserID",
    "Depth",
    "Position",
    "QueryID",
    "KeywordID",
    "TitleID",
    "DescriptionID",
    "UserID",
)
PROFILE_COLUMNS = ("UserID", "Gender", "Age")

MAX_IMPRESSIONS = 10**9
"""Maximum Impression of a line: four times the total of the contest's file."""

SEPARATOR = b"\x01"
"""Column delimiter passed to DuckDB, so that it reads a whole line as one column. No line may contain it."""

_MAX_UINT64 = 2**64 - 1
_MAX_LINE_BYTES = 1024  # twelve numbers of 20 digits take 252 bytes
_NOT_PLAIN_TEXT = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstandard",
    b"PAR1": "Parquet",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"\xef\xbb\xbf": "text with a byte order mark",
}

# Fast path for nearly all lines. Most values of DisplayURL are hashes of 19 or 20 digits.
_NUMBER = rb"(?:[0-9]{1,19}+(?![0-9])|1[0-7][0-9]{18})"
_USUAL_TRAINING_LINE = re.compile(rb"[01]\t[1-9][0-9]{0,8}+" + (rb"\t" + _NUMBER) * 10)
_USUAL_PROFILE_LINE = re.compile(rb"\t".join([_NUMBER] * 3))


@dataclass(frozen=True, slots=True)
class LogFile:
    """One of the two files.

    Parameters
    ----------
    path
        Path of the file.
    role
        Name of the file in error messages: ``training file``.
    columns
        Names of the columns.
    """

    path: Path
    role: str
    columns: tuple[str, ...]

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.path.stat().st_size

    def check(self) -> None:
        """Check the beginning and the end of the file, without reading the rest.

        Raises
        ------
        InvalidInputError
            If the file is missing, empty, compressed, truncated, or its first line is malformed.
        """
        try:
            if self.path.exists() and not self.path.is_file():
                raise InvalidInputError(self.role, "must be a file", str(self.path))
            with self.path.open("rb") as file:
                self._check_begin(file.read(_MAX_LINE_BYTES))
                self._check_end(file)
        except OSError as error:
            raise InvalidInputError.from_os(self.role, "must be readable", self.path, error) from None

    def _check_begin(self, begin: bytes) -> None:
        if not begin:
            raise InvalidInputError(self.role, "must not be empty", str(self.path))
        for magic, kind in _NOT_PLAIN_TEXT.items():
            if begin.startswith(magic):
                raise InvalidInputError(self.role, f"must be plain text, not {kind}", str(self.path))
        if error := self.line_error(1, begin.split(b"\n")[0]):
            raise error

    def _check_end(self, file: BinaryIO) -> None:
        """Raise if the last line has no newline: it may end in the middle of a number."""
        file.seek(-1, 2)
        if file.read(1) == b"\n":
            return
        file.seek(0)
        line_number = 1 + sum(chunk.count(b"\n") for chunk in _chunks(file))
        file.seek(max(0, file.tell() - _MAX_LINE_BYTES))
        place = f"{self.path.name} line {line_number:,}"
        rule = "must end with a newline (the file looks cut off)"
        raise InvalidInputError(place, rule, _text(file.read().split(b"\n")[-1]))

    def lines(self) -> Iterator[bytes]:
        """Yield the lines without their newlines; a line that is too long is yielded in chunks."""
        with self.path.open("rb") as file:
            while line := file.readline(_MAX_LINE_BYTES):
                yield line.removesuffix(b"\n")

    def line_error(self, line_number: int, line: bytes) -> InvalidInputError | None:
        """Return the error for a malformed line, None for a valid one."""
        place = f"{self.path.name} line {line_number:,}"
        if line.endswith(b"\r"):
            rule = "must end with a newline alone, not with a carriage return before it (CRLF)"
            return InvalidInputError(place, rule, _text(line[-20:]))
        fields = line.split(b"\t")
        if len(fields) != len(self.columns):
            rule = f"must have {len(self.columns)} columns with tabs between them"
            return InvalidInputError(place, rule, len(fields) if line else 0)
        for name, field in zip(self.columns, fields, strict=True):
            if not (field.isdigit() and len(field) <= 20 and int(field) <= _MAX_UINT64):
                rule = "must be a whole number from 0 to 2^64 − 1"
                return InvalidInputError(f"{place}: {name}", rule, _text(field))
        if self.columns == TRAINING_COLUMNS:
            click, impression = int(fields[0]), int(fields[1])
            if not 1 <= impression <= MAX_IMPRESSIONS:
                rule = f"must be from 1 to {MAX_IMPRESSIONS:,}"
                return InvalidInputError(f"{place}: Impression", rule, impression)
            if click > impression:
                rule = f"must be at most the line's Impression, {impression}"
                return InvalidInputError(f"{place}: Click", rule, click)
        return None


def training_file(path: str | Path) -> LogFile:
    """Return the training file: aggregated displays and clicks.

    Examples
    --------
    >>> training_file(".").check()
    Traceback (most recent call last):
        ...
    banditrank.errors.InvalidInputError: training file must be a file, got '.'
    """
    return LogFile(Path(path), "training file", TRAINING_COLUMNS)


def profile_file(path: str | Path) -> LogFile:
    """Return the profile file: gender and age of each user."""
    return LogFile(Path(path), "profile file", PROFILE_COLUMNS)


def check_all_was_read(file: LogFile, n_lines: int) -> None:
    """Check that a query read every line of a file unchanged.

    Parameters
    ----------
    file
        The file.
    n_lines
        Number of lines that the query read.

    Raises
    ------
    InvalidInputError
        If a line is malformed.
    BanditRankError
        If DuckDB dropped or changed a line that is not malformed.
    """
    count, has_separator = 0, False
    with file.path.open("rb") as content:
        for chunk in _chunks(content):
            count += chunk.count(b"\n")
            has_separator = has_separator or SEPARATOR in chunk
    if count != n_lines or has_separator:
        failure = BanditRankError(
            f"reading {file.path.name} failed: of {count:,} lines {n_lines:,} were read"
        )
        raise first_malformed_line(file) or failure


def first_malformed_line(file: LogFile) -> InvalidInputError | None:
    """Return the error for the first malformed line, None if every line is valid."""
    usual = _USUAL_TRAINING_LINE if file.columns == TRAINING_COLUMNS else _USUAL_PROFILE_LINE
    for line_number, line in enumerate(file.lines(), start=1):
        if usual.fullmatch(line) is None and (error := file.line_error(line_number, line)):
            return error
    return None


def contradicting_lines(profiles: LogFile, user: int) -> InvalidInputError:
    """Return the error for a user whose lines in the profile file have different genders."""
    first: tuple[int, int] | None = None
    for line_number, line in enumerate(profiles.lines(), start=1):
        identifier, gender, _ = line.split(b"\t")
        if int(identifier) != user:
            continue
        if first is None:
            first = line_number, int(gender)
        elif int(gender) != first[1]:
            place = f"{profiles.path.name} line {line_number:,}: Gender"
            rule = f"must be that of user {user} in line {first[0]:,}, which is {first[1]}"
            return InvalidInputError(place, rule, int(gender))
    return InvalidInputError(profiles.role, "must not change while it is read", str(profiles.path))


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    """Return the rest of a file in chunks of a mebibyte."""
    return iter(lambda: file.read(1 << 20), b"")


def _text(field: bytes) -> str:
    return field.decode("utf-8", errors="backslashreplace")
