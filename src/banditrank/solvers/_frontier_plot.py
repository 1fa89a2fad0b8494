"""Plots of the trade-off between the price of equality and the worst-off type's value."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from banditrank._extras import requires
from banditrank._figures import (
    Size,
    Style,
    check_plot_path,
    escape_mathtext,
    ignore_missing_glyphs,
    new_figure,
    write_figure,
)
from banditrank._fitted_texts import fit_texts
from banditrank.errors import InvalidInputError
from banditrank.model._problem import Problem
from banditrank.solvers._frontier import FrontierPoint
from banditrank.utilities._utility import Utility

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

X_LABEL = "price of equality: share of the personalized total that is lost"
Y_LABEL = "clicks per visit of the worst-off user type"

_MIN_PRICE_RANGE = 0.01  # of the x axis
_MIN_VALUE_RANGE = 0.04  # of the y axis, as a share of the largest value
_MAX_ENLARGEMENT = 1.6  # of an axis, to show personalized treatment on it


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
_OFFSETS = [_Offset(distance, right, up) for distance in (8, 16, 26, 38, 52, 68) for right, up in _SIDES]
_SWEEPS = 3  # over all labels: each label moves to its best place, given the others


def plot_frontier(
    points: Sequence[FrontierPoint],
    *,
    title: str | None = None,
    x_label: str = X_LABEL,
    y_label: str = Y_LABEL,
    size: Size | None = None,
    style: Style | None = None,
) -> "Figure":
    """Plot the worst-off type's value against the price of equality, from utilitarian to maximin.

    Utilities with equal values share a marker. A hollow marker is a ranking that is not certified; arbitrary
    ones (see `FrontierPoint`) are omitted. A diamond is personalized treatment, whose price is 0; if it is
    far from the other points, its values are written into the corner. Squares are the best lotteries for the
    same utilities, unless all are rankings of the frontier.

    Parameters
    ----------
    points
        The result of `banditrank.pareto_frontier`.
    title
        Title of the figure, which may contain mathematics between dollar signs; none by default.
    x_label, y_label
        Labels of the axes.
    size
        Width and height in inches; or ``"column"`` or ``"page"``, for a paper's column of 3.3 inches or page
        of 7 inches.
    style
        Matplotlib style: a name, the path of a style file, a mapping of rcParams, or several of these.

    Returns
    -------
    Figure
        A Matplotlib figure, which a notebook shows if it is the value of a cell. `Figure.savefig` writes it
        to a file, with embedded fonts.

    Raises
    ------
    InvalidInputError
        If all points are arbitrary, or the size or style is not valid.
    MissingDependencyError
        If Matplotlib is not installed.

    Examples
    --------
    >>> from banditrank import make_problem, pareto_frontier, plot_frontier
    >>> problem = make_problem("conflict", n_user_types=3, n_items=6, n_positions=3, seed=2)
    >>> figure = plot_frontier(pareto_frontier(problem, alphas=[1]), title="what equality costs")
    >>> figure.axes[0].get_title("left")
    'what equality costs'
    """
    with new_figure(size, style, default=(7.5, 4.2)) as figure:
        axes = figure.add_subplot()
        if title is not None:
            axes.set_title(title)
        if figure.get_figwidth() < 5 and x_label == X_LABEL:
            x_label = X_LABEL.partition(":")[0]
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        fit_texts(figure)  # before labels of points are placed for the size of the axes
        x_label, y_label = axes.get_xlabel(), axes.get_ylabel()
        draw_frontier(axes, points, x_label=x_label, y_label=y_label)
    return figure


def draw_frontier(
    axes: "Axes", points: Sequence[FrontierPoint], *, x_label: str = X_LABEL, y_label: str = Y_LABEL
) -> None:
    """Draw a frontier on axes of your own, as `plot_frontier` does.

    Labels are placed for the current size of the figure.

    Parameters
    ----------
    axes
        Matplotlib axes to draw on.
    points
        The result of `banditrank.pareto_frontier`.
    x_label, y_label
        Labels of the axes.

    Raises
    ------
    InvalidInputError
        If all points are arbitrary.

    Examples
    --------
    >>> from banditrank import draw_frontier, kdd2012, pareto_frontier
    >>> from matplotlib.figure import Figure
    >>> axes = Figure().add_subplot()
    >>> draw_frontier(axes, pareto_frontier(kdd2012(), alphas=[]))
    >>> [text.get_text() for text in axes.texts if text.get_text()]
    ['utilitarian', 'maximin', 'personalized']
    """
    drawn = [point for point in points if not point.is_arbitrary]
    if not drawn:
        raise InvalidInputError("points", "must contain one that is not arbitrary", points)
    places: dict[tuple[float, float], list[FrontierPoint]] = {}
    for point in drawn:
        places.setdefault((round(point.price_of_equality, 9), round(point.worst, 9)), []).append(point)
    markers = []
    for (x, y), here in places.items():
        inside = "C0" if all(point.is_certified for point in here) else "white"
        axes.plot(x, y, "o", color="C0", markerfacecolor=inside, zorder=3)
        markers.append(_Marker(x, y, _label(here)))
    path = list(places)
    axes.plot(*zip(*path, strict=True), color="C0", linewidth=0.8, alpha=0.5, zorder=1)
    lotteries = _lottery_path(drawn)
    if set(lotteries) != set(path):
        axes.plot(*zip(*lotteries, strict=True), "s-", color="C1", linewidth=0.8, markersize=4, zorder=2)
        markers.append(_Marker(*lotteries[-1], "lotteries"))
        path = [*path, *reversed(lotteries)]
    best = float(points[0].equality.personalized_values.min())
    is_near = _is_near(0.0, [x for x, _ in path], _MIN_PRICE_RANGE) and _is_near(
        best, [y for _, y in path], _MIN_VALUE_RANGE * best
    )
    if is_near:
        size = 1.4 * axes.lines[0].get_markersize()
        ink = axes.xaxis.label.get_color()
        axes.plot(0, best, "D", markersize=size, color=ink, markerfacecolor="none", zorder=2)
        markers.append(_Marker(0.0, best, "personalized"))
    shown = [*((marker.x, marker.y) for marker in markers), *path]
    axes.set_xlim(_range([x for x, _ in shown], _MIN_PRICE_RANGE))
    axes.set_ylim(_range([y for _, y in shown], _MIN_VALUE_RANGE * best))
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%" if share > -1e-9 else "")
    axes.locator_params(axis="x", nbins=6)
    taken = [] if is_near else [_add_note(axes, f"personalized, off the scale: {best:.3g} at 0%")]
    _place_labels(axes, markers, path, taken)


def _lottery_path(points: Sequence[FrontierPoint]) -> list[tuple[float, float]]:
    """Return the price and the worst-off value of each lottery; those of the ranking without one."""
    return list(
        dict.fromkeys(
            (round(point.price_of_equality, 9), round(point.worst, 9))
            if point.lottery is None
            else (round(point.lottery_price, 9), round(point.lottery_worst, 9))
            for point in points
        )
    )


def save_frontier_plot(
    problem: Problem,
    points: Sequence[FrontierPoint],
    path: str | Path,
    *,
    title: str | None = None,
    size: Size | None = None,
    style: Style | None = None,
    dpi: float | None = None,
) -> None:
    """Plot a frontier to a png, svg or pdf file.

    Parameters
    ----------
    problem
        The problem, which the default title names.
    points
        The result of `banditrank.pareto_frontier`.
    path
        File to write; its suffix is the format. Fonts are embedded.
    title
        Title of the figure; by default it names the problem, or there is none if a size is given.
    size, style
        As for `plot_frontier`.
    dpi
        Pixels per inch of a png file, 150 by default.

    Raises
    ------
    InvalidInputError
        If the file's suffix is another one, the file cannot be written, or an option is not valid.
    MissingDependencyError
        If Matplotlib is not installed.
    """
    path = Path(path)
    check_plot_path(path)
    described = f"{problem.name}: one ranking for all user types, by utility"
    if title is None and size is None:
        title = escape_mathtext(described)
    write_figure(plot_frontier(points, title=title, size=size, style=style), path, described, dpi)


def _is_near(value: float, others: Sequence[float], min_range: float) -> bool:
    """Return whether showing a value with others enlarges their range little."""
    low, high = min(others), max(others)
    return max(high, value) - min(low, value) <= _MAX_ENLARGEMENT * max(high - low, min_range)


def _range(values: Sequence[float], min_range: float) -> tuple[float, float]:
    """Return axis limits with a margin for labels."""
    low, high = min(values), max(values)
    missing = max(0.0, (min_range or 0.1) - (high - low))
    margin = 0.14 * (high - low + missing) + missing / 2
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


def _add_note(axes: "Axes", text: str) -> "Annotation":
    """Write a note into the upper left corner, where personalized treatment is."""
    with requires("plots", "plotting"):
        import matplotlib as mpl  # noqa: PLC0415 - heavy, and optional

    return axes.annotate(
        f"◇ {text}",
        (0.0, 1.0),
        xycoords="axes fraction",
        xytext=(4, -4),
        textcoords="offset points",
        va="top",
        fontsize=mpl.rcParams["legend.fontsize"],
    )


def _place_labels(
    axes: "Axes",
    markers: Sequence[_Marker],
    path: Sequence[tuple[float, float]],
    notes: "Sequence[Annotation]",
) -> None:
    """Place each label beside its marker: inside the axes, off other markers, labels and the line."""
    with requires("plots", "plotting"):
        import matplotlib as mpl  # noqa: PLC0415 - heavy, and optional
        from matplotlib.path import Path as Line  # noqa: PLC0415 - heavy, and optional
        from matplotlib.transforms import Bbox  # noqa: PLC0415 - heavy, and optional

    figure = axes.get_figure(root=True)
    if figure is None:  # the axes were removed from their figure
        return
    with ignore_missing_glyphs():
        figure.draw_without_rendering()  # computes the layout
    point = figure.dpi / 72  # in pixels
    half = 0.5 * point * max(line.get_markersize() for line in axes.lines) + point
    line = Line(axes.transData.transform(path))
    frame = axes.get_window_extent()
    spots = [axes.transData.transform((marker.x, marker.y)) for marker in markers]
    fixed = [Bbox.from_extents(x - half, y - half, x + half, y + half) for x, y in spots]
    fixed += [Bbox(note.get_window_extent().get_points()) for note in notes]
    texts = [
        axes.annotate(
            marker.label,
            (marker.x, marker.y),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=mpl.rcParams["legend.fontsize"],
            zorder=4,
        )
        for marker in markers
    ]
    boxes: dict[int, Bbox] = {}
    leaders: dict[int, Line] = {}
    offsets = dict.fromkeys(range(len(texts)), _OFFSETS[0])
    for _, (number, text) in product(range(_SWEEPS), enumerate(texts)):
        taken = [*fixed, *(box for other, box in boxes.items() if other != number)]
        crossable = [leader for other, leader in leaders.items() if other != number]
        least = np.inf
        for candidate in _OFFSETS:
            if candidate.distance >= least:
                break
            _move(text, candidate)
            box = Bbox(text.get_window_extent().padded(point).get_points())
            outside = box.x0 < frame.x0 or box.x1 > frame.x1 or box.y0 < frame.y0 or box.y1 > frame.y1
            hidden = sum(box.overlaps(other) for other in taken)
            end = spots[number] + point * candidate.distance * np.array([candidate.right, candidate.up])
            leader = Line([spots[number], end])
            crossed = (
                line.intersects_bbox(box, filled=False)
                + sum(other.intersects_bbox(box, filled=False) for other in crossable)
                + sum(leader.intersects_path(other, filled=False) for other in crossable)
                + sum(leader.intersects_bbox(other) for other in taken if other is not fixed[number])
            )
            nearest = min(
                (abs((box.x0 + box.x1) / 2 - x) + abs((box.y0 + box.y1) / 2 - y), spot)
                for spot, (x, y) in enumerate(spots)
            )[1]
            cost = (
                1000 * outside + 200 * hidden + 20 * crossed + 15 * (nearest != number) + candidate.distance
            )
            if cost < least:
                least, offsets[number], boxes[number], leaders[number] = cost, candidate, box, leader
        _move(text, offsets[number])
    for number, text in enumerate(texts):
        offset = offsets[number]
        if offset.distance > _OFFSETS[0].distance or (offset.right and offset.up):
            arrow = {
                "arrowstyle": "-",
                "linewidth": 0.5,
                "shrinkA": 0,
                "shrinkB": 3,
                "color": text.get_color(),
            }
            at = (markers[number].x, markers[number].y)
            axes.annotate("", at, xytext=text.get_position(), textcoords="offset points", arrowprops=arrow)


def _move(text: "Annotation", offset: _Offset) -> None:
    text.set_position((offset.right * offset.distance, offset.up * offset.distance))
    text.set_horizontalalignment(("right", "center", "left")[offset.right + 1])
    text.set_verticalalignment(("top", "center", "bottom")[offset.up + 1])
