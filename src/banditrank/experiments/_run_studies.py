"""Run studies, resuming where an earlier run stopped, and write their report."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock

from banditrank import __version__
from banditrank._checks import check_integer
from banditrank._extras import check_extras
from banditrank.errors import BanditRankError, InvalidInputError
from banditrank.experiments._job import Job
from banditrank.experiments._machine_info import describe_machine
from banditrank.experiments._report import FIGURES, HTML_FILE, SUMMARY_FILE, Report, ReportKind, StudyReport
from banditrank.experiments._results_directory import ResultsDirectory, data_directory
from banditrank.experiments._study import Frames, Study
from banditrank.simulation._backends.base import Backend
from banditrank.simulation._backends.catalog import BackendName, open_backend
from banditrank.simulation._progress import Advance, progress_bar

_TICKS_PER_SECOND = 1000  # of the progress bar


def run_studies(
    studies: Sequence[Study],
    output: str | Path,
    kind: ReportKind,
    *,
    overview: Study | None = None,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    backend: BackendName | Backend = "joblib",
    address: str | None = None,
    progress: bool | None = None,
    on_job: Callable[[str, bool], None] | None = None,
) -> Report:
    """Run the missing jobs of studies and write data, figures, an HTML page and a summary.

    Parameters
    ----------
    studies
        Studies to run.
    output
        Directory to write to.
    kind
        Kind of report.
    overview
        Study without jobs, which analyses the data of all others, by job id ``STUDY/JOB``.
    quick, seed, workers, backend, address, progress, on_job
        As for `banditrank.experiments._reproduce.reproduce`.

    Raises
    ------
    InvalidInputError
        If a setting is invalid, or the directory is not writable or holds something else.
    MissingDependencyError
        If packages are not installed; names the extras of all studies and of the backend.
    BanditRankError
        If another process changed the data of a job during the run.
    KeyboardInterrupt
        On Ctrl-C; finished jobs are stored.
    """
    seed = check_integer("seed", seed, 0)
    directory = Path(output)
    extras = {"reports", *(extra for study in studies for extra in study.extras)}
    check_extras(kind.command, *extras, *(["ray"] if backend == "ray" else []))
    sweeps = [(study, study.sweep(seed, quick=quick)) for study in studies]  # may raise: before mkdir
    with open_backend(backend, workers=workers, address=address) as opened:  # may raise: before mkdir
        manifest = {"version": __version__, "seed": seed, "quick": quick}
        results = ResultsDirectory(directory, manifest, (HTML_FILE, SUMMARY_FILE, FIGURES), kind.name)
        missing = {
            (study.name, job.name): job
            for study, jobs in sweeps
            for job in jobs
            if results.load(study.name, job) is None
        }
        seconds = sum(job.estimated_seconds for job in missing.values())
        label = kind.command.split()[-1]
        with progress_bar(label, round(_TICKS_PER_SECOND * seconds), shown=progress) as advance:
            for study, jobs in sweeps:
                for job in jobs:
                    is_missing = (study.name, job.name) in missing
                    if is_missing:
                        _run_job(results, study, job, workers, opened, advance)
                    if on_job is not None:
                        on_job(f"{study.name}/{job.name}", not is_missing)
    frames = {study.name: _load_frames(results, study, jobs) for study, jobs in sweeps}
    report = Report(
        [_analyse(results, study, jobs, frames[study.name], quick=quick) for study, jobs in sweeps],
        seed,
        quick,
        __version__,
        describe_machine(),
        kind,
        None if overview is None else _analyse_all(overview, frames, quick=quick),
    )
    try:
        report.write(directory)
    except OSError as error:
        raise InvalidInputError.from_os("output", "must be writable", directory, error) from None
    return report


def _run_job(
    results: ResultsDirectory,
    study: Study,
    job: Job,
    workers: int | None,
    backend: Backend,
    advance: Advance,
) -> None:
    finished_steps, shown_ticks = 0, 0
    lock = Lock()

    def advance_in_proportion(steps: int) -> None:  # called by several threads
        nonlocal finished_steps, shown_ticks
        with lock:
            finished_steps += steps
            share = min(1.0, finished_steps / job.n_steps)
            ticks = round(_TICKS_PER_SECOND * job.estimated_seconds * share)
            advance(ticks - shown_ticks)
            shown_ticks = ticks

    start = time.perf_counter()
    frame = job.run(workers=workers, advance=advance_in_proportion, backend=backend)
    results.save(study.name, job, frame, time.perf_counter() - start)
    advance(round(_TICKS_PER_SECOND * job.estimated_seconds) - shown_ticks)


def _load_frames(results: ResultsDirectory, study: Study, jobs: Sequence[Job]) -> Frames:
    frames = {}
    for job in jobs:
        frame = results.load(study.name, job)
        if frame is None:
            raise BanditRankError(f"the data of {study.name}/{job.name} were changed during the run")
        frames[job.name] = frame
    return frames


def _analyse(
    results: ResultsDirectory, study: Study, jobs: Sequence[Job], frames: Frames, *, quick: bool
) -> StudyReport:
    return StudyReport(
        study,
        replace(study.analyse(frames), is_quick=quick),
        [job.name for job in jobs],
        results.seconds(study.name, jobs),
        sorted({data_directory(job) for job in jobs}),
    )


def _analyse_all(overview: Study, frames: dict[str, Frames], *, quick: bool) -> StudyReport:
    by_id = {f"{study}/{job}": frame for study, jobs in frames.items() for job, frame in jobs.items()}
    return StudyReport(overview, replace(overview.analyse(by_id), is_quick=quick), (), 0.0, ())
