"""The two files of KDD Cup 2012 track 2: where they are, their columns, and what makes a line.

Both are text without a header, with a tab between columns and a newline after each line. Every column of both
holds whole numbers of up to 64 bits; Impression, one of up to `MOST_IMPRESSIONS`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from banditrank.errors import InvalidInputError

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
MOST_IMPRESSIONS = 10**9  # of a line: four times those of all the contest's lines together

_LARGEST = 2**64 - 1
_LONGEST_LINE = 1024  # twelve numbers of 20 digits take 252 bytes; more than this is no line at all
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


@dataclass(frozen=True, slots=True)
class LogFile:
    """One of the two files.

    Parameters
    ----------
    path
        Where it is.
    role
        What it is called in messages: ``training file``.
    columns
        The columns' names.
    """

    path: Path
    role: str
    columns: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes."""
        return self.path.stat().st_size

    def check(self) -> None:
        """Raise an error if the file cannot be what it should be: missing, empty, packed, another, cut off.

        Looks only at the file's two ends, and so takes no time before the work begins.
        """
        try:
            if self.path.exists() and not self.path.is_file():
                raise InvalidInputError(self.role, "must be a file", str(self.path))
            with self.path.open("rb") as file:
                self._check_begin(file.read(_LONGEST_LINE))
                self._check_end(file)
        except OSError as error:
            raise InvalidInputError.from_os(self.role, "must be readable", self.path, error) from None

    def _check_begin(self, begin: bytes) -> None:
        if not begin:
            raise InvalidInputError(self.role, "must not be empty", str(self.path))
        for magic, kind in _NOT_PLAIN_TEXT.items():
            if begin.startswith(magic):
                raise InvalidInputError(self.role, f"must be plain text, not {kind}", str(self.path))
        if problem := self.line_error(1, begin.split(b"\n")[0]):
            raise problem

    def _check_end(self, file: BinaryIO) -> None:
        """Refuse a last line without its newline: it may end in the middle of a number."""
        file.seek(-1, 2)
        if file.read(1) == b"\n":
            return
        file.seek(0)
        number = 1 + sum(chunk.count(b"\n") for chunk in chunks(file))
        file.seek(max(0, file.tell() - _LONGEST_LINE))
        place = f"{self.path.name} line {number:,}"
        rule = "must end with a newline (the file looks cut off)"
        raise InvalidInputError(place, rule, _text(file.read().split(b"\n")[-1]))

    def lines(self) -> Iterator[bytes]:
        """Yield the lines without their newlines; of an endless one, pieces."""
        with self.path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                yield line.removesuffix(b"\n")

    def line_error(self, number: int, line: bytes) -> InvalidInputError | None:
        """Return what is wrong with a line, if anything is."""
        place = f"{self.path.name} line {number:,}"
        if line.endswith(b"\r"):
            rule = "must end with a newline alone, not with a carriage return before it (CRLF)"
            return InvalidInputError(place, rule, _text(line[-20:]))
        fields = line.split(b"\t")
        if len(fields) != len(self.columns):
            rule = f"must have {len(self.columns)} columns with tabs between them"
            return InvalidInputError(place, rule, len(fields) if line else 0)
        for name, field in zip(self.columns, fields, strict=True):
            if not (field.isdigit() and len(field) <= 20 and int(field) <= _LARGEST):
                rule = "must be a whole number from 0 to 2^64 − 1"
                return InvalidInputError(f"{place}: {name}", rule, _text(field))
        if self.columns == TRAINING_COLUMNS:
            click, impression = int(fields[0]), int(fields[1])
            if not 1 <= impression <= MOST_IMPRESSIONS:
                rule = f"must be from 1 to {MOST_IMPRESSIONS:,}"
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
    """Return the profile file: each user's gender and age."""
    return LogFile(Path(path), "profile file", PROFILE_COLUMNS)


def chunks(file: BinaryIO) -> Iterator[bytes]:
    """Return the rest of a file in pieces of a megabyte."""
    return iter(lambda: file.read(1 << 20), b"")


def _text(field: bytes) -> str:
    return field.decode("utf-8", errors="backslashreplace")
