"""Rates of rank one, p = μ_j γ_c: one fit, information and intervals for position-based and user-browsing.

The columns c are positions, or pairs of the last click above and a position. With w = T p / (1 − p), the
information about ln γ after eliminating ln μ is the graph Laplacian L = diag(w_·c) − Wᵀ diag(1 / w_j·) W, and
the variance of ln γ_c / γ_d is the effective resistance (e_c − e_d)ᵀ L⁺ (e_c − e_d).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.estimators._binomial_likelihood import maximize_rank_one
from banditrank.estimators._click_models._item_position_graph import GraphComponents, find_components
from banditrank.estimators._position_based_intervals import position_based_intervals

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_TOLERANCE = 1e-9
_FIRST_SWEEPS = 8  # of coordinate ascent before Newton's method, and after it
_MAX_NEWTON_STEPS = 50
_MAX_HALVINGS = 30
_MAX_STEP = 10.0  # of logarithms
_NEWTON_TOLERANCE = 1e-8  # of logarithms
_MIN_GAIN = 1e-7  # of the log-likelihood: a step towards a factor of 0 never ends
_RIDGE = 1e-10  # relative: the scale of each component is not identified
_MAX_PROBABILITY = 1 - 1e-12
_MAX_CHANCE = 1e6  # of cells without displays


class RankOneFit(NamedTuple):
    """Factors of one table; the largest γ of the main component is 1.

    Attributes
    ----------
    gamma, means
        Factors, shapes (C,) and (M,); their products are rates also where the factors are not identified.
    components
        What the log can compare.
    """

    gamma: Floats
    means: Floats
    components: GraphComponents


class RankOneIntervals(NamedTuple):
    """Estimates and intervals of the identified factors; NaN elsewhere.

    Attributes
    ----------
    gamma, gamma_ends
        Shapes (C,) and (C, 2).
    means, mean_ends
        Shapes (M,) and (M, 2).
    """

    gamma: Floats
    gamma_ends: Floats
    means: Floats
    mean_ends: Floats


def fit_rank_one(displays: Floats, clicks: Floats) -> RankOneFit:
    """Return the factors of maximum likelihood.

    Parameters
    ----------
    displays, clicks
        Shape (M, C).

    Examples
    --------
    >>> displays = np.full((2, 2), 100.0)
    >>> fit = fit_rank_one(displays, np.array([[80.0, 40.0], [40.0, 20.0]]))
    >>> fit.gamma.round(6), fit.means.round(6)
    (array([1. , 0.5]), array([0.8, 0.4]))
    """
    is_used = displays.any(axis=0)
    gamma, means = np.ones(displays.shape[1]), np.zeros(displays.shape[0])
    if is_used.any():
        gamma[is_used], means = _maximize(displays[:, is_used], np.minimum(clicks, displays)[:, is_used])
    components = find_components(displays, clicks)
    largest = gamma[components.of_column == 0].max(initial=0.0)
    if largest > 0:
        gamma, means = gamma / largest, means * largest
    return RankOneFit(gamma, means, components)


def _maximize(displays: Floats, clicks: Floats) -> tuple[Floats, Floats]:
    """Return γ and μ by coordinate ascent, then Newton's method, then ascent to keep factors in [0, 1]."""
    by_column, clicks_by_column = np.ascontiguousarray(displays.T), np.ascontiguousarray(clicks.T)
    gamma, means = maximize_rank_one(
        by_column, clicks_by_column, tolerance=_TOLERANCE, max_iterations=_FIRST_SWEEPS
    )
    rows, columns = np.flatnonzero(clicks.any(axis=1)), np.flatnonzero(clicks.any(axis=0))
    if not rows.size:
        return gamma, means
    cells = np.ix_(rows, columns)
    gamma[columns] = _newton(displays[cells], clicks[cells], gamma[columns], means[rows])
    gamma /= gamma.max()
    return maximize_rank_one(
        by_column,
        clicks_by_column,
        tolerance=_TOLERANCE,
        max_iterations=_FIRST_SWEEPS,
        initial_looks=gamma,
    )


