"""The posterior of ThompsonRank for each user type: its approximation, and samples from it.

A cell has rewards S_jk from T_jk displays, with mean ρ_k μ_j: a rank-one model with both factors unknown. The
prior of ρ is uniform on the simplex, that of μ_j is a Gamma distribution of shape a and mean c.

* Given ρ, the means are independent Gammas if rewards are Poisson counts: shape a + S_j, rate a/c + Σ_k T_jk
  ρ_k. Rewards vary less than Poisson counts, so cells are weighted (`_weight_cells`).
* Integrating the means out gives the posterior of ρ: Π_k ρ_k^S_k / Π_j (a/c + Σ_k T_jk ρ_k)^(a + S_j). With
  ρ = softmax θ it is close to normal; warm-started Newton steps give its mode and curvature (`refit_type`).
* The priors of the means are fitted to the counts of all types (`banditrank.policies._mean_prior`).

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

The functions that take a pointer are native functions: `banditrank.policies._bound_posterior` calls them by
address. Their formulas take rows of one type: a tuple of many arrays takes long to compile in each.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, inlined, internal
from banditrank._native_calls import load_arguments, load_generator
from banditrank.counts._counts import Counts
from banditrank.policies._cholesky import cholesky_factor, solve_lower, solve_upper
from banditrank.policies._count_arrays import CountArrays, record_round
from banditrank.policies._displayed_cells import DisplayedCells, add_displayed_cell, find_displayed_cells
from banditrank.policies._mean_prior import MeanPrior, fit_prior, new_mean_prior

Floats = NDArray[np.float64]

REFIT_GROWTH = 1.01  # of a type's rounds, between two refits
_NEWTON_STEPS = 2
_FIT_STEPS = 2
_MAX_CLICK_RATE = 0.9  # keeps weights of cells finite
_MAX_MEAN = 1.0 - 1e-4  # of position-based clicks; keeps Beta distributions proper
_NO_LOOKS = 1e-9  # in place of 0 in divisions
_MAX_RESAMPLING_ROUNDS = 2000.0  # of a type, up to which preferences are resampled
_CANDIDATES = 4  # of a resampling step
_INFLATION_ROUNDS = 1e4  # rounds whose exploration is brought forward
_MAX_VARIANCE_INFLATION = 2.0
_LONG_LOG_VISITS = 10.0  # logarithm of visits for each item; see `_horizon_factor`
_LONG_LOG_CLICKS = 4.0  # logarithm of clicks for each item; see `_anytime_factor`
_MIN_ANYTIME_FACTOR = 0.4
_SHORT_PASS, _LONG_PASS = 100.0, 800.0  # visits; see `_anytime_factor`
_MIN_PRODUCT, _MAX_PRODUCT = 1e-200, 1e200  # of looks, before the logarithm is taken
_TIE_BREAK = 1e-9  # share of a sample below the mean that is kept, to break ties between equal items


class PosteriorWorkspace(NamedTuple):
    """Workspace arrays."""

    gradient: Floats  # (K,)
    shares: Floats  # (K,)
    curvature: Floats  # (K, K)
    normals: Floats  # (2, M)
    candidates: Floats  # (C, K) preferences of a resampling step
    odds: Floats  # (C,)
    uniforms: Floats  # (C,)
    candidate_looks: Floats  # (M, C); (0, C) if cells are not listed
    rates: Floats  # (M,)


class PosteriorBuffers(NamedTuple):
    """Arguments and results of the native functions."""

    ranking: NDArray[np.uintp]  # (K,) of the observed round
    rewards: Floats  # (K,) of the observed round
    preferences: Floats  # (K,) the last sample
    means: Floats  # (M,) the last sample, in units of the maximum reward


class Posterior(NamedTuple):
    """The counts, and the approximate posterior."""

    displays: Floats  # (N, K, M)
    rewards: Floats  # (N, K, M)
    arrivals: Floats  # (N,)
    unit: float  # 1 / maximum reward, the unit of the fields below
    is_position_based: bool  # whether positions are looked at independently of each other
    has_horizon: bool  # whether the number of visits is known
    variance_factors: Floats  # (N,) on the variance of means of each type, besides `variance_inflation`
    position_prior: Floats  # (K,) looks that the prior of the preferences is worth, at least 1 each
    position_order: NDArray[np.intp]  # (K,) positions by decreasing preference, if known; else empty
    rounds: Floats  # (N,) of each type
    refit_at: Floats  # (N,) rounds of the next refit
    item_rewards: Floats  # (N, M) S_j, by which positions are compared: weighted if clicks are position-based
    position_rewards: Floats  # (N, K) S_k, likewise
    weights: Floats  # (N, K, M) weight of each display and reward of a cell; see `DisplayedCells`
    weighting_rates: Floats  # (N, M) rates that weights were computed from
    weighting_preferences: Floats  # (N, K) preferences, likewise
    weighted_displays: Floats  # (N, K, M)
    weighted_rewards: Floats  # (N, M)
    logits: Floats  # (N, K) θ at the mode
    preferences: Floats  # (N, K) softmax θ; e^θ / max e^θ if clicks are position-based
    factors: Floats  # (N, K, K) Cholesky factor of the curvature there, lower triangle
    prior: MeanPrior
    cells: DisplayedCells
    workspace: PosteriorWorkspace
    buffers: PosteriorBuffers


def new_posterior(
    counts: Counts,
    max_reward: float,
    *,
    is_position_based: bool,
    is_pooled: bool,
    horizon: int | None,
    position_prior: Sequence[float] | None,
    position_order: Sequence[int] | None,
) -> Posterior:
    """Return the posterior given counts, whose arrays are not copied; the approximation is not fitted yet.

    Parameters
    ----------
    counts
        Counts.
    max_reward
        Maximum reward at a position.
    is_position_based
        Whether positions are looked at independently of each other; otherwise users look at one position.
    is_pooled
        Whether the prior of a type's means depends on what the other types like.
    horizon
        Number of visits that a type can expect, None if it is unknown.
    position_prior
        Looks at each position that the prior of the preferences is worth; None for a uniform prior.
    position_order
        Positions by decreasing preference, None if the order is unknown.
    """
    n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
    displays, rewards = counts.displays_by_position, counts.rewards_by_position
    unit = 1.0 / max_reward
    cells = find_displayed_cells(displays)
    workspace = PosteriorWorkspace(
        np.zeros(k),
        np.zeros(k),
        np.zeros((k, k)),
        np.zeros((2, m)),
        np.zeros((_CANDIDATES, k)),
        np.zeros(_CANDIDATES),
        np.zeros(_CANDIDATES),
        np.zeros((cells.displayed_items.shape[1], _CANDIDATES)),
        np.zeros(m),
    )
    return Posterior(
        displays,
        rewards,
        counts.arrivals,
        unit,
        is_position_based,
        horizon is not None,
        np.full(n, 1.0 if horizon is None else _horizon_factor(horizon / m)),
        np.ones(k) if position_prior is None else 1.0 + np.asarray(position_prior, dtype=np.float64),
        np.array([] if position_order is None else position_order, dtype=np.intp),
        displays.sum(axis=2).max(axis=1),
        np.zeros(n),
        rewards.sum(axis=1) * unit,
        rewards.sum(axis=2) * unit,
        np.ones((n, k, m)),
        np.zeros((n, m)),
        np.zeros((n, k)),
        displays.copy(),
        rewards.sum(axis=1) * unit,
        np.zeros((n, k)),
        np.full((n, k), 1.0 if is_position_based else 1.0 / k),
        np.zeros((n, k, k)),
        new_mean_prior(n, m, is_pooled=is_pooled),
        cells,
        workspace,
        PosteriorBuffers(np.zeros(k, dtype=np.uintp), np.zeros(k), np.zeros(k), np.zeros(m)),
    )


def update_type(pointer: Any, user_type: int, n_positions: int) -> None:
    """Update a type with the first positions of the round in the buffers; do not refit the approximation."""
    posterior = load_arguments(pointer)[0]
    i = user_type
    ranking, rewards = posterior.buffers.ranking[:n_positions], posterior.buffers.rewards
    for k in range(n_positions):
        j = ranking[k]
        if posterior.displays[i, k, j] == 0.0:
            add_displayed_cell(posterior.cells, i, k, j)
            rate = posterior.weighting_rates[i, j]
            posterior.weights[i, k, j] = _cell_weight(posterior.weighting_preferences[i, k], rate)
    arrays = CountArrays(posterior.displays, posterior.rewards, posterior.arrivals)
    record_round(arrays, i, ranking, rewards)
    posterior.rounds[i] += 1.0
    for k in range(n_positions):
        j = ranking[k]
        weight = posterior.weights[i, k, j]
        earned = rewards[k] * posterior.unit
        posterior.weighted_displays[i, k, j] += weight
        posterior.weighted_rewards[i, j] += weight * earned
        if posterior.is_position_based:
            earned *= weight
        posterior.item_rewards[i, j] += earned
        posterior.position_rewards[i, k] += earned


def refit_type(pointer: Any, user_type: int, is_bounded: int) -> None:
    """Refit the approximation of a type to the counts, starting from the last one.

    If `is_bounded`, the bound of differences of tastes is computed in any case (`fit_prior`).
    """
    posterior = load_arguments(pointer)[0]
    i, prior, workspace = user_type, posterior.prior, posterior.workspace
    rates, preferences = workspace.rates, posterior.preferences[i]
    displays, weighted_displays = posterior.displays[i], posterior.weighted_displays[i]
    weighted_rewards, item_rewards = posterior.weighted_rewards[i], posterior.item_rewards[i]
    position_rewards = posterior.position_rewards[i]
    cells = posterior.cells
    n_cells, positions, items = cells.n_cells[i], cells.positions[i], cells.items[i]
    _write_looks(weighted_displays, preferences, n_cells, positions, items, rates)
    _mean_rates(prior.shapes[i], prior.looks[i], weighted_rewards, rates)
    for j in range(rates.size):
        posterior.weighting_rates[i, j] = rates[j]
    for k in range(preferences.size):
        posterior.weighting_preferences[i, k] = preferences[k]
    if n_cells < 0:
        _weight_cells(preferences, rates, displays, posterior.weights[i], weighted_displays)
        _weight_rewards(posterior.weights[i], posterior.rewards[i], posterior.unit, weighted_rewards)
    else:
        _weight_listed_cells(
            preferences,
            rates,
            displays,
            posterior.rewards[i],
            posterior.unit,
            positions[:n_cells],
            items[:n_cells],
            posterior.weights[i],
            weighted_displays,
            weighted_rewards,
        )
    if posterior.is_position_based:
        for j in range(item_rewards.size):
            item_rewards[j] = weighted_rewards[j]
        _weight_position_rewards(posterior.weights[i], posterior.rewards[i], posterior.unit, position_rewards)
        displays = weighted_displays
    for _step in range(_NEWTON_STEPS):
        _curve(
            posterior.logits[i],
            displays,
            item_rewards,
            position_rewards,
            posterior.position_prior,
            workspace,
            preferences,
        )
        factor = posterior.factors[i]
        cholesky_factor(workspace.curvature, factor)
        solve_lower(factor, workspace.gradient)
        solve_upper(factor, workspace.gradient)
        _add_step(posterior.logits[i], workspace.gradient)
        write_preferences(posterior.logits[i], posterior.is_position_based, preferences)
    for _step in range(_FIT_STEPS):
        _write_looks(weighted_displays, preferences, n_cells, positions, items, rates)
        fit_prior(prior, i, weighted_rewards, rates, posterior.rounds, is_bounded == 1)
        is_bounded = 0
    if not posterior.has_horizon:
        clicks = posterior.rewards[i].sum() * posterior.unit
        posterior.variance_factors[i] = _anytime_factor(clicks, posterior.rounds[i], rates.size)
    posterior.refit_at[i] = max(posterior.rounds[i] * REFIT_GROWTH, posterior.rounds[i] + 1.0)


@inlined
def _cell_weight(preference: float, rate: float) -> float:
    """Return the weight of a cell: 1 / (1 − p), p being its click rate."""
    return 1.0 / (1.0 - min(preference * rate, _MAX_CLICK_RATE))


@internal
def _weight_cells(
    preferences: Floats, rates: Floats, displays: Floats, weights: Floats, weighted_displays: Floats
) -> None:
    """Write the weight of each cell.

    So weighted, a Poisson count is as uncertain, relative to its mean, as clicks are. In rounds with a click
    on one item the others have none, which counts do not show: weights conditional on the clicks of other
    items would be larger, and made one run in thirty learn slowly.
    """
    for k in range(preferences.size):
        for j in range(rates.size):
            weight = _cell_weight(preferences[k], rates[j])
            weights[k, j] = weight
            weighted_displays[k, j] = weight * displays[k, j]


@internal
def _weight_rewards(weights: Floats, rewards: Floats, unit: float, weighted_rewards: Floats) -> None:
    for j in range(weighted_rewards.size):
        weighted_rewards[j] = 0.0
    for k in range(rewards.shape[0]):
        for j in range(weighted_rewards.size):
            weighted_rewards[j] += weights[k, j] * rewards[k, j] * unit


@internal
def _weight_listed_cells(
    preferences: Floats,
    rates: Floats,
    displays: Floats,
    rewards: Floats,
    unit: float,
    positions: NDArray[np.uint16],
    items: NDArray[np.uint32],
    weights: Floats,
    weighted_displays: Floats,
    weighted_rewards: Floats,
) -> None:
    """Write the weights of listed cells, and what they weight; other cells are weighted once displayed."""
    for j in range(weighted_rewards.size):
        weighted_rewards[j] = 0.0
    for index in range(items.size):
        k, j = positions[index], items[index]
        weight = _cell_weight(preferences[k], rates[j])
        weights[k, j] = weight
        weighted_displays[k, j] = weight * displays[k, j]
        weighted_rewards[j] += weight * rewards[k, j] * unit


@internal
def _weight_position_rewards(weights: Floats, rewards: Floats, unit: float, position_rewards: Floats) -> None:
    """Write the rewards that positions are compared by if clicks at different positions are independent."""
    for k in range(position_rewards.size):
        total = 0.0
        for j in range(rewards.shape[1]):
            total += weights[k, j] * rewards[k, j]
        position_rewards[k] = total * unit


@internal
def _mean_rates(prior_shapes: Floats, prior_looks: Floats, weighted_rewards: Floats, rates: Floats) -> None:
    """Write the posterior mean of each item, in place of the looks at it."""
    for j in range(rates.size):
        rates[j] = (prior_shapes[j] + weighted_rewards[j]) / (prior_looks[j] + rates[j])


@internal
def _curve(
    logits: Floats,
    displays: Floats,
    item_rewards: Floats,
    position_rewards: Floats,
    position_prior: Floats,
    workspace: PosteriorWorkspace,
    preferences: Floats,
) -> None:
    """Write the gradient and the curvature at θ, for a Newton step.

    Users who look at one position compare positions within rounds, where ratios of clicks vary exactly as
    those of Poisson counts do: cells are not weighted here. The prior of the means says little about
    positions and is left out; then the logarithm of the posterior is

        Σ_k (α_k + S_k) θ_k − Σ_k α_k ln Σ_k e^θ_k − Σ_j S_j ln Σ_k T_jk e^θ_k,

    where the prior of ρ is a Dirichlet distribution with parameters α. It is concave, and constant in Σ_k
    θ_k; a standard normal prior on that sum makes the mode unique. With position-based clicks it is the same
    of weighted rewards and displays.
    """
    n_positions = preferences.size
    gradient, shares, curvature = workspace.gradient, workspace.shares, workspace.curvature
    write_preferences(logits, False, preferences)
    prior_looks = 0.0
    for k in range(n_positions):
        prior_looks += position_prior[k]
    for k in range(n_positions):
        gradient[k] = position_prior[k] + position_rewards[k] - prior_looks * preferences[k]
        for other in range(k + 1):
            curvature[k, other] = 1.0 - prior_looks * preferences[k] * preferences[other]
        curvature[k, k] += prior_looks * preferences[k]
    for j in range(item_rewards.size):
        earned = item_rewards[j]
        if earned <= 0.0:
            continue
        looks = 0.0
        for k in range(n_positions):
            shares[k] = displays[k, j] * preferences[k]
            looks += shares[k]
        for k in range(n_positions):
            shares[k] /= looks
            gradient[k] -= earned * shares[k]
            curvature[k, k] += earned * shares[k]
            for other in range(k + 1):
                curvature[k, other] -= earned * shares[k] * shares[other]


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


@compiled
def write_preferences(logits: Floats, is_position_based: bool, preferences: Floats) -> None:  # noqa: FBT001
    """Write the preferences at θ, shape (K,): of sum 1, or of maximum 1 if clicks are position-based.

    Examples
    --------
    >>> preferences = np.zeros(2)
    >>> write_preferences(np.log([3.0, 1.0]), False, preferences)
    >>> preferences
    array([0.75, 0.25])
    """
    largest = logits[0]
    for k in range(1, preferences.size):
        largest = max(largest, logits[k])
    total = 0.0
    for k in range(preferences.size):
        preferences[k] = math.exp(logits[k] - largest)
        total += preferences[k]
    if not is_position_based:
        for k in range(preferences.size):
            preferences[k] /= total


def sample_type(pointer: Any, user_type: int, rng_address: int) -> None:
    """Write a posterior sample of a type to the buffers: ρ or κ, then μ given these.

    Preferences are a sample from the normal approximation; while rounds are few, one of several. The odds of
    each are those of the density of θ, with the means integrated out, to the density of the approximation.
    """
    posterior, rng = load_arguments(pointer)[0], load_generator(rng_address)
    i, buffers, workspace = user_type, posterior.buffers, posterior.workspace
    prior_shapes, prior_looks = posterior.prior.shapes[i], posterior.prior.looks[i]
    preferences, steps = buffers.preferences, workspace.gradient
    displays, weighted_displays = posterior.displays[i], posterior.weighted_displays[i]
    candidates, odds = workspace.candidates, workspace.odds
    cells = posterior.cells
    n_cells, positions, items = cells.n_cells[i], cells.positions[i], cells.items[i]
    is_position_based = posterior.is_position_based
    is_resampled = posterior.rounds[i] < _MAX_RESAMPLING_ROUNDS
    for index in range(_CANDIDATES if is_resampled else 1):
        _write_normals(rng, steps)
        squares, length = 0.0, 0.0
        for k in range(steps.size):
            squares += steps[k] * steps[k]
        solve_upper(posterior.factors[i], steps)
        for k in range(steps.size):
            length += steps[k]
            steps[k] += posterior.logits[i, k]
        write_preferences(steps, is_position_based, candidates[index])
        odds[index] = 0.5 * (squares - length * length)  # Σθ is sampled as well, but irrelevant
        if is_resampled:
            workspace.uniforms[index] = rng.random()
    chosen = 0
    if is_resampled:
        for index in range(_CANDIDATES):
            odds[index] += _log_position_posterior(
                posterior.position_rewards[i], posterior.position_prior, is_position_based, candidates[index]
            )
        compared = weighted_displays if is_position_based else displays
        if cells.displayed_items.shape[1] == 0:
            _add_log_posteriors(
                prior_shapes, prior_looks, compared, posterior.item_rewards[i], candidates, odds
            )
        else:
            _add_listed_log_posteriors(
                prior_shapes,
                prior_looks,
                compared,
                posterior.item_rewards[i],
                n_cells,
                positions,
                items,
                cells.displayed_items[i][: cells.n_items[i]],
                workspace.candidate_looks,
                candidates,
                odds,
            )
        chosen = _resample(odds, workspace.uniforms)
    for k in range(steps.size):
        preferences[k] = candidates[chosen, k]

    _sort_preferences(posterior.position_order, preferences)
    normals, looks = workspace.normals, workspace.rates
    _write_normals(rng, normals[0])
    _write_looks(weighted_displays, preferences, n_cells, positions, items, looks)
    inflation = posterior.variance_factors[i] * variance_inflation(
        posterior.rounds[i] + posterior.prior.shared_rounds[i]
    )
    weighted_rewards = posterior.weighted_rewards[i]
    if is_position_based:
        _write_normals(rng, normals[1])
        _write_beta_means(
            prior_shapes,
            prior_looks,
            displays,
            weighted_rewards,
            preferences,
            looks,
            normals,
            inflation,
            buffers.means,
        )
    else:
        _write_gamma_means(
            prior_shapes, prior_looks, weighted_rewards, looks, normals[0], inflation, buffers.means
        )


@internal
def _sort_preferences(position_order: NDArray[np.intp], preferences: Floats) -> None:
    """Exchange sampled preferences until they decrease in a given order; none is given if it is empty."""
    for rank in range(1, position_order.size):
        for upper in range(rank, 0, -1):
            first, second = position_order[upper - 1], position_order[upper]
            if preferences[first] < preferences[second]:
                preferences[first], preferences[second] = preferences[second], preferences[first]


@internal
def _write_normals(rng: np.random.Generator, normals: Floats) -> None:
    for index in range(normals.size):
        normals[index] = rng.standard_normal()


@internal
def _write_looks(
    weighted_displays: Floats,
    preferences: Floats,
    n_cells: int,
    positions: NDArray[np.uint16],
    items: NDArray[np.uint32],
    looks: Floats,
) -> None:
    """Write the weighted looks at each item, shape (M,), by the listed cells or by all."""
    for j in range(looks.size):
        looks[j] = 0.0
    for index in range(n_cells):  # none if they are not listed
        k, j = positions[index], items[index]
        looks[j] += preferences[k] * weighted_displays[k, j]
    for k in range(preferences.size if n_cells < 0 else 0):
        preference = preferences[k]
        for j in range(looks.size):
            looks[j] += preference * weighted_displays[k, j]


@internal
def _resample(odds: Floats, uniforms: Floats) -> int:
    """Return the index of a candidate, drawn by its odds, which are logarithms."""
    chosen, total = 0, 0.0
    for index in range(odds.size):
        weight = math.exp(min(odds[index] - odds[0], 50.0))
        total += weight
        if uniforms[index] * total < weight:  # always for the first
            chosen = index
    return chosen


@internal
def _add_log_posteriors(
    prior_shapes: Floats,
    prior_looks: Floats,
    displays: Floats,
    item_rewards: Floats,
    candidates: Floats,
    odds: Floats,
) -> None:
    """Add the terms of the log density of θ that depend on items, at each candidate's preferences."""
    for index in range(odds.size):
        total = 0.0
        for j in range(item_rewards.size):
            looks = prior_looks[j]
            for k in range(displays.shape[0]):
                looks += displays[k, j] * candidates[index, k]
            total -= (prior_shapes[j] + item_rewards[j]) * math.log(looks)
        odds[index] += total


