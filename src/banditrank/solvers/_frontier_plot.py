"""Plots of the trade-off between the total value and the worst-off type's value."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from banditrank._extras import requires
from banditrank._figures import (
    COLOURS,
    check_plot_path,
    escape_mathtext,
    ignore_missing_glyphs,
    style_axes,
    write_figure,
)
from banditrank.errors import InvalidInputError
from banditrank.model._problem import Problem
from banditrank.solvers._frontier import FrontierPoint
from banditrank.utilities._utility import Utility

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation


class _Marker(NamedTuple):
    """A labelled point in data coordinates."""

    x: float
    y: float
    label: str


class _Offset(NamedTuple):
    """A candidate position of a label relative to its point."""

    distance: int  # in points
    right: Literal[-1, 0, 1]
    up: Literal[-1, 0, 1]


_SIDES: tuple[tuple[Literal[-1, 0, 1], Literal[-1, 0, 1]], ...]
_SIDES = ((1, 0), (0, 1), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))
_OFFSETS = [_Offset(distance, right, up) for distance in (9, 18, 30, 45, 60) for right, up in _SIDES]


def plot_frontier(points: Sequence[FrontierPoint], axes: "Axes | None" = None) -> "Axes":
    """Plot each point's total value against its worst-off value, with personalized treatment for comparison.

    Utilities with equal values share a marker. A hollow marker is a ranking that is not certified; arbitrary
    ones (see `FrontierPoint`) are omitted. A thin line connects the utilities from utilitarian to maximin.

    Parameters
    ----------
    points
        The result of `banditrank.pareto_frontier`.
    axes
        Axes to draw on; those of a new figure by default.

    Returns
    -------
    Axes
        The axes.

    Raises
    ------
    InvalidInputError
        If all points are arbitrary.
    """
    with requires("plots", "plotting"):
        from matplotlib.figure import Figure  # noqa: PLC0415 - heavy, and optional

    drawn = [point for point in points if not point.is_arbitrary]
    if not drawn:
        raise InvalidInputError("points", "must contain one that is not arbitrary", points)
    if axes is None:
        axes = Figure(figsize=(7.5, 5.2), dpi=150, layout="constrained").add_subplot()
    places: dict[tuple[float, float], list[FrontierPoint]] = {}
    for point in drawn:
        places.setdefault((round(point.total, 9), round(point.worst, 9)), []).append(point)
    markers = []
    for number, ((x, y), here) in enumerate(places.items()):
        colour = COLOURS[number % (len(COLOURS) - 1)]  # black is for personalized treatment
        inside = colour if all(point.is_certified for point in here) else "white"
        axes.plot(x, y, "o", markersize=8, color=colour, markerfacecolor=inside, zorder=3)
        markers.append(_Marker(x, y, _label(here)))
    path = [(point.total, point.worst) for point in drawn]
    axes.plot(*zip(*path, strict=True), color="#999999", linewidth=0.8, zorder=1)
    report = points[0].equality
    best = _Marker(report.personalized_total, float(report.personalized_values.min()), "personalized")
    axes.plot(best.x, best.y, "D", markersize=10, color=COLOURS[-1], markerfacecolor="none", zorder=2)
    markers.append(best)
    axes.set_xlim(_range([marker.x for marker in markers]))
    axes.set_ylim(_range([marker.y for marker in markers]))
    axes.set_xlabel("total value: click rate over all users")
    axes.set_ylabel("worst-off value: lowest click rate of a user type")
    style_axes(axes)
    if best.x > 0:
        _add_price_scale(axes, best.x)
    _place_labels(axes, markers, path)
    return axes


def save_frontier_plot(problem: Problem, points: Sequence[FrontierPoint], path: str | Path) -> None:
    """Plot a frontier to a png, svg or pdf file.

    Raises
    ------
    InvalidInputError
        If the file's suffix is another one, or the file cannot be written.
    """
    with requires("plots", "plotting"):
        from matplotlib.figure import Figure  # noqa: PLC0415 - heavy, and optional

    path = Path(path)
    check_plot_path(path)
    figure = Figure(figsize=(8, 5.6), dpi=150, layout="constrained")
    title = f"{escape_mathtext(problem.name)}: one ranking for all user types, by utility"
    figure.suptitle(title, x=0.01, ha="left", fontsize="large")
    plot_frontier(points, figure.add_subplot())
    write_figure(figure, path)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Return axis limits with a margin for labels, and at least a tenth of the values wide."""
    low, high = min(values), max(values)
    missing = max(0.0, 0.1 * (high or 1.0) - (high - low))
    margin = 0.16 * (high - low + missing) + missing / 2
    return low - margin, high + margin