def _newton(displays: Floats, clicks: Floats, gamma: Floats, means: Floats) -> Floats:
    """Return the γ that Newton's method finds on the scale of logarithms, with μ eliminated.

    Parameters
    ----------
    displays, clicks
        Shape (M, C); each row and each column has clicks.
    gamma, means
        Initial factors, shapes (C,) and (M,), positive.
    """
    misses, has_misses = displays - clicks, displays > clicks
    item_clicks, column_clicks = clicks.sum(axis=1), clicks.sum(axis=0)
    log_gamma, log_means = np.log(gamma), np.log(means)

    def chances_at(columns: Floats, items: Floats) -> Floats:
        return np.asarray(np.exp(np.minimum(items[:, None] + columns, 50.0)))

    def likelihood(columns: Floats, items: Floats, chances: Floats) -> float:
        if (chances[has_misses] >= 1.0).any() or (chances > _MAX_CHANCE).any():
            return -np.inf
        missed = np.log1p(-np.minimum(chances, _MAX_PROBABILITY))
        return float((item_clicks * items).sum() + (column_clicks * columns).sum() + (misses * missed).sum())

    chances = chances_at(log_gamma, log_means)
    value = likelihood(log_gamma, log_means, chances)
    for _ in range(_MAX_NEWTON_STEPS):
        share = 1.0 / (1.0 - np.minimum(chances, _MAX_PROBABILITY))
        slopes = misses * chances * share  # (M, C)
        weights = slopes * share
        of_items = np.maximum(weights.sum(axis=1), 1e-300)
        item_gradient = item_clicks - slopes.sum(axis=1)
        shares = weights / of_items[:, None]
        at_columns = weights.sum(axis=0)
        laplacian = np.diag(at_columns * (1 + _RIDGE) + 1e-12) - weights.T @ shares
        step = np.linalg.solve(laplacian, column_clicks - slopes.sum(axis=0) - shares.T @ item_gradient)
        item_step = (item_gradient - weights @ step) / of_items
        largest = max(np.abs(step).max(), np.abs(item_step).max())
        if not np.isfinite(largest):
            break
        size = min(1.0, _MAX_STEP / max(largest, 1e-300))
        for _ in range(_MAX_HALVINGS):
            columns, items = log_gamma + size * step, log_means + size * item_step
            new_chances = chances_at(columns, items)
            new_value = likelihood(columns, items, new_chances)
            if new_value >= value:
                break
            size /= 2
        else:
            break
        gain = new_value - value
        log_gamma, log_means, chances, value = columns, items, new_chances, new_value
        moves = np.abs((item_step[:, None] + step) * (displays > 0))  # of ln p: scales may drift
        if size * moves.max() <= _NEWTON_TOLERANCE or gain <= _MIN_GAIN:
            break
    return np.asarray(np.exp(log_gamma - log_gamma.max()))


def rank_one_intervals(
    displays: Floats, clicks: Floats, fit: RankOneFit, level: float, *, is_single: bool = False
) -> RankOneIntervals:
    """Return estimates and intervals of the identified factors.

    Factors of columns are identified in the component with the most clicks, if it has two columns or more.
    Means are identified there, too, or if the log has a single position: they are click rates, then.

    Parameters
    ----------
    displays, clicks
        Shape (M, C).
    fit
        Their fit.
    level
        Confidence level.
    is_single
        Whether the log has a single position.
    """
    gamma, means = np.full(fit.gamma.size, np.nan), np.full(fit.means.size, np.nan)
    gamma_ends, mean_ends = np.full((gamma.size, 2), np.nan), np.full((means.size, 2), np.nan)
    columns = np.flatnonzero(fit.components.of_column == 0)
    if columns.size < 2 and not (columns.size == 1 and is_single):
        return RankOneIntervals(gamma, gamma_ends, means, mean_ends)
    of_item = fit.components.of_item
    is_unclicked = (clicks.sum(axis=1) == 0) & displays[:, columns].any(axis=1)
    rows = np.flatnonzero((of_item == 0) | is_unclicked)
    part, part_clicks = displays[np.ix_(rows, columns)], clicks[np.ix_(rows, columns)]
    chosen_gamma, chosen_means = fit.gamma[columns], np.minimum(fit.means[rows], 1.0)
    ends, row_ends = position_based_intervals(part, part_clicks, chosen_gamma, chosen_means, level)
    is_open = (row_ends[:, 0] <= 0) & (row_ends[:, 1] >= 1)
    means[rows], mean_ends[rows] = (
        np.where(is_open, np.nan, chosen_means),
        np.where(is_open[:, None], np.nan, row_ends),
    )
    if columns.size > 1:
        is_open = (ends[:, 0] <= 0) & (ends[:, 1] >= 1)
        gamma[columns], gamma_ends[columns] = (
            np.where(is_open, np.nan, chosen_gamma),
            np.where(is_open[:, None], np.nan, ends),
        )
    return RankOneIntervals(gamma, gamma_ends, means, mean_ends)
