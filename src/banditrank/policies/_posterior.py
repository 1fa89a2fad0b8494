"""The posterior of ThompsonRank for each user type: its approximation, and samples from it.

A cell has rewards S_jk from T_jk displays, with mean ρ_k μ_j: a rank-one model with both factors unknown. The
prior of ρ is uniform on the simplex, that of μ_j is a Gamma distribution of shape a and mean c.

* Given ρ, the means are independent Gammas if rewards are Poisson counts: shape a + S_j, rate a/c + Σ_k T_jk
  ρ_k. Rewards vary less than Poisson counts, so cells are weighted (`_weight_cells`).
* Integrating the means out gives the posterior of ρ: Π_k ρ_k^S_k / Π_j (a/c + Σ_k T_jk ρ_k)^(a + S_j). With
  ρ = softmax θ it is close to normal; warm-started Newton steps give its mode and curvature (`_newton_step`).
* The prior mean c of each type and the prior shape a of all types are fitted to the counts by expectation
  maximisation (`_fit_prior`).

With position-based clicks every position is looked at independently of the others, and the preferences κ are
scaled to a maximum of 1 (only products of κ and μ are identifiable). The same formulas hold for κ = e^θ /
max e^θ, with two changes: clicks at different positions are independent, so positions are compared with
weighted cells too, and a mean is a probability, so it has a Beta distribution
(`_position_based_shape`).

The posterior depends on the counts alone. The approximation of a type is refitted whenever its rounds have
grown by 1%; sums of counts are updated in each round.

A sample is joint: preferences from the normal approximation, then means given the preferences, so that an
item shown mostly at positions that are looked at less in this sample has a higher mean in it. While a type
has few rounds the approximation is poor, and preferences are resampled among several candidates with
importance weights.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, inlined, internal
from banditrank.counts._counts import Counts
from banditrank.policies._cholesky import cholesky_factor, solve_lower, solve_upper
from banditrank.policies._count_arrays import record_round

Floats = NDArray[np.float64]

REFIT_GROWTH = 1.01  # of a type's rounds, between two refits
_NEWTON_STEPS = 2
_FIT_STEPS = 2
_WARM_UP_REFITS = 20  # at the start, to converge
_MAX_CLICK_RATE = 0.9  # keeps weights of cells finite
_MAX_MEAN = 1.0 - 1e-4  # of position-based clicks; keeps Beta distributions proper
_NO_LOOKS = 1e-9  # in place of 0 in divisions
_SHAPE_RANGE = (0.5, 2.0)  # of a; a stronger prior keeps unlucky items down
_MAX_RESAMPLING_ROUNDS = 2000.0  # of a type, up to which preferences are resampled
_CANDIDATES = 4  # of a resampling step
_INFLATION_ROUNDS = 1e4  # rounds whose exploration is brought forward
_MAX_VARIANCE_INFLATION = 2.0
_TIE_BREAK = 1e-9  # share of a sample below the mean that is kept, to break ties between equal items


class Prior(NamedTuple):
    """Gamma prior of the means."""

    shape: Floats  # (1,) a
    means: Floats  # (N,) c
    log_mean_gaps: Floats  # (N,) ln E μ − E ln μ over the items of a type, which determines a


class PosteriorWorkspace(NamedTuple):
    """Workspace arrays."""

    gradient: Floats  # (K,)
    shares: Floats  # (K,)
    curvature: Floats  # (K, K)
    normals: Floats  # (M,)
    candidate: Floats  # (K,)
    rates: Floats  # (M,)


class Posterior(NamedTuple):
    """The counts, and the approximate posterior."""

    displays: Floats  # (N, K, M)
    rewards: Floats  # (N, K, M)
    arrivals: Floats  # (N,)
    unit: float  # 1 / maximum reward, the unit of the fields below
    is_position_based: bool  # whether positions are looked at independently of each other
    rounds: Floats  # (N,) of each type
    refit_at: Floats  # (N,) rounds of the next refit
    item_rewards: Floats  # (N, M) S_j, by which positions are compared: weighted if clicks are position-based
    position_rewards: Floats  # (N, K) S_k, likewise
    weights: Floats  # (N, K, M) weight of each display and reward of a cell
    weighted_displays: Floats  # (N, K, M)
    weighted_rewards: Floats  # (N, M)
    logits: Floats  # (N, K) θ at the mode
    preferences: Floats  # (N, K) softmax θ; e^θ / max e^θ if clicks are position-based
    factors: Floats  # (N, K, K) Cholesky factor of the curvature there, lower triangle
    prior: Prior
    workspace: PosteriorWorkspace


def init_posterior(counts: Counts, max_reward: float, *, is_position_based: bool = False) -> Posterior:
    """Return the posterior given counts, whose arrays are not copied.

    Parameters
    ----------
    counts
        Counts.
    max_reward
        Maximum reward at a position.
    is_position_based
        Whether positions are looked at independently of each other; otherwise users look at one position.
    """
    n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
    displays, rewards = counts.displays_by_position, counts.rewards_by_position
    unit = 1.0 / max_reward
    workspace = PosteriorWorkspace(
        np.zeros(k), np.zeros(k), np.zeros((k, k)), np.zeros(m), np.zeros(k), np.zeros(m)
    )
    posterior = Posterior(
        displays,
        rewards,
        counts.arrivals,
        unit,
        is_position_based,
        displays.sum(axis=2).max(axis=1),
        np.zeros(n),
        rewards.sum(axis=1) * unit,
        rewards.sum(axis=2) * unit,
        np.ones((n, k, m)),
        displays.copy(),
        rewards.sum(axis=1) * unit,
        np.zeros((n, k)),
        np.full((n, k), 1.0 if is_position_based else 1.0 / k),
        np.zeros((n, k, k)),
        Prior(np.ones(1), np.full(n, 0.5), np.full(n, _log_mean_gap(1.0))),
        workspace,
    )
    _warm_up(posterior)
    return posterior


@inlined
def update_posterior(
    posterior: Posterior, user_type: int, ranking: NDArray[np.uintp], rewards: Floats
) -> None:
    """Update the posterior with a round; the approximation is not refitted."""
    i = user_type
    record_round(posterior, i, ranking, rewards)
    posterior.rounds[i] += 1.0
    for k in range(ranking.size):
        j = ranking[k]
        weight = posterior.weights[i, k, j]
        earned = rewards[k] * posterior.unit
        posterior.weighted_displays[i, k, j] += weight
        posterior.weighted_rewards[i, j] += weight * earned
        if posterior.is_position_based:
            earned *= weight
        posterior.item_rewards[i, j] += earned
        posterior.position_rewards[i, k] += earned


@compiled
def refit_posterior(posterior: Posterior, user_type: int) -> None:
    """Refit the approximation of one type to the counts, starting from the last one."""
    i = user_type
    _weight_cells(posterior, i)
    if posterior.is_position_based:
        _weight_position_rewards(posterior, i)
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
    """Write the weight of each cell: 1 / (1 − p), p being its click rate.

    So weighted, a Poisson count is as uncertain, relative to its mean, as clicks are. In rounds with a click
    on one item the others have none, which counts do not show: weights conditional on the clicks of other
    items would be larger, and made one run in thirty learn slowly.
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
def _weight_position_rewards(posterior: Posterior, user_type: int) -> None:
    """Write the rewards that positions are compared by if clicks at different positions are independent."""
    i = user_type
    n_positions, n_items = posterior.displays.shape[1:]
    for j in range(n_items):
        posterior.item_rewards[i, j] = posterior.weighted_rewards[i, j]
    for k in range(n_positions):
        total = 0.0
        for j in range(n_items):
            total += posterior.weights[i, k, j] * posterior.rewards[i, k, j]
        posterior.position_rewards[i, k] = total * posterior.unit