def _label(points: Sequence[FrontierPoint]) -> str:
    names = fill(", ".join(_name(point.utility) for point in points), 26, break_long_words=False)
    gaps = [point.solution.gap for point in points if not point.is_certified]
    if not gaps:
        return names
    gap = f"gap {max(gaps):.2g}" if max(gaps) < np.inf else "gap unknown"
    return f"{names}\n(not certified: {gap})"


def _name(utility: Utility) -> str:
    return utility.name.replace("alpha:", "α=")


def _add_price_scale(axes: "Axes", best: float) -> None:
    """Add an axis above with the price of equality: 1 − total / personalized total."""

    def price(total: ArrayLike) -> ArrayLike:
        return 1 - np.asarray(total, dtype=np.float64) / best

    def total(price: ArrayLike) -> ArrayLike:
        return (1 - np.asarray(price, dtype=np.float64)) * best

    scale = axes.secondary_xaxis("top", functions=(price, total))
    scale.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%" if share > -1e-9 else "")
    scale.set_xlabel("price of equality")
    scale.spines["top"].set_visible(False)


def _place_labels(axes: "Axes", markers: Sequence[_Marker], path: Sequence[tuple[float, float]]) -> None:
    """Place each label beside its marker: inside the axes, off other markers, labels and the line."""
    with requires("plots", "plotting"):
        from matplotlib.path import Path as Line  # noqa: PLC0415 - heavy, and optional
        from matplotlib.transforms import Bbox  # noqa: PLC0415 - heavy, and optional

    figure = axes.get_figure(root=True)
    if figure is None:  # the axes were removed from their figure
        return
    with ignore_missing_glyphs():
        figure.draw_without_rendering()  # computes the layout
    half = 6 * figure.dpi / 72  # half a marker, in pixels
    line = Line(axes.transData.transform(path))
    frame = axes.get_window_extent()
    taken = [
        Bbox.from_extents(x - half, y - half, x + half, y + half)
        for x, y in (axes.transData.transform((marker.x, marker.y)) for marker in markers)
    ]
    for marker in markers:
        at = (marker.x, marker.y)
        style: dict[str, Any] = {
            "textcoords": "offset points",
            "color": "#222222",
            "fontsize": "small",
            "zorder": 4,
        }
        text = axes.annotate(marker.label, at, xytext=(0, 0), **style)
        least, offset = np.inf, _OFFSETS[0]
        for candidate in _OFFSETS:
            _move(text, candidate)
            box = text.get_window_extent()
            outside = box.x0 < frame.x0 or box.x1 > frame.x1 or box.y0 < frame.y0 or box.y1 > frame.y1
            hidden = sum(box.overlaps(other) for other in taken)
            crossed = line.intersects_bbox(box, filled=False)
            cost = 1000 * outside + 100 * hidden + 20 * crossed + candidate.distance
            if cost < least:
                least, offset = cost, candidate
        _move(text, offset)
        taken.append(text.get_window_extent())
        if offset.distance > _OFFSETS[0].distance or (offset.right and offset.up):
            leader = {"arrowstyle": "-", "color": "#222222", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 4}
            axes.annotate("", at, xytext=text.get_position(), textcoords="offset points", arrowprops=leader)


def _move(text: "Annotation", offset: _Offset) -> None:
    text.set_position((offset.right * offset.distance, offset.up * offset.distance))
    text.set_horizontalalignment(("right", "center", "left")[offset.right + 1])
    text.set_verticalalignment(("top", "center", "bottom")[offset.up + 1])
