"""The price of equality of learned rankings, 1 − equal clicks / personalized clicks, with an interval.

Both values come from the same groups of folds, so that most of their noise cancels. The interval is that of
the jackknife over groups: the price is computed again without each group, and Student's distribution with one
degree of freedom less than groups gives the ends. Users belong to one group, so that it holds for users who
return.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditrank.estimators._distributions import student_quantile


@dataclass(frozen=True, slots=True)
class EstimatedPriceOfEquality:
    """Price of equality that a log tells.

    Attributes
    ----------
    target, reference
        Names of the equal and of the personalized target.
    estimator
        Estimator of both values.
    price
        Share of the clicks that equality costs; NaN if a value is not identified. Below 0 if the equal
        ranking earned more, as it may where little can be learned about each type.
    low, high
        Ends of the interval.
    """

    target: str
    reference: str
    estimator: str
    price: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """Return the price as JSON-compatible values."""
        numbers = {name: getattr(self, name) for name in ("price", "low", "high")}
        return {
            "target": self.target,
            "reference": self.reference,
            "estimator": self.estimator,
            **{name: float(value) if np.isfinite(value) else None for name, value in numbers.items()},
        }


def jackknife_price(
    target: str,
    reference: str,
    estimator: str,
    totals: tuple[float, float],
    without: Sequence[tuple[float, float]],
    level: float,
) -> EstimatedPriceOfEquality:
    """Return the price of equality of a target.

    Parameters
    ----------
    target, reference, estimator
        Names.
    totals
        Clicks per visit of the equal and of the personalized target.
    without
        The same without each of the groups.
    level
        Confidence level.

    Examples
    --------
    >>> price = jackknife_price("equal", "personalized", "cells", (0.45, 0.5), [(0.45, 0.5)] * 10, 0.95)
    >>> round(price.price, 3), round(price.low, 3), round(price.high, 3)
    (0.1, 0.1, 0.1)
    """
    price = _price(*totals)
    parts = np.array([_price(*pair) for pair in without])
    n = parts.size
    if n < 2 or not np.isfinite(price) or not np.isfinite(parts).all():
        return EstimatedPriceOfEquality(target, reference, estimator, price, float("nan"), float("nan"))
    error = float(np.sqrt((n - 1) / n * ((parts - parts.mean()) ** 2).sum()))
    half = student_quantile((1 + level) / 2, n - 1) * error
    return EstimatedPriceOfEquality(target, reference, estimator, price, price - half, min(price + half, 1.0))


def _price(equal: float, personalized: float) -> float:
    return 1.0 - equal / personalized if personalized > 0 else float("nan")
