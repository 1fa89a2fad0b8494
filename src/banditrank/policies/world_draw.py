"""How ThompsonRank draws a world from what it believes: position preferences and means, jointly.

Preferences come from the normal approximation of their posterior. While a type has few rounds that
approximation is poor, and one of several candidates is picked with odds of posterior over approximation
(sampling, importance resampling). The means are drawn given the preferences: an item shown mostly at
positions that are looked at less in this draw has a higher mean in it.
"""

import math

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined, internal
from banditrank.policies.cholesky import softmax, solve_upper
from banditrank.policies.posterior import Posterior

Floats = NDArray[np.float64]

_EARLY = 2000.0  # rounds of a type, until which candidates are compared
_CANDIDATES = 4
_HEAD_START = 1e4  # rounds that a type is taken to have had already when it is decided how much to explore
_MOST_CAUTION = 2.0
_TIE = 1e-9  # what is left of a draw below the mean: it breaks ties between items alike


@inlined
def sample_preferences(
    posterior: Posterior, user_type: int, rng: np.random.Generator, preferences: Floats
) -> None:
    """Write a draw of one type's ρ, shape (K,)."""
    if posterior.rounds[user_type] < _EARLY:
        _draw_among_candidates(posterior, user_type, rng, preferences)
    else:
        _propose(posterior, user_type, rng, preferences)


@inlined
def _propose(posterior: Posterior, user_type: int, rng: np.random.Generator, preferences: Floats) -> float:
    """Write a draw from the normal approximation; return the logarithm of one over its density there."""
    i = user_type
    steps = posterior.workspace.gradient
    squares, total = 0.0, 0.0
    for k in range(preferences.size):
        steps[k] = rng.standard_normal()
        squares += steps[k] * steps[k]
    solve_upper(posterior.factors[i], steps)
    for k in range(preferences.size):
        total += steps[k]
        steps[k] += posterior.logits[i, k]
    softmax(steps, preferences)
    return 0.5 * (squares - total * total)  # Σθ is drawn as well, but of no account


@internal
def _draw_among_candidates(
    posterior: Posterior, user_type: int, rng: np.random.Generator, preferences: Floats
) -> None:
    candidate = posterior.workspace.candidate
    first, total = 0.0, 0.0
    for number in range(_CANDIDATES):
        odds = _propose(posterior, user_type, rng, candidate)
        odds += _log_posterior(posterior, user_type, candidate)
        if number == 0:
            first = odds
        weight = math.exp(min(odds - first, 50.0))
        total += weight
        if rng.random() * total < weight:  # always for the first
            for k in range(preferences.size):
                preferences[k] = candidate[k]


@internal
def _log_posterior(posterior: Posterior, user_type: int, preferences: Floats) -> float:
    """Return the logarithm of the density of θ at ρ = softmax θ, the means integrated out."""
    i = user_type
    shape = posterior.prior.shape[0]
    rate = shape / posterior.prior.means[i]
    total = 0.0
    for k in range(preferences.size):
        total += (1.0 + posterior.position_rewards[i, k]) * math.log(preferences[k])
    for j in range(posterior.item_rewards.shape[1]):
        looks = rate
        for k in range(preferences.size):
            looks += posterior.displays[i, k, j] * preferences[k]
        total -= (shape + posterior.item_rewards[i, j]) * math.log(looks)
    return total


@inlined
def variance_inflation(rounds: float) -> float:
    """Return what to multiply the variance of means by: ln(n + 10,000) / ln n, from 2 down to 1.

    Posterior sampling gives an item up once the odds against it are about n. Early on that is soon: one run
    in a hundred loses an item to bad luck for very long. What is explored now need not be explored later,
    so doing early what 10,000 rounds would call for in any case costs next to nothing in the end.
    """
    return min(math.log(rounds + math.e + _HEAD_START) / math.log(rounds + math.e), _MOST_CAUTION)


@inlined
def sample_means(
    posterior: Posterior, user_type: int, preferences: Floats, rng: np.random.Generator, means: Floats
) -> None:
    """Write a draw of one type's μ given its ρ, shape (M,), in units of the largest reward.

    A Gamma variable is its mean times (1 − v/9 + z √v/3)³ for a standard normal z, v one over its shape
    (Wilson and Hilferty 1931); v is raised by `variance_inflation`. Draws below the mean are raised to it (May et al.
    2012, "Optimistic Bayesian sampling in contextual-bandit problems"): doubts about an item are a reason to
    show it, never to hide it.
    """
    i = user_type
    normals, looks = posterior.workspace.normals, posterior.workspace.rates
    shape = posterior.prior.shape[0]
    rate = shape / posterior.prior.means[i]
    inflation = variance_inflation(posterior.rounds[i])
    for j in range(means.size):
        normals[j] = rng.standard_normal()
        looks[j] = rate
    for k in range(preferences.size):
        preference = preferences[k]
        for j in range(means.size):
            looks[j] += preference * posterior.weighted_displays[i, k, j]
    for j in range(means.size):
        earned = shape + posterior.weighted_rewards[i, j]
        spread = inflation / earned
        root = 1.0 - spread * (1.0 / 9.0) + normals[j] * math.sqrt(spread) * (1.0 / 3.0)
        factor = root * root * root
        means[j] = earned / looks[j] * max(factor, 1.0 + _TIE * (factor - 1.0))