@internal
def _mean_rates(posterior: Posterior, user_type: int) -> None:
    """Write the posterior mean of each item at the mode of ρ."""
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

    Users who look at one position compare positions within rounds, where ratios of clicks vary exactly as
    those of Poisson counts do: cells are not weighted here. The prior of the means says little about
    positions and is left out; then the logarithm of the posterior is

        Σ_k (1 + S_k) θ_k − K ln Σ_k e^θ_k − Σ_j S_j ln Σ_k T_jk e^θ_k,

    concave, and constant in Σ_k θ_k; a standard normal prior on that sum makes the mode unique. With
    position-based clicks it is the same of weighted rewards and displays.
    """
    i = user_type
    n_positions, n_items = posterior.displays.shape[1:]
    gradient, shares, curvature = (
        posterior.workspace.gradient,
        posterior.workspace.shares,
        posterior.workspace.curvature,
    )
    preferences = posterior.preferences[i]
    displays = posterior.weighted_displays if posterior.is_position_based else posterior.displays
    softmax(posterior.logits[i], preferences)
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
            shares[k] = displays[i, k, j] * preferences[k]
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
    _write_preferences(posterior, posterior.logits[i], preferences)


@internal
def _add_step(logits: Floats, step: Floats) -> None:
    """Add a step, scaled down if a component exceeds 1, and centre the result."""
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

    The best a for given expectations solves ln a − ψ(a) = ln E μ − E ln μ; the closed form is Minka's,
    accurate to 1.5%. A mean of less than one click in all rounds is not identifiable, and is raised to that.
    """
    i = user_type
    prior, rates = posterior.prior, posterior.workspace.rates
    shape = prior.shape[0]
    _mean_rates(posterior, i)
    total, logarithms = 0.0, 0.0
    for j in range(rates.size):
        earned = shape + posterior.weighted_rewards[i, j]
        total += rates[j]
        # E ln of a Gamma distribution of shape `earned` and mean `rates[j]`.
        logarithms += math.log(rates[j]) - _log_mean_gap(earned)
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
    """Return ln a − ψ(a), the logarithm of a Gamma's mean minus its mean logarithm."""
    shift, a = 0.0, shape
    while a < 6.0:
        shift += 1.0 / a
        a += 1.0
    square = 1.0 / (a * a)
    tail = 0.5 / a + square * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0))  # ln a − ψ(a)
    return math.log(shape / a) + shift + tail


