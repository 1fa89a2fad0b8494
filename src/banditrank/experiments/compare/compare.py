"""Compare policies on suites of problems, or go on with it, and write the report."""

from collections.abc import Callable, Sequence
from pathlib import Path

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.experiments.compare import leaderboard, suite_study
from banditrank.experiments.compare.line_up import find_names
from banditrank.experiments.compare.reproductions.catalog import REPRODUCTIONS
from banditrank.experiments.compare.suites import SUITES
from banditrank.experiments.conduct import conduct
from banditrank.experiments.publication import COMPARISON
from banditrank.experiments.report import Report
from banditrank.policies.catalog import ORDERED_SUFFIX

OF_PAPERS = "reproductions"
"""Stands among the suites for what the policies' own papers report."""

SUITE_NAMES = (*SUITES, OF_PAPERS)


def compare(
    suites: Sequence[str],
    policies: Sequence[str],
    output: str | Path,
    *,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | None = None,
    on_part: Callable[[str, bool], None] | None = None,
) -> Report:
    """Run what is missing of a comparison and write data, figures, page and summary to a directory.

    Ctrl-C or a kill loses the part that is being run; the same call goes on from there, and one of more
    suites or policies runs no more than these.

    Parameters
    ----------
    suites
        Names of suites, and ``reproductions`` for those of the policies' own papers; everything for none.
    policies
        Names of policies; all of them for none.
    output
        The directory.
    quick
        Whether to run less of each suite, in about a minute and a half.
    seed
        Of all randomness: the same seed gives the same data, to the byte.
    workers
        Threads, one a processor when left out; the data do not depend on it.
    progress
        Whether to show a progress bar; when left out, if standard error is a terminal.
    on_part
        Called with each part's id and whether it was there already.
    """
    for name in suites:
        if name not in SUITE_NAMES:
            raise UnknownNameError("suite", name, SUITE_NAMES)
    names = find_names(policies)
    found = [suite for name, suite in SUITES.items() if name in suites or not suites]
    own = (
        {name.removesuffix(ORDERED_SUFFIX) for name in names} if OF_PAPERS in suites or not suites else set()
    )
    studies = [
        *(suite_study.make_study(suite, names) for suite in found),
        *(study for policy, study in REPRODUCTIONS.items() if policy in own),
    ]
    if not studies:
        rule = f"must name one that has a reproduction: {', '.join(REPRODUCTIONS)}"
        raise InvalidInputError("policies", rule, ", ".join(names))
    return conduct(
        studies,
        output,
        COMPARISON,
        overview=leaderboard.make_study(found, names) if found else None,
        quick=quick,
        seed=seed,
        workers=workers,
        progress=progress,
        on_part=on_part,
    )
