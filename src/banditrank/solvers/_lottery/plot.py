"""Plots of a lottery, beside the best fixed ranking and personalized treatment."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from banditrank._figures import (
    Size,
    Style,
    check_plot_path,
    count_columns,
    escape_mathtext,
    new_figure,
    write_figure,
)
from banditrank._fitted_texts import fit_texts
from banditrank._text import plural, shorten
from banditrank.model._problem import Problem
from banditrank.model._values import best_personalized_rankings, best_personalized_values, click_scale
from banditrank.solvers._equality import equality_report
from banditrank.solvers._lottery.lottery import Lottery
from banditrank.solvers._solution import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_BARS = 12  # rankings, items or user types in a panel
_MAX_LOTTERIES = 6  # user types with bars of their own
_MAX_LABEL = 28  # characters
_MAX_NAMED_GUARANTEES = 2  # in the title
_HEIGHT = 0.8  # of a group of bars


def plot_lottery(
    problem: Problem,
    lottery: Lottery,
    fixed: Solution | None = None,
    *,
    title: str | None = None,
    size: Size | None = None,
    style: Style | None = None,
) -> "Figure":
    """Plot a lottery: how often it shows each ranking, the exposure of items, and the values of user types.

    Exposures and values are shown beside those of the best fixed ranking and of personalized treatment. At
    most 12 bars, or groups of bars, are in a panel: the most probable rankings, the items of the largest
    exposure under one of the three, and the first user types. Of lotteries for each user type, those of the
    first 6 types are shown. Each panel states what it leaves out.

    Parameters
    ----------
    problem
        The problem.
    lottery
        The result of `solve_lottery` for the problem.
    fixed
        The result of `solve` for the problem; left out if None.
    title
        Title of the figure, which may contain mathematics between dollar signs; none by default.
    size, style
        As for `plot_frontier`.

    Returns
    -------
    Figure
        A Matplotlib figure of three panels.

    Raises
    ------
    InvalidInputError
        If the size or style is not valid.
    MissingDependencyError
        If Matplotlib is not installed.

    Examples
    --------
    >>> from banditrank import make_problem, solve, solve_lottery
    >>> problem = make_problem("conflict", n_user_types=3, n_items=6, n_positions=2, seed=2)
    >>> figure = plot_lottery(problem, solve_lottery(problem, "maximin"), solve(problem, "maximin"))
    >>> [axes.get_title("left") for axes in figure.axes]
    ['rankings', 'exposure of items', 'value of user types']
    """
    exposures, values = {"lottery": lottery.exposures}, {"lottery": lottery.user_type_values}
    if fixed is not None:
        rankings = np.tile(fixed.ranking, (problem.n_user_types, 1))
        exposures["fixed ranking"] = _exposures(problem, rankings)
        values["fixed ranking"] = equality_report(problem, fixed.ranking).user_type_values
    exposures["personalized"] = _exposures(problem, best_personalized_rankings(problem))
    values["personalized"] = click_scale(problem) * best_personalized_values(problem)
    shown = np.argsort(-np.max(list(exposures.values()), axis=0), kind="stable")[:_MAX_BARS]
    shares = np.atleast_2d(lottery.probabilities)[:_MAX_LOTTERIES]  # (lotteries, S)
    is_by_type = lottery.probabilities.ndim == 2
    n_shown = min(_MAX_BARS, np.count_nonzero(shares.any(axis=0)))
    likely = np.argsort(-shares.sum(axis=0), kind="stable")[:n_shown]
    with new_figure(size, style, default=(11, 4.2), n_panels=3) as figure:
        columns = count_columns(figure.get_figwidth(), 3)
        grid = figure.subplots(-(-3 // columns), columns, squeeze=False).ravel()
        for axes in grid[3:]:
            axes.remove()
        panels = grid[:3]
        if title is not None:
            figure.suptitle(title)
        labels = [", ".join(lottery.items[item] for item in lottery.rankings[s]) for s in likely]
        names = lottery.user_types[:_MAX_LOTTERIES] if is_by_type else ("",)
        _draw_bars(panels[0], labels, {name: row[likely] for name, row in zip(names, shares, strict=True)})
        panels[0].set_title("rankings", loc="left")
        if is_by_type:
            panels[0].legend(title="user type", fontsize="small", title_fontsize="small", frameon=True)
        panels[0].set_xlabel(_with_note("probability", _omitted_rankings(lottery, shares, likely)))
        items = [lottery.items[item] for item in shown]
        _draw_bars(panels[1], items, {name: exposure[shown] for name, exposure in exposures.items()})
        panels[1].set_title("exposure of items", loc="left")
        panels[1].set_xlabel(
            _with_note("share of users who look at the item", _omitted_items(lottery, shown))
        )
        user_types = lottery.user_types[:_MAX_BARS]
        _draw_bars(panels[2], user_types, {name: value[:_MAX_BARS] for name, value in values.items()})
        panels[2].set_title("value of user types", loc="left")
        n_omitted = problem.n_user_types - _MAX_BARS
        omitted = f"and {plural(n_omitted, 'more user type')}" if n_omitted > 0 else ""
        panels[2].set_xlabel(_with_note("expected clicks per visit", omitted))
        figure.legend(*panels[2].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        fit_texts(figure)
    return figure


def save_lottery_plot(
    problem: Problem,
    lottery: Lottery,
    fixed: Solution | None,
    path: str | Path,
    *,
    title: str | None = None,
    size: Size | None = None,
    style: Style | None = None,
    dpi: float | None = None,
) -> None:
    """Plot a lottery to a png, svg or pdf file.

    Parameters
    ----------
    problem, lottery, fixed
        As for `plot_lottery`.
    path
        File to write; its suffix is the format. Fonts are embedded.
    title
        Title of the figure; by default it names the problem, the utility and the guarantees, or there is none
        if a size is given.
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
    described = (
        f"{problem.name}: best lottery over rankings, {lottery.treatment} treatment, {lottery.utility}"
    )
    described += f"\n{_described_guarantees(lottery)}" if lottery.guarantees else ""
    if title is None and size is None:
        title = escape_mathtext(described)
    figure = plot_lottery(problem, lottery, fixed, title=title, size=size, style=style)
    write_figure(figure, path, described, dpi)