@inlined
def softmax(logits: Floats, shares: Floats) -> None:
    """Write e^θ_k / Σ e^θ, shape (K,).

    Examples
    --------
    >>> shares = np.zeros(2)
    >>> softmax(np.log([3.0, 1.0]), shares)
    >>> shares
    array([0.75, 0.25])
    """
    largest = logits[0]
    for k in range(1, shares.size):
        largest = max(largest, logits[k])
    total = 0.0
    for k in range(shares.size):
        shares[k] = math.exp(logits[k] - largest)
        total += shares[k]
    for k in range(shares.size):
        shares[k] /= total


@inlined
def _write_preferences(posterior: Posterior, logits: Floats, preferences: Floats) -> None:
    """Write the preferences at θ, shape (K,): of sum 1, or of maximum 1 if clicks are position-based."""
    if not posterior.is_position_based:
        softmax(logits, preferences)
        return
    largest = logits[0]
    for k in range(1, logits.size):
        largest = max(largest, logits[k])
    for k in range(logits.size):
        preferences[k] = math.exp(logits[k] - largest)


@inlined
def sample_preferences(
    posterior: Posterior, user_type: int, rng: np.random.Generator, preferences: Floats
) -> None:
    """Write a posterior sample of ρ or κ of one type, shape (K,)."""
    if posterior.rounds[user_type] < _MAX_RESAMPLING_ROUNDS:
        _resample_by_importance(posterior, user_type, rng, preferences)
    else:
        _propose(posterior, user_type, rng, preferences)


