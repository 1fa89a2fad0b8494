"""Estimates of a problem from counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._checks import check_integer, check_number
from banditrank._frames import Columns, NamedTabular, cell_columns, names_or_default
from banditrank.counts._counts import Counts, check_counts
from banditrank.errors import UnknownNameError
from banditrank.estimators._binomial_likelihood import maximize_binomial_likelihood
from banditrank.estimators._item_means import exposure, item_means
from banditrank.estimators._maximum_likelihood import maximize_likelihood
from banditrank.estimators._position_preferences import position_preferences
from banditrank.model._click_models import RankOneClickModel, check_rank_one
from banditrank.model._problem import rate_columns
from banditrank.model._problem_html import problem_html
from banditrank.model._values import weighted_means
from banditrank.utilities._utility import Utility, as_utility

Floats = NDArray[np.float64]

EstimationMethod: TypeAlias = Literal["paper", "likelihood"]


@dataclass(frozen=True, slots=True, eq=False)
class Estimates(NamedTabular):
    """Estimated arrival rates, position preferences and item means; accepted wherever a problem is solved.

    ``to_frame`` returns a row for each user type, position and item, with the columns ``user_type``,
    ``position`` (from 1), ``item``, ``arrival_rate``, ``position_preference``, ``item_mean`` and
    ``exposure``.

    Attributes
    ----------
    arrival_rates
        λ̂ / ‖λ̂‖₁, shape (N,): the share of arrivals; equal shares before the first arrival.
    position_preferences
        ρ̂, shape (N, K). Under single looks the rows sum to 1; under the position-based model their maximum is
        1.
    exposure
        N_ij, shape (N, M): the estimated number of times that users examined an item.
    item_means
        μ̂, shape (N, M).

    Examples
    --------
    >>> counts = Counts.from_arrays([[[100, 100], [100, 100]]], [[[20, 10], [40, 20]]], [200])
    >>> estimates = estimate(counts)
    >>> estimates.item_means
    array([[0.3, 0.6]])
    >>> round(estimates.collective_utility([1, 0], "nash"), 6)  # ln 0.5
    -0.693147
    """

    arrival_rates: Floats
    position_preferences: Floats
    exposure: Floats
    item_means: Floats

    def user_type_values(self, ranking: ArrayLike) -> Floats:
        """Return Σ_j ρ̂_iσ(j) μ̂_ij for each user type, shape (N,).

        Raises
        ------
        InvalidInputError
            If the ranking is not K different items.
        """
        return weighted_means(self.position_preferences, self.item_means, ranking)

    def collective_utility(self, ranking: ArrayLike, utility: Utility | str) -> float:
        """Return Γ̂(σ), equation (3) of the paper.

        Raises
        ------
        InvalidInputError
            If the ranking is not K different items, or the utility is unknown.
        """
        return as_utility(utility).collective(self.arrival_rates, self.user_type_values(ranking))

    def _repr_html_(self) -> str:
        user_types, items = self._names()
        return problem_html("Estimates", "", self, user_types, items, self.exposure)

    def _columns(
        self, user_types: Sequence[str] | None = None, items: Sequence[str] | None = None
    ) -> Columns:
        n, m = self.item_means.shape
        k = self.position_preferences.shape[1]
        user_types, items = self._names(user_types, items)
        return {
            **cell_columns(user_types, k, items),
            **rate_columns(self),
            "exposure": np.broadcast_to(self.exposure[:, None, :], (n, k, m)).flatten(),
        }

    def _names(
        self, user_types: Sequence[str] | None = None, items: Sequence[str] | None = None
    ) -> tuple[list[str], list[str]]:
        n, m = self.item_means.shape
        return (
            names_or_default("user_types", user_types, "type", n),
            names_or_default("items", items, "item", m),
        )


def estimate(
    counts: Counts,
    method: EstimationMethod = "paper",
    *,
    click_model: RankOneClickModel = "single-look",
    tolerance: float = 1e-12,
    max_iterations: int = 10_000,
) -> Estimates:
    """Estimate arrival rates, position preferences and item means.

    Parameters
    ----------
    counts
        T, S and arrivals.
    method
        ``paper``: Algorithm 1 for ρ (see `banditrank.estimators._position_preferences`) and μ̂ = ‖S‖₁ / N (see
        `banditrank.estimators._item_means`). ``likelihood``: maximum likelihood for both (see
        `banditrank.estimators._maximum_likelihood`; under the position-based model,
        `banditrank.estimators._binomial_likelihood`).
    click_model
        How users look at positions; it fixes the scale, as only products of ρ and μ are identifiable.
        ``single-look``: at one position, so preferences sum to 1. ``position-based``: at each position
        independently; the most looked-at one is always looked at, so the largest preference is 1, and a mean
        is the click probability of an item there.
    tolerance, max_iterations
        For ``likelihood``: stop when no preference changes by more than the tolerance in an iteration, or
        after this number of iterations.

    Returns
    -------
    Estimates
        The estimates. Under single looks means may exceed 1 when data are few.

    Raises
    ------
    UnknownNameError
        If there is no method or click model of this name.
    InvalidInputError
        If the counts are invalid, or a setting is out of range.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[100, 100], [100, 100]]], [[[20, 10], [40, 20]]], [200])
    >>> estimate(counts).user_type_values([1, 0])  # 2/3 · 0.6 + 1/3 · 0.3
    array([0.5])

    The likelihood gives an item that was rarely shown little weight:

    >>> counts = Counts.from_arrays([[[900, 900], [10, 10]]], [[[60, 30], [1, 3]]], [910])
    >>> estimate(counts, method="likelihood").position_preferences.round(2)
    array([[0.65, 0.35]])
    >>> estimate(counts, method="paper").position_preferences.round(2)
    array([[0.46, 0.54]])

    Under the position-based model the same counts have other scales:

    >>> counts = Counts.from_arrays([[[100, 100], [100, 100]]], [[[20, 10], [40, 20]]], [200])
    >>> estimates = estimate(counts, click_model="position-based")
    >>> estimates.position_preferences, estimates.item_means
    (array([[1. , 0.5]]), array([[0.2, 0.4]]))
    """
    check_counts(counts)
    is_position_based = check_rank_one(click_model) == "position-based"
    if method == "paper":
        preferences = position_preferences(counts)
        if is_position_based:
            preferences /= preferences.max(axis=1, keepdims=True)
        exposures = exposure(counts, preferences)
        means = item_means(counts, exposures)
        if is_position_based:
            means = np.minimum(means, 1.0)
        return Estimates(arrival_rates(counts), preferences, exposures, means)
    if method == "likelihood":
        tolerance = check_number("tolerance", tolerance, 0.0, 1.0)
        max_iterations = check_integer("max_iterations", max_iterations, 1)
        maximize = maximize_binomial_likelihood if is_position_based else maximize_likelihood
        preferences, means = maximize(counts, tolerance=tolerance, max_iterations=max_iterations)
        return Estimates(arrival_rates(counts), preferences, exposure(counts, preferences), means)
    raise UnknownNameError("method", method, get_args(EstimationMethod))


def arrival_rates(counts: Counts) -> Floats:
    """Return each type's share of the arrivals, shape (N,); equal shares before the first arrival."""
    total = counts.arrivals.sum()
    if total == 0:
        return np.full(counts.n_user_types, 1 / counts.n_user_types)
    return np.asarray(counts.arrivals / total)
