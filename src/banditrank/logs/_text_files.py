"""Files of text: opened and decompressed, and read row by row with the reason why a row is malformed."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from banditrank._extras import requires
from banditrank.errors import InvalidInputError, one_line

MAX_ROW_BYTES = 2_000_000
"""Maximum length of a row of CSV and TSV files: that of DuckDB."""

MAX_OBJECT_BYTES = 1 << 24
"""Maximum length of a line of JSON: that of DuckDB."""

WRONG_LENGTH = "row has another number of values than the header"
MISPLACED_QUOTE = "quotes are not around whole values"
NOT_UTF8 = "row is not UTF-8"
NOT_AN_OBJECT = "line is not a JSON object"
KEY_TWICE = "key twice in a JSON object"
TOO_LONG = "row is too long"

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_CHUNK_BYTES = 1 << 20


class TextRow(NamedTuple):
    """A row of a file.

    Attributes
    ----------
    line
        Number of its first line, from 1.
    text
        Its line, without the end; empty if the row is malformed, or may have several lines.
    values
        Values in the order of columns, or an object; None if the row is malformed.
    reason
        Why the row is malformed, the same text for all rows of a kind; empty if it is not.
    rule, value
        What a malformed row must be, and what it is.
    """

    line: int
    text: str = ""
    values: Any = None
    reason: str = ""
    rule: str = ""
    value: object = None

    def place(self, path: str) -> str:
        """Return the name of the file and the number of the line."""
        return f"{Path(path).name} line {self.line:,}"

    def error(self, path: str) -> InvalidInputError:
        """Return the error of a malformed row, in one line."""
        return InvalidInputError(self.place(path), self.rule, self.value)


@dataclass(slots=True)
class MalformedRows:
    """Malformed rows that are left out.

    Attributes
    ----------
    counts
        Number of rows by reason.
    first_rows
        Place of the first of them, by reason.

    Examples
    --------
    >>> malformed = MalformedRows()
    >>> for line in (7, 9):
    ...     malformed.add(TextRow(line, reason=NOT_UTF8), "data/clicks.csv")
    >>> malformed.counts[NOT_UTF8], malformed.first_rows
    (2, {'row is not UTF-8': 'clicks.csv line 7'})
    """

    counts: Counter[str] = field(default_factory=Counter)
    first_rows: dict[str, str] = field(default_factory=dict)

    def add(self, row: TextRow, path: str) -> None:
        """Count a malformed row of a file."""
        self.counts[row.reason] += 1
        self.first_rows.setdefault(row.reason, row.place(path))

    def __add__(self, other: "MalformedRows") -> "MalformedRows":
        return MalformedRows(self.counts + other.counts, other.first_rows | self.first_rows)


def compression_of(path: str) -> str | None:
    """Return ``gzip``, ``zstd`` or ``bz2`` by the end of a name, else None."""
    return _COMPRESSIONS.get(Path(path).suffix.lower())


def without_compression(name: str) -> str:
    """Return the name of a file without the ending of its compression."""
    for suffix in _COMPRESSIONS:
        name = name.removesuffix(suffix)
    return name


def open_text(path: str, *, errors: str = "replace") -> io.TextIOWrapper:
    """Open a file as text, decompressed by its name.

    Parameters
    ----------
    path
        The file.
    errors
        What becomes of bytes that are not UTF-8, as for `open`.

    Raises
    ------
    InvalidInputError
        If it cannot be read: also later, while it is read.
    """
    reader = io.BufferedReader(_CompressedFile(path), _CHUNK_BYTES)
    return io.TextIOWrapper(reader, encoding="utf-8-sig", errors=errors, newline="")


def check_compressed(paths: Sequence[str]) -> None:
    """Read compressed files to their end, because DuckDB accepts some that are damaged or incomplete.

    Raises
    ------
    InvalidInputError
        If a file is damaged, incomplete or empty.
    """
    for path in paths:
        if compression_of(path) is not None:
            with _CompressedFile(path) as file:
                buffer = bytearray(_CHUNK_BYTES)
                if not file.readinto(buffer):
                    raise InvalidInputError("log", "must not be empty", Path(path))
                while file.readinto(buffer):
                    pass


class _CompressedFile(io.RawIOBase):
    """A file that is decompressed by its name, and whose errors name it."""

    def __init__(self, path: str) -> None:
        with requires("logs", "reading click logs"):
            import pyarrow as pa  # noqa: PLC0415 - heavy, and optional

        super().__init__()
        self._path = path
        self._errors = (OSError, pa.ArrowException)
        try:
            self._stream = pa.input_stream(path, compression=compression_of(path))
        except self._errors as error:
            raise self._error(error) from None

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer and return their number."""
        try:
            return int(self._stream.readinto(buffer))
        except self._errors as error:
            raise self._error(error) from None

    def close(self) -> None:
        """Close the file."""
        if not self.closed and hasattr(self, "_stream"):
            self._stream.close()
        super().close()

    def _error(self, error: Exception) -> InvalidInputError:
        reason = one_line(error)[:80].lower()
        return InvalidInputError("log", f"must be a readable file ({reason})", Path(self._path))


def read_lines(path: str) -> Iterator[TextRow]:
    """Yield the lines of a file, with their text in place of values.

    Raises
    ------
    InvalidInputError
        If the file cannot be read.
    """
    with open_text(path, errors="surrogateescape") as file:
        lines = _Lines(file, MAX_ROW_BYTES)
        while (line := lines.take()) is not None:
            yield line


