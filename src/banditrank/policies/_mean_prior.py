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
reaches 1/a, and each type learns for itself. That is a fixed point of the fit on other problems, too: where
few of many items are popular, their excess over what a shape of at most 2 explains is taken for taste, then
types tell each other little, and everything is taste. So s² is at most what the likelihood of all rewards
does not rule out (`_bound_taste_variance`). The likelihood is no estimate: fitted by it alone, s² is too
small too early.

The weights depend on the popularity that is sought, so that each type sums over all others. Among more than
`MAX_SUMMED_TYPES` types that takes too long, and no type says much: there the evidence of each is weighted
once, by the popularity among all types, and added to sums that all types share (`_add_evidence`).

Only means are pooled. Preferences of types that are pooled by moments of their estimates locked in: one run
on Table 1 had a regret of 38,004.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, internal

Floats = NDArray[np.float64]

MAX_SUMMED_TYPES = 64
"""Number of user types up to which each type sums over all others."""

_SHAPE_RANGE = (0.5, 2.0)  # of a; a stronger prior keeps unlucky items down
_MIN_TASTE_VARIANCE = 0.01
_MAX_POOLED_SHARE = 0.999  # of s² a; at 1 types are independent
_START_TASTE_VARIANCE = 0.4
_START_ITEMS = 0.15  # that the start of s² counts for: with few items, types are never taken for identical
_POPULARITY_STEPS = 2
_TASTE_VARIANCES = (0.01, 0.03, 0.09, 0.27, 0.81, 2.43)  # whose likelihoods are compared
_BOUND_LOG_ODDS = 4.0  # against an s² that is ruled out
_BOUND_GROWTH = 1.1  # of a type's rounds, between two bounds: each takes as long as several refits
_START_LEVEL = 0.5
_MAX_LEVEL = 10.0  # a mean of rates, at most 1 with few exceptions; see `_fit_level`
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
    log_likelihoods: Floats  # (N, G) of the rewards of a type, at each of `_TASTE_VARIANCES`
    taste_variance_bound: Floats  # (1,) upper bound of s² by these
    bound_at: Floats  # (N,) rounds of the next bound
    candidate_popularities: Floats  # (M,) workspace, like the next two
    earned: Floats  # (M,)
    expected: Floats  # (M,)
    shared_rounds: Floats  # (N,) rounds of other types that tell a type's means; see `_fit_shared_rounds`
    weighted_rewards: Floats  # (N, M) evidence of each type at its last fit; (0, M) if types sum over others
    weighted_looks: Floats  # (N, M), likewise: looks times level
    total_rewards: Floats  # (M,) sums of these over all types; if types sum over others, of the last fit
    total_looks: Floats  # (M,)


def new_mean_prior(n_user_types: int, n_items: int, *, is_pooled: bool) -> MeanPrior:
    """Return the prior without data."""
    n, m = n_user_types, n_items
    n_added = n if is_pooled and n > MAX_SUMMED_TYPES else 0
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
        np.zeros((n, len(_TASTE_VARIANCES))),
        np.full(1, np.inf),
        np.zeros(n),
        np.ones(m),
        np.ones(m),
        np.ones(m),
        np.zeros(n),
        np.zeros((n_added, m)),
        np.zeros((n_added, m)),
        np.zeros(m),
        np.zeros(m),
    )


@internal
def fit_prior(
    prior: MeanPrior,
    user_type: int,
    rewards: Floats,
    looks: Floats,
    rounds: Floats,
    is_bounded: bool,  # noqa: FBT001
) -> None:
    """Fit the prior of a type to its rewards and looks, shape (M,), and to those of the others.

    The bound of s² is computed again if asked for, and whenever the rounds of the type have grown enough.
    """
    i = user_type
    for j in range(looks.size):
        prior.rewards[i, j] = rewards[j]
        prior.exposures[i, j] = looks[j]
    is_added = prior.weighted_rewards.shape[0] > 0
    if is_added:
        _read_popularities(prior, i, prior.earned, prior.expected)
    elif prior.is_pooled:
        _fit_popularities(prior, i)
    _fit_level(prior, i, rounds)
    if is_added:
        _add_evidence(prior, i)
    if prior.is_pooled:
        if is_bounded or rounds[i] >= prior.bound_at[i]:
            _bound_taste_variance(prior, i)
            prior.bound_at[i] = max(rounds[i] * _BOUND_GROWTH, rounds[i] + 1.0)
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
    earned, expected = prior.total_rewards, prior.total_looks
    for _ in range(_POPULARITY_STEPS):
        _sum_evidence(prior, i, start, variance, prior.popularities[i], earned, expected)
        for j in range(earned.size):
            prior.popularities[i, j] = earned[j] / expected[j]
    for j in range(earned.size):
        prior.shapes[i, j] = 1.0 / (1.0 / earned[j] + variance)


@internal
def _sum_evidence(
    prior: MeanPrior,
    i: int,
    start: float,
    variance: float,
    popularities: Floats,
    earned: Floats,
    expected: Floats,
) -> None:
    """Write the evidence of the other types, shape (M,), at s², with weights by given popularities."""
    for j in range(earned.size):
        earned[j] = expected[j] = start
    for other in range(prior.levels.size):
        if other != i:
            for j in range(earned.size):
                looks = prior.levels[other] * prior.exposures[other, j]
                weight = 1.0 / (1.0 + variance * popularities[j] * looks)
                earned[j] += weight * prior.rewards[other, j]
                expected[j] += weight * looks


