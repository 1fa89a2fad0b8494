"""Tables and figures of a report."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ColumnKind = Literal["number", "interval", "short", "text"]

_EMPTY_CELLS = frozenset({"", "-", "–", "—", "n/a"})
_NOT_FINITE = frozenset({"nan", "inf", "-inf", "−inf"})
_NUMBER = re.compile(r"[^\w]*\d")  # the first letter or digit is a digit
_MAX_LETTERS_OF_A_NUMBER = 3  # as in "12 min" or "1e-6"
_MAX_SHORT_CHARACTERS = 24
_INTERVAL = re.compile(r"\S+ \[\S+, \S+\]( \*)?")
_MAX_INTERVAL_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Table:
    """Table of formatted cells.

    Parameters
    ----------
    caption
        Text above the table.
    columns, rows
        Headings and cells.
    note
        Text below the table, such as the reason for empty cells.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """Figure that is drawn once for each output format and colour theme.

    Parameters
    ----------
    name
        Stem of its file names.
    caption
        Text below the figure.
    draw
        Draws on an empty Matplotlib figure.
    width, height
        Size in inches.
    """

    name: str
    caption: str
    draw: "Callable[[Figure], None]"
    width: float = 9.0
    height: float = 4.0


def column_kinds(table: Table) -> list[ColumnKind]:
    """Return the layout of each column: numbers, texts on one line, or wrapped texts.

    Numbers are right-aligned; those with intervals may be above their interval.

    Examples
    --------
    >>> rows = [["UCB", "1,204", "12%", "Ad 1"], ["random", "−3 ± 2", "–", "Ad 2 to some, Ad 1 to others"]]
    >>> column_kinds(Table("Regret", ["policy", "median", "found", "shown"], rows))
    ['short', 'number', 'number', 'text']
    >>> column_kinds(Table("Worth", ["a", "b"], [["1 (reference)", "unknown"], ["0.5 [0.4, 0.6]", ""]]))
    ['interval', 'short']
    """
    return [_column_kind([row[column].strip() for row in table.rows]) for column in range(len(table.columns))]


def _column_kind(cells: Sequence[str]) -> ColumnKind:
    filled = [cell for cell in cells if cell not in _EMPTY_CELLS]
    is_short = all(len(cell) <= _MAX_INTERVAL_CHARACTERS for cell in filled)
    if is_short and any(map(_INTERVAL.fullmatch, filled)):
        return "interval"
    if filled and all(map(_is_number, filled)):
        return "number"
    return "short" if all(len(cell) <= _MAX_SHORT_CHARACTERS for cell in cells) else "text"


def _is_number(cell: str) -> bool:
    n_letters = sum(character.isalpha() for character in cell)
    return cell.lower() in _NOT_FINITE or (
        _NUMBER.match(cell) is not None and n_letters <= _MAX_LETTERS_OF_A_NUMBER
    )
