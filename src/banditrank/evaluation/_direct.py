"""Values by the direct method: what a fitted click model predicts for the target.

* Columns of positions: V = Σ q_jk γ_k μ_j.
* User browsing: a recursion over the last click above. With P_k(a) the probability that a is the last click
  above position k, an item there is clicked with probability Σ_a P_k(a) γ_ak μ_j.

With the derivatives of V with respect to log γ and log μ, the variance is
∇ᵀ L⁺ ∇ + Σ_j (∂V/∂ log μ_j)² / w_j·, where ∇ is the derivative with respect to log γ with μ eliminated, and L
is that of `banditrank.evaluation._log_model`. A value is identified if ∇ has no part in the null space of
L; then the model may predict a ranking that was never shown.

A target that was learned from all groups of folds but one is evaluated by a one-step estimator on that group
(cross-fitting as in double machine learning, Chernozhukov et al. 2018). The prediction of the model θ that
was fitted to the other groups is corrected by what the held-out clicks say about its errors,
V(θ) + ∇V · I⁻¹ Σ score, with the information I of the group. The errors of θ that the target was selected by
cancel to first order, and the mean over groups is as precise as a fit to the whole log.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.evaluation._log_cells import LogCells, sum_by
from banditrank.evaluation._log_model import LogModelFit
from banditrank.evaluation._targets import ResolvedTarget, TargetRankings
from banditrank.evaluation._type_values import TypeValues
from banditrank.evaluation._visit_clusters import VisitSample

Floats = NDArray[np.float64]

_UNIDENTIFIED = 1e-5  # part of ∇ in the null space, relative to the value, above which it is not identified
_MAX_CHANCE = 0.999
_RIDGE = 1e-9  # relative to the mean information about a column
_BLOCK = 50_000  # rankings whose tables are in memory at a time
_NEGLIGIBLE = 2e-3  # part of the value that may be due to columns that were never shown


class _Gradient(NamedTuple):
    """Values and their derivatives."""

    values: Floats  # (N,)
    by_column: Floats  # (N, C): ∂V / ∂γ
    by_item: Floats  # (N, M): ∂V / ∂μ
    unknown: Floats  # (N,): upper bound of the clicks at columns that were never shown


def value_by_model(
    fit: LogModelFit,
    log: LogCells,
    target: ResolvedTarget,
    training_fits: Sequence[LogModelFit] = (),
    visits: VisitSample | None = None,
) -> TypeValues:
    """Return the values of a target that a fitted click model predicts.

    Parameters
    ----------
    fit
        Fitted model of the whole log.
    log
        Cells of the log, in G groups.
    target
        The target, in as many groups.
    training_fits
        For a learned target: the model fitted without each group.
    visits
        Visits of the log, for variances with correlated clicks of a visit; by default clicks are independent.

    Returns
    -------
    TypeValues
        NaN for types for which the log does not identify the value.
    """
    n = log.shape[0]
    if fit.model == "user-browsing" and target.rankings is None:
        nothing = np.zeros(n)
        reason = "the user-browsing model predicts whole rankings, and the cube has no sample of them"
        return TypeValues(np.full(n, np.nan), nothing, nothing, reason)
    gradient = _gradient(fit, log.group_shares, target)
    values, variances, largest = gradient.values.copy(), np.zeros(n), np.zeros(n)
    is_identified = np.isfinite(values)
    is_identified &= gradient.unknown <= _NEGLIGIBLE * np.nan_to_num(values)
    gamma, means = np.nan_to_num(fit.examination), np.nan_to_num(fit.means)
    looks = np.einsum("ncj,nc->nj", fit.displays, gamma)
    influences = np.zeros((2, *fit.displays.shape))  # of a click, and the expected one of a display
    for i in np.flatnonzero(is_identified):
        weights = fit.information_weights(int(i))  # (C, M)
        by_item = weights.sum(axis=0)
        by_log_column, by_log_item = gradient.by_column[i] * gamma[i], gradient.by_item[i] * means[i]
        eliminated = by_log_column - (weights / np.maximum(by_item, 1e-300)) @ by_log_item  # (C,)
        information = fit.column_information(int(i))
        unidentified = np.linalg.norm(information.null_space @ eliminated)
        is_identified[i] = unidentified <= _UNIDENTIFIED * max(values[i], 1e-300)
        own = np.divide(by_log_item**2, by_item, out=np.zeros_like(by_item), where=by_item > 0)
        variances[i] = eliminated @ information.covariance @ eliminated + own.sum()
        if visits is not None and not training_fits:
            influences[:, i] = _influences(fit, gradient, int(i), weights)
        unclicked = gradient.by_column[i] * (gamma[i] == 0)
        largest[i] = max(
            _largest_ratio(gradient.by_item[i], looks[i]),
            _largest_ratio(unclicked, fit.displays[i] @ means[i]),
        )
    by_group = None
    if visits is not None and not training_fits:
        variances += visits.covariance(influences[:1], influences[1:])
    if training_fits:
        by_group, variances, largest = _one_step(fit, log, target, training_fits, visits)
        values = np.maximum((log.group_shares * by_group).sum(axis=0), 0.0)
        is_identified &= np.isfinite(values)
    reason = "" if is_identified.all() else "the log does not tell positions and items of the target apart"
    return TypeValues(np.where(is_identified, values, np.nan), variances, largest, reason, by_group)


def _one_step(
    fit: LogModelFit,
    log: LogCells,
    target: ResolvedTarget,
    training_fits: Sequence[LogModelFit],
    visits: VisitSample | None,
) -> tuple[Floats, Floats, Floats]:
    """Return values by group, shape (G, N), and variances and largest weights, shape (N,), of a target."""
    n = log.shape[0]
    values = np.zeros((len(training_fits), n))
    variances, largest, covariances = np.zeros((3, n))
    for group, trained in enumerate(training_fits):
        shares = np.zeros_like(log.group_shares)
        shares[group] = 1.0
        start = _gradient(trained, shares, target)
        displays = np.maximum(fit.displays - trained.displays, 0.0)
        clicks = np.maximum(fit.clicks - trained.clicks, 0.0)
        influences = np.zeros((2, *fit.displays.shape))
        for i in range(n):
            share = log.group_shares[group, i]
            if share <= 0:
                continue
            chances, misses = _chances_and_misses(trained, i)
            weights = share * fit.displays[i] * chances / misses
            influence, expected = _influences(trained, start, i, weights)
            influences[:, i] = share * influence, share * expected
            residuals = clicks[i] - displays[i] * chances
            values[group, i] = start.values[i] + (influence * residuals).sum()
            spread = displays[i] * chances * misses
            variances[i] += share**2 * (influence**2 * spread).sum()
            is_shown = displays[i] > 0
            largest[i] = max(largest[i], share * influence[is_shown].max(initial=0.0))
        if visits is not None:
            covariances += visits.of_group(group).pairs(*influences)
    return values, variances + np.maximum(covariances, 0.0), largest


def _chances_and_misses(fit: LogModelFit, user_type: int) -> tuple[Floats, Floats]:
    """Return the probabilities of a click and of a miss of each cell of a type, the latter 1 if Poisson."""
    chances = np.minimum(fit.probabilities(user_type), _MAX_CHANCE)
    return chances, 1.0 - chances if fit.is_binomial else np.ones_like(chances)


def _influences(
    fit: LogModelFit, gradient: "_Gradient", user_type: int, weights: Floats
) -> tuple[Floats, Floats]:
    """Return the change of the value by a click, and the expected one by a display, shape (C, M) each."""
    chances, misses = _chances_and_misses(fit, user_type)
    gamma, mu = (np.nan_to_num(factors[user_type]) for factors in (fit.examination, fit.means))
    by_log_column, by_log_item = gradient.by_column[user_type] * gamma, gradient.by_item[user_type] * mu
    by_click = _newton_steps(weights, by_log_column, by_log_item) / misses
    return by_click, by_click * chances


def cell_values_by_group(
    fit: LogModelFit, training_fits: Sequence[LogModelFit], group_shares: Floats
) -> Floats:
    """Return the value of each cell by the one-step estimator on each group of folds, shape (G, N, M, K).

    Parameters
    ----------
    fit
        Fitted model of the whole log, with a column for each position.
    training_fits
        The model fitted without each group.
    group_shares
        Share of each group in the visits of a type, shape (G, N).
    """
    n, n_columns, n_items = fit.displays.shape
    values = np.zeros((len(training_fits), n, n_items, n_columns))
    for group, trained in enumerate(training_fits):
        displays = np.maximum(fit.displays - trained.displays, 0.0)
        clicks = np.maximum(fit.clicks - trained.clicks, 0.0)
        for i in np.flatnonzero(group_shares[group] > 0):
            chances, misses = _chances_and_misses(trained, int(i))
            weights = group_shares[group, i] * fit.displays[i] * chances / misses
            scores = (clicks[i] - displays[i] * chances) / misses
            steps = _newton_steps(weights, scores.sum(axis=1), scores.sum(axis=0))
            values[group, i] = (trained.probabilities(int(i)) * (1.0 + steps)).T
    return values


def _newton_steps(weights: Floats, by_column: Floats, by_item: Floats) -> Floats:
    """Return I⁻¹ b as x_c + x_j of each cell, shape (C, M), for the information ``weights`` of cells.

    Parameters
    ----------
    weights
        Information of each cell about log γ_c + log μ_j, shape (C, M).
    by_column, by_item
        b: a derivative with respect to log γ, shape (C,), and log μ, shape (M,).
    """
    of_items, of_columns = weights.sum(axis=0), weights.sum(axis=1)
    inverse = np.divide(1.0, of_items, out=np.zeros_like(of_items), where=of_items > 0)
    shares = weights * inverse  # (C, M)
    used = np.flatnonzero(of_columns > 0)
    direction = np.zeros_like(of_columns)
    laplacian = np.diag(of_columns[used]) - weights[used] @ shares[used].T
    eliminated = (by_column - shares @ by_item)[used]
    # What is eliminated has no part in the null space, so that the smallest ridge serves as inverse.
    # Relative to the information before elimination: with a single position nothing is left of it.
    ridge = _RIDGE * max(of_columns.sum(), 1e-300) / max(used.size, 1)
    direction[used] = np.linalg.solve(laplacian + ridge * np.eye(used.size), eliminated)
    # The step of an item: its own, and what the columns take of it.
    return np.asarray(direction[:, None] + (by_item - weights.T @ direction) * inverse)


def _gradient(fit: LogModelFit, group_shares: Floats, target: ResolvedTarget) -> _Gradient:
    """Return the values of a target, weighted over groups, and their derivatives."""
    if fit.model == "user-browsing":
        return _browse(fit, group_shares, target)
    return _sum_of_cells(fit, group_shares, target)


def _sum_of_cells(fit: LogModelFit, group_shares: Floats, target: ResolvedTarget) -> _Gradient:
    """Return Σ q γ μ and its derivatives."""
    wanted, means = np.einsum("gn,gnjk->njk", group_shares, target.shares), fit.means
    gamma, mu = np.nan_to_num(fit.examination), np.nan_to_num(means)
    by_column, by_item = np.einsum("njk,nj->nk", wanted, mu), np.einsum("njk,nk->nj", wanted, gamma)
    is_known = ~((wanted.sum(axis=2) > 0) & np.isnan(means)).any(axis=1)
    is_known &= ~((wanted.sum(axis=1) > 0) & np.isnan(fit.examination)).any(axis=1)
    values = np.where(is_known, (by_column * gamma).sum(axis=1), np.nan)
    return _Gradient(values, by_column, by_item, np.zeros(len(values)))


def _browse(fit: LogModelFit, group_shares: Floats, target: ResolvedTarget) -> _Gradient:
    """Return the expected clicks of the target's rankings under user browsing, and their derivatives."""
    rankings = target.rankings
    assert rankings is not None  # noqa: S101 - the caller checks it
    parts = [
        _browse_rankings(fit, group_shares, rankings.part(start, start + _BLOCK))
        for start in range(0, len(rankings.weight), _BLOCK)
    ]
    return _Gradient(*(np.sum(columns, axis=0) for columns in zip(*parts, strict=True)))


def _browse_rankings(fit: LogModelFit, group_shares: Floats, rankings: TargetRankings) -> _Gradient:
    (n, n_items), n_positions = fit.means.shape, fit.n_positions
    user_type, items = rankings.user_type, np.maximum(rankings.items, 0)
    weight = rankings.weight * group_shares[rankings.group, user_type]  # (B,)
    is_filled = rankings.items >= 0
    mu = np.where(is_filled, fit.means[user_type[:, None], items], 0.0)  # (B, K)
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


def _largest_ratio(numerators: Floats, denominators: Floats) -> float:
    is_used = (numerators > 0) & (denominators > 0)
    return float((numerators[is_used] / denominators[is_used]).max(initial=0.0))
