"""Directory that stores the data of finished jobs, so that an interrupted run resumes."""

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from banditrank._extras import requires
from banditrank._files import atomic_write
from banditrank.errors import InvalidInputError
from banditrank.experiments._job import Job

if TYPE_CHECKING:
    import pandas as pd

SECONDS_FILE = "seconds.json"
DATA, TIMINGS = "data", "timings"
CHECKSUM_SUFFIX = ".sha256"  # of the file beside each data file, in the format of sha256sum
_DIGEST = b"banditrank.digest"


class ResultsDirectory:
    """Parquet files, one per job, such as ``data/kdd2012/ucb-rank-personalized.parquet``.

    Each has a checksum file beside it, because Parquet does not detect damaged files. Running times, which
    differ between runs, are stored apart from data: measured ones under ``timings/``, and the duration of
    each job in ``seconds.json``.

    Parameters
    ----------
    output
        The directory; created if it is missing.
    manifest
        Values that all jobs share. They are written to ``KIND.json`` and to the metadata of each data file.
    other_names
        Further names that will be written to the directory.
    kind
        Name of the manifest file, and of the directory's content in errors.

    Raises
    ------
    InvalidInputError
        If the directory is not writable, holds another manifest, or holds files of one of the names without a
        manifest.
    """

    def __init__(
        self,
        output: Path,
        manifest: dict[str, Any],
        other_names: Sequence[str] = (),
        kind: str = "reproduction",
    ) -> None:
        self.directory = output
        self.kind = kind
        self._metadata = {f"banditrank.{name}": str(value) for name, value in manifest.items()}
        try:
            output.mkdir(parents=True, exist_ok=True)
            self._claim(manifest, (SECONDS_FILE, DATA, TIMINGS, *other_names))
        except OSError as error:
            raise InvalidInputError.from_os("output", "must be writable", output, error) from None
        self._seconds = _read_seconds(output / SECONDS_FILE)

    def _claim(self, manifest: dict[str, Any], names: Sequence[str]) -> None:
        """Write the manifest, or raise if the directory holds something else."""
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

    def path(self, study: str, job: Job) -> Path:
        """Return the path of a job's data file."""
        return self.directory / data_directory(job) / study / f"{job.name}.parquet"

    def load(self, study: str, job: Job) -> "pd.DataFrame | None":
        """Return a job's data, or None if they are missing, damaged or of other settings."""
        with requires("reports", "the study"):
            from pyarrow import ArrowException, BufferReader, parquet  # noqa: PLC0415 - heavy, and optional

        path = self.path(study, job)
        try:
            content = path.read_bytes()
            if _checksum_path(path).read_bytes() != _checksum(path, content):
                return None
            table = parquet.read_table(BufferReader(content))
            if (table.schema.metadata or {}).get(_DIGEST) != job.digest().encode():
                return None
            return table.to_pandas()  # type: ignore[no-any-return]
        except (ArrowException, OSError, ValueError, TypeError, KeyError):  # damaged in any way: run again
            return None

    def save(self, study: str, job: Job, frame: "pd.DataFrame", seconds: float) -> None:
        """Store a job's data and duration.

        Raises
        ------
        InvalidInputError
            If the files cannot be written.
        """
        with requires("reports", "the study"):
            import pyarrow as pa  # noqa: PLC0415 - heavy, and optional
            from pyarrow import parquet  # noqa: PLC0415 - heavy, and optional

        path = self.path(study, job)
        table = pa.Table.from_pandas(frame, preserve_index=False)
        table = table.replace_schema_metadata(
            {**table.schema.metadata, **self._metadata, _DIGEST: job.digest()}
        )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as new:
                parquet.write_table(table, new)
            with atomic_write(_checksum_path(path)) as new:
                new.write_bytes(_checksum(path, path.read_bytes()))
            self._seconds[f"{study}/{job.name}"] = round(seconds, 3)
            _write_json(self.directory / SECONDS_FILE, self._seconds)
        except OSError as error:
            raise InvalidInputError.from_os("output", "must be writable", path, error) from None

    def seconds(self, study: str, jobs: Sequence[Job]) -> float:
        """Return the total duration of finished jobs of a study."""
        return sum(self._seconds.get(f"{study}/{job.name}", 0.0) for job in jobs)


def data_directory(job: Job) -> str:
    """Return the directory name of a job's data: ``timings`` for running times, else ``data``."""
    return TIMINGS if job.is_timing else DATA


def _checksum_path(path: Path) -> Path:
    return path.with_name(path.name + CHECKSUM_SUFFIX)


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
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value < math.inf:
            raise _unreadable(path)
    return seconds


def _unreadable(path: Path) -> InvalidInputError:
    return InvalidInputError("output", f"must hold a readable {path.name}", str(path))


def _write_json(path: Path, content: dict[str, Any]) -> None:
    with atomic_write(path) as new:
        new.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
