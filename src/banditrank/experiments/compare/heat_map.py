"""A table of ratios in colours."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 100.0  # ratios from here on have the same colour
_DARK = 0.5  # of the scale: from here on cells are dark, and their figures light


def draw_ratios(
    figure: "Figure", rows: Sequence[str], columns: Sequence[str], ratios: NDArray[np.float64]
) -> None:
    """Draw ratios of at least 1, shape (rows, columns), on a logarithmic scale."""
    axes = figure.subplots()
    shades = np.clip(np.log(np.maximum(ratios, 1.0)) / np.log(MOST), 0.0, 1.0)
    axes.imshow(shades, cmap="YlGnBu", vmin=0.0, vmax=1.0, aspect="auto")
    for (row, column), ratio in np.ndenumerate(ratios):
        if np.isnan(ratio):  # left out of the suite
            continue
        ink = "white" if shades[row, column] > _DARK else "black"
        axes.text(column, row, shown(float(ratio)), ha="center", va="center", color=ink, fontsize=8)
    axes.set_xticks(range(len(columns)), columns, rotation=40, ha="left", rotation_mode="anchor", fontsize=9)
    axes.set_yticks(range(len(rows)), rows, fontsize=9)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def shown(ratio: float) -> str:
    """Return a ratio in four characters or so.

    Examples
    --------
    >>> [shown(ratio) for ratio in (1.0, 1.257, 12.34, 123.4, 12_345.6)]
    ['1', '1.26', '12.3', '123', '12k']
    """
    if ratio >= 10_000:
        return f"{ratio / 1000:.0f}k"
    return f"{ratio:.3g}"
