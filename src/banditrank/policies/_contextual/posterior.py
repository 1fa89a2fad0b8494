"""The posterior of ContextualThompsonRank: its approximation, and samples from it.

A display at position k of an item with features φ earns a reward with mean ρ_k a(wᵀφ), a being the appeal:
linear or logistic. Both factors are unknown.

* Linear appeal: with weights ω the log likelihood is −½ Σ_k (ρ_k² wᵀA_k w − 2 ρ_k wᵀb_k), A_k = Σ ω φφᵀ and
  b_k = Σ ω r φ over displays at k. It depends on the displays through these additive statistics only.
* Logistic appeal is replaced by its tangent at the estimate when an item is displayed, η̂ = ŵᵀφ: a(wᵀφ) ≈ c +
  s wᵀφ with s = a'(η̂) and c = a(η̂) − s η̂. This is linear in the weights (w, 1) of the features ψ = (s φ, c),
  whatever ρ is, so that the same statistics of ψ serve.
* ω is one over the estimated variance of the reward, p (1 − p) for the click rate p. A rate below the
  position's average is raised to it, so that an unlucky item is not taken to be known well. ω is determined
  before the reward is seen, which keeps the estimates unbiased.

With ρ = softmax θ, or e^θ over its maximum if clicks are position-based, Gauss–Newton steps on (w, θ) give
the mode and the curvature H (`refit`). They are updated whenever rounds have grown by 1%.

A sample is joint: (w, θ) plus L⁻ᵀz with H = L Lᵀ, one triangular solve. An item that was shown mostly at
positions that are looked at less in this sample has a higher appeal in it. Sampling w and θ separately locks
in.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank.policies._cholesky import cholesky_factor, solve_lower, solve_upper
from banditrank.policies._posterior import variance_inflation

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

REFIT_GROWTH = 1.01  # of rounds, between two refits
_NEWTON_STEPS = 2
_MAX_STEP = 1.0  # of a logit
_MAX_CLICK_RATE = 0.9  # keeps weights finite
_MIN_PIVOT = 1e-9
_MIN_SQUARE = 1e-12  # mean squared norm of features, if all are 0
_TIE_BREAK = 1e-9  # share of a sample below the mean that is kept, to break ties between equal items


class FeaturePosterior(NamedTuple):
    """The statistics, and the approximate posterior."""

    moments: Floats  # (N, K, D, D)
    reward_moments: Floats  # (N, K, D)
    reward_sums: Floats  # (N, K)
    squared_norms: Floats  # (N,)
    arrivals: Floats  # (N,)
    is_logistic: bool  # D = d + 1, otherwise D = d
    is_position_based: bool
    unit: float  # 1 / maximum reward
    prior_variance: float  # of wᵀφ for features of average norm
    refit_at: Floats  # (1,) rounds of the next refit
    weights: Floats  # (d,) w at the mode
    logits: Floats  # (N, K) θ at the mode
    curvature: Floats  # (d + NK, d + NK) H there, lower triangle
    factor: Floats  # (d + NK, d + NK) its Cholesky factor
    gradient: Floats  # (d + NK,)
    products: Floats  # (D,) workspace
    preferences: Floats  # (K,) workspace
    shares: Floats  # (K,) workspace
    sample: Floats  # (d + NK,) the last sample, relative to the mode


def new_feature_posterior(
    moments: Floats,
    reward_moments: Floats,
    reward_sums: Floats,
    squared_norms: Floats,
    arrivals: Floats,
    *,
    is_logistic: bool,
    is_position_based: bool,
    max_reward: float,
    prior_deviation: float,
) -> FeaturePosterior:
    """Return the posterior given statistics, whose arrays are not copied; it is not fitted yet."""
    n, k, size = reward_moments.shape
    d = size - is_logistic
    total = d + n * k
    return FeaturePosterior(
        moments,
        reward_moments,
        reward_sums,
        squared_norms,
        arrivals,
        is_logistic,
        is_position_based,
        1.0 / max_reward,
        prior_deviation**2,
        np.zeros(1),
        np.zeros(d),
        np.zeros((n, k)),
        np.zeros((total, total)),
        np.zeros((total, total)),
        np.zeros(total),
        np.zeros(size),
        np.zeros(k),
        np.zeros(k),
        np.zeros(total),
    )


@inlined
def appeal_of(score: float, is_logistic: bool) -> float:  # noqa: FBT001
    """Return the appeal of an item with a score wᵀφ."""
    return 1.0 / (1.0 + math.exp(-score)) if is_logistic else score


@internal
def write_shares(logits: Floats, is_position_based: bool, preferences: Floats, shares: Floats) -> None:  # noqa: FBT001
    """Write the preferences at θ, and π with ∂ ln ρ_k / ∂θ_l = 1(k = l) − π_l; all of shape (K,)."""
    largest = 0
    for k in range(logits.size):
        if logits[k] > logits[largest]:
            largest = k
    total = 0.0
    for k in range(logits.size):
        preferences[k] = math.exp(logits[k] - logits[largest])
        total += preferences[k]
    for k in range(logits.size):
        if is_position_based:
            shares[k] = 1.0 if k == largest else 0.0
        else:
            preferences[k] /= total
            shares[k] = preferences[k]


@internal
def refit(posterior: FeaturePosterior) -> None:
    """Refit the approximation to the statistics, starting from the last one."""
    factor, gradient = posterior.factor, posterior.gradient
    rounds, squares = 0.0, 0.0
    for i in range(posterior.arrivals.size):
        rounds += posterior.arrivals[i]
        squares += posterior.squared_norms[i]
    mean_square = max(squares / (rounds * posterior.preferences.size), _MIN_SQUARE) if rounds > 0.0 else 1.0
    precision = mean_square / posterior.prior_variance
    for step in range(_NEWTON_STEPS + 1):
        _curve(
            posterior.moments,
            posterior.reward_moments,
            posterior.is_position_based,
            precision,
            posterior.weights,
            posterior.logits,
            posterior.products,
            posterior.preferences,
            posterior.shares,
            posterior.curvature,
            gradient,
        )
        cholesky_factor(posterior.curvature, factor, _MIN_PIVOT)
        if step == _NEWTON_STEPS:
            break
        solve_lower(factor, gradient)
        solve_upper(factor, gradient)
        _add_step(posterior.weights, posterior.logits, posterior.is_position_based, gradient)
    posterior.refit_at[0] = max(rounds * REFIT_GROWTH, rounds + 1.0)


@internal
def _curve(
    moments: Floats,
    reward_moments: Floats,
    is_position_based: bool,  # noqa: FBT001
    precision: float,
    weights: Floats,
    logits: Floats,
    products: Floats,
    preferences: Floats,
    shares: Floats,
    curvature: Floats,
    gradient: Floats,
) -> None:
    """Write the gradient of the log posterior at (w, θ), and the Gauss–Newton curvature."""
    n, n_positions = logits.shape
    d = weights.size
    for row in range(gradient.size):
        gradient[row] = -precision * weights[row] if row < d else 0.0
        for column in range(row):
            curvature[row, column] = 0.0
        curvature[row, row] = precision if row < d else 0.0
    for i in range(n):
        start = d + i * n_positions
        write_shares(logits[i], is_position_based, preferences, shares)
        _add_position_prior(logits[i], is_position_based, shares, start, curvature, gradient)
        for k in range(n_positions):
            rho = preferences[k]
            _multiply(moments[i, k], weights, products)
            earned, square = _project(reward_moments[i, k], products, weights)
            for row in range(d):
                gradient[row] += rho * (reward_moments[i, k, row] - rho * products[row])
                for column in range(row + 1):
                    curvature[row, column] += rho * rho * moments[i, k, row, column]
            for l in range(n_positions):  # noqa: E741
                slope = (1.0 if l == k else 0.0) - shares[l]
                gradient[start + l] += rho * slope * (earned - rho * square)
                for row in range(d):
                    curvature[start + l, row] += rho * rho * slope * products[row]
                for other in range(l + 1):
                    other_slope = (1.0 if other == k else 0.0) - shares[other]
                    curvature[start + l, start + other] += rho * rho * slope * other_slope * square


@internal
def _add_position_prior(
    logits: Floats,
    is_position_based: bool,  # noqa: FBT001
    shares: Floats,
    start: int,
    curvature: Floats,
    gradient: Floats,
) -> None:
    """Add the prior of the preferences of a type, whose logits start at a row.

    It is uniform on the simplex; with position-based clicks each logit is standard normal.
    """
    n_positions = logits.size
    for l in range(n_positions):  # noqa: E741 - the index of θ_l
        if is_position_based:
            gradient[start + l] -= logits[l]
            curvature[start + l, start + l] += 1.0
            continue
        gradient[start + l] += 1.0 - n_positions * shares[l]
        curvature[start + l, start + l] += n_positions * shares[l]
        for other in range(l + 1):
            # A standard normal prior on Σθ, which is irrelevant, makes the mode unique.
            curvature[start + l, start + other] += 1.0 - n_positions * shares[l] * shares[other]


@internal
def _multiply(moments: Floats, weights: Floats, products: Floats) -> None:
    """Write A w, shape (D,); the weight of the last entry of ψ is 1 if D = d + 1."""
    for row in range(products.size):
        total = 0.0
        for column in range(weights.size):
            total += moments[row, column] * weights[column]
        if products.size > weights.size:
            total += moments[row, weights.size]
        products[row] = total


@internal
def _project(reward_moments: Floats, products: Floats, weights: Floats) -> tuple[float, float]:
    """Return wᵀb and wᵀA w, given A w."""
    earned, square = 0.0, 0.0
    for row in range(weights.size):
        earned += weights[row] * reward_moments[row]
        square += weights[row] * products[row]
    if products.size > weights.size:
        earned += reward_moments[weights.size]
        square += products[weights.size]
    return earned, square


@internal
def _add_step(weights: Floats, logits: Floats, is_position_based: bool, step: Floats) -> None:  # noqa: FBT001
    """Add a step, scaled down if it changes a logit by more than 1, and centre the logits."""
    n, n_positions = logits.shape
    d = weights.size
    longest = _MAX_STEP
    for index in range(d, step.size):
        longest = max(longest, abs(step[index]))
    for row in range(d):
        weights[row] += step[row] / longest
    for i in range(n):
        centre = 0.0
        for k in range(n_positions):
            logits[i, k] += step[d + i * n_positions + k] / longest
            centre += logits[i, k] / n_positions
        if not is_position_based:
            for k in range(n_positions):
                logits[i, k] -= centre


@inlined
def sample_feature_posterior(posterior: FeaturePosterior, rng: np.random.Generator) -> None:
    """Write a sample of (w, θ) relative to the mode; its variance is inflated as that of ThompsonRank."""
    rounds = 0.0
    for i in range(posterior.arrivals.size):
        rounds += posterior.arrivals[i]
    deviation = math.sqrt(variance_inflation(rounds))
    for index in range(posterior.sample.size):
        posterior.sample[index] = deviation * rng.standard_normal()
    solve_upper(posterior.factor, posterior.sample)


@internal
def write_scores(features: Floats, weights: Floats, sample: Floats, scores: Floats) -> None:
    """Write the score of each item for a sample, shape (M,); samples below the mode's score are raised to it.

    Uncertainty is a reason to show an item, never to hide it (May et al. 2012, "Optimistic Bayesian sampling
    in contextual-bandit problems").
    """
    for j in range(scores.size):
        score, deviation = 0.0, 0.0
        for index in range(weights.size):
            score += features[j, index] * weights[index]
            deviation += features[j, index] * sample[index]
        scores[j] = score + max(deviation, _TIE_BREAK * deviation)


@inlined
def update_feature_posterior(
    posterior: FeaturePosterior, user_type: int, features: Floats, ranking: Indices, rewards: Floats
) -> None:
    """Add a round to the statistics; refit the approximation if due."""
    i = user_type
    write_shares(posterior.logits[i], posterior.is_position_based, posterior.preferences, posterior.shares)
    for k in range(ranking.size):
        earned = rewards[k] * posterior.unit
        average = (1.0 + posterior.reward_sums[i, k]) / (2.0 + posterior.arrivals[i])
        posterior.reward_sums[i, k] += earned
        _add_display(
            features[ranking[k]],
            posterior.weights,
            posterior.is_logistic,
            posterior.preferences[k],
            average,
            earned,
            posterior.products,
            posterior.moments[i, k],
            posterior.reward_moments[i, k],
        )
        for index in range(posterior.weights.size):
            posterior.squared_norms[i] += features[ranking[k], index] * features[ranking[k], index]
    posterior.arrivals[i] += 1.0
    rounds = 0.0
    for other in range(posterior.arrivals.size):
        rounds += posterior.arrivals[other]
    if rounds >= posterior.refit_at[0]:
        refit(posterior)


@internal
def _add_display(
    features: Floats,
    weights: Floats,
    is_logistic: bool,  # noqa: FBT001
    preference: float,
    average: float,
    reward: float,
    entries: Floats,
    moments: Floats,
    reward_moments: Floats,
) -> None:
    """Add a display to the statistics of a position: ω ψψᵀ and ω r ψ."""
    d = weights.size
    score = 0.0
    for index in range(d):
        score += features[index] * weights[index]
    appeal = appeal_of(score, is_logistic)
    rate = min(max(preference * appeal, average), _MAX_CLICK_RATE)
    weight = 1.0 / (rate * (1.0 - rate))
    slope = appeal * (1.0 - appeal) if is_logistic else 1.0
    for index in range(d):
        entries[index] = slope * features[index]
    if is_logistic:
        entries[d] = appeal - slope * score
    for row in range(entries.size):
        entry = weight * entries[row]
        reward_moments[row] += entry * reward
        for column in range(entries.size):
            moments[row, column] += entry * entries[column]
