"""Report of several studies: figures, an HTML page and a JSON summary."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from banditrank._files import atomic_write
from banditrank._report_page.rendering import render_figure
from banditrank.experiments._html_report import write_html_report
from banditrank.experiments._results_directory import DATA
from banditrank.experiments._study import Study, StudyResult

SUMMARY_FILE = "summary.json"
HTML_FILE = "index.html"
FIGURES = "figures"


@dataclass(frozen=True, slots=True)
class ReportKind:
    """Kind of report, made by one command.

    Parameters
    ----------
    name
        Name of the manifest file, and of the directory's content in errors.
    title
        Heading of the HTML page.
    command
        Command that writes the report.
    template
        Template of the HTML page.
    """

    name: str
    title: str
    command: str
    template: str


REPRODUCTION = ReportKind(
    "reproduction", "Reproducing the paper", "banditrank reproduce", "reproduction.html"
)
COMPARISON = ReportKind("comparison", "Comparing policies", "banditrank compare", "comparison.html")


@dataclass(frozen=True, slots=True)
class StudyReport:
    """One study with its result.

    Parameters
    ----------
    study, result
        The study and its result.
    jobs
        Names of its jobs.
    seconds
        Total duration of its jobs.
    data_directories
        Names of the directories that hold the jobs' data.
    """

    study: Study
    result: StudyResult
    jobs: Sequence[str]
    seconds: float
    data_directories: Sequence[str] = (DATA,)


@dataclass(frozen=True, slots=True)
class Report:
    """All studies of a reproduction or comparison.

    Parameters
    ----------
    studies
        Studies with their results.
    seed, quick, version, machine
        How the jobs were run.
    kind
        Kind of report.
    overview
        Study over the data of all others, such as a leaderboard.
    """

    studies: Sequence[StudyReport]
    seed: int
    quick: bool
    version: str
    machine: str
    kind: ReportKind = REPRODUCTION
    overview: StudyReport | None = None

    @property
    def sections(self) -> Sequence[StudyReport]:
        """All studies, the overview first."""
        return self.studies if self.overview is None else [self.overview, *self.studies]

    def summary(self) -> dict[str, Any]:
        """Return the report as plain values, as in ``summary.json``."""
        overview = {} if self.overview is None else {"overview": _summary(self.overview)}
        return {
            "version": self.version,
            "seed": self.seed,
            "quick": self.quick,
            "machine": self.machine,
            "seconds": round(sum(report.seconds for report in self.studies), 1),
            **overview,
            "studies": {report.study.name: _summary(report) for report in self.studies},
        }

    def write(self, directory: Path) -> None:
        """Write the figures, the HTML page and the summary.

        Raises
        ------
        OSError
            If a file cannot be written.
        """
        rendered = {
            report.study.name: [render_figure(figure) for figure in report.result.figures]
            for report in self.sections
        }
        for study, figures in rendered.items():
            for figure in figures:
                target = directory / FIGURES / study
                target.mkdir(parents=True, exist_ok=True)
                for suffix, content in (("png", figure.png), ("svg", figure.light_svg)):
                    with atomic_write(target / f"{figure.source.name}.{suffix}") as path:
                        path.write_bytes(content)
        with atomic_write(directory / HTML_FILE) as path:
            write_html_report(self, rendered, path)
        with atomic_write(directory / SUMMARY_FILE) as path:
            path.write_text(json.dumps(self.summary(), indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _summary(report: StudyReport) -> dict[str, Any]:
    result = report.result
    return {
        "title": report.study.title,
        "agreement": result.agreement,
        "claim": report.study.claim,
        "findings": result.findings,
        "checks": [
            {
                "statement": check.statement,
                "holds": check.holds,
                "answer": check.answer(quick=result.is_quick),
                "evidence": check.evidence,
                "claimed_by": check.claimed_by,
            }
            for check in result.checks
        ],
        "tables": [
            {
                "caption": table.caption,
                "columns": list(table.columns),
                "rows": [list(row) for row in table.rows],
                "note": table.note,
            }
            for table in result.tables
        ],
        "metrics": dict(result.metrics),
        "figures": [figure.name for figure in result.figures],
        "jobs": list(report.jobs),
        "seconds": round(report.seconds, 1),
    }