@inlined
def _propose(posterior: Posterior, user_type: int, rng: np.random.Generator, preferences: Floats) -> float:
    """Write a sample from the normal approximation; return minus the logarithm of its density there."""
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
    _write_preferences(posterior, steps, preferences)
    return 0.5 * (squares - total * total)  # Σθ is sampled as well, but irrelevant


@internal
def _resample_by_importance(
    posterior: Posterior, user_type: int, rng: np.random.Generator, preferences: Floats
) -> None:
    candidate = posterior.workspace.candidate
    first, total = 0.0, 0.0
    for index in range(_CANDIDATES):
        odds = _propose(posterior, user_type, rng, candidate)
        odds += _log_posterior(posterior, user_type, candidate)
        if index == 0:
            first = odds
        weight = math.exp(min(odds - first, 50.0))
        total += weight
        if rng.random() * total < weight:  # always for the first
            for k in range(preferences.size):
                preferences[k] = candidate[k]


@internal
def _log_posterior(posterior: Posterior, user_type: int, preferences: Floats) -> float:
    """Return the log density of θ at its preferences, with the means integrated out."""
    i = user_type
    shape = posterior.prior.shape[0]
    rate = shape / posterior.prior.means[i]
    displays = posterior.displays
    total = 0.0
    if posterior.is_position_based:
        displays = posterior.weighted_displays
        for k in range(preferences.size):
            total += preferences[k]
        total = -preferences.size * math.log(total)  # shares of looks are uniform on the simplex, a priori
    for k in range(preferences.size):
        total += (1.0 + posterior.position_rewards[i, k]) * math.log(preferences[k])
    for j in range(posterior.item_rewards.shape[1]):
        looks = rate
        for k in range(preferences.size):
            looks += displays[i, k, j] * preferences[k]
        total -= (shape + posterior.item_rewards[i, j]) * math.log(looks)
    return total


@inlined
def variance_inflation(rounds: float) -> float:
    """Return the factor on the variance of means: ln(n + 10,000) / ln n, from 2 down to 1.

    Posterior sampling abandons an item once the odds against it are about n. Early on that happens soon: one
    run in a hundred loses an item to bad luck for very long. Exploration that 10,000 rounds would require in
    any case costs next to nothing in the long run if it is done early.
    """
    return min(
        math.log(rounds + math.e + _INFLATION_ROUNDS) / math.log(rounds + math.e), _MAX_VARIANCE_INFLATION
    )


@inlined
def sample_means(
    posterior: Posterior, user_type: int, preferences: Floats, rng: np.random.Generator, means: Floats
) -> None:
    """Write a posterior sample of μ of one type given its ρ, shape (M,), in units of the maximum reward.

    A Gamma variable is its mean times (1 − v/9 + z √v/3)³ for a standard normal z, v one over its shape
    (Wilson and Hilferty 1931); v is multiplied by `variance_inflation`. Samples below the mean are raised
    to it (May et al. 2012, "Optimistic Bayesian sampling in contextual-bandit problems"): uncertainty is a
    reason to show an item, never to hide it. Position-based clicks have Beta variables in place of these.
    """
    i = user_type
    normals, looks = posterior.workspace.normals, posterior.workspace.rates
    shape = posterior.prior.shape[0]
    rate = shape / posterior.prior.means[i]
    inflation = variance_inflation(posterior.rounds[i])
    for j in range(means.size):
        normals[j] = rng.standard_normal()
        looks[j] = 0.0 if posterior.is_position_based else rate
    for k in range(preferences.size):
        preference = preferences[k]
        for j in range(means.size):
            looks[j] += preference * posterior.weighted_displays[i, k, j]
    if posterior.is_position_based:
        _sample_position_based_means(posterior, i, preferences, rng, means)
        return
    for j in range(means.size):
        earned = shape + posterior.weighted_rewards[i, j]
        spread = inflation / earned
        root = 1.0 - spread * (1.0 / 9.0) + normals[j] * math.sqrt(spread) * (1.0 / 3.0)
        factor = root * root * root
        means[j] = earned / looks[j] * max(factor, 1.0 + _TIE_BREAK * (factor - 1.0))


