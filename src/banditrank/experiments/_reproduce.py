"""Reproduction of the paper: its studies by name, and the function that runs them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.experiments import _kdd2012 as kdd2012
from banditrank.experiments import _lemmas as lemmas
from banditrank.experiments import _lock_in as lock_in
from banditrank.experiments import _lotteries as lotteries
from banditrank.experiments import _regret_order as regret_order
from banditrank.experiments import _synthetic as synthetic
from banditrank.experiments import _table1 as table1
from banditrank.experiments import _table2 as table2
from banditrank.experiments._report import REPRODUCTION, Report
from banditrank.experiments._run_studies import run_studies
from banditrank.experiments._study import Study
from banditrank.simulation._backends.base import Backend
from banditrank.simulation._backends.catalog import BackendName

STUDIES = {
    module.STUDY.name: module.STUDY
    for module in (synthetic, kdd2012, table1, table2, regret_order, lemmas, lock_in, lotteries)
}


def find_studies(
    names: Sequence[str] = (), *, training: Path | None = None, profiles: Path | None = None
) -> list[Study]:
    """Return studies by name, in the order of the paper, our additions last.

    Parameters
    ----------
    names
        Keys of `STUDIES`; all studies if empty or if it contains ``all``.
    training, profiles
        Raw files of KDD Cup 2012 track 2, for ``table1``.

    Raises
    ------
    UnknownNameError
        If there is no study of a name.
    InvalidInputError
        If only one raw file is given, or files without the study ``table1``.

    Examples
    --------
    >>> [study.name for study in find_studies(["table2", "kdd2012"])]
    ['kdd2012', 'table2']
    """
    for name in names:
        if name != "all" and name not in STUDIES:
            raise UnknownNameError("study", name, ("all", *STUDIES))
    wanted = set(STUDIES) if not names or "all" in names else set(names)
    given = {"training": training, "profiles": profiles}
    for field, path in given.items():
        if path is not None and "table1" not in wanted:
            raise InvalidInputError(field, "must be left out without the study table1", str(path))
        if path is not None and None in given.values():
            other = "profile" if field == "training" else "training"
            raise InvalidInputError(field, f"must be given together with the {other} file", str(path))
    found = {**STUDIES, "table1": table1.make_study(training, profiles)}
    return [study for name, study in found.items() if name in wanted]


def reproduce(
    studies: Sequence[Study],
    output: str | Path,
    *,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    backend: BackendName | Backend = "joblib",
    address: str | None = None,
    progress: bool | None = None,
    on_job: Callable[[str, bool], None] | None = None,
) -> Report:
    """Run the missing jobs of studies and write data, figures, an HTML page and a summary.

    Each finished job is stored, so an interrupted call loses only the running job; repeat the same call to
    resume.

    Parameters
    ----------
    studies
        Studies to run; `find_studies` returns them by name.
    output
        Directory to write to.
    quick
        Whether to run a smaller version of each study, in some minutes.
    seed
        Seed of all randomness: the same seed gives the same data, byte for byte.
    workers
        Number of replications that run in parallel, up to 1,024, one per processor if None; the data do not
        depend on it.
    backend, address
        Where replications run, as for `banditrank.simulate`; the data do not depend on it.
    progress
        Whether to show a progress bar; if None, only in a terminal or a notebook.
    on_job
        Called after each job with its id and whether its data existed already.

    Raises
    ------
    InvalidInputError
        If a setting is invalid, or the directory is not writable or holds something else.
    MissingDependencyError
        If packages are not installed; names all extras that the studies require.
    BanditRankError
        If another process changed the data of a job during the run.
    KeyboardInterrupt
        On Ctrl-C; finished jobs are stored.
    """
    return run_studies(
        studies,
        output,
        REPRODUCTION,
        quick=quick,
        seed=seed,
        workers=workers,
        backend=backend,
        address=address,
        progress=progress,
        on_job=on_job,
    )
