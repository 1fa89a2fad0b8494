"""Comparison of policies on suites of problems."""

from collections.abc import Callable, Sequence
from pathlib import Path

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.experiments._compare import leaderboard, suite_study
from banditrank.experiments._compare.policy_variants import find_policy_names
from banditrank.experiments._compare.reproductions.catalog import REPRODUCTIONS
from banditrank.experiments._compare.suites import SUITES
from banditrank.experiments._report import COMPARISON, Report
from banditrank.experiments._run_studies import run_studies
from banditrank.policies._catalog import ORDERED_SUFFIX

REPRODUCTIONS_NAME = "reproductions"
"""Name beside the suites for the reproductions of the policies' own papers."""

SUITE_NAMES = (*SUITES, REPRODUCTIONS_NAME)


def compare(
    suites: Sequence[str],
    policies: Sequence[str],
    output: str | Path,
    *,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | None = None,
    on_job: Callable[[str, bool], None] | None = None,
) -> Report:
    """Run the missing jobs of a comparison and write data, figures, an HTML page and a summary.

    Each finished job is stored, so an interrupted call loses only the running job; repeat the same call to
    resume. A call with more suites or policies runs only the jobs that are missing.

    Parameters
    ----------
    suites
        Names of suites, and ``reproductions`` for those of the policies' own papers; all if empty.
    policies
        Names of policies; all if empty.
    output
        Directory to write to.
    quick
        Whether to run a smaller version of each suite, in about a minute and a half.
    seed
        Seed of all randomness: the same seed gives the same data, byte for byte.
    workers
        Number of threads, one per processor if None; the data do not depend on it.
    progress
        Whether to show a progress bar; if None, only in a terminal or a notebook.
    on_job
        Called after each job with its id and whether its data existed already.

    Raises
    ------
    UnknownNameError
        If there is no suite or policy of a name.
    InvalidInputError
        If a setting is invalid, the directory is not writable or holds something else, or none of the
        policies has a reproduction and nothing else is asked for.
    MissingDependencyError
        If a package of the extra ``reports`` is not installed.
    BanditRankError
        If another process changed the data of a job during the run.
    KeyboardInterrupt
        On Ctrl-C; finished jobs are stored.
    """
    for name in suites:
        if name not in SUITE_NAMES:
            raise UnknownNameError("suite", name, SUITE_NAMES)
    names = find_policy_names(policies)
    found = [suite for name, suite in SUITES.items() if name in suites or not suites]
    with_reproductions = REPRODUCTIONS_NAME in suites or not suites
    reproduced = {name.removesuffix(ORDERED_SUFFIX) for name in names} if with_reproductions else set()
    studies = [
        *(suite_study.make_study(suite, names) for suite in found),
        *(study for policy, study in REPRODUCTIONS.items() if policy in reproduced),
    ]
    if not studies:
        rule = f"must name one that has a reproduction: {', '.join(REPRODUCTIONS)}"
        raise InvalidInputError("policies", rule, ", ".join(names))
    return run_studies(
        studies,
        output,
        COMPARISON,
        overview=leaderboard.make_study(found, names) if found else None,
        quick=quick,
        seed=seed,
        workers=workers,
        progress=progress,
        on_job=on_job,
    )
