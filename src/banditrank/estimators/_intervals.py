"""Confidence intervals of the maximum-likelihood estimates of ρ and μ under single looks.

Those of the position-based model are in `banditrank.estimators._position_based_intervals`.

The intervals are those of the normal approximation. A cell with T displays and reward probability ρ_k μ_j
contributes T ρ_k μ_j to the Fisher information of log ρ_k + log μ_j; the inverse of the information matrix
contains the variances of log ρ_k and log μ_j. Intervals are computed on the scale of log-odds, so that they
lie in [0, 1], and contain the estimate.

* Only products of ρ and μ are observed, but ρ sums to 1, which identifies both if items were shown at several
  positions. A quantity that is not identified has the interval [0, 1].
* The upper end for a position or item that was examined and never rewarded is the largest value at which no
  reward has a probability of half the error rate. As preferences sum to 1, the lower ends of the other
  positions fall accordingly.
* Rewards are modelled as Poisson counts. For a user who examines one position only, this is exact for
  comparisons of positions, and conservative for large means and for graded rewards, whose variance is below
  that of clicks. Near 1, where log-odds diverge from a Poisson count's spread, the lower end is computed on
  the scale of logarithms.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_number
from banditrank.counts._counts import Counts
from banditrank.estimators._estimates import estimate
from banditrank.estimators._position_based_intervals import position_based_intervals
from banditrank.model._click_models import RankOneClickModel

Floats = NDArray[np.float64]

MIN_LEVEL, MAX_LEVEL = 0.01, 1 - 1e-9
"""Range of the confidence level."""

_SINGULAR = 1e-9  # eigenvalues below this share of the largest are taken for 0


@dataclass(frozen=True, slots=True, eq=False)
class ConfidenceIntervals:
    """Confidence intervals for each position preference and each item mean separately.

    Attributes
    ----------
    level
        The confidence level.
    position_preferences
        Lower and upper ends for ρ, shape (N, K, 2).
    item_means
        Lower and upper ends for μ, shape (N, M, 2).
    """

    level: float
    position_preferences: Floats
    item_means: Floats


def confidence_intervals(
    counts: Counts, *, level: float = 0.95, click_model: RankOneClickModel = "single-look"
) -> ConfidenceIntervals:
    """Return confidence intervals around ``estimate(counts, method="likelihood", click_model=click_model)``.

    Parameters
    ----------
    counts
        T and S.
    level
        The approximate probability that an interval contains the true value, once there are some tens of
        rewards.
    click_model
        How users look at positions, as for `estimate`. Under ``position-based``, the most looked-at position
        has the interval [1, 1] if it is certain which one that is.

    Raises
    ------
    InvalidInputError
        If the counts are invalid, or the level is out of range.
    UnknownNameError
        If there is no click model of this name.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[900, 900], [400, 400]]], [[[300, 150], [40, 20]]], [1300])
    >>> confidence_intervals(counts).position_preferences.round(2)
    array([[[0.62, 0.71],
            [0.29, 0.38]]])
    >>> confidence_intervals(counts, click_model="position-based").position_preferences.round(2)
    array([[[1.  , 1.  ],
            [0.42, 0.59]]])
    """
    level = check_number("level", level, MIN_LEVEL, MAX_LEVEL)
    estimates = estimate(counts, method="likelihood", click_model=click_model)
    preferences = np.empty((counts.n_user_types, counts.n_positions, 2))
    means = np.empty((counts.n_user_types, counts.n_items, 2))
    for i in range(counts.n_user_types):
        rho, mu = estimates.position_preferences[i], np.minimum(estimates.item_means[i], 1.0)
        displays, rewards = counts.displays[i], counts.rewards[i]
        if click_model == "position-based":
            preferences[i], means[i] = position_based_intervals(displays, rewards, rho, mu, level)
            continue
        preferences[i], means[i] = single_look_intervals(displays, rewards, rho, mu, level)
    return ConfidenceIntervals(level, preferences, means)


def single_look_intervals(
    displays: Floats, rewards: Floats, rho: Floats, mu: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return the intervals of ρ, shape (K, 2), and of μ, shape (M, 2), of one user type under single looks.

    Parameters
    ----------
    displays, rewards
        T and S, shape (M, K).
    rho, mu
        Estimates, shapes (K,) and (M,); at most 1.
    level
        Confidence level of each interval.
    """
    variances = _log_variances(displays, rho, mu)
    preferences = _ends(rho, variances[: rho.size], level)
    means = _ends(mu, variances[rho.size :], level)
    expected = displays.T @ mu  # (K,) rewards if every user examined the position
    _bound_unrewarded(preferences, rewards.sum(axis=0), expected, level)
    _lower_rewarded(preferences, rewards.sum(axis=0))
    _bound_unrewarded(means, rewards.sum(axis=1), displays @ rho, level)
    return preferences, means


