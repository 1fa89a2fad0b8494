"""Confidence radii and error rates of Lemmas 1 and 2 of the paper.

The radii depend on the true means μ. With a problem's means they are the lemmas themselves, to be checked by
simulation; with estimated means they are what a learner can compute.
"""

import math

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError

Floats = NDArray[np.float64]


def position_preference_radius(counts: Counts, item_means: Floats, epsilon: float) -> Floats:
    """Return Lemma 1's radius, equation (1): max_j √(ε ln t / (μ_ij² T_ijk)), shape (N, K).

    Infinite where an item was never shown at the position, or has mean 0.

    Parameters
    ----------
    counts
        T and t.
    item_means
        μ or μ̂, shape (N, M).
    epsilon
        ε ≥ 0: a larger one widens the radius and lowers the error rate.

    Raises
    ------
    InvalidInputError
        If ε is negative or infinite.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[100], [25]]], [[[20], [5]]], [125])
    >>> position_preference_radius(counts, np.array([[0.5, 0.5]]), epsilon=1.0).round(3)
    array([[0.879]])
    """
    _check_epsilon(epsilon)
    evidence = np.asarray(item_means)[:, :, None] ** 2 * counts.displays  # (N, M, K)
    log_t = np.log(max(counts.rounds, 1))
    squares = np.full(evidence.shape, np.inf)
    np.divide(epsilon * log_t, evidence, out=squares, where=evidence > 0)
    return np.asarray(np.sqrt(squares.max(axis=1)))


def position_preference_error_rate(counts: Counts, epsilon: float) -> float:
    """Return Lemma 1's bound M K t^(−2ε) on ``P(|ρ̂_ik − ρ_ik| > radius)``; at most 1.

    Raises
    ------
    InvalidInputError
        If ε is negative or infinite.
    """
    _check_epsilon(epsilon)
    cells = counts.n_items * counts.n_positions
    return min(1.0, cells * math.pow(max(counts.rounds, 1), -2 * epsilon))


def item_mean_radius(counts: Counts, exposures: Floats, epsilon: float) -> Floats:
    """Return Lemma 2's radius, equation (2): √(2ε ‖T_ij‖₁) / N_ij, shape (N, M).

    Infinite for an item of exposure 0.

    Parameters
    ----------
    counts
        T.
    exposures
        N_ij, shape (N, M).
    epsilon
        ε ≥ 0: a larger one widens the radius and lowers the error rate.

    Raises
    ------
    InvalidInputError
        If ε is negative or infinite.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[100], [0]]], [[[20], [0]]], [100])
    >>> item_mean_radius(counts, np.array([[100.0, 0.0]]), epsilon=2.0)
    array([[0.2, inf]])
    """
    _check_epsilon(epsilon)
    displays = counts.displays_by_position.sum(axis=1)  # (N, M)
    exposed = np.asarray(exposures, dtype=np.float64)
    radius = np.full(exposed.shape, np.inf)
    np.divide(np.sqrt(2 * epsilon * displays), exposed, out=radius, where=exposed > 0)
    return radius


def item_mean_error_rate(counts: Counts, epsilon: float) -> float:
    """Return Lemma 2's bound ε e^(1−ε) ln t on ``P(|μ̂_ij − μ_ij| > radius)``; at most 1.

    Raises
    ------
    InvalidInputError
        If ε is negative or infinite.
    """
    _check_epsilon(epsilon)
    return min(1.0, epsilon * float(np.exp(1 - epsilon)) * float(np.log(max(counts.rounds, 1))))


def _check_epsilon(epsilon: float) -> None:
    if not 0 <= epsilon < np.inf:
        raise InvalidInputError("epsilon", "must be a number of at least 0", epsilon)
