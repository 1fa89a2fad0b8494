"""HTML page of a report: one self-contained file that works offline."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from banditrank._extras import requires
from banditrank.experiments._formatting import format_duration
from banditrank.experiments._study import Answer, Check, Table

if TYPE_CHECKING:
    from banditrank.experiments._report import RenderedFigure, Report, StudyReport

ColumnKind = Literal["number", "short", "text"]

_EMPTY_CELLS = frozenset({"", "-", "–", "—", "n/a"})
_NOT_FINITE = frozenset({"nan", "inf", "-inf", "−inf"})
_NUMBER = re.compile(r"[^\w]*\d")  # the first letter or digit is a digit
_MAX_LETTERS_OF_A_NUMBER = 3  # as in "12 min" or "1e-6"
_MAX_SHORT_CHARACTERS = 24


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
    with requires("reports", "the study"):
        from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - heavy, and optional

    environment = Environment(
        loader=PackageLoader("banditrank.experiments", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "data_uri": data_uri,
        "duration": format_duration,
        "column_kinds": column_kinds,
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


def data_uri(svg: bytes) -> str:
    """Return a data URI that contains an SVG image.

    Examples
    --------
    >>> data_uri(b"<svg/>")
    'data:image/svg+xml;base64,PHN2Zy8+'
    """
    return f"data:image/svg+xml;base64,{b64encode(svg).decode('ascii')}"


def column_kinds(table: Table) -> list[ColumnKind]:
    """Return the layout of each column: right-aligned numbers, texts on one line, or wrapped texts.

    Examples
    --------
    >>> rows = [["UCB", "1,204", "12%", "Ad 1"], ["random", "−3 ± 2", "–", "Ad 2 to some, Ad 1 to others"]]
    >>> column_kinds(Table("Regret", ["policy", "median", "found", "shown"], rows))
    ['short', 'number', 'number', 'text']
    """
    return [_column_kind([row[column].strip() for row in table.rows]) for column in range(len(table.columns))]


def _column_kind(cells: Sequence[str]) -> ColumnKind:
    filled = [cell for cell in cells if cell not in _EMPTY_CELLS]
    if filled and all(map(_is_number, filled)):
        return "number"
    return "short" if all(len(cell) <= _MAX_SHORT_CHARACTERS for cell in cells) else "text"


def _is_number(cell: str) -> bool:
    n_letters = sum(character.isalpha() for character in cell)
    return cell.lower() in _NOT_FINITE or (
        _NUMBER.match(cell) is not None and n_letters <= _MAX_LETTERS_OF_A_NUMBER
    )
