"""The prior of item means in ThompsonRank, fitted to the counts of all user types.

The mean of item j for type i is c_i g_j x_ij: the level c_i of the type, the popularity g_j of the item among
all types, and the type's own taste x_ij, of mean 1 and variance s². Without data the product has a Gamma
distribution of shape a and mean c_i, so that g_j has one of shape A = a / (1 − s² a).

What the other types did with an item tells its popularity. The rewards R and the looks L of type o have the
expectation c_o g L and, since its taste is unknown, the variance c_o g L (1 + s² c_o g L) under Poisson
counts: they count with weight 1 / (1 + s² c_o g L). A type thus never says more than 1 / s² clicks do, and an
item that one type dislikes is not condemned for all. Evidence E for the popularity, and the taste of type i,
give a Gamma prior of shape 1 / (1/E + s²) and mean c_i g_j (`fit_prior`).

s² is fitted to the deviations of types from what the others make expect. Where tastes are independent it
reaches 1/a, and each type learns for itself.

Only means are pooled. Preferences of types that are pooled by moments of their estimates locked in: one run
on Table 1 had a regret of 38,004.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, internal

Floats = NDArray[np.float64]

_SHAPE_RANGE = (0.5, 2.0)  # of a; a stronger prior keeps unlucky items down
_MIN_TASTE_VARIANCE = 0.01
_MAX_POOLED_SHARE = 0.999  # of s² a; at 1 types are independent
_START_TASTE_VARIANCE = 0.4
_START_ITEMS = 0.15  # that the start of s² counts for: with few items, types are never taken for identical
_POPULARITY_STEPS = 2
_START_LEVEL = 0.5
_MIN_EXPECTED = 1e-9


class MeanPrior(NamedTuple):
    """Gamma priors of the means, and what each type tells others."""

    is_pooled: bool
    shape: Floats  # (1,) a
    taste_variance: Floats  # (1,) s²
    levels: Floats  # (N,) c
    shapes: Floats  # (N, M) of the prior of each mean
    looks: Floats  # (N, M) of the prior of each mean: shape / mean
    popularities: Floats  # (N, M) g, by the evidence of the other types
    rewards: Floats  # (N, M) R at the last fit of a type
    exposures: Floats  # (N, M) L at the last fit of a type
    log_mean_gaps: Floats  # (N,) ln E μ − E ln μ over the items of a type, which determines a
    taste_sums: Floats  # (N,) weighted squares of deviations of a type, which determine s²
    taste_weights: Floats  # (N,)
    shared_rounds: Floats  # (N,) rounds of other types that tell a type's means; see `_fit_shared_rounds`


def new_mean_prior(n_user_types: int, n_items: int, *, is_pooled: bool) -> MeanPrior:
    """Return the prior without data."""
    n, m = n_user_types, n_items
    return MeanPrior(
        is_pooled and n > 1,
        np.ones(1),
        np.full(1, _START_TASTE_VARIANCE),
        np.full(n, _START_LEVEL),
        np.ones((n, m)),
        np.full((n, m), 1.0 / _START_LEVEL),
        np.ones((n, m)),
        np.zeros((n, m)),
        np.zeros((n, m)),
        np.full(n, log_mean_gap(1.0)),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
    )


@internal
def fit_prior(prior: MeanPrior, user_type: int, rewards: Floats, looks: Floats, rounds: Floats) -> None:
    """Fit the prior of a type to its rewards and looks, shape (M,), and to those of the others."""
    i = user_type
    for j in range(looks.size):
        prior.rewards[i, j] = rewards[j]
        prior.exposures[i, j] = looks[j]
    if prior.is_pooled:
        _fit_popularities(prior, i)
    _fit_level(prior, i, rounds)
    if prior.is_pooled:
        _fit_taste_variance(prior, i)
    _fit_shape(prior, i)
    _write_shapes(prior, i)
    if prior.is_pooled:
        _fit_shared_rounds(prior, i, rounds)


@internal
def _popularity_shape(prior: MeanPrior) -> float:
    """Return A."""
    shape: float = prior.shape[0]
    pooled: float = min(prior.taste_variance[0] * shape, _MAX_POOLED_SHARE)
    return shape / (1.0 - pooled)


@internal
def _fit_popularities(prior: MeanPrior, i: int) -> None:
    """Write g of each item by the evidence of the other types, and the shape of its prior."""
    start, variance = _popularity_shape(prior), prior.taste_variance[0]
    for j in range(prior.popularities.shape[1]):
        popularity = prior.popularities[i, j]
        earned = start
        for _ in range(_POPULARITY_STEPS):
            earned, expected = start, start
            for other in range(prior.levels.size):
                if other != i:
                    looks = prior.levels[other] * prior.exposures[other, j]
                    weight = 1.0 / (1.0 + variance * popularity * looks)
                    earned += weight * prior.rewards[other, j]
                    expected += weight * looks
            popularity = earned / expected
        prior.popularities[i, j] = popularity
        prior.shapes[i, j] = 1.0 / (1.0 / earned + variance)


@internal
def _fit_level(prior: MeanPrior, i: int, rounds: Floats) -> None:
    """Take a step towards the level c that makes all rewards of a type most likely.

    Before a type has rewards it has the level of the others, as certain as one reward makes it.
    """
    start = _START_LEVEL
    if prior.is_pooled:
        total, levels = 0.0, 0.0
        for other in range(prior.levels.size):
            if other != i:
                total += rounds[other]
                levels += rounds[other] * prior.levels[other]
        if total > 0.0:
            start = levels / total
    earned, expected = 1.0, 1.0 / start
    for j in range(prior.rewards.shape[1]):
        looks = prior.popularities[i, j] * prior.exposures[i, j]
        weight = 1.0 / (1.0 + prior.levels[i] * looks / prior.shapes[i, j])
        earned += weight * prior.rewards[i, j]
        expected += weight * looks
    prior.levels[i] = earned / expected


@internal
def _fit_taste_variance(prior: MeanPrior, i: int) -> None:
    """Fit s² by moments: the squares of a type's deviations, less what chance and popularity explain."""
    variance = prior.taste_variance[0]
    total, weights = 0.0, 0.0
    for j in range(prior.rewards.shape[1]):
        expected = prior.levels[i] * prior.popularities[i, j] * prior.exposures[i, j]
        if expected > _MIN_EXPECTED:
            chance = 1.0 / expected + 1.0 / prior.shapes[i, j] - variance  # of the rewards and of E
            deviation = prior.rewards[i, j] / expected - 1.0
            weight = variance / (variance + chance)
            weight *= weight
            total += weight * (deviation * deviation - chance)
            weights += weight
    prior.taste_sums[i] = total
    prior.taste_weights[i] = weights
    total, weights = 0.0, _START_ITEMS
    for other in range(prior.levels.size):
        total += prior.taste_sums[other]
        weights += prior.taste_weights[other]
    fitted = (max(total, 0.0) + _START_ITEMS * _START_TASTE_VARIANCE) / weights
    largest = _MAX_POOLED_SHARE / prior.shape[0]
    prior.taste_variance[0] = min(max(fitted, _MIN_TASTE_VARIANCE), largest)


