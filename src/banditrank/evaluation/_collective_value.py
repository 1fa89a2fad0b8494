"""Values of all visits, and collective utilities of the values to user types, with intervals.

The variance of Γ = Σ λ_i f(u_i) is by the delta method: Σ (λ_i f'(u_i))² v_i of the values, and the
multinomial variance of the shares λ_i of user types. Γ = Σ λ_i u_i, the clicks per visit, has a gamma
interval, and other utilities have normal ones. The least value has the least ends of the types' intervals.
"""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.evaluation._gamma_interval import gamma_interval
from banditrank.evaluation._type_values import TypeValues
from banditrank.utilities._utility import UTILITARIAN, Utility

Floats = NDArray[np.float64]

_STEP = 1e-4  # of the numerical derivative, relative


class ValueInterval(NamedTuple):
    """An estimate with a confidence interval; NaN if it is not identified."""

    value: float
    low: float
    high: float

    @property
    def is_identified(self) -> bool:
        """Whether the log identifies the value."""
        return bool(np.isfinite(self.value))


NOT_IDENTIFIED = ValueInterval(float("nan"), float("nan"), float("nan"))


def collective_value(
    values: TypeValues,
    ends: Floats,
    visits: Floats,
    utility: Utility,
    level: float,
    arrival_dispersion: float = 1.0,
) -> ValueInterval:
    """Return a collective utility of estimated values.

    Parameters
    ----------
    values
        Values of each user type.
    ends
        Their intervals, shape (N, 2).
    visits
        Number of visits of each type, shape (N,). Types without visits do not count.
    utility
        The collective utility.
    level
        Confidence level.
    arrival_dispersion
        Variance of the shares of user types over that of independent visits.
    """
    is_present = visits > 0
    u, t = values.values[is_present], values.largest_weights[is_present]
    total = visits.sum()
    if not is_present.any() or np.isnan(u).any():
        return NOT_IDENTIFIED
    rates = visits[is_present] / total
    value = utility.collective(rates, u)
    if utility.shape == "maximin":
        low, high = ends[is_present].min(axis=0)
        return ValueInterval(value, float(low), float(high))
    f, slopes = u, np.ones_like(u)
    if utility.name != UTILITARIAN.name:
        f = utility.evaluate(u)
        if not np.isfinite(f).all():
            return ValueInterval(value, -np.inf, np.inf)
        step = np.maximum(_STEP * u, 1e-12)
        slopes = (utility.evaluate(u + step) - utility.evaluate(u - step)) / (2 * step)
    of_rates = arrival_dispersion * max(0.0, float(rates @ f**2 - (rates @ f) ** 2)) / total
    weights = np.zeros(len(visits))
    weights[is_present] = rates * slopes
    variance = values.variance_of_sum(weights) + of_rates
    if utility.name == UTILITARIAN.name:
        return ValueInterval(value, *gamma_interval(value, variance, float((rates * t).max()), level))
    half = NormalDist().inv_cdf((1 + level) / 2) * variance**0.5
    return ValueInterval(value, value - half, value + half)