@internal
def _add_listed_log_posteriors(
    prior_shapes: Floats,
    prior_looks: Floats,
    displays: Floats,
    item_rewards: Floats,
    n_cells: int,
    positions: NDArray[np.uint16],
    items: NDArray[np.uint32],
    displayed_items: NDArray[np.uint32],
    looks: Floats,
    candidates: Floats,
    odds: Floats,
) -> None:
    """Add the same terms of displayed items alone: those of other items are equal for all candidates."""
    for j in displayed_items:
        for index in range(_CANDIDATES):
            looks[j, index] = prior_looks[j]
    for cell in range(n_cells):  # none if they are not listed
        k, j = positions[cell], items[cell]
        for index in range(_CANDIDATES):
            looks[j, index] += displays[k, j] * candidates[index, k]
    for k in range(displays.shape[0] if n_cells < 0 else 0):
        for j in range(item_rewards.size):
            for index in range(_CANDIDATES):
                looks[j, index] += displays[k, j] * candidates[index, k]
    _add_weighted_logarithms(prior_shapes, item_rewards, displayed_items, looks, odds)


@internal
def _add_weighted_logarithms(
    prior_shapes: Floats,
    item_rewards: Floats,
    displayed_items: NDArray[np.uint32],
    looks: Floats,
    odds: Floats,
) -> None:
    """Subtract Σ_j (a_j + S_j) ln L_j of the looks L from each candidate's odds, shape (M, C).

    Most items have no rewards, and the same a + S: the logarithm of a product of their looks is taken once.
    """
    for index in range(_CANDIDATES):
        product, weight = 1.0, 0.0
        for j in displayed_items:
            earned = prior_shapes[j] + item_rewards[j]
            if earned != weight or product < _MIN_PRODUCT or product > _MAX_PRODUCT:
                odds[index] -= weight * math.log(product)
                product, weight = 1.0, earned
            product *= looks[j, index]
        odds[index] -= weight * math.log(product)


