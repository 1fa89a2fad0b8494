"""Studies: a claim of a paper, the jobs that test it, and the analysis of their data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from banditrank._report_page.elements import ReportFigure, Table
from banditrank.experiments._job import Job

if TYPE_CHECKING:
    import pandas as pd

Frames: TypeAlias = "Mapping[str, pd.DataFrame]"
"""Data of a study's jobs, by job name."""

Agreement = Literal["agrees", "partly", "disagrees", "too short to tell", "not checked"]

Answer = Literal["holds", "does not hold", "too short to tell", "not decided"]


@dataclass(frozen=True, slots=True)
class Check:
    """Statement that the data confirm or contradict.

    Parameters
    ----------
    statement
        A falsifiable sentence: a claim of the paper, or a consequence of one.
    holds
        Whether the data confirm it; None if they do not decide.
    evidence
        The numbers that decide.
    claimed_by
        Source of the statement. Only checks of the paper's claims decide the agreement.
    needs_full_run
        Whether a quick run that does not confirm the statement may be too short to decide it.
    """

    statement: str
    holds: bool | None
    evidence: str
    claimed_by: Literal["paper", "implementation"] = "paper"
    needs_full_run: bool = True

    def answer(self, *, quick: bool) -> Answer:
        """Return whether the statement holds, as far as the length of the run allows.

        Parameters
        ----------
        quick
            Whether the data are those of a quick run.

        Examples
        --------
        >>> check = Check("Regret is sub-linear.", False, "exponent 0.95")
        >>> check.answer(quick=False), check.answer(quick=True)
        ('does not hold', 'too short to tell')
        """
        if self.holds:
            return "holds"
        if quick and self.needs_full_run:
            return "too short to tell"
        return "not decided" if self.holds is None else "does not hold"

    def __post_init__(self) -> None:
        """Convert NumPy booleans, which JSON cannot encode."""
        object.__setattr__(self, "holds", None if self.holds is None else bool(self.holds))


@dataclass(frozen=True, slots=True)
class StudyResult:
    """Result of a study's analysis.

    Parameters
    ----------
    findings
        Summary in two sentences.
    checks
        Statements that were tested.
    figures, tables
        Shown in the report.
    metrics
        Plain values for ``summary.json``.
    is_quick
        Whether the data are those of a quick run.
    """

    findings: str
    checks: Sequence[Check]
    figures: Sequence[ReportFigure] = ()
    tables: Sequence[Table] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)
    is_quick: bool = False

    @property
    def agreement(self) -> Agreement:
        """Agreement with the paper, computed from the checks of its claims."""
        answers = {check.answer(quick=self.is_quick) for check in self.checks if check.claimed_by == "paper"}
        if answers <= {"not decided"}:
            return "not checked"
        if answers == {"holds"}:
            return "agrees"
        if "does not hold" not in answers and "too short to tell" in answers:
            return "too short to tell"
        return "partly" if "holds" in answers else "disagrees"

    @property
    def checks_summary(self) -> str:
        """How many of the checks of the paper's claims hold, and how many the run does not decide.

        Examples
        --------
        >>> checks = [Check("It ends.", True, ""), Check("It is fast.", False, "")]
        >>> StudyResult("", checks).checks_summary, StudyResult("", checks, is_quick=True).checks_summary
        ('1 of 2', '1 of 2, 1 too short to tell')
        """
        checks = [check for check in self.checks if check.claimed_by == "paper"]
        answers = [check.answer(quick=self.is_quick) for check in checks]
        open_answers: tuple[Answer, ...] = ("too short to tell", "not decided")
        undecided = [f", {answers.count(answer)} {answer}" for answer in open_answers if answer in answers]
        return f"{answers.count('holds')} of {len(answers)}{''.join(undecided)}"


class Sweep(Protocol):
    """Function that returns the jobs of a study."""

    def __call__(self, seed: int, *, quick: bool) -> Sequence[Job]:
        """Return the jobs."""


@dataclass(frozen=True, slots=True)
class Study:
    """Claim, jobs and analysis of one study.

    Parameters
    ----------
    name
        Name in commands and file names.
    title
        Heading in the report.
    claim
        The tested claim, in two sentences.
    sweep
        Returns the jobs for a seed, fewer or smaller ones for a quick run.
    analyse
        Returns the result, given the data of all jobs.
    quick_scale
        Size of a quick run relative to a full one, in words.
    claim_heading
        Heading above the claim.
    has_agreement
        Whether the checks are summarised as the agreement with the claim.
    extras
        Extras that the jobs require beside ``reports``.
    """

    name: str
    title: str
    claim: str
    sweep: Sweep
    analyse: Callable[[Frames], StudyResult]
    quick_scale: str
    claim_heading: str = "The paper says"
    has_agreement: bool = True
    extras: tuple[str, ...] = ()
