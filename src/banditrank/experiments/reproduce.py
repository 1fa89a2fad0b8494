"""Run the paper's studies, or go on with them, and write the report."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock

from banditrank import __version__
from banditrank.checks import check_whole, check_workers
from banditrank.errors import BanditRankError, InvalidInputError
from banditrank.experiments.archive import Archive, folder
from banditrank.experiments.machine import machine
from banditrank.experiments.part import Part
from banditrank.experiments.report import FIGURES, PAGE_FILE, SUMMARY_FILE, Report, StudyReport
from banditrank.experiments.study import Study
from banditrank.simulation.progress import Advance, progress_bar

_TICKS = 1000  # of the progress bar, for each unit of work


def reproduce(
    studies: Sequence[Study],
    output: str | Path,
    *,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | None = None,
    on_part: Callable[[str, bool], None] | None = None,
) -> Report:
    """Run what is missing of some studies and write data, figures, page and summary to a directory.

    Ctrl-C or a kill loses the part that is being run; the same call goes on from there.

    Parameters
    ----------
    studies
        Which; `banditrank.experiments.catalog.find_studies` finds them by name.
    output
        The directory.
    quick
        Whether to run less of each, in about a minute.
    seed
        Of all randomness: the same seed gives the same data, to the byte.
    workers
        Threads, up to 1,024, one a processor when left out; the data do not depend on it.
    progress
        Whether to show a progress bar; when left out, if standard error is a terminal.
    on_part
        Called with each part's id and whether it was there already.
    """
    seed = check_whole("seed", seed, 0)
    workers = check_workers("workers", workers)
    directory = Path(output)
    sweeps = [(study, study.sweep(seed, quick=quick)) for study in studies]  # before a directory is made
    manifest = {"version": __version__, "seed": seed, "quick": quick}
    archive = Archive(directory, manifest, (PAGE_FILE, SUMMARY_FILE, FIGURES))
    missing = {
        (study.name, part.name): part
        for study, parts in sweeps
        for part in parts
        if archive.get(study.name, part) is None
    }
    work = sum(part.work for part in missing.values())
    with progress_bar("reproduce", round(_TICKS * work), shown=progress) as advance:
        for study, parts in sweeps:
            for part in parts:
                run = (study.name, part.name) in missing
                if run:
                    _run(archive, study, part, workers, advance)
                if on_part is not None:
                    on_part(f"{study.name}/{part.name}", not run)
    report = Report(
        [_read(archive, study, parts) for study, parts in sweeps],
        seed,
        quick,
        __version__,
        machine(),
    )
    try:
        report.write(directory)
    except OSError as error:
        raise InvalidInputError.from_os("output", "must be writable", directory, error) from None
    return report


def _run(archive: Archive, study: Study, part: Part, workers: int | None, advance: Advance) -> None:
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
    frame = part.run(workers=workers, advance=advance_in_proportion)
    archive.put(study.name, part, frame, time.perf_counter() - start)
    advance(round(_TICKS * part.work) - shown)


def _read(archive: Archive, study: Study, parts: Sequence[Part]) -> StudyReport:
    frames = {}
    for part in parts:
        frame = archive.get(study.name, part)
        if frame is None:
            raise BanditRankError(f"the data of {study.name}/{part.name} were changed while others were made")
        frames[part.name] = frame
    return StudyReport(
        study,
        study.read(frames),
        [part.name for part in parts],
        archive.seconds(study.name, parts),
        sorted({folder(part) for part in parts}),
    )