@internal
def _log_position_posterior(
    position_rewards: Floats,
    position_prior: Floats,
    is_position_based: bool,  # noqa: FBT001
    preferences: Floats,
) -> float:
    """Return the terms of the log density of θ that depend on positions alone."""
    total = 0.0
    if is_position_based:
        for k in range(preferences.size):
            total += preferences[k]
        sum_logarithm, total = math.log(total), 0.0
        for k in range(preferences.size):
            total -= position_prior[k] * sum_logarithm  # the prior is that of shares of looks
    for k in range(preferences.size):
        total += (position_prior[k] + position_rewards[k]) * math.log(preferences[k])
    return total


@inlined
def variance_inflation(rounds: float) -> float:
    """Return the factor on the variance of means: ln(n + 10,000) / ln n, from 2 down to 1.

    Posterior sampling abandons an item once the odds against it are about n. Early on that happens soon: one
    run in a hundred loses an item to bad luck for very long. Exploration that 10,000 rounds would require in
    any case costs next to nothing in the long run if it is done early. Rounds of types with the same tastes
    count, too (`MeanPrior.shared_rounds`): then others have done that exploration.
    """
    return min(
        math.log(rounds + math.e + _INFLATION_ROUNDS) / math.log(rounds + math.e), _MAX_VARIANCE_INFLATION
    )


