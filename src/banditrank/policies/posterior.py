"""What ThompsonRank believes of the user types, kept beside the counts.

The rewards of a cell are S_jk from T_jk displays, with mean ρ_k μ_j: a model of rank one, of which neither
factor is known. A priori ρ is uniform on the simplex and μ_j ~ Gamma of shape a and mean c.

* Given ρ, means are independent Gammas if rewards are taken for Poisson counts: shape a + S_j, rate a/c +
  Σ_k T_jk ρ_k. Rewards vary less than that, so cells count for more than they hold (`_weight_cells`).
* Integrating the means out leaves the posterior of ρ alone: Π_k ρ_k^S_k / Π_j (a/c + Σ_k T_jk ρ_k)^(a + S_j).
  With ρ = softmax θ it is close to normal. Newton steps from where the last ones ended give its mode and
  curvature (`_newton_step`).
* The prior's mean c for each type, and its shape a for all types together, are fitted to the counts by
  expectation maximisation (`_fit_prior`).

All of this follows from the counts. It is brought up to date whenever a type's rounds have grown by a
hundredth; sums of counts are always those of the moment.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, inlined, internal
from banditrank.policies.cholesky import cholesky_factor, softmax, solve_lower, solve_upper
from banditrank.policies.count_arrays import record
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]

REFIT_GROWTH = 1.01  # of a type's rounds, after which its beliefs are brought up to date
_NEWTON_STEPS = 2
_FIT_STEPS = 2
_WARM_UP_REFITS = 20  # times that beliefs are brought up to date at the start, to settle from nothing
_MAX_CLICK_RATE = 0.9  # of clicks: what a cell counts for stays finite
_SHAPE_RANGE = (0.5, 2.0)  # between which a is fitted: a prior worth more clicks keeps unlucky items unlucky


class Prior(NamedTuple):
    """Of the means: Gamma."""

    shape: Floats  # (1,) a
    means: Floats  # (N,) c
    log_mean_gaps: Floats  # (N,) ln E μ − E ln μ over a type's items, which says a


class Workspace(NamedTuple):
    """Working room."""

    gradient: Floats  # (K,)
    shares: Floats  # (K,)
    curvature: Floats  # (K, K)
    normals: Floats  # (M,)
    candidate: Floats  # (K,)
    rates: Floats  # (M,)


class Posterior(NamedTuple):
    """The counts and what is believed from them."""

    displays: Floats  # (N, K, M)
    rewards: Floats  # (N, K, M)
    arrivals: Floats  # (N,)
    unit: float  # 1 / the largest reward; all that follows is in such units
    rounds: Floats  # (N,) each type's
    refit_at: Floats  # (N,) the rounds at which beliefs are brought up to date next
    item_rewards: Floats  # (N, M) S_j
    position_rewards: Floats  # (N, K) S_k
    weights: Floats  # (N, K, M) what each display and reward of a cell counts for
    weighted_displays: Floats  # (N, K, M)
    weighted_rewards: Floats  # (N, M)
    logits: Floats  # (N, K) θ at the mode
    preferences: Floats  # (N, K) softmax θ
    factors: Floats  # (N, K, K) Cholesky factor of the curvature there, lower triangle
    prior: Prior
    workspace: Workspace


def init_posterior(counts: Counts, max_reward: float) -> Posterior:
    """Return what is believed after given rounds. The arrays of counts are shared, not copied."""
    n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
    displays, rewards = counts.displays_by_position, counts.rewards_by_position
    unit = 1.0 / max_reward
    workspace = Workspace(np.zeros(k), np.zeros(k), np.zeros((k, k)), np.zeros(m), np.zeros(k), np.zeros(m))
    posterior = Posterior(
        displays,
        rewards,
        counts.arrivals,
        unit,
        displays.sum(axis=2).max(axis=1),
        np.zeros(n),
        rewards.sum(axis=1) * unit,
        rewards.sum(axis=2) * unit,
        np.ones((n, k, m)),
        displays.copy(),
        rewards.sum(axis=1) * unit,
        np.zeros((n, k)),
        np.full((n, k), 1.0 / k),
        np.zeros((n, k, k)),
        Prior(np.ones(1), np.full(n, 0.5), np.full(n, _log_mean_gap(1.0))),
        workspace,
    )
    _warm_up(posterior)
    return posterior


@inlined
def update_posterior(posterior: Posterior, user_type: int, ranking: NDArray[np.uintp], rewards: Floats) -> None:
    """Take in a round."""
    i = user_type
    record(posterior, i, ranking, rewards)
    posterior.rounds[i] += 1.0
    for k in range(ranking.size):
        j = ranking[k]
        weight = posterior.weights[i, k, j]
        earned = rewards[k] * posterior.unit
        posterior.weighted_displays[i, k, j] += weight
        posterior.weighted_rewards[i, j] += weight * earned
        posterior.item_rewards[i, j] += earned
        posterior.position_rewards[i, k] += earned


@compiled
def refit_posterior(posterior: Posterior, user_type: int) -> None:
    """Work out one type's beliefs anew from the counts, starting from those there are."""
    i = user_type
    _weight_cells(posterior, i)
    for _ in range(_NEWTON_STEPS):
        _newton_step(posterior, i)
    for _ in range(_FIT_STEPS):
        _fit_prior(posterior, i)
    posterior.refit_at[i] = max(posterior.rounds[i] * REFIT_GROWTH, posterior.rounds[i] + 1.0)


@compiled
def _warm_up(posterior: Posterior) -> None:
    for _ in range(_WARM_UP_REFITS):
        for i in range(posterior.rounds.size):
            refit_posterior(posterior, i)


