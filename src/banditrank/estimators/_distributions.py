"""Tail probabilities and quantiles of the chi-square and Student distributions, without SciPy."""

import math
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MAX_TERMS = 10_000
_PRECISION = 1e-15
_TINY = 1e-300
_BISECTIONS = 200
_LARGE_FREEDOM = 20_000.0  # from here on, quantiles by the normal cube root are exact to seven digits
_EXACT = 1e-100  # below, the power law at 0 is exact
_MANY_DEGREES = 1e5  # from here on, the cube root of a chi-square variable is normal to many digits


def chi_square_survival(statistic: float, degrees: float) -> float:
    """Return the probability that a chi-square variable exceeds the statistic.

    Examples
    --------
    >>> round(chi_square_survival(3.841458820694124, 1), 12)
    0.05
    >>> round(chi_square_survival(250.0, 200), 6)
    0.009379
    """
    if degrees <= 0:
        return 1.0
    if statistic <= 0:
        return 1.0
    if degrees > _MANY_DEGREES:  # Wilson and Hilferty (1931)
        spread = 2.0 / (9.0 * degrees)
        z = ((statistic / degrees) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
        return 0.5 * math.erfc(z / math.sqrt(2))
    return _upper_gamma(degrees / 2.0, statistic / 2.0)


def chi_square_quantile(probability: float, freedom: float) -> float:
    """Return the value that a chi-square variable does not exceed with a probability.

    Parameters
    ----------
    probability
        From 0 to below 1.
    freedom
        Degrees of freedom, above 0; not necessarily whole.

    Examples
    --------
    >>> round(chi_square_quantile(0.975, 2), 6)  # −2 ln 0.025
    7.377759
    >>> round(chi_square_quantile(0.975, 100_000))
    100878
    """
    if probability <= 0:
        return 0.0
    z, spread = NormalDist().inv_cdf(probability), 2 / (9 * freedom)
    start = freedom * (1 - spread + z * math.sqrt(spread)) ** 3  # Wilson and Hilferty (1931)
    if freedom > _LARGE_FREEDOM:
        return start
    shape = freedom / 2
    if start <= 0.01 * freedom:  # the power law at 0
        start = 2 * math.exp((math.log(probability) + math.lgamma(shape + 1)) / shape)
        if start < _EXACT:
            return start
    low, high, value = 0.0, math.inf, max(start, _TINY)
    for _ in range(200):
        error = (1 - probability) - chi_square_survival(value, freedom)  # increases with the value
        if error < 0:
            low = value
        else:
            high = value
        log_density = (shape - 1) * math.log(value / 2) - value / 2 - math.lgamma(shape) - math.log(2)
        step = error * math.exp(min(700.0, -log_density))
        following = value - step
        if not low < following < high:
            following = (low + high) / 2 if high < math.inf else 2 * value
        if abs(following - value) <= 1e-13 * value:
            return following
        value = following
    return value


def _upper_gamma(shape: float, x: float) -> float:
    """Return the regularised upper incomplete gamma function Q(shape, x)."""
    log_scale = shape * math.log(x) - x - math.lgamma(shape)
    if x < shape + 1.0:
        term = total = 1.0 / shape
        for step in range(1, _MAX_TERMS):
            term *= x / (shape + step)
            total += term
            if term < total * _PRECISION:
                break
        return min(1.0, max(0.0, 1.0 - total * math.exp(log_scale)))
    b = x + 1.0 - shape
    c, d = 1.0 / _TINY, 1.0 / b
    fraction = d
    for step in range(1, _MAX_TERMS):
        a = -step * (step - shape)
        b += 2.0
        d = 1.0 / _away_from_zero(a * d + b)
        c = _away_from_zero(b + a / c)
        fraction *= d * c
        if abs(d * c - 1.0) < _PRECISION:
            break
    return min(1.0, math.exp(log_scale) * fraction)


def student_survival(statistic: float, degrees: float) -> float:
    """Return the probability that a Student variable exceeds the statistic.

    Examples
    --------
    >>> round(student_survival(2.093024054408263, 19), 12)
    0.025
    """
    x = degrees / (degrees + statistic * statistic)
    tail = 0.5 * _incomplete_beta(degrees / 2.0, 0.5, x)
    return tail if statistic >= 0 else 1.0 - tail


@cache
def student_quantile(probability: float, degrees: float) -> float:
    """Return the quantile of a Student variable.

    Examples
    --------
    >>> round(student_quantile(0.975, 4), 9)
    2.776445105
    """
    if probability < 0.5:
        return -student_quantile(1 - probability, degrees)
    low, high = 0.0, 1.0
    while student_survival(high, degrees) > 1 - probability and high < 1e12:
        low, high = high, 2 * high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if student_survival(middle, degrees) > 1 - probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _incomplete_beta(b, a, 1.0 - x)
    log_scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    fraction = d
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            fraction *= d * c
        if abs(d * c - 1.0) < _PRECISION:
            break
    return math.exp(log_scale) * fraction / a


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def false_discovery_adjusted(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p-values adjusted for the false discovery rate (Benjamini and Hochberg, 1995).

    Examples
    --------
    >>> false_discovery_adjusted([0.01, 0.9, 0.04])
    array([0.03, 0.9 , 0.06])
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values)
    ranked = values[order] * values.size / np.arange(1, values.size + 1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.minimum.accumulate(ranked[::-1])[::-1], 1.0)
    return adjusted
