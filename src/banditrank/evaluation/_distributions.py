"""Chi-square and Student quantiles, and the tail of the chi-square distribution, without SciPy."""

import math
from statistics import NormalDist

_MAX_TERMS = 100_000
_PRECISION = 1e-15
_TINY = 1e-300
_LARGE = 20_000.0  # degrees of freedom from which Wilson and Hilferty's formula is exact to seven digits


def chi_square_tail(value: float, freedom: float) -> float:
    """Return the probability that a chi-square variable exceeds a value.

    Parameters
    ----------
    value
        The value, at least 0.
    freedom
        Degrees of freedom, above 0; not necessarily whole.

    Examples
    --------
    >>> round(chi_square_tail(3.841459, 1), 6)
    0.05
    """
    if value <= 0:
        return 1.0
    if freedom > _LARGE:
        spread = 2 / (9 * freedom)
        return NormalDist().cdf((1 - spread - (value / freedom) ** (1 / 3)) / math.sqrt(spread))
    shape, x = freedom / 2, value / 2
    scale = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    return 1 - scale * _series(shape, x) if x < shape + 1 else scale * _fraction(shape, x)


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
    if freedom > _LARGE:
        return start
    shape = freedom / 2
    if start <= 0.01 * freedom:  # the power law at 0
        start = 2 * math.exp((math.log(probability) + math.lgamma(shape + 1)) / shape)
    low, high, value = 0.0, math.inf, max(start, _TINY)
    for _ in range(200):
        error = (1 - probability) - chi_square_tail(value, freedom)  # increases with the value
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


def student_quantile(probability: float, freedom: int) -> float:
    """Return the value that a variable of Student's distribution does not exceed with a probability.

    The expansion of Abramowitz and Stegun (1964), 26.7.5, to three digits from 4 degrees of freedom on.

    Examples
    --------
    >>> round(student_quantile(0.975, 9), 3)
    2.262
    """
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    correction: float = sum(term / freedom**power for power, term in enumerate(terms, 1))
    return z + correction


def _series(shape: float, x: float) -> float:
    """Return the series of the lower incomplete gamma function."""
    term = total = 1 / shape
    for number in range(1, _MAX_TERMS):
        term *= x / (shape + number)
        total += term
        if term < total * _PRECISION:
            break
    return total


def _fraction(shape: float, x: float) -> float:
    """Return the continued fraction of the upper incomplete gamma function, by Lentz's method."""
    b = x + 1 - shape
    c, d = 1 / _TINY, 1 / b
    value = d
    for number in range(1, _MAX_TERMS):
        a = number * (shape - number)
        b += 2
        d = 1 / _nonzero(b + a * d)
        c = _nonzero(b + a / c)
        value *= c * d
        if abs(c * d - 1) < _PRECISION * 10:
            break
    return value


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
