"""Regret curves: values at checkpoints, growth exponents, and plots with quantile bands."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from banditrank._figures import format_ticks, policy_styles

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

SUBLINEAR = 0.9  # growth with an exponent below this counts as sub-linear
BAND = (0.1, 0.9)  # quantiles
QUANTILE_HEADINGS = ("median", "10%", "90%")
"""Headings of the columns that `format_quantiles` returns."""


def curve(frame: "pd.DataFrame", column: str = "regret") -> tuple[NDArray[np.int64], Floats]:
    """Return the checkpoints, shape (C,), and a column's values, shape (R, C), one row per replication."""
    keys = [key for key in ("problem", "replication") if key in frame.columns]
    ordered = frame.sort_values([*keys, "round"], kind="stable")
    rounds = np.unique(ordered["round"].to_numpy())
    return rounds, ordered[column].to_numpy(dtype=np.float64).reshape(-1, len(rounds))


def at_round(frame: "pd.DataFrame", t: int, column: str = "regret") -> Floats:
    """Return a column's values at a checkpoint, shape (R,)."""
    return np.asarray(frame.loc[frame["round"] == t, column].to_numpy(dtype=np.float64))


def rate_between(frame: "pd.DataFrame", first: int, last: int, column: str = "optimal_rate") -> Floats:
    """Return the rate over the rounds after checkpoint ``first`` up to ``last``, shape (R,).

    The column holds rates over all rounds up to a checkpoint.
    """
    return (last * at_round(frame, last, column) - first * at_round(frame, first, column)) / (last - first)


def growth_exponents(frame: "pd.DataFrame", first: int, last: int) -> Floats:
    """Return the exponent of regret growth between two checkpoints, shape (R,).

    Linear growth has exponent 1, growth as the square root ½.
    """
    before, after = at_round(frame, first), at_round(frame, last)
    floor = 1e-12 * max(1.0, float(after.max(initial=0.0)))
    return np.asarray(np.log(np.maximum(after, floor) / np.maximum(before, floor)) / np.log(last / first))


def format_quantiles(values: Floats) -> list[str]:
    """Return the median and the ends of the band, formatted for a table.

    Examples
    --------
    >>> format_quantiles(np.arange(10_001.0))
    ['5,000', '1,000', '9,000']
    """
    return [f"{value:,.0f}" for value in np.quantile(values, (0.5, *BAND))]


def group_by(frame: "pd.DataFrame", column: str) -> "dict[Any, pd.DataFrame]":
    """Return the rows of each value of a column, in order of first appearance."""
    return {value: frame[frame[column] == value] for value in frame[column].unique().tolist()}


def draw_curves(
    axes: "Axes",
    frames: "Mapping[str, pd.DataFrame]",
    column: str = "regret",
    *,
    per_round: bool = False,
    policies: "Mapping[str, str] | None" = None,
) -> None:
    """Draw the median of each frame, in a band from the 10% to the 90% quantile.

    On a linear axis, averages and rates start after a hundredth of the rounds: before, they are over so few
    rounds that they jump, on a width that hides everything but a vertical line.

    Parameters
    ----------
    axes
        Axes to draw on.
    frames
        Data by label.
    column
        Column to draw.
    per_round
        Whether to divide by the round, which turns totals into averages.
    policies
        Name of the policy of each label, which determines its colour; the label itself by default.
    """
    names = [label if policies is None else policies[label] for label in frames]
    is_average = per_round or column == "optimal_rate"
    for (label, frame), style in zip(frames.items(), policy_styles(names), strict=True):
        rounds, values = curve(frame, column)
        if per_round:
            values = values / rounds
        if is_average and axes.get_xscale() == "linear":
            is_drawn = rounds >= rounds[-1] / 100
            rounds, values = rounds[is_drawn], values[:, is_drawn]
        low, high = np.quantile(values, BAND, axis=0)
        median = np.median(values, axis=0)
        axes.plot(rounds, median, style.dashes, color=style.colour, linewidth=1.8, label=label, zorder=3)
        axes.fill_between(rounds, low, high, color=style.colour, alpha=0.18, linewidth=0)
    axes.set_xlabel("round")
    if axes.get_xscale() == "linear":
        axes.set_xlim(left=0)
        axes.locator_params(axis="x", nbins=4)  # so that long numbers do not overlap
    for axis in (axes.xaxis, *([axes.yaxis] if column == "regret" and not per_round else [])):
        axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    format_ticks(axes)
