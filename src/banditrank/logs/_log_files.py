"""Files of a click log: their format, their columns of text, and their rows with line numbers."""

import csv
import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from banditrank.counts._cube_files import is_cube_file
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.logs._spill_directory import write_copy
from banditrank.logs._text_files import (
    MalformedRows,
    TextRow,
    check_compressed,
    open_text,
    read_objects,
    read_values,
    without_compression,
)

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
    reads_all_types
        Whether the types of JSON values are those of all rows, not of the first ones.
    """

    paths: tuple[str, ...]
    file_format: FileFormat
    delimiter: str
    header: tuple[str, ...] = ()
    reads_all_types: bool = False

    @property
    def is_text(self) -> bool:
        """Whether all values are text."""
        return self.file_format in ("csv", "tsv")

    @property
    def is_remote(self) -> bool:
        """Whether the files are not on this machine."""
        return any(_REMOTE.match(path) for path in self.paths)

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the place (``clicks.csv line 7``) and the values of each row that is not malformed.

        Slow: rows are read in Python. Used only to find the numbers of bad rows.
        """
        for path in self.paths:
            name = Path(path).name
            if self.file_format == "parquet":
                for number, row in enumerate(_parquet_rows(path), start=1):
                    yield f"{name} row {number:,}", row
                continue
            header = () if self.file_format == "jsonl" else self.header or self.read_header(path)
            for parsed in self.text_rows(path):
                if not parsed.reason:
                    values = parsed.values
                    if self.file_format != "jsonl":
                        values = dict(zip(header, (value or None for value in values), strict=True))
                    yield parsed.place(path), values

    def headers(self) -> dict[str, tuple[str, ...]]:
        """Return the columns of each file of text.

        Raises
        ------
        InvalidInputError
            If a header is not UTF-8, or has a column twice.
        """
        return {path: self.header or self.read_header(path) for path in self.paths}

    def check_compressed(self) -> None:
        """Read compressed files of text to their end.

        Raises
        ------
        InvalidInputError
            If one is damaged or incomplete.
        """
        if self.file_format != "parquet" and not self.is_remote:
            check_compressed(self.paths)

    def text_rows(self, path: str) -> Iterator[TextRow]:
        """Return the rows of a file of text, without its header."""
        if self.file_format == "jsonl":
            return read_objects(path)
        if self.header:
            return read_values(path, self.delimiter, len(self.header))
        rows = read_values(path, self.delimiter)
        next(rows, None)
        return rows

    def read_header(self, path: str) -> tuple[str, ...]:
        """Return the columns of a file of text by its first row.

        Raises
        ------
        InvalidInputError
            If the row is malformed, or has a column twice.
        """
        first = next(read_values(path, self.delimiter), None)
        if first is None:
            return ()
        if first.reason:
            raise first.error(path)
        found = tuple(name.strip() or f"column{number}" for number, name in enumerate(first.values))
        for number, name in enumerate(found):
            if name.lower() in map(str.lower, found[:number]):
                raise InvalidInputError(first.place(path), "must have each column once", name)
        return found


@dataclass(frozen=True, slots=True)
class RepairedFiles:
    """Copies of files of text that an engine can read.

    Attributes
    ----------
    files
        The copies.
    malformed
        Rows that the copies lack.
    """

    files: LogFiles
    malformed: MalformedRows


def repair_files(files: LogFiles, directory: Path, *, is_dropping: bool) -> RepairedFiles | None:
    """Copy files of text without their malformed rows, with the same ends of lines everywhere.

    Slow: rows are read in Python. Used only if the engine cannot read the files.

    Parameters
    ----------
    files
        The files.
    directory
        Directory of the copies, one of `spill_directory`.
    is_dropping
        Whether malformed rows are left out; else the first one is an error.

    Returns
    -------
    RepairedFiles or None
        None if the files are not of text, or not on this machine.

    Raises
    ------
    InvalidInputError
        If a row is malformed, unless they are left out; or the copies cannot be written.
    """
    if files.file_format == "parquet" or files.is_remote:
        return None
    malformed = MalformedRows()
    copies = []
    for number, path in enumerate(files.paths):
        copy = directory / f"{number}.{files.file_format}"
        for row in _copy_rows(files, path, copy):
            if not is_dropping:
                raise row.error(path)
            malformed.add(row, path)
        copies.append(str(copy))
    return RepairedFiles(replace(files, paths=tuple(copies), reads_all_types=True), malformed)


def _copy_rows(files: LogFiles, path: str, copy: Path) -> Iterator[TextRow]:
    """Copy the rows of a file; yield those that are malformed."""
    rows = files.text_rows(path)
    is_json = files.file_format == "jsonl"
    with write_copy(copy), copy.open("w", encoding="utf-8", newline="") as target:
        writer = csv.writer(target, delimiter=files.delimiter or ",", lineterminator="\n")
        if not is_json and not files.header:
            writer.writerow(files.read_header(path))
        for row in rows:
            if row.reason:
                yield row
            elif is_json:
                target.write(f"{row.text}\n")
            else:
                writer.writerow(row.values)


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
        If there is no file, a file is part of a cube, or files have different formats.
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
    for path in paths:
        if is_cube_file(path):
            rule = "must not have files of a cube: give the directory of the cube to the analyses"
            raise InvalidInputError("log", rule, Path(path))
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
    return _SUFFIXES.get(Path(without_compression(Path(path).name.lower())).suffix)


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


def _parquet_rows(path: str) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - heavy, and optional

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=10_000):
            yield from batch.to_pylist()
