"""What studies gave, and the files that show it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from banditrank.experiments.archive import DATA
from banditrank.experiments.page import write_page
from banditrank.experiments.publication import REPRODUCTION, Publication
from banditrank.experiments.study import Picture, Reading, Study
from banditrank.figures import ignore_missing_glyphs, theme
from banditrank.files import atomic_write

SUMMARY_FILE = "summary.json"
PAGE_FILE = "index.html"
FIGURES = "figures"


@dataclass(frozen=True, slots=True)
class StudyReport:
    """A study and what it gave.

    Parameters
    ----------
    parts
        The names of its parts.
    seconds
        How long these took.
    folders
        Where their files are.
    """

    study: Study
    reading: Reading
    parts: Sequence[str]
    seconds: float
    folders: Sequence[str] = (DATA,)


@dataclass(frozen=True, slots=True)
class Report:
    """All studies of a reproduction or a comparison, and what they give together if that is of interest."""

    studies: Sequence[StudyReport]
    seed: int
    quick: bool
    version: str
    machine: str
    publication: Publication = REPRODUCTION
    overview: StudyReport | None = None

    @property
    def shown(self) -> Sequence[StudyReport]:
        """All that there is to show, the overview first."""
        return self.studies if self.overview is None else [self.overview, *self.studies]

    def summary(self) -> dict[str, Any]:
        """Return everything as plain values."""
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
        """Write the figures, the page and the summary."""
        drawings = {
            report.study.name: [draw_picture(picture) for picture in report.reading.pictures]
            for report in self.shown
        }
        for study, drawn in drawings.items():
            for drawing in drawn:
                figures = directory / FIGURES / study
                figures.mkdir(parents=True, exist_ok=True)
                for kind, content in (("png", drawing.png), ("svg", drawing.light)):
                    with atomic_write(figures / f"{drawing.picture.name}.{kind}") as path:
                        path.write_bytes(content)
        with atomic_write(directory / PAGE_FILE) as path:
            write_page(self, drawings, path)
        with atomic_write(directory / SUMMARY_FILE) as path:
            path.write_text(json.dumps(self.summary(), indent=2, allow_nan=False) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture, drawn: as PNG, and as SVG for a light and for a dark page."""

    picture: Picture
    png: bytes
    light: bytes
    dark: bytes


def draw_picture(picture: Picture) -> Drawing:
    """Draw a picture in all the ways that are needed."""
    return Drawing(
        picture,
        _draw(picture, "png", dark=False),
        _draw(picture, "svg", dark=False),
        _draw(picture, "svg", dark=True),
    )


def _draw(picture: Picture, kind: str, *, dark: bool) -> bytes:
    from matplotlib.figure import Figure  # noqa: PLC0415 - heavy

    target = BytesIO()
    with theme(dark=dark), ignore_missing_glyphs():
        figure = Figure(figsize=(picture.width, picture.height), dpi=150, layout="constrained")
        picture.draw(figure)
        figure.savefig(target, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return target.getvalue()


def _summary(report: StudyReport) -> dict[str, Any]:
    reading = report.reading
    return {
        "title": report.study.title,
        "verdict": reading.verdict,
        "claim": report.study.claim,
        "findings": reading.findings,
        "checks": [
            {"statement": check.statement, "holds": check.holds, "evidence": check.evidence, "of": check.of}
            for check in reading.checks
        ],
        "tables": [
            {
                "caption": table.caption,
                "columns": list(table.columns),
                "rows": [list(row) for row in table.rows],
            }
            for table in reading.tables
        ],
        "figures": dict(reading.figures),
        "pictures": [picture.name for picture in reading.pictures],
        "parts": list(report.parts),
        "seconds": round(report.seconds, 1),
    }
