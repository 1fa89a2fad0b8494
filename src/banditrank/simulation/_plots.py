"""Figures of simulation results."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack, cast, get_args

import numpy as np
from numpy.typing import NDArray

from banditrank._extras import requires
from banditrank._figures import (
    LineStyle,
    Size,
    Style,
    check_plot_path,
    count_columns,
    escape_mathtext,
    format_ticks,
    new_figure,
    policy_styles,
    write_figure,
)
from banditrank._fitted_texts import fit_texts
from banditrank._text import shorten
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.simulation._labels import distinct_labels
from banditrank.simulation._result import SimulationResult, labelled_result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Band: TypeAlias = Literal["replications", "quantiles", "confidence"]
Scale: TypeAlias = Literal["linear", "log"]

DEFAULT_LEVELS: dict[Band, float] = {"quantiles": 0.8, "confidence": 0.95}


_MAX_TICK_LABEL = 28  # characters


class CurveOptions(TypedDict, total=False):
    """Options of regret curves, as of `draw_regret`."""

    band: Band
    level: float | None
    x_scale: Scale
    y_scale: Scale
    x_label: str
    y_label: str
    labels: Sequence[str] | None
    colours: Sequence[Any] | None


class FigureOptions(TypedDict, total=False):
    """Options of a figure."""

    title: str | None
    size: Size | None
    style: Style | None


class RegretPlotOptions(CurveOptions, FigureOptions, total=False):
    """Options of `plot_regret`."""


def plot_regret(
    results: Sequence[SimulationResult],
    *,
    title: str | None = None,
    size: Size | None = None,
    style: Style | None = None,
    **options: Unpack[CurveOptions],
) -> "Figure":
    """Plot regret over rounds, with one panel for each criterion.

    Personalized and equal regret, equal regret by different utilities, and regret on different problems are
    relative to different optima: they have panels of their own. A policy of the catalog has the same colour
    in every panel and every figure.

    Parameters
    ----------
    results
        Results to plot.
    title
        Title of the figure. The title of a single panel is its treatment by default. Titles and labels may
        contain mathematics between dollar signs.
    size
        Width and height in inches; or ``"column"`` or ``"page"``, for a paper's column of 3.3 inches or page
        of 7 inches.
    style
        Matplotlib style: a name, the path of a style file, a mapping of rcParams, or several of these.
    options
        Options of `draw_regret`; ``labels`` and ``colours`` have one entry for each result.

    Returns
    -------
    Figure
        A Matplotlib figure, which a notebook shows if it is the value of a cell. `Figure.savefig` writes it
        to a file, with embedded fonts.

    Raises
    ------
    InvalidInputError
        If there are no results, nothing tells two of a panel apart, or an option is not valid.
    UnknownNameError
        If there is no such band or scale.
    MissingDependencyError
        If Matplotlib is not installed.

    Examples
    --------
    >>> from banditrank import UCBRank, kdd2012, plot_regret, simulate
    >>> policies = [UCBRank(coefficient=0.25), UCBRank(coefficient=0.5, treatment="equal")]
    >>> results = [simulate(policy, kdd2012(), 500, 3, seed=1) for policy in policies]
    >>> figure = plot_regret(results, band="confidence", size="column")
    >>> [axes.get_title("left") for axes in figure.axes]
    ['personalized treatment', 'equal treatment, utilitarian']
    """
    panels = _panels(results)
    default = (7.5 if len(panels) == 1 else 10.0, 4.2)
    with new_figure(size, style, default=default, n_panels=len(panels)) as figure:
        columns = count_columns(figure.get_figwidth(), len(panels))
        grid = figure.subplots(-(-len(panels) // columns), columns, squeeze=False).ravel()
        for axes in grid[len(panels) :]:
            axes.remove()
        for axes, (heading, members) in zip(grid, panels.items(), strict=False):
            _draw_panel(axes, results, members, **options)
            axes.set_title(escape_mathtext(heading) if title is None or len(panels) > 1 else title)
        if title is not None and len(panels) > 1:
            figure.suptitle(title, x=0.01, ha="left")
        fit_texts(figure)
    return figure


def draw_regret(
    axes: "Axes",
    results: Sequence[SimulationResult],
    *,
    band: Band = "replications",
    level: float | None = None,
    x_scale: Scale = "log",
    y_scale: Scale = "log",
    x_label: str = "round",
    y_label: str = "regret",
    labels: Sequence[str] | None = None,
    colours: Sequence[Any] | None = None,
) -> None:
    """Draw regret over rounds on axes of your own.

    Parameters
    ----------
    axes
        Matplotlib axes to draw on.
    results
        Results of one treatment and utility, on one problem.
    band
        ``"replications"``: the median, and each replication as a faint line. ``"quantiles"``: the median, and
        a band between two quantiles of the replications. ``"confidence"``: the mean, and a confidence band
        of the mean, by Student's t.
    level
        Share of replications in the band of quantiles, 0.8 by default (from 10% to 90%), or confidence level,
        0.95 by default.
    x_scale, y_scale
        ``"linear"`` or ``"log"``. With both logarithmic, linear regret has slope 1. The y axis is linear
        below 1, as regret may be 0.
    x_label, y_label
        Labels of the axes.
    labels
        Label of each result; the policy and its parameters by default.
    colours
        Colour of each result; that of its policy by default.

    Raises
    ------
    InvalidInputError
        If there are no results, their regret is relative to different optima, or an option is not valid.
    UnknownNameError
        If there is no such band or scale.

    Examples
    --------
    >>> from banditrank import draw_regret, kdd2012, simulate
    >>> from matplotlib.figure import Figure
    >>> figure = Figure()
    >>> axes = figure.add_subplot()
    >>> draw_regret(axes, [simulate("ucb-rank", kdd2012(), 500, 3, seed=1)], y_scale="linear")
    >>> axes.get_legend_handles_labels()[1]
    ['ucb-rank-0.25']
    """
    panels = _panels(results)
    if len(panels) > 1:
        raise InvalidInputError("results", "must have one criterion on the same axes", "; ".join(panels))
    _draw_panel(
        axes,
        results,
        range(len(results)),
        band=band,
        level=level,
        x_scale=x_scale,
        y_scale=y_scale,
        x_label=x_label,
        y_label=y_label,
        labels=labels,
        colours=colours,
    )


def draw_final_regret(
    axes: "Axes",
    results: Sequence[SimulationResult],
    colours: Sequence[Any] | None = None,
    labels: Sequence[str] | None = None,
) -> None:
    """Draw the regret at the horizon: a dot for each replication and a bar at the median.

    Parameters
    ----------
    axes
        Matplotlib axes to draw on.
    results
        Results of one treatment and utility, on one problem.
    colours
        Colour of each result; that of its policy by default.
    labels
        Label of each result; the policy and its parameters by default.

    Raises
    ------
    InvalidInputError
        If nothing tells two results apart, and there are no labels.
    """
    with requires("plots", "plotting"):
        from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - heavy, and optional

    styles = _styles(results, colours)
    for row, (result, style) in enumerate(zip(results, styles, strict=True)):
        spread = np.random.default_rng(0).uniform(-0.22, 0.22, len(result.final_regret))
        axes.scatter(
            result.final_regret, row + spread, s=14, color=style.colour, alpha=0.6, linewidth=0, zorder=3
        )
        median = result.median[-1]
        axes.plot([median, median], [row - 0.36, row + 0.36], color=style.colour, linewidth=2.2, alpha=0.8)
    shown = [escape_mathtext(label) for label in _short_labels(results)] if labels is None else labels
    axes.set_yticks(range(len(results)), shown)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xscale("symlog", linthresh=1, linscale=0.3)
    axes.margins(x=0.08)
    axes.set_xlabel("regret")
    axes.set_title("final regret of every replication")
    format_ticks(axes)
    low, high = axes.get_xlim()
    if sum(low <= tick <= high for tick in axes.get_xticks()) < 2:  # too few powers of ten
        axes.xaxis.set_major_locator(MaxNLocator(4))


def save_plot(
    results: Sequence[SimulationResult],
    path: str | Path,
    changes: str | None = None,
    *,
    dpi: float | None = None,
    **options: Unpack[RegretPlotOptions],
) -> None:
    """Plot results to a file.

    Without a size, the final regret of every replication stands beside the curves.

    Parameters
    ----------
    results
        Results to plot.
    path
        File to write; its suffix is the format: png, svg, pdf. Fonts are embedded.
    changes
        Name of the problem's changes, for the title.
    dpi
        Pixels per inch of a png file, 150 by default.
    options
        Options of `plot_regret`.

    Raises
    ------
    InvalidInputError
        If there are no results, an option is not valid, or the file cannot be written.
    UnknownNameError
        If there is no such band or scale.
    MissingDependencyError
        If Matplotlib is not installed.
    """
    path = Path(path)
    check_plot_path(path)
    panels = _panels(results)
    first = results[0]
    count = max(len(result.replications) for result in results)
    made = f"seed {first.seed}, banditrank {first.version}"
    described = f"{first.problem_summary(changes)}: {first.horizon:,} rounds, {count} replications, {made}"
    if options.get("size") is None:
        figure = _overview(results, panels, described, options)
    else:
        figure = plot_regret(results, **options)
    write_figure(figure, path, described, dpi)


def _overview(
    results: Sequence[SimulationResult],
    panels: dict[str, list[int]],
    described: str,
    options: RegretPlotOptions,
) -> "Figure":
    """Return a figure with the curves and the final regret of each panel side by side."""
    names = CurveOptions.__annotations__
    curve_options = cast("CurveOptions", {key: value for key, value in options.items() if key in names})
    title = options.get("title")
    size = (11, 0.6 + 3.8 * len(panels))
    with new_figure(None, options.get("style"), default=size) as figure:
        rows = figure.subplots(len(panels), 2, width_ratios=(3, 2), squeeze=False)
        for (left, right), (heading, members) in zip(rows, panels.items(), strict=True):
            _draw_panel(left, results, members, **curve_options)
            left.set_title(escape_mathtext(heading))
            colours = [style.colour for style in _styles(results, options.get("colours"))]
            given = options.get("labels")
            draw_final_regret(
                right,
                [results[k] for k in members],
                [colours[k] for k in members],
                None if given is None else [_tick_label(given[k]) for k in members],
            )
        text = escape_mathtext(described) if title is None else title
        figure.suptitle(text, x=0.01, ha="left")
        fit_texts(figure)
    return figure


def _tick_label(label: str) -> str:
    """Return the beginning of a label that would leave no space for the axes, unless it has mathematics."""
    return label if "$" in label else shorten(label, _MAX_TICK_LABEL)


def _panels(results: Sequence[SimulationResult]) -> dict[str, list[int]]:
    """Return the indices of the results of each panel, by its heading.

    Raises
    ------
    InvalidInputError
        If there are no results.
    """
    if not results:
        raise InvalidInputError("results", "must hold at least one result", results)
    has_problems = len({result.problem_summary() for result in results}) > 1
    panels: dict[str, list[int]] = {}
    for index, result in enumerate(results):
        treatment, utility = result.policy["treatment"], result.policy["utility"]
        heading = f"{treatment} treatment" + ("" if utility is None else f", {utility}")
        heading = f"{result.problem_summary()}: {heading}" if has_problems else heading
        panels.setdefault(heading, []).append(index)
    return panels


def _styles(results: Sequence[SimulationResult], colours: Sequence[Any] | None) -> list[LineStyle]:
    """Return the line style of each result: that of the policy, also for its first variant in a panel."""
    seen: Counter[tuple[str, str]] = Counter()
    names = [""] * len(results)
    for heading, members in _panels(results).items():
        for index in members:
            name = results[index].policy["policy"]
            variant = seen[heading, name]
            seen[heading, name] += 1
            names[index] = f"{name}-{variant}" if variant else name
    styles = policy_styles(names)
    if colours is None:
        return styles
    _check_count("colours", colours, results)
    return [LineStyle(colour, "-") for colour in colours]


def _draw_panel(
    axes: "Axes",
    results: Sequence[SimulationResult],
    members: Sequence[int],
    *,
    band: Band = "replications",
    level: float | None = None,
    x_scale: Scale = "log",
    y_scale: Scale = "log",
    x_label: str = "round",
    y_label: str = "regret",
    labels: Sequence[str] | None = None,
    colours: Sequence[Any] | None = None,
) -> None:
    """Draw some of the results, in the styles that they have among all."""
    check_curve_options(band=band, level=level, x_scale=x_scale, y_scale=y_scale)
    if labels is not None:
        _check_count("labels", labels, results)
    styles = _styles(results, colours)
    if labels is None:
        shown = map(escape_mathtext, _short_labels([results[index] for index in members]))
        named = dict(zip(members, shown, strict=True))
    else:
        named = {index: labels[index] for index in members}
    for index, label in named.items():
        result = results[index]
        _draw_curve(axes, result, styles[index], label, band, level)
    axes.set_xscale(x_scale)
    if y_scale == "log":
        axes.set_yscale("symlog", linthresh=1, linscale=0.3)
    horizon = max(results[index].horizon for index in members)
    axes.set_xlim(min(10, horizon / 2) if x_scale == "log" else 0, horizon)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    format_ticks(axes)
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "linear":
            axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
            axes.locator_params(axis="x" if axis is axes.xaxis else "y", nbins=5)
    _add_legend(axes, _band_text(band, level))


def _add_legend(axes: "Axes", title: str) -> None:
    """Add a legend where there are no curves: regret grows, so that they leave a corner empty."""
    if axes.get_yscale() != "linear":
        axes.legend(title=title, alignment="left", loc="lower right")
        return
    legend = axes.legend(title=title, alignment="left", loc="upper left")
    figure = axes.get_figure(root=True)
    if figure is None:  # the axes were removed from their figure
        return
    lines = len(legend.get_texts()) + 1
    height = 1.6 * lines * float(legend.get_texts()[0].get_fontsize()) * figure.dpi / 72  # in pixels
    axes.set_ylim(0, axes.get_ylim()[1] / (1 - min(0.6, height / axes.bbox.height)))


def _draw_curve(
    axes: "Axes", result: SimulationResult, style: LineStyle, label: str, band: Band, level: float | None
) -> None:
    line = {"color": style.colour, "linestyle": style.dashes, "label": label, "zorder": 3}
    if band == "replications":
        count = max(1, len(result.replications))
        alpha = min(0.4, max(0.12, 6 / count))
        axes.plot(result.checkpoints, result.regret.T, color=style.colour, linewidth=0.6, alpha=alpha)
    else:
        low, high = _band(result, band, DEFAULT_LEVELS[band] if level is None else level)
        axes.fill_between(result.checkpoints, low, high, color=style.colour, alpha=0.2, linewidth=0)
    axes.plot(result.checkpoints, result.mean if band == "confidence" else result.median, **line)


def _band(result: SimulationResult, band: Band, level: float) -> NDArray[np.float64]:
    if band == "confidence":
        return result.mean_interval(level)
    return np.array([result.quantile((1 - level) / 2), result.quantile((1 + level) / 2)])


def _band_text(band: Band, level: float | None) -> str:
    if band == "replications":
        return "median, every replication"
    level = DEFAULT_LEVELS[band] if level is None else level
    if band == "confidence":
        return f"mean, {100 * level:.3g}% confidence band"
    return f"median, {50 * (1 - level):.3g}% to {50 * (1 + level):.3g}% quantile"


def check_curve_options(**options: Unpack[CurveOptions]) -> None:
    """Check the band, level and scales of curves.

    Raises
    ------
    InvalidInputError
        If the level is not between 0 and 1.
    UnknownNameError
        If there is no such band or scale.
    """
    _check_name("band", options.get("band", "replications"), get_args(Band))
    for field in ("x_scale", "y_scale"):
        _check_name(field, cast("str", options.get(field, "log")), get_args(Scale))
    level = options.get("level")
    if level is not None and not 0 < level < 1:
        raise InvalidInputError("level", "must be between 0 and 1", level)


def _check_name(field: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise UnknownNameError(field, value, allowed)


def _check_count(field: str, values: Sequence[Any], results: Sequence[SimulationResult]) -> None:
    if len(values) != len(results):
        raise InvalidInputError(field, f"must have one entry for each of {len(results)} results", values)


def _short_labels(results: Sequence[SimulationResult]) -> list[str]:
    """Return the labels of a panel without the treatment and the utility, which its heading names.

    Raises
    ------
    InvalidInputError
        If nothing tells two results apart.
    """
    labels = distinct_labels("results", [labelled_result(result) for result in results])
    return [_short_label(result, label) for result, label in zip(results, labels, strict=True)]


def _short_label(result: SimulationResult, label: str) -> str:
    treatment, utility = result.policy["treatment"], result.policy["utility"]
    criterion = treatment if utility is None else f"{treatment}-{utility.replace(':', '')}"
    name = str(result.policy["policy"])
    return name + label.removeprefix(name).replace(f"-{criterion}", "", 1)
