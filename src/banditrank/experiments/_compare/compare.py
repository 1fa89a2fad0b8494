"""Comparison of policies on suites of problems."""

from collections.abc import Callable, Sequence
from pathlib import Path

from banditrank.errors import InvalidInputError
from banditrank.experiments._compare import leaderboard, suite_study
from banditrank.experiments._compare.custom_suites import REPRODUCTIONS_NAME, SuiteSource, find_suites
from banditrank.experiments._compare.policy_variants import ComparedPolicy, find_policies
from banditrank.experiments._compare.reproductions.catalog import REPRODUCTIONS
from banditrank.experiments._compare.suites import Suite
from banditrank.experiments._report import COMPARISON, Report
from banditrank.experiments._run_studies import run_studies
from banditrank.policies._catalog import ORDERED_SUFFIX
from banditrank.policies._custom import PolicySource


def compare(
    suites: Sequence[SuiteSource],
    policies: Sequence[str | PolicySource],
    output: str | Path,
    *,
    quick: bool = False,
    held_out: bool = False,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | None = None,
    on_job: Callable[[str, bool], None] | None = None,
) -> Report:
    """Run the missing jobs of a comparison and write data, figures, an HTML page and a summary.

    Each finished job is stored, so an interrupted call loses only the running job; repeat the same call to
    resume. A call with more suites or policies runs only the jobs that are missing. Jobs of a custom policy
    run again if its source code has changed.

    Parameters
    ----------
    suites
        Names of suites, and ``reproductions`` for those of the policies' own papers; all if empty.
        ``carousel:DIRECTORY`` is the carousel whose files are there. Custom ones are TOML files, problems,
        functions that return a problem given the horizon, `Suite` objects, or import paths of these, such as
        ``my_module:my_problem``; ``all`` adds the built-in ones.
    policies
        Names of policies. Custom ones are policies, their classes, functions that return a policy, or import
        paths of these, such as ``my_module:MyPolicy``. All built-in policies if none of them is named.
    output
        Directory to write to.
    quick
        Whether to run a smaller version of each suite, in some minutes.
    held_out
        Whether to compare on the held-out copies of the suites, on whose problems no constant of a policy
        was chosen. Custom ones must be a `Suite` with a ``held_out`` problem; reproductions do not take part
        by default.
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
        If a setting is invalid, a custom policy or suite cannot be loaded or has the name of another, the
        directory is not writable or holds something else, or none of the policies has a reproduction and
        nothing else is asked for.
    MissingDependencyError
        If a package of the extra ``reports`` is not installed.
    BanditRankError
        If another process changed the data of a job during the run.
    KeyboardInterrupt
        On Ctrl-C; finished jobs are stored.
    """
    found, has_reproductions = find_suites(suites)
    if held_out:
        found = [suite.held_out_copy() for suite in found]
        has_reproductions = has_reproductions and REPRODUCTIONS_NAME in suites
    compared = find_policies(policies)
    found = _with_policies(found, compared)
    _check_custom_policies_take_part(compared, found, quick=quick)
    names = [policy.name for policy in compared if policy.custom is None]
    reproduced = {name.removesuffix(ORDERED_SUFFIX) for name in names} if has_reproductions else set()
    studies = [
        *(suite_study.make_study(suite, compared) for suite in found),
        *(study for policy, study in REPRODUCTIONS.items() if policy in reproduced),
    ]
    typed = [suite for suite in found if suite.has_scores]
    if not studies:
        rule = f"must name one that has a reproduction: {', '.join(REPRODUCTIONS)}"
        raise InvalidInputError("policies", rule, ", ".join(names))
    return run_studies(
        studies,
        output,
        COMPARISON,
        overview=leaderboard.make_study(typed, compared) if typed else None,
        quick=quick,
        seed=seed,
        workers=workers,
        progress=progress,
        on_job=on_job,
    )


def _with_policies(suites: Sequence[Suite], policies: Sequence[ComparedPolicy]) -> list[Suite]:
    """Return the suites in which a policy can take part: some need features, others cannot use them.

    Raises
    ------
    InvalidInputError
        If suites are given and none is left.
    """
    found = [suite for suite in suites if any(policy.fits(suite) for policy in policies)]
    if suites and not found:
        kinds = "keep guarantees" if suites[0].guarantees else "know user types"
        if suites[0].is_contextual:
            kinds = "use features"
        rule = f"must {kinds} to take part in {suites[0].name}"
        raise InvalidInputError("policies", rule, ", ".join(policy.name for policy in policies))
    return found


def _check_custom_policies_take_part(
    policies: Sequence[ComparedPolicy], suites: Sequence[Suite], *, quick: bool
) -> None:
    """Raise if a custom policy runs in none of the suites."""
    for policy in policies:
        if policy.custom is None:
            continue
        reasons = [policy.absence(suite, suite.quick_horizon if quick else suite.horizon) for suite in suites]
        if all(reasons):
            reason = f", but {reasons[0]}" if reasons else ""
            rule = f"must take part in one of the suites{reason}"
            raise InvalidInputError("policies", rule, policy.custom.label)