def _exposures(problem: Problem, rankings: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the exposure of each item, shape (M,), for a ranking of each type."""
    exposures = np.zeros(problem.n_items)
    np.add.at(exposures, rankings, problem.arrival_rates[:, None] * problem.position_preferences)
    return exposures


def _described_guarantees(lottery: Lottery) -> str:
    """Return the guarantees in words: each of them if they are few, otherwise their number."""
    given = lottery.guarantees
    if len(given) <= _MAX_NAMED_GUARANTEES:
        return ", ".join(f"{one.name} at least {one.level:.3g}" for one in given)
    n_binding = sum(one.is_binding for one in given)
    return f"{plural(len(given), 'guarantee')}, {n_binding} of them binding"


def _omitted_rankings(lottery: Lottery, shares: NDArray[np.float64], likely: NDArray[np.intp]) -> str:
    """Return what the panel of rankings leaves out; the empty string if nothing."""
    rest = np.delete(shares, likely, axis=1)  # (lotteries, S − bars)
    n_rankings = int(np.count_nonzero(rest.any(axis=0)))
    parts = []
    if n_rankings:
        parts.append(f"{plural(n_rankings, 'more ranking')}, {rest.sum(axis=1).mean():.1%} in all")
    if lottery.probabilities.ndim == 2 and len(lottery.user_types) > len(shares):
        parts.append(f"{plural(len(lottery.user_types) - len(shares), 'more user type')}")
    return f"and {'; '.join(parts)}" if parts else ""


def _omitted_items(lottery: Lottery, shown: NDArray[np.intp]) -> str:
    """Return what the panel of items leaves out; the empty string if nothing."""
    rest = np.delete(lottery.exposures, shown)
    return f"and {plural(rest.size, 'more item')}, {rest.sum():.1%} by the lottery" if rest.size else ""


def _with_note(label: str, note: str) -> str:
    return f"{label}\n{note}" if note else label


def _draw_bars(axes: "Axes", names: Sequence[str], series: "dict[str, NDArray[np.float64]]") -> None:
    """Draw horizontal bars, one group for each name, the first at the top."""
    places = np.arange(len(names))
    height = _HEIGHT / len(series)
    for number, (label, values) in enumerate(series.items()):
        offset = height * (number - (len(series) - 1) / 2)
        axes.barh(
            places + offset,
            values,
            height=height,
            label=escape_mathtext(shorten(label, _MAX_LABEL)) if label else None,
        )
    axes.set_yticks(places, [escape_mathtext(shorten(name, _MAX_LABEL)) for name in names])
    axes.invert_yaxis()
