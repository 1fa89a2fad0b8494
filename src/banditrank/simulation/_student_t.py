"""Confidence intervals of means by Student's t."""

import math

import numpy as np
from numpy.typing import NDArray

from banditrank.estimators._distributions import student_quantile


def interval_radius(
    deviation: NDArray[np.float64] | float, count: int, level: float
) -> NDArray[np.float64] | float:
    """Return half the length of the confidence interval of a mean; 0 for a single value.

    Parameters
    ----------
    deviation
        Standard deviation of the values, of any shape.
    count
        Number of values.
    level
        Confidence level, in (0, 1).

    Examples
    --------
    >>> round(float(interval_radius(1.0, 4, 0.95)), 6)
    1.591223
    """
    if count < 2:
        return 0.0 * deviation
    return student_quantile((1 + level) / 2, count - 1) * deviation / math.sqrt(count)


def mean_and_interval(values: NDArray[np.float64], level: float = 0.95) -> tuple[float, float, float]:
    """Return the mean, and the ends of its confidence interval; both are the mean of a single value.

    Examples
    --------
    >>> [round(end, 6) for end in mean_and_interval(np.array([1.0, 3.0]), 0.5)]
    [2.0, 1.0, 3.0]
    """
    mean = float(values.mean())
    deviation = float(values.std(ddof=1)) if values.size > 1 else 0.0
    radius = float(interval_radius(deviation, values.size, level))
    return mean, mean - radius, mean + radius
