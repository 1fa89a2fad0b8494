"""Values by the direct method: what a fitted click model predicts for the target.

* Columns of positions: V = Σ q_jk γ_k μ_j.
* User browsing: a recursion over the last click above. With P_k(a) the probability that a is the last click
  above position k, an item there is clicked with probability Σ_a P_k(a) γ_ak μ_j.

With the derivatives of V with respect to log γ and log μ, the variance is
∇ᵀ L⁺ ∇ + Σ_j (∂V/∂ log μ_j)² / w_j·, where ∇ is the derivative with respect to log γ with μ eliminated, and L
is that of `banditrank.evaluation._rank_one_fit`. A value is identified if ∇ has no part in the null space of
L; then the model may predict a ranking that was never shown.

A target that was learned is evaluated with γ of the whole log, and with the mean of an item estimated from
the groups of folds that show it: which items look good by chance is what a learned ranking selects by.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.evaluation._log_cells import LogCells, sum_by
from banditrank.evaluation._rank_one_fit import RankOneFit, column_of
from banditrank.evaluation._targets import ResolvedTarget
from banditrank.evaluation._type_values import TypeValues

Floats = NDArray[np.float64]

_UNIDENTIFIED = 1e-5  # part of ∇ in the null space, relative to the value, above which it is not identified
_NEGLIGIBLE = 2e-3  # part of the value that may be due to columns that were never shown


class _Means(NamedTuple):
    """Means of items, and the information about them."""

    means: Floats  # (N, M)
    information: Floats  # (N, M): the inverse variance of log μ for known γ
    looks: Floats  # (N, M)
    shares: Floats  # (N, C, M): − ∂ log μ_j / ∂ log γ_c


class _Gradient(NamedTuple):
    """Values and their derivatives."""

    values: Floats  # (N,)
    by_column: Floats  # (N, C): ∂V / ∂γ
    by_item: Floats  # (N, M): ∂V / ∂μ
    unknown: Floats  # (N,): upper bound of the clicks at columns that were never shown


def value_by_model(fit: RankOneFit, log: LogCells, target: ResolvedTarget) -> TypeValues:
    """Return the values of a target that a fitted click model predicts.

    Parameters
    ----------
    fit
        Fitted model of the log.
    log
        Cells of the log, in G groups.
    target
        The target, in as many groups.

    Returns
    -------
    TypeValues
        NaN for types for which the log does not identify the value.
    """
    n = log.shape[0]
    if fit.model == "user-browsing" and target.rankings is None:
        nothing = np.zeros(n)
        return TypeValues(
            np.full(n, np.nan), nothing, nothing, "the model needs rankings, not shares of cells alone"
        )
    means = _fitted_means(fit) if len(target.shares) == 1 else _cross_fitted_means(fit, log, target.shares)
    if fit.model == "user-browsing":
        gradient = _browse(fit, means.means, log, target)
    else:
        gradient = _sum_of_cells(fit, means.means, log, target)
    variances, largest = np.zeros(n), np.zeros(n)
    is_identified = np.isfinite(gradient.values)
    is_identified &= gradient.unknown <= _NEGLIGIBLE * np.nan_to_num(gradient.values)
    gamma = np.nan_to_num(fit.examination)
    for i in np.flatnonzero(is_identified):
        mu = np.nan_to_num(means.means[i])
        by_log_column, by_log_item = gradient.by_column[i] * gamma[i], gradient.by_item[i] * mu
        eliminated = by_log_column - means.shares[i] @ by_log_item  # (C,)
        information = fit.column_information(int(i))
        unidentified = np.linalg.norm(information.null_space @ eliminated)
        is_identified[i] = unidentified <= _UNIDENTIFIED * max(gradient.values[i], 1e-300)
        own = np.divide(
            by_log_item**2, means.information[i], out=np.zeros_like(mu), where=means.information[i] > 0
        )
        variances[i] = eliminated @ information.covariance @ eliminated + own.sum()
        largest[i] = max(
            _largest_ratio(gradient.by_item[i], means.looks[i]),
            _largest_ratio(gradient.by_column[i] * (gamma[i] == 0), fit.displays[i] @ mu),  # not yet clicked
        )
    reason = "" if is_identified.all() else "the log does not tell positions and items of the target apart"
    return TypeValues(np.where(is_identified, gradient.values, np.nan), variances, largest, reason)


def _fitted_means(fit: RankOneFit) -> _Means:
    """Return the means of maximum likelihood."""
    weights = np.stack([fit.information_weights(i) for i in range(len(fit.means))])  # (N, C, M)
    by_item = weights.sum(axis=1)
    looks = np.einsum("ncj,nc->nj", fit.displays, np.nan_to_num(fit.examination))
    shares = weights / np.maximum(by_item[:, None], 1e-300)
    return _Means(fit.means, by_item, looks, shares)


def _cross_fitted_means(fit: RankOneFit, log: LogCells, shares: Floats) -> _Means:
    """Return means from the groups that show an item, weighted by how often they do."""
    n, n_items, _ = log.shape
    column = column_of(log, fit.model)
    gamma = np.nan_to_num(fit.examination)
    q = shares.sum(axis=3)[log.group, log.user_type, log.item]
    looks_of_cell = log.displays * gamma[log.user_type, column]
    item = log.user_type * n_items + log.item
    looks, clicks = (sum_by(item, q * one, n * n_items) for one in (looks_of_cell, log.clicks))
    means = np.divide(clicks, looks, out=np.full(n * n_items, np.nan), where=looks > 0)
    chances = np.nan_to_num(means)[item] * gamma[log.user_type, column]
    spread = q**2 * log.displays * chances
    if fit.is_binomial:
        spread *= np.maximum(1.0 - chances, 0.5 / (log.displays + 1.0))
    variance = sum_by(item, spread, n * n_items)
    information = np.divide(
        (looks * np.nan_to_num(means)) ** 2, variance, out=np.zeros_like(looks), where=variance > 0
    )
    shape = (n, gamma.shape[1], n_items)
    index = np.ravel_multi_index((log.user_type, column, log.item), shape)
    by_cell = sum_by(index, q * looks_of_cell, int(np.prod(shape))).reshape(shape)
    by_type = (n, n_items)
    return _Means(
        means.reshape(by_type),
        information.reshape(by_type),
        looks.reshape(by_type),
        by_cell / np.maximum(looks.reshape(by_type), 1e-300)[:, None],
    )


def _sum_of_cells(fit: RankOneFit, means: Floats, log: LogCells, target: ResolvedTarget) -> _Gradient:
    """Return Σ q γ μ and its derivatives."""
    wanted = np.einsum("gn,gnjk->njk", log.group_shares, target.shares)
    gamma, mu = np.nan_to_num(fit.examination), np.nan_to_num(means)
    by_column, by_item = np.einsum("njk,nj->nk", wanted, mu), np.einsum("njk,nk->nj", wanted, gamma)
    is_known = ~((wanted.sum(axis=2) > 0) & np.isnan(means)).any(axis=1)
    is_known &= ~((wanted.sum(axis=1) > 0) & np.isnan(fit.examination)).any(axis=1)
    values = np.where(is_known, (by_column * gamma).sum(axis=1), np.nan)
    return _Gradient(values, by_column, by_item, np.zeros(len(values)))


def _browse(fit: RankOneFit, means: Floats, log: LogCells, target: ResolvedTarget) -> _Gradient:
    """Return the expected clicks of the target's rankings under user browsing, and their derivatives."""
    rankings = target.rankings
    assert rankings is not None  # noqa: S101 - the caller checks it
    n, n_items, n_positions = log.shape
    user_type, items = rankings.user_type, np.maximum(rankings.items, 0)
    weight = rankings.weight * log.group_shares[rankings.group, user_type]  # (B,)
    is_filled = rankings.items >= 0
    mu = np.where(is_filled, means[user_type[:, None], items], 0.0)  # (B, K)
    gamma = fit.examination.reshape(n, n_positions, n_positions)[user_type]  # (B, above, K)
    is_unknown = np.isnan(gamma)
    chances = np.nan_to_num(gamma) * np.nan_to_num(mu)[:, None, :]
    reached = _probabilities_of_last_click(chances)
    steps = np.zeros_like(chances)  # ∂V / ∂ chances
    later = np.zeros((len(weight), n_positions + 1))  # clicks from a position on, by the last click above it
    for k in range(n_positions - 1, -1, -1):
        after_click, before = 1.0 + later[:, k + 1, None], later[:, : k + 1]
        steps[:, : k + 1, k] = reached[:, : k + 1, k] * (after_click - before)
        later[:, : k + 1] = before + chances[:, : k + 1, k] * (after_click - before)
    steps *= weight[:, None, None]
    values = sum_by(user_type, weight * later[:, 0], n)
    is_missing = np.isnan(mu).any(axis=1) & (weight > 0)
    values[np.unique(user_type[is_missing])] = np.nan
    left = n_positions - np.arange(n_positions)
    bound = (reached * is_unknown * left * (np.nan_to_num(mu) > 0)[:, None, :]).sum(axis=(1, 2))
    by_column = np.zeros((n, n_positions, n_positions))
    np.add.at(by_column, user_type, steps * np.nan_to_num(mu)[:, None, :])
    by_item = np.zeros((n, n_items))
    np.add.at(by_item, (user_type[:, None], items), (steps * np.nan_to_num(gamma)).sum(axis=1) * is_filled)
    return _Gradient(values, by_column.reshape(n, -1), by_item, sum_by(user_type, weight * bound, n))


