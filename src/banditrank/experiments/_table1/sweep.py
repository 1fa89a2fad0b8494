"""Jobs: extraction from a log drawn from Table 1 itself, and from the raw files if given."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from banditrank._extras import requires
from banditrank.errors import InvalidInputError
from banditrank.experiments._job import Job
from banditrank.logs.kdd2012._estimation import ESTIMATORS, estimated_problem
from banditrank.logs.kdd2012._extraction import Extraction, extract
from banditrank.logs.kdd2012._files import profile_file, training_file
from banditrank.logs.kdd2012._sample_log import write_sample_log
from banditrank.model._catalog import kdd2012
from banditrank.simulation._backends.base import Backend
from banditrank.simulation._progress import Advance

if TYPE_CHECKING:
    import pandas as pd

ROWS, QUICK_ROWS = 1_000_000, 50_000
QUICK_SCALE = f"{QUICK_ROWS:,} of {ROWS:,} rows of the log drawn from the table"


class RawFiles(NamedTuple):
    """Paths of the two raw files."""

    training: Path
    profiles: Path


@dataclass(frozen=True, kw_only=True)
class SampleLogJob(Job):
    """Extraction from a log in the raw files' format that is drawn from Table 1."""

    rows: int
    seed: int

    @property
    def estimated_seconds(self) -> float:
        """Approximate running time."""
        return self.rows * 6e-6

    def settings(self) -> dict[str, Any]:
        """Return the plain values that the log depends on."""
        return {"rows": self.rows, "seed": self.seed, "problem": kdd2012().to_dict()}

    def run(
        self,
        *,
        workers: int | None,
        advance: Advance,  # noqa: ARG002 - one step
        backend: Backend | None = None,  # noqa: ARG002 - no replications
    ) -> "pd.DataFrame":
        """Return the estimates, one row per value of Table 1 and estimator."""
        try:
            with TemporaryDirectory() as directory:
                log = write_sample_log(kdd2012(), directory, n_rows=self.rows, seed=self.seed)
                return _estimates(extract(log.training, log.profiles, threads=workers))
        except OSError as error:
            path = error.filename or "none"
            raise InvalidInputError.from_os("temporary files", "must be writable", path, error) from None


@dataclass(frozen=True, kw_only=True)
class RawFilesJob(Job):
    """Extraction from the raw files."""

    files: RawFiles

    @property
    def estimated_seconds(self) -> float:
        """Approximate running time."""
        return sum(path.stat().st_size for path in self.files) * 3e-8

    def settings(self) -> dict[str, Any]:
        """Return path, size and modification time of each file, which identify it without reading it."""
        return {
            field: [str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns]
            for field, path in self.files._asdict().items()
        }

    def run(
        self,
        *,
        workers: int | None,
        advance: Advance,  # noqa: ARG002 - one step
        backend: Backend | None = None,  # noqa: ARG002 - no replications
    ) -> "pd.DataFrame":
        """Return the estimates, one row per value of Table 1 and estimator."""
        return _estimates(extract(*self.files, threads=workers))


def _estimates(extraction: Extraction) -> "pd.DataFrame":
    """Return one row per value of Table 1 and estimator, with the number of displays behind it."""
    with requires("reports", "the study"):
        import pandas as pd  # noqa: PLC0415 - heavy, and optional

    displays = extraction.counts.displays  # (N, M, K)
    rows: list[tuple[Any, ...]] = []
    for name in ESTIMATORS:
        problem = estimated_problem(extraction, name).problem
        for i, user_type in enumerate(problem.user_types):
            rate = float(problem.arrival_rates[i])
            rows.append((name, "arrival rate", user_type, 0, "", rate, displays[i].sum()))
            for j, mean in enumerate(problem.item_means[i]):
                rows.append((name, "item mean", user_type, j, problem.items[j], mean, displays[i, j].min()))
            for k, preference in enumerate(problem.position_preferences[i]):
                label = f"position {extraction.positions[k]}"
                n_displays = displays[i, :, k].min()
                rows.append((name, "position preference", user_type, k, label, preference, n_displays))
    columns = ["estimator", "quantity", "user_type", "index", "label", "estimate", "displays"]
    return pd.DataFrame(rows, columns=columns)


def sweep(seed: int, *, quick: bool, files: RawFiles | None = None) -> list[Job]:
    """Return the extraction jobs.

    Raises
    ------
    InvalidInputError
        If a raw file is not readable.
    """
    jobs: list[Job] = [SampleLogJob(name="sample-log", rows=QUICK_ROWS if quick else ROWS, seed=seed)]
    if files is None:
        return jobs
    training_file(files.training).check()
    profile_file(files.profiles).check()
    return [*jobs, RawFilesJob(name="raw-files", files=files)]
