"""Quantiles of Student's t distribution, and confidence intervals of means."""

import numpy as np
from numpy.typing import NDArray


def student_quantile(level: float, degrees_of_freedom: int) -> float:
    """Return the t for which a Student-distributed variable is in [-t, t] with a given probability.

    Abramowitz and Stegun (1964), 26.7.3 and 26.7.4, for whole degrees of freedom; inverted by bisection.

    Parameters
    ----------
    level
        The probability, in (0, 1).
    degrees_of_freedom
        Degrees of freedom, at least 1.

    Examples
    --------
    >>> f"{student_quantile(0.95, 1):.2f} {student_quantile(0.95, 19):.3f}"
    '12.71 2.093'
    """
    low, high = 0.0, np.pi / 2  # of the angle atan(t / √ν)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _probability(middle, degrees_of_freedom) < level else (low, middle)
    return float(np.sqrt(degrees_of_freedom) * np.tan(low))


def _probability(angle: float, degrees_of_freedom: int) -> float:
    is_odd = degrees_of_freedom % 2
    steps = np.arange(1, (degrees_of_freedom - is_odd) // 2)
    factors = 2 * steps / (2 * steps + 1) if is_odd else (2 * steps - 1) / (2 * steps)
    terms = np.cumprod(np.concatenate([[1.0], factors * np.cos(angle) ** 2]))
    if not is_odd:
        return float(np.sin(angle) * terms.sum())
    series = np.sin(angle) * np.cos(angle) * terms.sum() if degrees_of_freedom > 1 else 0.0
    return float(2 / np.pi * (angle + series))


def mean_and_interval(values: NDArray[np.float64], level: float = 0.95) -> tuple[float, float, float]:
    """Return the mean, and the ends of its confidence interval; both are the mean of a single value.

    Examples
    --------
    >>> [round(end, 6) for end in mean_and_interval(np.array([1.0, 3.0]), 0.5)]
    [2.0, 1.0, 3.0]
    """
    mean, radius = float(values.mean()), 0.0
    if values.size > 1:
        error = float(values.std(ddof=1) / np.sqrt(values.size))
        radius = student_quantile(level, values.size - 1) * error
    return mean, mean - radius, mean + radius
