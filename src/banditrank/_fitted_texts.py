"""Texts of figures, wrapped or shortened to the space that they have."""

import re
import warnings
from textwrap import wrap
from typing import TYPE_CHECKING

from banditrank._figures import ignore_missing_glyphs
from banditrank._text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

_MATHEMATICS = re.compile(r"(?<!\\)\$")  # which must not be broken
_MAX_LINES = 4
_MIN_CHARACTERS = 8  # of a line
_PADDING = 0.1  # inches


def fit_texts(figure: "Figure") -> None:
    """Wrap titles and labels of axes, and shorten names in legends, that have not enough space.

    Titles of panels are as wide as the axes, that of the figure as wide as the figure. Texts with mathematics
    are left as they are. Call it when all is drawn: it computes the layout.
    """
    with ignore_missing_glyphs():
        warnings.filterwarnings(
            "ignore", "constrained_layout not applied"
        )  # texts are too long until they fit
        figure.draw_without_rendering()
        padding = _PADDING * figure.dpi
        for title in figure.texts:
            left = max(padding, title.get_window_extent().x0)  # beyond the edge if it is centred
            _wrap(title, figure.bbox.width - left - padding)
        for axes in figure.axes:
            for label in _labels(axes):
                is_vertical = label.get_rotation() == 90
                _wrap(label, axes.bbox.height if is_vertical else axes.bbox.width, is_vertical=is_vertical)
            legend = axes.get_legend()
            if legend is not None and legend.get_texts():
                names = legend.get_texts()
                widths = [name.get_window_extent().width for name in names]
                frame = legend.get_window_extent().width - max(widths)
                space = min(axes.bbox.width, figure.bbox.width - padding) - max(frame, 0.0)
                for name, width in zip(names, widths, strict=True):
                    _shorten(name, width, space)
                _wrap(legend.get_title(), axes.bbox.width)


def _labels(axes: "Axes") -> "Iterator[Text]":
    """Yield the titles of axes and the labels of their axis."""
    from matplotlib.text import Text  # noqa: PLC0415 - heavy, and optional

    notes = axes.texts
    yield from (child for child in axes.get_children() if isinstance(child, Text) and child not in notes)
    yield from (axes.xaxis.label, axes.yaxis.label)


def _wrap(text: "Text", space: float, *, is_vertical: bool = False) -> None:
    """Wrap a text to a width in pixels; what is beyond the last line is left out."""
    content = text.get_text()
    box = text.get_window_extent()
    length = box.height if is_vertical else box.width
    if not content.strip() or length <= space or _MATHEMATICS.search(content):
        return
    lines = content.split("\n")
    n_characters = max(_MIN_CHARACTERS, int(max(map(len, lines)) * space / length))
    wrapped = [part for line in lines for part in wrap(line, n_characters)]
    if len(wrapped) > _MAX_LINES:
        wrapped = [*wrapped[: _MAX_LINES - 1], shorten(" ".join(wrapped[_MAX_LINES - 1 :]), n_characters)]
    text.set_text("\n".join(wrapped))


def _shorten(text: "Text", width: float, space: float) -> None:
    content = text.get_text()
    if width > space and not _MATHEMATICS.search(content):
        text.set_text(shorten(content, max(_MIN_CHARACTERS, int(len(content) * space / width))))
