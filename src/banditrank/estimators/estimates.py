"""All that counts say about the world, in one value."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank.estimators.item_means import exposure, item_means
from banditrank.estimators.position_preferences import position_preferences
from banditrank.model.values import weighted_means
from banditrank.counts.counts import Counts, check_counts
from banditrank.utilities.utility import Utility

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """What counts say about the world: by the paper's estimators (`estimate`) or by the likelihood's.

    Attributes
    ----------
    arrival_rates
        λ̂ / ‖λ̂‖₁, shape (N,): the share of arrivals, equal shares before anybody arrived.
    position_preferences
        ρ̂ of Algorithm 1 or of largest likelihood, shape (N, K).
    exposure
        N_ij, shape (N, M).
    item_means
        μ̂, shape (N, M).
    """

    arrival_rates: Floats
    position_preferences: Floats
    exposure: Floats
    item_means: Floats

    def user_type_values(self, ranking: ArrayLike) -> Floats:
        """Return Σ_j ρ̂_iσ(j) μ̂_ij for each user type, shape (N,)."""
        return weighted_means(self.position_preferences, self.item_means, ranking)

    def collective_utility(self, ranking: ArrayLike, utility: Utility) -> float:
        """Return Γ̂(σ), equation (3) of the paper."""
        return utility.collective(self.arrival_rates, self.user_type_values(ranking))


def arrival_rates(counts: Counts) -> Floats:
    """Return each type's share of the arrivals, shape (N,)."""
    total = counts.arrivals.sum()
    if total == 0:
        return np.full(counts.n_user_types, 1 / counts.n_user_types)
    return np.asarray(counts.arrivals / total)


def estimate(counts: Counts) -> Estimates:
    """Return the paper's estimates for the counts.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[100, 100], [100, 100]]], [[[20, 10], [40, 20]]], [200])
    >>> estimate(counts).user_type_values([1, 0])  # 2/3 · 0.6 + 1/3 · 0.3
    array([0.5])
    """
    check_counts(counts)
    preferences = position_preferences(counts)
    looks = exposure(counts, preferences)
    return Estimates(arrival_rates(counts), preferences, looks, item_means(counts, looks))