def _log_variances(displays: Floats, rho: Floats, mu: Floats) -> Floats:
    """Return the variances of log ρ and log μ, shape (K + M,); infinite if not identified.

    With log ρ_k = a_k − log Σ exp a and log μ_j = b_j + log Σ exp a, the information of b is diagonal: b is
    eliminated, and only a matrix of size K is inverted.
    """
    weights = displays * np.outer(mu, rho)  # (M, K)
    totals = weights.sum(axis=1)  # (M,)
    shares = weights / np.where(totals > 0, totals, 1.0)[:, None]
    at_positions = weights.sum(axis=0)
    eigenvalues, directions = np.linalg.eigh(np.diag(at_positions) - weights.T @ shares)
    informative = eigenvalues > _SINGULAR * max(at_positions.max(), 1e-300)
    # Derivatives of log ρ and log μ with respect to a, after eliminating b.
    along = np.concatenate([np.eye(rho.size) - rho, rho - shares]) @ directions
    variances = (along[:, informative] ** 2 / eigenvalues[informative]).sum(axis=1)
    variances[rho.size :] += np.divide(1.0, totals, out=np.full(mu.size, np.inf), where=totals > 0)
    unidentified = (along[:, ~informative] ** 2).sum(axis=1) > _SINGULAR
    return np.where(unidentified, np.inf, variances)


def _ends(estimates: Floats, variances: Floats, level: float) -> Floats:
    half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(variances)  # of the logarithm
    inside = (estimates > 0) & (estimates < 1)
    chance = np.where(inside, estimates, 0.5)
    log_odds = np.log(chance / (1 - chance))
    steps = half / (1 - chance)
    ends = 0.5 * (1 + np.tanh(np.stack([log_odds - steps, log_odds + steps], axis=1) / 2))
    ends[~inside] = estimates[~inside, None]
    # To second order log-odds lower the logarithm by half²·μ/(1−μ)/2 more. From μ = 2/3 on, this is too much.
    least = estimates * np.exp(-half * (1 + half))
    ends[:, 0] = np.where(estimates >= 1, least, np.maximum(ends[:, 0], least))
    held = np.stack([np.minimum(ends[:, 0], estimates), np.maximum(ends[:, 1], estimates)], axis=1)
    return np.where(np.isfinite(variances)[:, None], held, np.array([0.0, 1.0]))


def _bound_unrewarded(ends: Floats, rewards: Floats, exposures: Floats, level: float) -> None:
    """Write the intervals of unrewarded quantities: e^(−exposure · upper end) is half the error rate."""
    unrewarded = rewards <= 0
    limit = -np.log((1 - level) / 2)
    ends[unrewarded, 0] = 0.0
    ends[unrewarded, 1] = np.minimum(1.0, limit / np.maximum(exposures[unrewarded], 1e-300))


def _lower_rewarded(ends: Floats, rewards: Floats) -> None:
    """Lower the lower ends of rewarded positions by the upper end of the unrewarded ones."""
    unrewarded = rewards <= 0
    ends[~unrewarded, 0] *= 1 - ends[unrewarded, 1].max(initial=0.0)
