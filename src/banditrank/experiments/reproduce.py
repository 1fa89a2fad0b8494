"""Run the paper's studies, or go on with them, and write the report."""

from collections.abc import Callable, Sequence
from pathlib import Path

from banditrank.experiments.conduct import conduct
from banditrank.experiments.publication import REPRODUCTION
from banditrank.experiments.report import Report
from banditrank.experiments.study import Study
from banditrank.simulation.backends.base import Backend
from banditrank.simulation.backends.catalog import BackendName


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
        How many replications run at once, up to 1,024, one a processor when left out; the data do not depend
        on it.
    backend, address
        Where they run, as for `banditrank.simulate`; nor do the data depend on this.
    progress
        Whether to show a progress bar; when left out, if standard error is a terminal.
    on_part
        Called with each part's id and whether it was there already.
    """
    return conduct(
        studies,
        output,
        REPRODUCTION,
        quick=quick,
        seed=seed,
        workers=workers,
        backend=backend,
        address=address,
        progress=progress,
        on_part=on_part,
    )
