"""Curves over rounds, with bands: what most of the paper's figures are."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from banditrank.figures import style_axes

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

SUBLINEAR = 0.9  # the exponent below which growth is not taken for linear
BAND = (0.1, 0.9)
SPREAD = ("median", "10%", "90%")
"""The headings of what `spread` returns."""


def curve(frame: "pd.DataFrame", column: str = "regret") -> tuple[NDArray[np.int64], Floats]:
    """Return the rounds, shape (C,), and a column's values, shape (R, C), a row for each replication."""
    keys = [key for key in ("world", "replication") if key in frame.columns]
    ordered = frame.sort_values([*keys, "round"], kind="stable")
    rounds = np.unique(ordered["round"].to_numpy())
    return rounds, ordered[column].to_numpy(dtype=np.float64).reshape(-1, len(rounds))


def at_round(frame: "pd.DataFrame", t: int, column: str = "regret") -> Floats:
    """Return a column's values at a checkpoint, one a replication."""
    return np.asarray(frame.loc[frame["round"] == t, column].to_numpy(dtype=np.float64))


def between(frame: "pd.DataFrame", first: int, last: int, column: str = "optimal_rate") -> Floats:
    """Return a share over the rounds after one checkpoint up to another, from the shares up to each."""
    return (last * at_round(frame, last, column) - first * at_round(frame, first, column)) / (last - first)


def growth(frame: "pd.DataFrame", first: int, last: int) -> Floats:
    """Return the exponent with which each replication's regret grew: 1 is linear, ½ the square root."""
    before, after = at_round(frame, first), at_round(frame, last)
    least = 1e-12 * max(1.0, float(after.max(initial=0.0)))
    return np.asarray(np.log(np.maximum(after, least) / np.maximum(before, least)) / np.log(last / first))


def spread(values: Floats) -> list[str]:
    """Return the median and the ends of the band, as they stand in a table.

    Examples
    --------
    >>> spread(np.arange(10_001.0))
    ['5,000', '1,000', '9,000']
    """
    return [f"{value:,.0f}" for value in np.quantile(values, (0.5, *BAND))]


def groups(frame: "pd.DataFrame", column: str) -> "dict[Any, pd.DataFrame]":
    """Return the rows of each value of a column, in the order in which the values first come."""
    return {value: frame[frame[column] == value] for value in frame[column].unique().tolist()}


def draw_curves(
    axes: "Axes", frames: "Mapping[str, pd.DataFrame]", column: str = "regret", *, per_round: bool = False
) -> None:
    """Draw the median of each, in a band from the 10% to the 90% quantile.

    Parameters
    ----------
    frames
        By what to call them.
    per_round
        Whether to divide by the round: averages instead of totals.
    """
    for number, (label, frame) in enumerate(frames.items()):
        rounds, values = curve(frame, column)
        if per_round:
            values = values / rounds
        low, high = np.quantile(values, BAND, axis=0)
        line = ("-", "--", "-.", ":")[number // 7 % 4]
        axes.plot(
            rounds, np.median(values, axis=0), line, color=f"C{number}", linewidth=1.8, label=label, zorder=3
        )
        axes.fill_between(rounds, low, high, color=f"C{number}", alpha=0.18, linewidth=0)
    axes.set_xlabel("round")
    if axes.get_xscale() == "linear":
        axes.locator_params(axis="x", nbins=4)  # so that long numbers keep apart
    for axis in (axes.xaxis, *([axes.yaxis] if column == "regret" and not per_round else [])):
        axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    style_axes(axes)