def _probabilities_of_last_click(chances: Floats) -> Floats:
    """Return the probability of each last click above each position, shape (B, K, K), as ``chances``."""
    n, n_positions, _ = chances.shape
    reached = np.zeros_like(chances)
    state = np.zeros((n, n_positions + 1))
    state[:, 0] = 1.0
    for k in range(n_positions):
        reached[:, : k + 1, k] = state[:, : k + 1]
        clicked = state[:, : k + 1] * chances[:, : k + 1, k]
        state[:, : k + 1] -= clicked
        state[:, k + 1] = clicked.sum(axis=1)
    return reached


def predicted_clicks(fit: RankOneFit, user_type: NDArray[np.int64], items: NDArray[np.int64]) -> Floats:
    """Return the click probability at each position of rankings, whatever was clicked above, shape (B, K).

    Parameters
    ----------
    fit
        Fitted model.
    user_type, items
        User types, shape (B,), and rankings, shape (B, K); −1 where nothing was shown.
    """
    mu = np.where(items >= 0, fit.means[user_type[:, None], np.maximum(items, 0)], 0.0)
    if fit.model != "user-browsing":
        return np.asarray(mu * fit.examination[user_type])
    n_positions = fit.n_positions
    gamma = np.nan_to_num(fit.examination).reshape(-1, n_positions, n_positions)[user_type]
    chances = gamma * mu[:, None, :]
    return np.asarray((_probabilities_of_last_click(np.nan_to_num(chances)) * chances).sum(axis=1))


def _largest_ratio(numerators: Floats, denominators: Floats) -> float:
    is_used = (numerators > 0) & (denominators > 0)
    return float((numerators[is_used] / denominators[is_used]).max(initial=0.0))
