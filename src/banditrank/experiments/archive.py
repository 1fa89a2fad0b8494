"""Where the data of finished parts are kept, so that a run that was stopped can go on."""

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from banditrank.errors import InvalidInputError
from banditrank.experiments.part import Part
from banditrank.files import atomic_write

if TYPE_CHECKING:
    import pandas as pd

SECONDS_FILE = "seconds.json"
DATA, TIMINGS = "data", "timings"
CHECKSUM = ".sha256"  # the ending of the file beside each file of data, in the format of sha256sum
_DIGEST = b"banditrank.digest"


class Archive:
    """A directory of Parquet files, one a part: ``data/kdd2012/ucb-equal.parquet``.

    Beside each is its checksum: Parquet alone does not tell a damaged file from a whole one.

    Times, which are never the same twice, are kept apart from data: under ``timings/``, and how long each
    part took in a file of its own.

    Parameters
    ----------
    output
        The directory. Made if it is missing.
    manifest
        What all parts have in common. A directory that holds another is refused. Each file of data has it
        in its metadata too.
    others
        What else will be written there. A directory that holds something else of that name is refused.
    kind
        What the directory is called, in errors and in the name of its manifest.
    """

    def __init__(
        self,
        output: Path,
        manifest: dict[str, Any],
        others: Sequence[str] = (),
        kind: str = "reproduction",
    ) -> None:
        self.directory = output
        self.kind = kind
        self._noted = {f"banditrank.{name}": str(value) for name, value in manifest.items()}
        try:
            output.mkdir(parents=True, exist_ok=True)
            self._claim(manifest, (SECONDS_FILE, DATA, TIMINGS, *others))
        except OSError as error:
            raise InvalidInputError.from_os("output", "must be writable", output, error) from None
        self._seconds = _read_seconds(output / SECONDS_FILE)

    def _claim(self, manifest: dict[str, Any], names: Sequence[str]) -> None:
        path = self.directory / f"{self.kind}.json"
        if not path.exists():
            if taken := [name for name in names if (self.directory / name).exists()]:
                rule = f"must be new or hold a {self.kind}, not another {taken[0]}"
                raise InvalidInputError("output", rule, str(self.directory))
            _write_json(path, manifest)
            return
        present = _read_json(path)
        for name, value in manifest.items():
            if name not in present:
                raise _unreadable(path)
            if json.dumps(present[name]) != json.dumps(value):  # 0 is not false, nor 0.0
                rule = f"must be new or hold the same {self.kind}, whose {name} is {present[name]!r}"
                raise InvalidInputError("output", f"{rule} and not {value!r}", str(self.directory))

    def path(self, study: str, part: Part) -> Path:
        """Return where a part's data are."""
        return self.directory / folder(part) / study / f"{part.name}.parquet"

    def get(self, study: str, part: Part) -> "pd.DataFrame | None":
        """Return a part's data if they are there, as they were written, and of the same settings."""
        from pyarrow import ArrowException, BufferReader, parquet  # noqa: PLC0415 - heavy

        path = self.path(study, part)
        try:
            content = path.read_bytes()
            if _checksum_path(path).read_bytes() != _checksum(path, content):
                return None
            table = parquet.read_table(BufferReader(content))
            if (table.schema.metadata or {}).get(_DIGEST) != part.digest().encode():
                return None
            return table.to_pandas()  # type: ignore[no-any-return]
        except (ArrowException, OSError, ValueError, TypeError, KeyError):  # to be made again
            return None

    def put(self, study: str, part: Part, frame: "pd.DataFrame", seconds: float) -> None:
        """Keep a part's data, and how long they took."""
        import pyarrow as pa  # noqa: PLC0415 - heavy
        from pyarrow import parquet  # noqa: PLC0415 - heavy

        path = self.path(study, part)
        table = pa.Table.from_pandas(frame, preserve_index=False)
        table = table.replace_schema_metadata(
            {**table.schema.metadata, **self._noted, _DIGEST: part.digest()}
        )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as new:
                parquet.write_table(table, new)
            with atomic_write(_checksum_path(path)) as new:
                new.write_bytes(_checksum(path, path.read_bytes()))
            self._seconds[f"{study}/{part.name}"] = round(seconds, 3)
            _write_json(self.directory / SECONDS_FILE, self._seconds)
        except OSError as error:
            raise InvalidInputError.from_os("output", "must be writable", path, error) from None

    def seconds(self, study: str, parts: Sequence[Part]) -> float:
        """Return how long some finished parts of a study took."""
        return sum(self._seconds.get(f"{study}/{part.name}", 0.0) for part in parts)


def folder(part: Part) -> str:
    """Return where a part's data belong: with those that are the same each time, or with times."""
    return TIMINGS if part.measures_time else DATA


def _checksum_path(path: Path) -> Path:
    return path.with_name(path.name + CHECKSUM)


def _checksum(path: Path, content: bytes) -> bytes:
    return f"{hashlib.sha256(content).hexdigest()}  {path.name}\n".encode()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        raise _unreadable(path) from None
    if not isinstance(content, dict):
        raise _unreadable(path)
    return content


def _read_seconds(path: Path) -> dict[str, float]:
    seconds = _read_json(path)
    for value in seconds.values():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value < math.inf:
            raise _unreadable(path)
    return seconds


def _unreadable(path: Path) -> InvalidInputError:
    return InvalidInputError("output", f"must hold a readable {path.name}", str(path))


def _write_json(path: Path, content: dict[str, Any]) -> None:
    with atomic_write(path) as new:
        new.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
