"""The price of equality: the loss of one ranking for all user types against personalized rankings.

The price of equality of a ranking σ is 1 − Σ_i λ_i u_i(σ) / Σ_i λ_i u_i*, where u_i* is the value of type i's
own best ranking to it. Values are clicks per visit, whatever utility σ maximises, so the prices of different
utilities are comparable. The utilitarian ranking has the lowest price.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank.model._problem import ProblemLike
from banditrank.model._values import best_personalized_values, click_scale, user_type_values

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class EqualityReport:
    """Values of an equal ranking to each user type, compared with personalized treatment.

    Attributes
    ----------
    arrival_rates
        λ, shape (N,).
    user_type_values
        u(σ), shape (N,): each type's clicks per visit under the equal ranking.
    personalized_values
        u*, shape (N,): each type's clicks per visit under its own best ranking.
    """

    arrival_rates: Floats
    user_type_values: Floats
    personalized_values: Floats

    @property
    def total(self) -> float:
        """Σ_i λ_i u_i(σ): clicks per visit over all users."""
        return float(self.arrival_rates @ self.user_type_values)

    @property
    def personalized_total(self) -> float:
        """Σ_i λ_i u_i*: clicks per visit over all users under personalized treatment."""
        return float(self.arrival_rates @ self.personalized_values)

    @property
    def worst_type(self) -> int:
        """Index of the worst-off type; the first of equals."""
        return int(self.user_type_values.argmin())

    @property
    def worst(self) -> float:
        """min_i u_i(σ): the value of the worst-off type."""
        return float(self.user_type_values.min())

    @property
    def shares_lost(self) -> Floats:
        """1 − u_i(σ) / u_i*, shape (N,): the share of its value that each type loses; 0 if u_i* is 0."""
        return np.array(
            [
                _share_lost(value, best)
                for value, best in zip(self.user_type_values, self.personalized_values, strict=True)
            ]
        )

    @property
    def price_of_equality(self) -> float:
        """1 − total / personalized total; 0 if the personalized total is 0."""
        return _share_lost(self.total, self.personalized_total)


def equality_report(problem: ProblemLike, ranking: ArrayLike) -> EqualityReport:
    """Return the values of a ranking shown to all user types, and its price of equality.

    Parameters
    ----------
    problem
        The problem.
    ranking
        The equal ranking, shape (K,): that of a `Solution`, or any other.

    Raises
    ------
    InvalidInputError
        If the ranking is not K different items.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> report = equality_report(kdd2012(), [3, 2])
    >>> report.shares_lost.round(3)
    array([0.097, 0.   ])
    >>> round(report.price_of_equality, 3)
    0.06
    """
    scale = click_scale(problem)
    return EqualityReport(
        arrival_rates=problem.arrival_rates,
        user_type_values=_read_only(scale * user_type_values(problem, ranking)),
        personalized_values=_read_only(scale * best_personalized_values(problem)),
    )


def _share_lost(value: float, best: float) -> float:
    return max(0.0, 1.0 - float(value) / float(best)) if best > 0 else 0.0  # negative only by rounding


def _read_only(values: Floats) -> Floats:
    values.flags.writeable = False
    return values