@internal
def _fit_shape(prior: MeanPrior, i: int) -> None:
    """Take a step of expectation maximisation on the shape a.

    The best a for given expectations solves ln a − ψ(a) = ln E μ − E ln μ; the closed form is Minka's,
    accurate to 1.5%.
    """
    n_items = prior.rewards.shape[1]
    total, logarithms = 0.0, 0.0
    last_earned, last_rate, gap, logarithm = -1.0, -1.0, 0.0, 0.0
    for j in range(n_items):
        shape = prior.shapes[i, j] if prior.is_pooled else prior.shape[0]
        earned = shape + prior.rewards[i, j]
        mean = prior.levels[i] * prior.popularities[i, j]
        rate = earned / (shape / mean + prior.exposures[i, j])
        total += rate
        # E ln of a Gamma distribution of shape `earned` and mean `rate`: many items have the same.
        if earned != last_earned:
            gap, last_earned = log_mean_gap(earned), earned
        if rate != last_rate:
            logarithm, last_rate = math.log(rate), rate
        logarithms += logarithm - gap
    prior.log_mean_gaps[i] = math.log(total / n_items) - logarithms / n_items
    spread = 0.0
    for other in range(prior.log_mean_gaps.size):
        spread += prior.log_mean_gaps[other] / prior.log_mean_gaps.size
    spread = max(spread, 1e-6)
    fitted = (3.0 - spread + math.sqrt((spread - 3.0) ** 2 + 24.0 * spread)) / (12.0 * spread)
    prior.shape[0] = min(max(fitted, _SHAPE_RANGE[0]), _SHAPE_RANGE[1])


@internal
def _write_shapes(prior: MeanPrior, i: int) -> None:
    for j in range(prior.shapes.shape[1]):
        if not prior.is_pooled:
            prior.shapes[i, j] = prior.shape[0]
        prior.looks[i, j] = prior.shapes[i, j] / (prior.levels[i] * prior.popularities[i, j])


@internal
def _fit_shared_rounds(prior: MeanPrior, i: int, rounds: Floats) -> None:
    """Write the rounds of other types that count as rounds of a type, for its exploration.

    They count by the share of tastes in common, except those of the other type with the most rounds: what one
    type likes may be luck. So of two types each explores as if it were alone.
    """
    total, largest = 0.0, 0.0
    for other in range(rounds.size):
        if other != i:
            total += rounds[other]
            largest = max(largest, rounds[other])
    common = 1.0 - min(prior.taste_variance[0] * prior.shape[0], 1.0)
    prior.shared_rounds[i] = common * (total - largest)


@compiled
def log_mean_gap(shape: float) -> float:
    """Return ln a − ψ(a), the logarithm of a Gamma's mean minus its mean logarithm."""
    shift, a = 0.0, shape
    while a < 6.0:
        shift += 1.0 / a
        a += 1.0
    square = 1.0 / (a * a)
    tail = 0.5 / a + square * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0))  # ln a − ψ(a)
    return math.log(shape / a) + shift + tail
