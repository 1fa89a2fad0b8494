"""Robust trends of the measurements of a soak run."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t, theilslopes

LEVEL = 0.95
MIN_SAMPLES = 4
N_BLOCKS = 8
"""Number of blocks of samples behind an interval.

Fewer blocks are longer, so that their medians are less correlated; more of them make the interval narrower.
"""


class Trend(NamedTuple):
    """The slope of a line through samples, and its confidence interval.

    Consecutive samples of memory are correlated: garbage is collected, and free memory is returned to the
    system, now and then. The interval therefore follows from the medians of `N_BLOCKS` consecutive blocks of
    samples. It is right as long as the correlation is much shorter than a block.
    """

    slope: float
    low: float
    high: float


def trend(x: Sequence[float], y: Sequence[float]) -> Trend:
    """Return the Theil–Sen slope of y over x: the median slope of all pairs, which is robust to outliers.

    Raises
    ------
    ValueError
        If there are too few samples.

    Examples
    --------
    >>> trend([0, 1, 2, 3, 4], [10, 12, 90, 16, 18]).slope
    2.0
    """
    if len(x) < MIN_SAMPLES:
        raise ValueError(f"a trend takes at least {MIN_SAMPLES} samples, got {len(x)}")
    times, values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    slope = float(theilslopes(values, times).slope)
    n_blocks = min(N_BLOCKS, len(times))
    centers = np.array([block.mean() for block in np.array_split(times, n_blocks)])
    levels = np.array([np.median(block) for block in np.array_split(values - slope * times, n_blocks)])
    centers -= centers.mean()
    levels -= levels.mean()
    levels -= centers * (centers @ levels) / (centers @ centers)
    error = np.sqrt(levels @ levels / (n_blocks - 2) / (centers @ centers))  # of the slope by least squares
    half_width = float(t.ppf((1 + LEVEL) / 2, n_blocks - 2) * error)
    return Trend(slope, slope - half_width, slope + half_width)