@inlined
def _position_based_shape(
    posterior: Posterior, user_type: int, item: int, preferences: Floats, looks: float
) -> tuple[float, float, float]:
    """Return (κ, a, b): given the preferences, the item's mean is a Beta(a, b) variable over κ, at most 1.

    The density of an item's mean x is ∝ Π_k (κ_k x)^S_k (1 − κ_k x)^(T_k − S_k) on [0, 1]. With all displays
    at one κ, κ x is a Beta variable that is at most κ. Displays at several positions are replaced by n
    displays at their mean κ, weighted by looks, with the same posterior mean and information. A Gamma
    variable would have too heavy an upper tail near 1; a Beta variable for x itself, too light a one for
    items that were unlucky where users seldom look.
    """
    i, j = user_type, item
    shape = posterior.prior.shape[0]
    prior_looks = shape / posterior.prior.means[i]
    mean = min((shape + posterior.weighted_rewards[i, j]) / (prior_looks + looks), _MAX_MEAN)
    seen, squares = _NO_LOOKS, _NO_LOOKS
    for k in range(preferences.size):
        looked = posterior.displays[i, k, j] * preferences[k]
        seen += looked
        squares += looked * preferences[k]
    kappa = squares / seen
    # Without a miss the information would be infinite: half a look is added to either side.
    seen += prior_looks
    rate = (mean * seen + 0.5) / (seen + 1.0)
    n = prior_looks
    for k in range(preferences.size):
        looked = posterior.displays[i, k, j] * preferences[k]
        n += looked * (1.0 - kappa * rate) / (1.0 - preferences[k] * rate)
    n /= kappa
    return kappa, n * kappa * mean, n * (1.0 - kappa * mean)


@compiled
def fit_position_based_means(
    posterior: Posterior, user_type: int, preferences: Floats, kappas: Floats, clicks: Floats, misses: Floats
) -> None:
    """Write (κ, a, b) of the means given samples of preferences, shape (S, K); results have shape (S, M)."""
    for row in range(preferences.shape[0]):
        for j in range(kappas.shape[1]):
            looks = 0.0
            for k in range(preferences.shape[1]):
                looks += preferences[row, k] * posterior.weighted_displays[user_type, k, j]
            kappas[row, j], clicks[row, j], misses[row, j] = _position_based_shape(
                posterior, user_type, j, preferences[row], looks
            )


@internal
def _sample_position_based_means(
    posterior: Posterior, user_type: int, preferences: Floats, rng: np.random.Generator, means: Floats
) -> None:
    """Write a sample of μ given κ, from normals and looks of the workspace, raised as in `sample_means`."""
    normals, looks = posterior.workspace.normals, posterior.workspace.rates
    inflation = variance_inflation(posterior.rounds[user_type])
    for j in range(means.size):
        kappa, clicks, misses = _position_based_shape(posterior, user_type, j, preferences, looks[j])
        mean = clicks / (clicks + misses) / kappa
        clicked = _gamma(clicks, normals[j], inflation)
        missed = _gamma(misses, rng.standard_normal(), inflation)
        sample = clicked / max(clicked + missed, _NO_LOOKS) / kappa
        if sample > 1.0:
            sample = 1.0 / sample  # reflected, in place of truncated
        means[j] = max(sample, mean + _TIE_BREAK * (sample - mean))


@inlined
def _gamma(shape: float, normal: float, inflation: float) -> float:
    """Return a Gamma variable of scale 1 for a standard normal number (Wilson and Hilferty 1931)."""
    spread = inflation / shape
    root = max(1.0 - spread * (1.0 / 9.0) + normal * math.sqrt(spread) * (1.0 / 3.0), 0.0)
    return shape * root * root * root
