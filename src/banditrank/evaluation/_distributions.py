"""Quantiles of the chi-square distribution, without SciPy."""

import math
from statistics import NormalDist

from banditrank.estimators._distributions import chi_square_survival

_TINY = 1e-300
_LARGE = 20_000.0  # degrees of freedom from which Wilson and Hilferty's formula is exact to seven digits


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