def read_values(path: str, delimiter: str, n_columns: int = 0) -> Iterator[TextRow]:
    """Yield the rows of a CSV or TSV file, except empty ones.

    A row with misplaced quotes ends with its line, so that the rows after it are read.

    Parameters
    ----------
    path
        The file.
    delimiter
        Delimiter of values.
    n_columns
        Number of values that all rows must have; by default that of the first one, if it is not malformed.

    Raises
    ------
    InvalidInputError
        If the file cannot be read.
    """
    csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))
    with open_text(path, errors="surrogateescape") as file:
        lines = _Lines(file, MAX_ROW_BYTES)
        while (line := lines.take()) is not None:
            row = line if line.reason else _parse_values(line, lines, delimiter, n_columns)
            if row.values:
                n_columns = n_columns or len(row.values)
            if row.values or row.reason:
                yield row


def read_objects(path: str) -> Iterator[TextRow]:
    """Yield the lines of a file of JSON, except empty ones.

    Raises
    ------
    InvalidInputError
        If the file cannot be read.
    """
    with open_text(path, errors="surrogateescape") as file:
        lines = _Lines(file, MAX_OBJECT_BYTES)
        while (line := lines.take()) is not None:
            if line.reason:
                yield line
            elif line.text.strip():
                yield _parse_object(line)


class _Lines:
    """Lines of a file, which can be put back; one that is too long is not held in memory."""

    def __init__(self, file: io.TextIOWrapper, max_bytes: int) -> None:
        self._file = file
        self._max_bytes = max_bytes
        self._number = 0
        self._returned: list[TextRow] = []  # the next one last

    def take(self) -> TextRow | None:
        """Return the next line, or None at the end."""
        if self._returned:
            return self._returned.pop()
        text = self._file.readline(self._max_bytes + 1)
        if not text:
            return None
        self._number += 1
        is_long = len(text) > self._max_bytes
        while is_long and text and not text.endswith(("\n", "\r")):
            text = self._file.readline(self._max_bytes)
        if not is_long and len(text) * 4 > self._max_bytes:
            is_long = len(text.encode("utf-8", "surrogateescape")) > self._max_bytes
        if is_long:
            rule = f"must be at most {self._max_bytes:,} bytes long"
            return TextRow(self._number, reason=TOO_LONG, rule=rule, value="a longer line")
        return _check_utf8(TextRow(self._number, text.rstrip("\r\n")))

    def put_back(self, lines: Sequence[TextRow]) -> None:
        """Return lines, which are taken again in their order."""
        self._returned += reversed(lines)


def _check_utf8(line: TextRow) -> TextRow:
    """Return a line, malformed if it has a byte that is not UTF-8."""
    text = line.text
    if text.isascii():
        return line
    bad = next((place for place, sign in enumerate(text) if "\ud800" <= sign <= "\udfff"), None)
    if bad is None:
        return line
    byte = f"byte 0x{ord(text[bad]) - 0xDC00:02x} after {text[max(0, bad - 20) : bad]!r}"
    return TextRow(line.line, reason=NOT_UTF8, rule="must be UTF-8", value=byte)


def _parse_values(line: TextRow, lines: _Lines, delimiter: str, n_columns: int) -> TextRow:
    more: list[TextRow] = []
    values: list[str] = []
    if '"' not in line.text:
        values = line.text.split(delimiter) if line.text else []
    else:
        try:
            reader = csv.reader(_following(line, lines, more), delimiter=delimiter, strict=True)
            values = next(reader, [])
        except csv.Error:
            return _misplaced_quote(line, lines, more)
    if values and n_columns and len(values) != n_columns:
        if more:  # the quote was closed by that of another row
            return _misplaced_quote(line, lines, more)
        rule = f"must have {n_columns} values, as the header has columns"
        return TextRow(line.line, reason=WRONG_LENGTH, rule=rule, value=len(values))
    return TextRow(line.line, values=values)


def _following(line: TextRow, lines: _Lines, more: list[TextRow]) -> Iterator[str]:
    """Yield the text of a line, and of lines after it as long as a row may be; append those to ``more``."""
    yield f"{line.text}\n"
    size = len(line.text)
    while (following := lines.take()) is not None:
        more.append(following)
        size += len(following.text)
        if following.reason or size > MAX_ROW_BYTES:
            return
        yield f"{following.text}\n"


def _misplaced_quote(line: TextRow, lines: _Lines, more: list[TextRow]) -> TextRow:
    """Return the malformed row of one line, so that the lines after it are read as rows."""
    lines.put_back(more)
    rule = "must have quotes around whole values"
    value = "an open quote, or text after a closing one"
    return TextRow(line.line, reason=MISPLACED_QUOTE, rule=rule, value=value)


def _parse_object(line: TextRow) -> TextRow:
    text = line.text.strip()
    try:
        row = json.loads(text, object_pairs_hook=_Object)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, _Object):
        advice = ", not an array: write one object per line" if text.startswith("[") else ""
        rule = f"must be a JSON object{advice}"
        return TextRow(line.line, reason=NOT_AN_OBJECT, rule=rule, value=text)
    if row.repeated is not None:
        return TextRow(line.line, reason=KEY_TWICE, rule="must have each key once", value=row.repeated)
    if "\\u" in text and _has_surrogates(row):
        return TextRow(line.line, reason=NOT_UTF8, rule="must have no lone surrogates", value=text)
    return TextRow(line.line, text, dict(row))


class _Object(dict[str, Any]):
    """A JSON object that knows a key which it has twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated: str | None = None
        if len(self) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            self.repeated = counts.most_common(1)[0][0]


def _has_surrogates(row: object) -> bool:
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
