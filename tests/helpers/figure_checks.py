"""Checks of figures: what is drawn is inside its axes, and no text overlaps another or leaves the figure."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from unittest.mock import patch

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from numpy.typing import NDArray

from banditrank._figures import ignore_missing_glyphs, theme
from banditrank._report_page.elements import ReportFigure

Floats = NDArray[np.float64]

TOLERANCE = 1.5
"""Pixels by which a point may leave its axes, and boxes of text may overlap: their margins have no ink."""


@dataclass(frozen=True)
class TextBox:
    """A text that is drawn, as the corners of its box in pixels, shape (4, 2)."""

    text: str
    corners: Floats

    def overlaps(self, other: "TextBox") -> bool:
        """Return whether no line separates two boxes, which may be rotated, by more than the tolerance."""
        for box in (self.corners, other.corners):
            for edge in np.diff(box[:3], axis=0):
                normal = edge / max(float(np.hypot(*edge)), 1e-9)
                own, others = self.corners @ normal, other.corners @ normal
                if own.max() - TOLERANCE <= others.min() or others.max() - TOLERANCE <= own.min():
                    return False
        return True


def check_report_figure(figure: ReportFigure, *, is_cut_left: bool = False) -> Figure:
    """Check a figure of a report as it is drawn on a light page; return it."""
    with theme(), ignore_missing_glyphs():
        canvas = Figure(figsize=(figure.width, figure.height), dpi=150, layout="constrained")
        figure.draw(canvas)
        check_figure(canvas, is_cut_left=is_cut_left)
    return canvas


def check_figure(figure: Figure, *, is_cut_left: bool = False) -> None:
    """Assert that a figure can be read: see the functions below.

    Parameters
    ----------
    figure
        The figure.
    is_cut_left
        Whether curves begin left of their axes on purpose, as those of regret, whose axes begin at round 10.
        Nothing else is cut on purpose, except what a logarithmic axis cannot show: numbers of at most 0.
    """
    boxes = draw_texts(figure)
    assert find_points_outside(figure, is_cut_left=is_cut_left) == []
    assert find_overlapping_texts(boxes) == []
    assert find_texts_outside(figure, boxes) == []


def draw_texts(figure: Figure) -> list[TextBox]:
    """Draw a figure, and return the texts that are drawn."""
    drawn: list[Text] = []
    draw = Text.draw

    def record(text: Text, *arguments: object, **options: object) -> None:
        if text.get_visible() and text.get_text().strip():
            drawn.append(text)
        draw(text, *arguments, **options)

    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # computes the layout
    with patch.object(Text, "draw", record):
        canvas.draw()
    return [_box(text) for text in drawn]


def _box(text: Text) -> TextBox:
    rotation = text.get_rotation()
    middle = np.mean(Text.get_window_extent(text).get_points(), axis=0)
    text.set_rotation(0)
    box = Text.get_window_extent(text)
    text.set_rotation(rotation)
    x, y = box.width / 2, box.height / 2
    turned = np.exp(1j * np.deg2rad(rotation)) * np.array([-x - 1j * y, x - 1j * y, x + 1j * y, -x + 1j * y])
    return TextBox(text.get_text(), middle + np.column_stack([turned.real, turned.imag]))


def find_overlapping_texts(boxes: list[TextBox]) -> list[tuple[str, str]]:
    """Return the pairs of texts that overlap."""
    return [(each.text, other.text) for each, other in combinations(boxes, 2) if each.overlaps(other)]


def find_texts_outside(figure: Figure, boxes: list[TextBox]) -> list[str]:
    """Return the texts that leave the figure."""
    low, high = _frame(figure)
    return [box.text for box in boxes if (box.corners < low).any() or (box.corners > high).any()]


def _frame(part: Figure | Axes) -> Floats:
    """Return the corners of a figure or axes in pixels, with the tolerance, shape (2, 2)."""
    return np.asarray(part.bbox.get_points()) + np.array([[-TOLERANCE], [TOLERANCE]])


def find_points_outside(figure: Figure, *, is_cut_left: bool = False) -> list[str]:
    """Return what is drawn outside of its axes: lines, their markers, bands, error bars, dots and bars."""
    found = []
    for axes in figure.axes:
        if not axes.get_visible():
            continue
        low, high = _frame(axes)
        if is_cut_left:
            low[0] = -np.inf
        for name, points in _drawn_points(axes):
            outside = ((points < low) | (points > high)).any(axis=1) & _can_be_shown(axes, points)
            if outside.any():
                at = axes.transData.inverted().transform(points[outside][0])
                found.append(f"{name} at {at.tolist()} of {axes.get_xlim()}, {axes.get_ylim()}")
    return found


def _can_be_shown(axes: Axes, points: Floats) -> NDArray[np.bool_]:
    """Return which points are numbers, and not ones that a logarithmic axis draws far below its range."""
    shown = np.isfinite(points).all(axis=1)
    with np.errstate(over="ignore"):
        values = axes.transData.inverted().transform(np.where(shown[:, None], points, 0.0))
    for column, axis in enumerate((axes.xaxis, axes.yaxis)):
        if axis.get_scale() == "log":
            shown &= values[:, column] > 1e-300
    return shown


def _drawn_points(axes: Axes) -> Iterator[tuple[str, Floats]]:
    """Yield a name and the points in pixels, shape (n, 2), of what is drawn on axes."""
    for artist in axes.get_children():
        if not artist.get_visible() or artist is axes.patch:
            continue
        if isinstance(artist, Line2D) and artist.get_transform().contains_branch(axes.transData):
            x, y = (np.asarray(axis, dtype=np.float64) for axis in artist.get_data(orig=False))
            yield f"line {artist.get_label()}", artist.get_transform().transform(np.column_stack([x, y]))
        elif isinstance(artist, Collection):
            offsets = np.ma.filled(np.ma.asarray(artist.get_offsets(), dtype=np.float64), np.nan)
            if artist.get_offset_transform().contains_branch(axes.transData):
                yield "dots", artist.get_offset_transform().transform(offsets)
                continue
            for path in artist.get_paths():
                yield type(artist).__name__, artist.get_transform().transform(path.vertices)
        elif isinstance(artist, Patch) and artist.get_transform().contains_branch(axes.transData):
            yield type(artist).__name__, artist.get_transform().transform(artist.get_path().vertices)