def _horizon_factor(visits_per_item: float) -> float:
    """Return the factor on the variance of means if a type expects few visits for each of its items.

    What is explored must be used before the visits end. 1 from 22,000 visits for each item on: fewer rounds
    of exploration would make slow runs more frequent than they are without a horizon.
    """
    return min(1.0, math.log1p(visits_per_item) / _LONG_LOG_VISITS)


@inlined
def _anytime_factor(clicks: float, visits: float, n_items: int) -> float:
    """Return the factor on the variance of means of a type whose number of visits is unknown.

    As many visits as were so far may be left, so that few clicks for each item leave little time to make use
    of exploration. Where items are few or often clicked, exploration is soon done and caution is cheap: the
    factor is 1 if each item has a click in about 100 visits.
    """
    visits_per_pass = n_items * (visits + 1.0) / (clicks + 1.0)  # until each item has a click
    haste = min(max(math.log(visits_per_pass / _SHORT_PASS) / math.log(_LONG_PASS / _SHORT_PASS), 0.0), 1.0)
    factor = math.log1p(clicks / n_items) / _LONG_LOG_CLICKS
    return min(1.0, max(factor, 1.0 - (1.0 - _MIN_ANYTIME_FACTOR) * haste))


@internal
def _write_gamma_means(
    prior_shapes: Floats,
    prior_looks: Floats,
    weighted_rewards: Floats,
    looks: Floats,
    normals: Floats,
    inflation: float,
    means: Floats,
) -> None:
    """Write a sample of μ given ρ, shape (M,), in units of the maximum reward.

    A Gamma variable is its mean times (1 − v/9 + z √v/3)³ for a standard normal z, v one over its shape
    (Wilson and Hilferty 1931); v is multiplied by `variance_inflation`. Samples below the mean are raised
    to it (May et al. 2012, "Optimistic Bayesian sampling in contextual-bandit problems"): uncertainty is a
    reason to show an item, never to hide it.
    """
    for j in range(means.size):
        earned = prior_shapes[j] + weighted_rewards[j]
        spread = inflation / earned
        root = 1.0 - spread * (1.0 / 9.0) + normals[j] * math.sqrt(spread) * (1.0 / 3.0)
        factor = root * root * root
        means[j] = earned / (prior_looks[j] + looks[j]) * max(factor, 1.0 + _TIE_BREAK * (factor - 1.0))


