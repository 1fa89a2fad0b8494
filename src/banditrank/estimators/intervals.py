"""How sure the likelihood's estimates are: an interval for every preference and every mean.

Around its largest value the logarithm of the likelihood falls off like a parabola in log ρ and log μ. A cell
shown T times with chance ρ_k μ_j of a reward contributes the weight T ρ_k μ_j to the curvature in
log ρ_k + log μ_j. The inverse of the whole gives the variances of log ρ_k and log μ_j, all else being unknown
too; intervals are set up on the scale of log-odds, so that they stay within [0, 1], and hold the estimate.

* Only products of ρ and μ are seen, but ρ sums to 1, which settles the rest, provided that items were shown
  at several positions. What the displays leave open has the interval [0, 1].
* What was looked at and never rewarded is surely small: its upper end is the largest value at which so little
  would have been seen with half the error rate. Preferences sum to 1, so what it may have, others may lack.
* Rewards are taken for Poisson counts. For a user who looks at one position only, this is right where
  positions are compared, and on the safe side for means that are large; so it is for graded rewards, which
  spread less than clicks. Near 1, where log-odds run away from a Poisson count's spread, the lower end is
  found on the scale of logarithms.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from banditrank.checks import check_number
from banditrank.estimators.maximum_likelihood import likelihood_estimate
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]

MIN_LEVEL, MAX_LEVEL = 0.01, 1 - 1e-9
"""How probably an interval may be asked to hold the truth."""

_SINGULAR = 1e-9  # curvature below this share of the largest is none


@dataclass(frozen=True, slots=True, eq=False)
class ConfidenceIntervals:
    """Where the truth lies with the given probability, for each quantity by itself.

    Attributes
    ----------
    level
        The probability.
    position_preferences
        Lower and upper ends for ρ, shape (N, K, 2).
    item_means
        Lower and upper ends for μ, shape (N, M, 2).
    """

    level: float
    position_preferences: Floats
    item_means: Floats


def confidence_intervals(counts: Counts, *, level: float = 0.95) -> ConfidenceIntervals:
    """Return intervals around `likelihood_estimate`.

    Parameters
    ----------
    counts
        T and S.
    level
        How probably each interval holds the truth, about, once there are some tens of rewards.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[900, 900], [400, 400]]], [[[300, 150], [40, 20]]], [1300])
    >>> confidence_intervals(counts).position_preferences.round(2)
    array([[[0.62, 0.71],
            [0.29, 0.38]]])
    """
    level = check_number("level", level, MIN_LEVEL, MAX_LEVEL)
    estimates = likelihood_estimate(counts)
    preferences = np.empty((counts.n_user_types, counts.n_positions, 2))
    means = np.empty((counts.n_user_types, counts.n_items, 2))
    for i in range(counts.n_user_types):
        rho, mu = estimates.position_preferences[i], np.minimum(estimates.item_means[i], 1.0)
        displays, rewards = counts.displays[i], counts.rewards[i]
        variances = _log_variances(displays, rho, mu)
        preferences[i] = _ends(rho, variances[: rho.size], level)
        means[i] = _ends(mu, variances[rho.size :], level)
        expected = displays.T @ mu  # (K,) rewards if everybody looked there
        _bound_unrewarded(preferences[i], rewards.sum(axis=0), expected, level)
        _leave_room(preferences[i], rewards.sum(axis=0))
        _bound_unrewarded(means[i], rewards.sum(axis=1), displays @ rho, level)
    return ConfidenceIntervals(level, preferences, means)


def _log_variances(displays: Floats, rho: Floats, mu: Floats) -> Floats:
    """Return the variances of log ρ and log μ, shape (K + M,); infinite where nothing settles them.

    With log ρ_k = a_k − log Σ exp a and log μ_j = b_j + log Σ exp a, the curvature in b alone is diagonal, so
    that b is eliminated and what is left to invert is of the size of a.
    """
    weights = displays * np.outer(mu, rho)  # (M, K)
    totals = weights.sum(axis=1)  # (M,)
    shares = weights / np.where(totals > 0, totals, 1.0)[:, None]
    at_positions = weights.sum(axis=0)
    eigenvalues, directions = np.linalg.eigh(np.diag(at_positions) - weights.T @ shares)
    informative = eigenvalues > _SINGULAR * max(at_positions.max(), 1e-300)
    # What is left of the derivatives of log ρ and log μ by a and b.
    along = np.concatenate([np.eye(rho.size) - rho, rho - shares]) @ directions
    variances = (along[:, informative] ** 2 / eigenvalues[informative]).sum(axis=1)
    variances[rho.size :] += np.divide(1.0, totals, out=np.full(mu.size, np.inf), where=totals > 0)
    open_ended = (along[:, ~informative] ** 2).sum(axis=1) > _SINGULAR
    return np.where(open_ended, np.inf, variances)


def _ends(estimates: Floats, variances: Floats, level: float) -> Floats:
    half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(variances)  # of the logarithm
    inside = (estimates > 0) & (estimates < 1)
    chance = np.where(inside, estimates, 0.5)
    log_odds = np.log(chance / (1 - chance))
    steps = half / (1 - chance)
    ends = 0.5 * (1 + np.tanh(np.stack([log_odds - steps, log_odds + steps], axis=1) / 2))
    ends[~inside] = estimates[~inside, None]
    # To second order log-odds take half²·μ/(1−μ)/2 more off the logarithm. From μ = 2/3 on, this is too much.
    least = estimates * np.exp(-half * (1 + half))
    ends[:, 0] = np.where(estimates >= 1, least, np.maximum(ends[:, 0], least))
    held = np.stack([np.minimum(ends[:, 0], estimates), np.maximum(ends[:, 1], estimates)], axis=1)
    return np.where(np.isfinite(variances)[:, None], held, np.array([0.0, 1.0]))


def _bound_unrewarded(ends: Floats, rewards: Floats, exposures: Floats, level: float) -> None:
    """Write the intervals of what was never rewarded: e^(−exposure · value) is half the error rate."""
    unrewarded = rewards <= 0
    limit = -np.log((1 - level) / 2)
    ends[unrewarded, 0] = 0.0
    ends[unrewarded, 1] = np.minimum(1.0, limit / np.maximum(exposures[unrewarded], 1e-300))


def _leave_room(ends: Floats, rewards: Floats) -> None:
    """Lower the intervals of rewarded positions by what those without a reward may have of their looks."""
    unrewarded = rewards <= 0
    ends[~unrewarded, 0] *= 1 - ends[unrewarded, 1].max(initial=0.0)
