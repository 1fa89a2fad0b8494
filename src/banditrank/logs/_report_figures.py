"""Figures of a log report: positions, items, evaluation, and click rates over time."""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from banditrank._figures import escape_mathtext
from banditrank._fitted_texts import fit_texts
from banditrank._report_page.elements import ReportFigure
from banditrank._text import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from banditrank.estimators._click_models._fit import ClickModelFit
    from banditrank.evaluation._evaluation import Evaluation
    from banditrank.logs._report import LogReport

MAX_TYPES = 4
"""Number of user types in a figure, those with the most displays."""

MAX_ITEMS = 12
"""Number of items of a user type in a figure, the most appealing ones."""

_MAX_NAME = 28
_MARGIN = 0.05  # of axes, beside the highest value
_MARKERS = ("o", "s", "^", "D")


def report_figures(report: "LogReport") -> list[ReportFigure]:
    """Return the figures of what a log tells; what it does not tell has none."""
    figures = []
    fit, evaluation = report.fit, report.evaluation.evaluation
    types = shown_types(report)
    if fit is not None and fit.is_position_identified[types].any():
        caption = f"Worth of positions: {fit.worth_meaning}, with {fit.level:.0%} intervals."
        figures.append(ReportFigure("positions", caption, partial(_draw_positions, fit, types), 8, 3.6))
    panels = [] if fit is None else [i for i in types if fit.is_item_identified[i].any()]
    if fit is not None and panels:
        n_items = min(MAX_ITEMS, len(fit.items))
        rows = -(-len(panels) // 2)
        height = rows * (0.9 + 0.24 * n_items)
        caption = f"Appeal of items: {fit.appeal_meaning}, with {fit.level:.0%} intervals."
        figures.append(ReportFigure("items", caption, partial(_draw_items, fit, panels), 8, height))
    if evaluation is not None and len(evaluation.targets) > 1:
        caption = (
            f"Clicks per visit that rankings would have earned, with {evaluation.level:.0%} intervals. "
            "Filled: the estimate to use."
        )
        height = 0.9 + 0.62 * len(evaluation.targets)
        figures.append(ReportFigure("evaluation", caption, partial(_draw_evaluation, evaluation), 8, height))
    if np.unique(report.cube.cells.period).size > 1:
        caption = "Share of displays that were clicked, by period."
        figures.append(ReportFigure("periods", caption, partial(_draw_periods, report), 8, 3.0))
    return figures


def shown_types(report: "LogReport") -> list[int]:
    """Return the user types of figures: those with the most displays, in the order of the cube."""
    displays = [one.n_displays for one in report.diagnosis.user_types]
    return sorted(np.argsort(-np.array(displays), kind="stable")[:MAX_TYPES].tolist())


def _label(name: str) -> str:
    return escape_mathtext(shorten(name, _MAX_NAME))


def _draw_positions(fit: "ClickModelFit", types: list[int], canvas: "Figure") -> None:
    axes = canvas.subplots()
    labels = {i: _label(fit.user_types[i]) for i in types}
    if fit.has_shared_positions and len(fit.user_types) > 1:
        labels = {fit.best_known_type: "all user types"}
    for number, (i, label) in enumerate(labels.items()):
        known = np.flatnonzero(fit.is_position_identified[i])
        if not known.size:
            continue
        values, ends = fit.position_worth[i, known], fit.position_intervals[i, known]
        places = known + 1 + 0.12 * (number - (len(labels) - 1) / 2)
        errors = np.nan_to_num(np.abs(ends.T - values))
        axes.errorbar(places, values, yerr=errors, fmt=_MARKERS[number], capsize=3, label=label)
    axes.set_xticks(range(1, fit.position_worth.shape[1] + 1))
    axes.set_xlabel("position")
    axes.set_ylabel("worth")
    axes.set_ylim(bottom=0)
    axes.legend()


def _draw_items(fit: "ClickModelFit", types: list[int], canvas: "Figure") -> None:
    columns = min(2, len(types))
    panels = canvas.subplots(-(-len(types) // columns), columns, squeeze=False).ravel()
    highest = 0.0
    for axes, i in zip(panels, types, strict=False):
        order = np.argsort(-np.nan_to_num(fit.item_appeal[i], nan=-1.0), kind="stable")[:MAX_ITEMS]
        known = order[~np.isnan(fit.item_appeal[i, order])][::-1]
        values, ends = fit.item_appeal[i, known], fit.item_intervals[i, known]
        errors = np.nan_to_num(np.abs(ends.T - values))
        axes.errorbar(values, range(known.size), xerr=errors, fmt="o", capsize=2, markersize=4)
        highest = max(highest, (values + errors[1]).max())
        axes.set_yticks(range(known.size), [_label(fit.items[j]) for j in known])
        axes.set_title(_label(fit.user_types[i]))
    for axes in panels[: len(types)]:
        axes.set_xlim(0, (1.0 + _MARGIN) * highest)
    for axes in panels[len(types) :]:
        axes.remove()
    fit_texts(canvas)


def _draw_evaluation(evaluation: "Evaluation", canvas: "Figure") -> None:
    axes = canvas.subplots()
    estimators = list(evaluation.targets[0].estimates)
    for number, name in enumerate(estimators):
        for row, target in enumerate(evaluation):
            total = target.estimates[name].total
            if not total.is_identified:
                continue
            errors = np.abs(np.array([[total.low], [total.high]]) - total.value)
            axes.errorbar(
                total.value,
                row + 0.17 * (number - (len(estimators) - 1) / 2),
                xerr=np.nan_to_num(errors),
                fmt=_MARKERS[number],
                color=f"C{number}",
                markerfacecolor=f"C{number}" if name == target.headline else "none",
                capsize=2,
                markersize=5,
            )
        axes.errorbar([], [], fmt=_MARKERS[number], color=f"C{number}", label=name)
    axes.set_yticks(range(len(evaluation.targets)), [_label(target.name) for target in evaluation])
    axes.invert_yaxis()
    axes.set_xlabel("clicks per visit")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _draw_periods(report: "LogReport", canvas: "Figure") -> None:
    cube, axes = report.cube, canvas.subplots()
    for number, i in enumerate(shown_types(report)):
        chosen = cube.cells.user_type == i
        displays, clicks = (
            np.bincount(cube.cells.period[chosen], values[chosen], len(cube.periods))
            for values in (cube.cells.displays, cube.cells.clicks)
        )
        shown = np.flatnonzero(displays)
        axes.plot(
            shown,
            clicks[shown] / displays[shown],
            marker=_MARKERS[number],
            markersize=4,
            label=_label(cube.user_types[i]),
        )
    _label_periods(axes, list(cube.periods))
    axes.set_ylabel("click rate")
    axes.set_ylim(bottom=0)
    axes.legend()


def _label_periods(axes: "Axes", names: list[str]) -> None:
    step = max(1, len(names) // 6)
    axes.set_xticks(range(0, len(names), step), names[::step])
    axes.set_xlabel("period")
