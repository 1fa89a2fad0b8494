"""Gamma intervals of weighted sums of counts, after Fay and Feuer (1997).

A value that is estimated from few clicks has a skewed distribution: the normal interval of 2 clicks covers
less than half as often as it claims. The gamma interval covers at least as often as stated whatever the
weights, and is the exact Poisson interval where all weights are equal.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank.estimators._distributions import chi_square_quantile

Floats = NDArray[np.float64]


def gamma_interval(value: float, variance: float, largest_weight: float, level: float) -> tuple[float, float]:
    """Return the ends of the interval of a weighted sum of clicks.

    Parameters
    ----------
    value
        The sum, y.
    variance
        Its variance, v.
    largest_weight
        Largest weight of a click, t: by how much one more click could increase the sum.
    level
        Confidence level.

    Returns
    -------
    tuple
        v / 2y · χ²(α/2; 2y² / v), and with y + t and v + t² in place of y and v, the quantile at 1 − α/2.

    Examples
    --------
    >>> low, high = gamma_interval(4.0, 4.0, 1.0, 0.95)  # 4 clicks: the exact interval of a Poisson count
    >>> round(low, 3), round(high, 3)
    (1.09, 10.242)
    >>> gamma_interval(0.0, 0.0, 0.01, 0.95)[0]
    0.0
    """
    tail = (1 - level) / 2
    low = value
    if value > 0 and variance > 0:
        low = variance / (2 * value) * chi_square_quantile(tail, 2 * value**2 / variance)
    more, spread = value + largest_weight, variance + largest_weight**2
    high = value
    if spread > 0:
        high = spread / (2 * more) * chi_square_quantile(1 - tail, 2 * more**2 / spread)
    return float(min(low, value)), float(max(high, value))


def gamma_intervals(
    values: ArrayLike, variances: ArrayLike, largest_weights: ArrayLike, level: float
) -> Floats:
    """Return the intervals of several sums, shape (N, 2); NaN where a value is NaN.

    Parameters
    ----------
    values, variances, largest_weights
        As for `gamma_interval`, shape (N,).
    level
        Confidence level.
    """
    columns = (
        np.asarray(column, dtype=np.float64).tolist() for column in (values, variances, largest_weights)
    )
    ends = [
        (np.nan, np.nan) if np.isnan(value) else gamma_interval(value, variance, weight, level)
        for value, variance, weight in zip(*columns, strict=True)
    ]
    return np.array(ends, dtype=np.float64).reshape(-1, 2)