@internal
def _write_beta_means(
    prior_shapes: Floats,
    prior_looks: Floats,
    displays: Floats,
    weighted_rewards: Floats,
    preferences: Floats,
    looks: Floats,
    normals: Floats,
    inflation: float,
    means: Floats,
) -> None:
    """Write a sample of μ given κ, shape (M,), raised as in `_write_gamma_means`."""
    for j in range(means.size):
        kappa, clicks, misses = _position_based_shape(
            displays, j, preferences, prior_shapes[j] + weighted_rewards[j], prior_looks[j], looks[j]
        )
        mean = clicks / (clicks + misses) / kappa
        clicked = _gamma(clicks, normals[0, j], inflation)
        missed = _gamma(misses, normals[1, j], inflation)
        sample = clicked / max(clicked + missed, _NO_LOOKS) / kappa
        if sample > 1.0:
            sample = 1.0 / sample  # reflected, in place of truncated
        means[j] = max(sample, mean + _TIE_BREAK * (sample - mean))


@internal
def _position_based_shape(
    displays: Floats, item: int, preferences: Floats, earned: float, prior_looks: float, looks: float
) -> tuple[float, float, float]:
    """Return (κ, a, b): given the preferences, the item's mean is a Beta(a, b) variable over κ, at most 1.

    The density of an item's mean x is ∝ Π_k (κ_k x)^S_k (1 − κ_k x)^(T_k − S_k) on [0, 1]. With all displays
    at one κ, κ x is a Beta variable that is at most κ. Displays at several positions are replaced by n
    displays at their mean κ, weighted by looks, with the same posterior mean and information. A Gamma
    variable would have too heavy an upper tail near 1; a Beta variable for x itself, too light a one for
    items that were unlucky where users seldom look.

    Parameters
    ----------
    displays
        Displays of the type, shape (K, M).
    item, preferences
        The item, and preferences of shape (K,).
    earned
        Weighted rewards of the item and of the prior.
    prior_looks, looks
        Looks of the prior, and weighted looks at the item.
    """
    j = item
    mean = min(earned / (prior_looks + looks), _MAX_MEAN)
    seen, squares = _NO_LOOKS, _NO_LOOKS
    for k in range(preferences.size):
        looked = displays[k, j] * preferences[k]
        seen += looked
        squares += looked * preferences[k]
    kappa = squares / seen
    # Without a miss the information would be infinite: half a look is added to either side.
    seen += prior_looks
    rate = (mean * seen + 0.5) / (seen + 1.0)
    n = prior_looks
    for k in range(preferences.size):
        looked = displays[k, j] * preferences[k]
        n += looked * (1.0 - kappa * rate) / (1.0 - preferences[k] * rate)
    n /= kappa
    return kappa, n * kappa * mean, n * (1.0 - kappa * mean)


