"""HTML page of a report: one self-contained file that works offline."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from banditrank._report_page.rendering import make_environment
from banditrank.experiments._formatting import format_duration
from banditrank.experiments._study import Answer, Check

if TYPE_CHECKING:
    from banditrank._report_page.rendering import RenderedFigure
    from banditrank.experiments._report import Report, StudyReport


def write_html_report(
    report: "Report", figures: "Mapping[str, Sequence[RenderedFigure]]", path: Path
) -> None:
    """Write the HTML page.

    Parameters
    ----------
    report
        Report to show.
    figures
        Rendered figures by study name.
    path
        File to write. Its links to data and figures are relative to its directory.
    """
    environment = make_environment("banditrank.experiments")
    environment.filters |= {
        "duration": format_duration,
        "answer": lambda check: check.answer(quick=report.quick),
    }
    page = environment.get_template(report.kind.template).render(
        report=report,
        figures=figures,
        seconds=sum(study.seconds for study in report.studies),
        all_checks=_all_checks,
        all_answers=get_args(Answer),
        paper_checks=partial(_checks_by, "paper"),
        implementation_checks=partial(_checks_by, "implementation"),
    )
    path.write_text(page, encoding="utf-8", newline="\n")


def _all_checks(studies: "Sequence[StudyReport]") -> list[Check]:
    return [check for study in studies for check in study.result.checks]


def _checks_by(source: str, checks: Sequence[Check]) -> list[Check]:
    return [check for check in checks if check.claimed_by == source]
