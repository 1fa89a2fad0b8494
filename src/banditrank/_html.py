"""HTML of objects in notebooks: escaping, numbers and tables, readable on light and dark backgrounds.

Text inherits the notebook's colour, and lines and tints are translucent. Styles are inline, because some
front ends remove style sheets.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape as _escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._text import plural, shorten

MAX_ROWS = 10
"""Maximum number of rows of a table."""

MAX_COLUMNS = 6
"""Maximum number of columns of numbers in a table."""

_MAX_NAME = 48  # characters of a name in a table
_MAX_FACT = 120  # characters of a text in a heading
_LINE = "1px solid rgba(128, 128, 128, 0.4)"
_TABLE = "border-collapse: collapse; margin: 0; font-size: inherit; font-variant-numeric: tabular-nums"
_CELL = "padding: 0.15em 0.6em; white-space: nowrap; border: none; vertical-align: middle"


class Cell(NamedTuple):
    """A cell of a table: its text, and the strength of its tint, from 0 to 1."""

    text: str
    tint: float = 0.0


def escape(text: str, max_length: int | None = None) -> str:
    """Return a text without markup, shortened if a maximum length is given.

    Examples
    --------
    >>> escape("<b>5 & 6</b>"), escape("news & sports", max_length=6)
    ('&lt;b&gt;5 &amp; 6&lt;/b&gt;', 'news …')
    """
    return _escape(text if max_length is None else shorten(text, max_length))


def format_count(number: float) -> str:
    """Return a count with thousands separators, and a decimal if it is not whole.

    Examples
    --------
    >>> format_count(12000.0), format_count(0.25)
    ('12,000', '0.2')
    """
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"


def rate_cells(rates: NDArray[np.float64]) -> list[list[Cell]]:
    """Return cells of rates, shape (rows, columns), with a common number of decimals, tinted by size.

    Examples
    --------
    >>> rate_cells(np.array([[0.02, 0.01]]))
    [[Cell(text='0.0200', tint=1.0), Cell(text='0.0100', tint=0.5)]]
    """
    largest = float(rates.max(initial=0.0))
    unit = largest if 0 < largest < np.inf else 1.0
    decimals = min(max(2 - int(np.floor(np.log10(unit))), 0), 8)
    return [[Cell(f"{rate:.{decimals}f}", min(float(rate) / unit, 1.0)) for rate in row] for row in rates]


def table(
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str | Cell]],
    *,
    n_names: int = 1,
    omitted: str | None = None,
) -> str:
    """Return a table of names and numbers.

    Parameters
    ----------
    caption
        Line above the table.
    headings
        Column headings.
    rows
        Cells; all texts are escaped.
    n_names
        Number of columns of names, before those of numbers.
    omitted
        Line below the table about rows or columns that are not shown.
    """
    head = _cells("th", headings, n_names)
    body = "".join(f'<tr style="background: none">{_cells("td", row, n_names)}</tr>' for row in rows)
    foot = "" if omitted is None else f'<div style="opacity: 0.7">{escape(omitted)}</div>'
    return (
        f'<div><div style="opacity: 0.7">{escape(caption)}</div>'
        f'<table style="{_TABLE}">'
        f'<thead><tr style="background: none; border-bottom: {_LINE}">{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>{foot}</div>"
    )


def panel(kind: str, name: str, facts: Sequence[str], *parts: str, notes: Sequence[str] = ()) -> str:
    """Return the HTML of an object: a heading, tables beside each other, and notes.

    Parameters
    ----------
    kind, name
        The heading: class and name of the object.
    facts
        Short texts after the heading.
    parts
        HTML of the tables.
    notes
        Sentences below the tables.
    """
    heading = f"<strong>{escape(kind)}</strong> {escape(name, _MAX_FACT)}".strip()
    line = "".join(f" · {escape(fact, _MAX_FACT)}" for fact in facts)
    below = "".join(f"<div>⚠ {escape(note)}</div>" for note in notes)
    return (
        f'<div style="font-size: 0.95em; line-height: 1.4"><div>{heading}{line}</div>'
        '<div style="display: flex; flex-wrap: wrap; gap: 0.6em 2em; margin: 0.4em 0; overflow-x: auto">'
        f"{''.join(parts)}</div>{below}</div>"
    )


def omitted_text(counts: Mapping[str, tuple[int, int]]) -> str | None:
    """Return the line about what is not shown, or None if everything is.

    Parameters
    ----------
    counts
        The number and the limit of each noun.

    Examples
    --------
    >>> omitted_text({"item": (1000, 10), "position": (3, 6)})
    'and 990 more items'
    """
    parts = [
        plural(count - limit, f"more {noun}") for noun, (count, limit) in counts.items() if count > limit
    ]
    return f"and {', '.join(parts)}" if parts else None


def _cells(tag: str, row: Sequence[str | Cell], n_names: int) -> str:
    return "".join(_cell(tag, cell, "left" if i < n_names else "right") for i, cell in enumerate(row))


def _cell(tag: str, cell: str | Cell, side: str) -> str:
    text, tint = cell if isinstance(cell, Cell) else (cell, 0.0)
    background = f"; background: rgba(0, 114, 178, {0.4 * tint:.2f})" if tint > 0 else ""
    return f'<{tag} style="{_CELL}; text-align: {side}{background}">{escape(text, _MAX_NAME)}</{tag}>'