@internal
def _weight_cells(posterior: Posterior, user_type: int) -> None:
    """Write what displays and rewards of each cell count for: 1 / (1 − p), p being its rate of clicks.

    So weighted, a Poisson count is as uncertain, relative to its mean, as clicks are. In rounds with a click
    on one item the others have none, which the counts do not tell: a weight that took the other items' clicks
    for known would be larger, and was found to make one run in thirty learn slowly.
    """
    i = user_type
    n_positions, n_items = posterior.displays.shape[1:]
    _mean_rates(posterior, i)
    for j in range(n_items):
        posterior.weighted_rewards[i, j] = 0.0
    for k in range(n_positions):
        for j in range(n_items):
            rate = posterior.preferences[i, k] * posterior.workspace.rates[j]
            weight = 1.0 / (1.0 - min(rate, _MAX_CLICK_RATE))
            posterior.weights[i, k, j] = weight
            posterior.weighted_displays[i, k, j] = weight * posterior.displays[i, k, j]
            posterior.weighted_rewards[i, j] += weight * posterior.rewards[i, k, j] * posterior.unit


@internal
def _mean_rates(posterior: Posterior, user_type: int) -> None:
    """Write each item's posterior mean, at the mode of ρ."""
    i = user_type
    shape, mean = posterior.prior.shape[0], posterior.prior.means[i]
    rates = posterior.workspace.rates
    for j in range(rates.size):
        looks = 0.0
        for k in range(posterior.preferences.shape[1]):
            looks += posterior.weighted_displays[i, k, j] * posterior.preferences[i, k]
        rates[j] = (shape + posterior.weighted_rewards[i, j]) / (shape / mean + looks)


@internal
def _newton_step(posterior: Posterior, user_type: int) -> None:
    """Take a Newton step on θ, each θ_k moving by at most 1; write the factor of the curvature before it.

    Positions are compared within rounds, where ratios of clicks vary exactly as those of Poisson counts do:
    here cells count for no more than they hold. What the prior says of the means says little of positions
    and is left out; then the logarithm of the posterior is

        Σ_k (1 + S_k) θ_k − K ln Σ_k e^θ_k − Σ_j S_j ln Σ_k T_jk e^θ_k,

    concave, and open in Σ_k θ_k; a standard normal closes it.
    """
    i = user_type
    n_positions, n_items = posterior.displays.shape[1:]
    gradient, shares, curvature = posterior.workspace.gradient, posterior.workspace.shares, posterior.workspace.curvature
    preferences = posterior.preferences[i]
    for k in range(n_positions):
        gradient[k] = 1.0 + posterior.position_rewards[i, k] - n_positions * preferences[k]
        for other in range(k + 1):
            curvature[k, other] = 1.0 - n_positions * preferences[k] * preferences[other]
        curvature[k, k] += n_positions * preferences[k]
    for j in range(n_items):
        earned = posterior.item_rewards[i, j]
        if earned <= 0.0:
            continue
        looks = 0.0
        for k in range(n_positions):
            shares[k] = posterior.displays[i, k, j] * preferences[k]
            looks += shares[k]
        for k in range(n_positions):
            shares[k] /= looks
            gradient[k] -= earned * shares[k]
            curvature[k, k] += earned * shares[k]
            for other in range(k + 1):
                curvature[k, other] -= earned * shares[k] * shares[other]
    factor = posterior.factors[i]
    cholesky_factor(curvature, factor)
    solve_lower(factor, gradient)
    solve_upper(factor, gradient)
    _add_step(posterior.logits[i], gradient)
    softmax(posterior.logits[i], preferences)


@internal
def _add_step(logits: Floats, step: Floats) -> None:
    """Add a step, shortened to 1 if it is longer, and centre the result."""
    longest, centre = 1.0, 0.0
    for k in range(step.size):
        longest = max(longest, abs(step[k]))
    for k in range(step.size):
        logits[k] += step[k] / longest
        centre += logits[k] / step.size
    for k in range(step.size):
        logits[k] -= centre


@internal
def _fit_prior(posterior: Posterior, user_type: int) -> None:
    """Take a step of expectation maximisation on the prior's mean c and its shape a.

    The best a for given expectations solves ln a − ψ(a) = ln E μ − E ln μ; the closed form is Minka's, good
    to 1.5%. A mean of less than one click in all rounds is not believed: no rounds could have told it.
    """
    i = user_type
    prior, rates = posterior.prior, posterior.workspace.rates
    shape = prior.shape[0]
    _mean_rates(posterior, i)
    total, logarithms = 0.0, 0.0
    for j in range(rates.size):
        earned = shape + posterior.weighted_rewards[i, j]
        total += rates[j]
        logarithms += math.log(rates[j]) - _log_mean_gap(earned)  # E ln of a Gamma of shape `earned`, mean `rates`
    mean = max(total / rates.size, 1.0 / (posterior.rounds[i] + 2.0))
    prior.means[i] = mean
    prior.log_mean_gaps[i] = math.log(mean) - logarithms / rates.size
    spread = 0.0
    for other in range(prior.log_mean_gaps.size):
        spread += prior.log_mean_gaps[other] / prior.log_mean_gaps.size
    spread = max(spread, 1e-6)
    fitted = (3.0 - spread + math.sqrt((spread - 3.0) ** 2 + 24.0 * spread)) / (12.0 * spread)
    prior.shape[0] = min(max(fitted, _SHAPE_RANGE[0]), _SHAPE_RANGE[1])


@compiled
def _log_mean_gap(shape: float) -> float:
    """Return ln a − ψ(a): by how much a Gamma's mean logarithm lies below the logarithm of its mean."""
    shift, a = 0.0, shape
    while a < 6.0:
        shift += 1.0 / a
        a += 1.0
    square = 1.0 / (a * a)
    tail = 0.5 / a + square * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0))  # ln a − ψ(a)
    return math.log(shape / a) + shift + tail
