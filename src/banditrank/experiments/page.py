"""The page that shows studies: one file that needs nothing else, not even a network."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from banditrank.experiments.study import Check, CommitStatus, Table

if TYPE_CHECKING:
    from banditrank.experiments.report import Drawing, Report, StudyReport

Kind = Literal["figure", "short", "text"]

_ABSENT = frozenset({"", "-", "–", "—", "n/a"})  # a cell that has nothing to say
_NOT_FINITE = frozenset({"nan", "inf", "-inf", "−inf"})
_FIGURE = re.compile(r"[^\w]*\d")  # the first letter or digit is a digit
_LETTERS_OF_A_FIGURE = 3  # as in 12 min or 1e-6; more make it a text
_SHORT = 24  # characters


def write_page(report: "Report", drawings: "Mapping[str, Sequence[Drawing]]", path: Path) -> None:
    """Write the page.

    Parameters
    ----------
    report
        What to show.
    drawings
        The figures of each study, by its name.
    path
        The file. Its links to data and figures are relative to the directory it is in.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - late: `--help` needs none

    environment = Environment(
        loader=PackageLoader("banditrank.experiments", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"data_uri": data_uri, "duration": duration, "column_kinds": column_kinds}
    page = environment.get_template(report.publication.template).render(
        report=report,
        drawings=drawings,
        seconds=sum(study.seconds for study in report.studies),
        checks_of=_checks_of_all,
        all_verdicts=get_args(CommitStatus),
        of_paper=partial(_checks_of, "paper"),
        of_implementation=partial(_checks_of, "implementation"),
    )
    path.write_text(page, encoding="utf-8", newline="\n")


def _checks_of_all(studies: "Sequence[StudyReport]") -> list[Check]:
    return [check for study in studies for check in study.reading.checks]


def _checks_of(whose: str, checks: Sequence[Check]) -> list[Check]:
    return [check for check in checks if check.of == whose]


def data_uri(svg: bytes) -> str:
    """Return an address that contains the picture itself.

    Examples
    --------
    >>> data_uri(b"<svg/>")
    'data:image/svg+xml;base64,PHN2Zy8+'
    """
    return f"data:image/svg+xml;base64,{b64encode(svg).decode('ascii')}"


def duration(seconds: float) -> str:
    """Return a time in words, as exactly as a reader cares to know it.

    Examples
    --------
    >>> [duration(seconds) for seconds in (0.04, 1.26, 59.96, 754, 7384)]
    ['under 0.1 s', '1.3 s', '1 min 0 s', '12 min 34 s', '2 h 3 min']
    """
    if seconds < 0.1:
        return "under 0.1 s"
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes} min {left} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def column_kinds(table: Table) -> list[Kind]:
    """Return how each column is set: figures flush right, short texts on a line, other texts on several.

    Examples
    --------
    >>> rows = [["UCB", "1,204", "12%", "Ad 1"], ["random", "−3 ± 2", "–", "Ad 2 to some, Ad 1 to others"]]
    >>> column_kinds(Table("Regret", ["policy", "median", "found", "shown"], rows))
    ['short', 'figure', 'figure', 'text']
    """
    return [_kind([row[column].strip() for row in table.rows]) for column in range(len(table.columns))]


def _kind(cells: Sequence[str]) -> Kind:
    filled = [cell for cell in cells if cell not in _ABSENT]
    if filled and all(map(_is_figure, filled)):
        return "figure"
    return "short" if all(len(cell) <= _SHORT for cell in cells) else "text"


def _is_figure(cell: str) -> bool:
    letters = sum(character.isalpha() for character in cell)
    return cell.lower() in _NOT_FINITE or (
        _FIGURE.match(cell) is not None and letters <= _LETTERS_OF_A_FIGURE
    )
