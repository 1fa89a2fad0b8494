"""Robust trends of the measurements of a soak run."""

from collections.abc import Sequence
from typing import NamedTuple

from scipy.stats import theilslopes

LEVEL = 0.95
MIN_SAMPLES = 4


class Trend(NamedTuple):
    """The slope of a line through samples, and its confidence interval.

    The interval takes samples as independent. Memory is not quite: read it as the least uncertainty.
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
    slope, _, low, high = theilslopes(y, x, alpha=LEVEL)
    return Trend(float(slope), float(low), float(high))
