"""Run studies, or go on with them, and write the report."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock

from banditrank import __version__
from banditrank.checks import check_integer
from banditrank.errors import BanditRankError, InvalidInputError
from banditrank.experiments.archive import Archive, folder
from banditrank.experiments.machine import machine
from banditrank.experiments.part import Part
from banditrank.experiments.publication import Publication
from banditrank.experiments.report import FIGURES, PAGE_FILE, SUMMARY_FILE, Report, StudyReport
from banditrank.experiments.study import Frames, Study
from banditrank.simulation.backends.base import Backend
from banditrank.simulation.backends.catalog import BackendName, open_backend
from banditrank.simulation.progress import Advance, progress_bar

_TICKS = 1000  # of the progress bar, for each unit of work


def conduct(
    studies: Sequence[Study],
    output: str | Path,
    publication: Publication,
    *,
    overview: Study | None = None,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    backend: BackendName | Backend = "joblib",
    address: str | None = None,
    progress: bool | None = None,
    on_part: Callable[[str, bool], None] | None = None,
) -> Report:
    """Run what is missing of some studies and write data, figures, page and summary to a directory.

    Parameters
    ----------
    studies
        Which.
    output
        The directory.
    publication
        What kind of report it is.
    overview
        A study without parts of its own, which reads the data of all others, named ``STUDY/PART``.
    quick, seed, workers, backend, address, progress, on_part
        As for `banditrank.experiments.reproduce.reproduce`.
    """
    seed = check_integer("seed", seed, 0)
    directory = Path(output)
    sweeps = [(study, study.sweep(seed, quick=quick)) for study in studies]  # before a directory is made
    with open_backend(backend, workers=workers, address=address) as place:  # refuses before anything is made
        manifest = {"version": __version__, "seed": seed, "quick": quick}
        archive = Archive(directory, manifest, (PAGE_FILE, SUMMARY_FILE, FIGURES), publication.kind)
        missing = {
            (study.name, part.name): part
            for study, parts in sweeps
            for part in parts
            if archive.get(study.name, part) is None
        }
        work = sum(part.work for part in missing.values())
        with progress_bar(publication.command.split()[-1], round(_TICKS * work), shown=progress) as advance:
            for study, parts in sweeps:
                for part in parts:
                    run = (study.name, part.name) in missing
                    if run:
                        _run(archive, study, part, workers, place, advance)
                    if on_part is not None:
                        on_part(f"{study.name}/{part.name}", not run)
    frames = {study.name: _frames(archive, study, parts) for study, parts in sweeps}
    report = Report(
        [_read(archive, study, parts, frames[study.name]) for study, parts in sweeps],
        seed,
        quick,
        __version__,
        machine(),
        publication,
        None if overview is None else _read_all(overview, frames),
    )
    try:
        report.write(directory)
    except OSError as error:
        raise InvalidInputError.from_os("output", "must be writable", directory, error) from None
    return report


def _run(
    archive: Archive, study: Study, part: Part, workers: int | None, place: Backend, advance: Advance
) -> None:
    made, shown = 0, 0
    lock = Lock()

    def advance_in_proportion(steps: int) -> None:  # called by several threads
        nonlocal made, shown
        with lock:
            made += steps
            ticks = round(_TICKS * part.work * min(1.0, made / part.steps))
            advance(ticks - shown)
            shown = ticks

    start = time.perf_counter()
    frame = part.run(workers=workers, advance=advance_in_proportion, backend=place)
    archive.put(study.name, part, frame, time.perf_counter() - start)
    advance(round(_TICKS * part.work) - shown)


def _frames(archive: Archive, study: Study, parts: Sequence[Part]) -> Frames:
    frames = {}
    for part in parts:
        frame = archive.get(study.name, part)
        if frame is None:
            raise BanditRankError(f"the data of {study.name}/{part.name} were changed while others were made")
        frames[part.name] = frame
    return frames


def _read(archive: Archive, study: Study, parts: Sequence[Part], frames: Frames) -> StudyReport:
    return StudyReport(
        study,
        study.read(frames),
        [part.name for part in parts],
        archive.seconds(study.name, parts),
        sorted({folder(part) for part in parts}),
    )


def _read_all(overview: Study, frames: dict[str, Frames]) -> StudyReport:
    everything = {
        f"{study}/{part}": frame for study, parts in frames.items() for part, frame in parts.items()
    }
    return StudyReport(overview, overview.read(everything), (), 0.0, ())