def fit_position_based_means(
    posterior: Posterior, user_type: int, preferences: Floats, kappas: Floats, clicks: Floats, misses: Floats
) -> None:
    """Write (κ, a, b) of the means given samples of preferences, shape (S, K); results have shape (S, M)."""
    i = user_type
    _fit_position_based_means(
        posterior.displays[i],
        posterior.weighted_displays[i],
        posterior.prior.shapes[i] + posterior.weighted_rewards[i],
        posterior.prior.looks[i],
        np.ascontiguousarray(preferences),  # for every K: K = 1 would be another array type
        *(kappas, clicks, misses),
    )


@compiled
def _fit_position_based_means(
    displays: Floats,
    weighted_displays: Floats,
    earned: Floats,
    prior_looks: Floats,
    preferences: Floats,
    kappas: Floats,
    clicks: Floats,
    misses: Floats,
) -> None:
    for row in range(preferences.shape[0]):
        for j in range(kappas.shape[1]):
            looks = 0.0
            for k in range(preferences.shape[1]):
                looks += preferences[row, k] * weighted_displays[k, j]
            kappas[row, j], clicks[row, j], misses[row, j] = _position_based_shape(
                displays, j, preferences[row], earned[j], prior_looks[j], looks
            )


@inlined
def _gamma(shape: float, normal: float, inflation: float) -> float:
    """Return a Gamma variable of scale 1 for a standard normal number (Wilson and Hilferty 1931)."""
    spread = inflation / shape
    root = max(1.0 - spread * (1.0 / 9.0) + normal * math.sqrt(spread) * (1.0 / 3.0), 0.0)
    return shape * root * root * root