@internal
def _read_popularities(prior: MeanPrior, i: int, earned: Floats, expected: Floats) -> None:
    """Write what `_fit_popularities` does by the shared sums, less what the type itself added to them."""
    _read_evidence(prior, i, _popularity_shape(prior), earned, expected)
    for j in range(earned.size):
        prior.popularities[i, j] = earned[j] / expected[j]
        prior.shapes[i, j] = 1.0 / (1.0 / earned[j] + prior.taste_variance[0])


@internal
def _read_evidence(prior: MeanPrior, i: int, start: float, earned: Floats, expected: Floats) -> None:
    """Write what `_sum_evidence` does, at the present s², by the shared sums."""
    for j in range(earned.size):
        earned[j] = start + max(prior.total_rewards[j] - prior.weighted_rewards[i, j], 0.0)
        expected[j] = start + max(prior.total_looks[j] - prior.weighted_looks[i, j], 0.0)


@internal
def _add_evidence(prior: MeanPrior, i: int) -> None:
    """Replace what a type added to the shared sums by its present evidence."""
    start, variance = _popularity_shape(prior), prior.taste_variance[0]
    for j in range(prior.total_rewards.size):
        popularity = (start + prior.total_rewards[j]) / (start + prior.total_looks[j])
        looks = prior.levels[i] * prior.exposures[i, j]
        weight = 1.0 / (1.0 + variance * popularity * looks)
        prior.total_rewards[j] += weight * prior.rewards[i, j] - prior.weighted_rewards[i, j]
        prior.total_looks[j] += weight * looks - prior.weighted_looks[i, j]
        prior.weighted_rewards[i, j] = weight * prior.rewards[i, j]
        prior.weighted_looks[i, j] = weight * looks


@internal
def _fit_level(prior: MeanPrior, i: int, rounds: Floats) -> None:
    """Take a step towards the level c that makes all rewards of a type most likely.

    Before a type has rewards it has the level of the others, as certain as one reward makes it. Types that
    like different items raise each other's level at each step, since each takes what it likes for unpopular:
    without `_MAX_LEVEL`, to infinity.
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
    prior.levels[i] = min(earned / expected, _MAX_LEVEL)


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
    largest = min(_MAX_POOLED_SHARE / prior.shape[0], prior.taste_variance_bound[0])
    prior.taste_variance[0] = min(max(fitted, _MIN_TASTE_VARIANCE), largest)


@internal
def _bound_taste_variance(prior: MeanPrior, i: int) -> None:
    """Bound s² where the rewards of all types are much less likely than at the best value.

    The bound is interpolated between the values that are compared, and infinite if none is ruled out.
    """
    likelihoods, largest = prior.log_likelihoods, _MAX_POOLED_SHARE / prior.shape[0]
    _write_log_likelihoods(prior, i, largest)
    best = -np.inf
    for index in range(likelihoods.shape[1]):
        best = max(best, likelihoods[:, index].sum())
    prior.taste_variance_bound[0] = np.inf
    higher = -np.inf  # the likelihood of the next higher value
    for index in range(likelihoods.shape[1] - 1, -1, -1):
        likelihood = likelihoods[:, index].sum()
        if likelihood >= best - _BOUND_LOG_ODDS:
            if index + 1 < likelihoods.shape[1]:
                share = (likelihood - best + _BOUND_LOG_ODDS) / (likelihood - higher)
                first, second = _TASTE_VARIANCES[index], min(_TASTE_VARIANCES[index + 1], largest)
                prior.taste_variance_bound[0] = first * max(second / first, 1.0) ** share
            break
        higher = likelihood


@internal
def _write_log_likelihoods(prior: MeanPrior, i: int, largest: float) -> None:
    """Write the logarithm of the likelihood of a type's rewards, given those of the others, at each s².

    The rewards of an item have a negative binomial distribution: a Poisson count, whose mean has the Gamma
    prior that `fit_prior` would fit at this s².
    """
    is_added = prior.weighted_rewards.shape[0] > 0
    popularities, earned, expected = prior.candidate_popularities, prior.earned, prior.expected
    for j in range(popularities.size):
        popularities[j] = prior.popularities[i, j]
    for index in range(prior.log_likelihoods.shape[1]):
        variance = min(_TASTE_VARIANCES[index], largest)
        start = prior.shape[0] / (1.0 - variance * prior.shape[0])
        if is_added:
            _read_evidence(prior, i, start, earned, expected)
        else:
            _sum_evidence(prior, i, start, variance, popularities, earned, expected)
        total = 0.0
        for j in range(popularities.size):
            popularities[j] = earned[j] / expected[j]
            if prior.exposures[i, j] > 0.0:
                shape = 1.0 / (1.0 / earned[j] + variance)
                mean = prior.levels[i] * popularities[j] * prior.exposures[i, j]
                rewards = prior.rewards[i, j]
                total -= shape * math.log1p(mean / shape)
                if rewards > 0.0:
                    total += rewards * math.log(mean / (shape + mean))
                    total += math.lgamma(shape + rewards) - math.lgamma(shape)
        prior.log_likelihoods[i, index] = total


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
