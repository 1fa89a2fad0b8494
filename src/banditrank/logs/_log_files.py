"""Files of a click log: their format, their columns of text, and their rows with line numbers."""

import csv
import glob
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from banditrank._extras import requires
from banditrank.errors import InvalidInputError, UnknownNameError

FileFormat: TypeAlias = Literal["csv", "tsv", "jsonl", "parquet"]
"""Format of the files of a log."""

_SUFFIXES: dict[str, FileFormat] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_DELIMITERS = (",", "\t", ";", "|")
_REMOTE = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_MAX_HEADER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LogFiles:
    """Files of one format.

    Attributes
    ----------
    paths
        The files, sorted.
    file_format
        Their format.
    delimiter
        Delimiter of columns; empty if the format has none.
    header
        Names of the columns, if the files have no header; else empty.
    """

    paths: tuple[str, ...]
    file_format: FileFormat
    delimiter: str
    header: tuple[str, ...] = ()

    @property
    def is_text(self) -> bool:
        """Whether all values are text."""
        return self.file_format in ("csv", "tsv")

    @property
    def is_remote(self) -> bool:
        """Whether the files are not on this machine."""
        return any(_REMOTE.match(path) for path in self.paths)

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the place (``clicks.csv line 7``) and the values of each row.

        Slow: rows are read in Python. Used only to find the numbers of bad rows.
        """
        for path in self.paths:
            name = Path(path).name
            if self.file_format == "parquet":
                for number, row in enumerate(_parquet_rows(path), start=1):
                    yield f"{name} row {number:,}", row
                continue
            with open_text(path) as lines:
                if self.file_format == "jsonl":
                    for number, line in enumerate(lines, start=1):
                        if line.strip():
                            yield f"{name} line {number:,}", _parse_object(line, name, number)
                else:
                    reader = csv.reader(lines, delimiter=self.delimiter)
                    header = self.header or self._read_header(path)
                    if not self.header:
                        next(reader, None)
                    for values in reader:
                        if values:
                            row = dict(zip(header, (value or None for value in values), strict=False))
                            yield f"{name} line {reader.line_num:,}", row

    def headers(self) -> dict[str, tuple[str, ...]]:
        """Return the columns of each file of text.

        Raises
        ------
        InvalidInputError
            If a header is not UTF-8, or has a column twice.
        """
        return {path: self.header or self._read_header(path) for path in self.paths}

    def _read_header(self, path: str) -> tuple[str, ...]:
        with open_text(path, errors="strict") as lines:
            try:
                names = next(csv.reader(lines, delimiter=self.delimiter), [])
            except (UnicodeDecodeError, csv.Error):
                raise self._first_malformed_row(path) or _not_text(path) from None
        found = tuple(name.strip() or f"column{number}" for number, name in enumerate(names))
        for number, name in enumerate(found):
            if name.lower() in map(str.lower, found[:number]):
                raise InvalidInputError(f"{Path(path).name} line 1", "must have each column once", name)
        return found

    def find_malformed_row(self) -> InvalidInputError | None:
        """Return the error of the first row that is not UTF-8 or JSON, too long or too short, or None."""
        if self.file_format == "parquet" or self.is_remote:
            return None
        return next(filter(None, map(self._first_malformed_row, self.paths)), None)

    def _first_malformed_row(self, path: str) -> InvalidInputError | None:
        name = Path(path).name
        if self.file_format == "jsonl":
            return _first_malformed_object(path)
        with open_text(path, errors="surrogateescape") as lines:
            reader = csv.reader(_checked_lines(lines, name), delimiter=self.delimiter, strict=True)
            n_columns, line = len(self.header), 1
            try:
                for values in reader:
                    n_columns = n_columns or len(values)
                    if values and len(values) != n_columns:
                        rule = f"must have {n_columns} values, as the header has columns"
                        return InvalidInputError(f"{name} line {line:,}", rule, len(values))
                    line = reader.line_num + 1
            except csv.Error:
                rule = "must be a row with closed quotes"
                return InvalidInputError(f"{name} line {line:,}", rule, "a quote that is not closed")
            except InvalidInputError as error:
                return error
        return None


def find_files(
    source: str | Path | Sequence[str | Path],
    *,
    file_format: str | None = None,
    delimiter: str | None = None,
    header: Sequence[str] = (),
) -> LogFiles:
    """Return the files of a source: paths, globs and directories.

    Parameters
    ----------
    source
        One or several paths or globs. Of a directory, all files of known formats below it are read, except
        those whose name starts with a dot or an underscore.
    file_format
        ``csv``, ``tsv``, ``jsonl`` or ``parquet``; by default that of the names.
    delimiter
        Delimiter of columns; by default the most frequent one of ``,``, tab, ``;`` and ``|`` in the first
        line.
    header
        Names of the columns, if the files have no header.

    Raises
    ------
    InvalidInputError
        If there is no file, or files have different formats.
    UnknownNameError
        If the format is not known.
    """
    if file_format is not None and file_format not in get_args(FileFormat):
        raise UnknownNameError("format", file_format, get_args(FileFormat))
    given = [source] if isinstance(source, str | Path) else list(source)
    if not given:
        raise InvalidInputError("log", "must be at least one file", source)
    paths: list[str] = []
    for each in given:
        paths += _expand(str(each), is_known=file_format is not None)
    formats = {path: file_format or _format_of(path) for path in paths}
    if len(set(formats.values())) > 1:
        kinds = ", ".join(sorted(set(formats.values())))
        raise InvalidInputError(
            "log", "must be files of one format: count them apart and merge the cubes", kinds
        )
    chosen: Any = next(iter(formats.values()))
    paths = list(dict.fromkeys(paths))
    if chosen in ("csv", "tsv"):
        delimiter = delimiter or ("\t" if chosen == "tsv" else _sniff_delimiter(paths[0]))
    return LogFiles(tuple(paths), chosen, delimiter or "", tuple(header))


def compression_of(path: str) -> str | None:
    """Return ``gzip``, ``zstd`` or ``bz2`` by the end of a name, else None."""
    return _COMPRESSIONS.get(Path(path).suffix.lower())


def _expand(text: str, *, is_known: bool) -> list[str]:
    if _REMOTE.match(text):
        return [text]
    path = Path(text)
    try:
        if path.is_dir():
            below = [
                str(each)
                for each in sorted(path.rglob("*"))
                if each.is_file()
                and not any(part.startswith((".", "_")) for part in each.relative_to(path).parts)
                and (is_known or _suffix_format(str(each)))
            ]
            if not below:
                raise InvalidInputError(
                    "log", "must be a directory with CSV, TSV, JSONL or Parquet files", text
                )
            return below
        if path.is_file():
            with path.open("rb") as file:
                if not file.read(1):
                    raise InvalidInputError("log", "must not be empty", text)
            return [text]
    except OSError as error:
        raise InvalidInputError.from_os("log", "must be readable", text, error) from None
    found = sorted(each for each in glob.glob(text, recursive=True) if Path(each).is_file())  # noqa: PTH207 - any
    if not found:
        raise InvalidInputError("log", "must be a file, a directory or a glob that matches a file", text)
    return found


def _suffix_format(path: str) -> FileFormat | None:
    name = Path(path).name.lower()
    for suffix in _COMPRESSIONS:
        name = name.removesuffix(suffix)
    return _SUFFIXES.get(Path(name).suffix)


def _format_of(path: str) -> FileFormat:
    found = _suffix_format(path)
    if found is None:
        rule = "must end in .csv, .tsv, .jsonl or .parquet, or have its format given"
        raise InvalidInputError("log", rule, path)
    return found


def _sniff_delimiter(path: str) -> str:
    if _REMOTE.match(path):
        return ","
    with open_text(path) as lines:
        header = lines.readline(_MAX_HEADER_BYTES)
    return max(_DELIMITERS, key=header.count)


def _checked_lines(lines: Iterable[str], name: str) -> Iterator[str]:
    """Yield lines; raise at the first that is not UTF-8."""
    for number, line in enumerate(lines, start=1):
        if not line.isascii():
            bad = next((place for place, sign in enumerate(line) if "\ud800" <= sign <= "\udfff"), None)
            if bad is not None:
                byte = f"byte 0x{ord(line[bad]) - 0xDC00:02x} after {line[max(0, bad - 20) : bad]!r}"
                raise InvalidInputError(f"{name} line {number:,}", "must be UTF-8", byte)
        yield line


def _first_malformed_object(path: str) -> InvalidInputError | None:
    name = Path(path).name
    with open_text(path, errors="surrogateescape") as lines:
        try:
            for number, line in enumerate(_checked_lines(lines, name), start=1):
                if line.strip():
                    _parse_object(line, name, number)
        except InvalidInputError as error:
            return error
    return None


def _not_text(path: str) -> InvalidInputError:
    return InvalidInputError("log", "must be a file of text in UTF-8", path)


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
        If it cannot be read.
    """
    with requires("logs", "reading click logs"):
        import pyarrow as pa  # noqa: PLC0415 - heavy, and optional

    try:
        stream = pa.input_stream(path, compression=compression_of(path))
        return io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8-sig", errors=errors, newline="")
    except (OSError, pa.ArrowException) as error:
        raise InvalidInputError(
            "log", f"must be readable ({' '.join(str(error).split())[:80]})", path
        ) from None


def _parse_object(line: str, name: str, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise InvalidInputError(f"{name} line {number:,}", "must be a JSON object", line.strip())
    return row


def _parquet_rows(path: str) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - heavy, and optional

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=10_000):
            yield from batch.to_pylist()
