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
from banditrank.estimators._click_models._rank_one_tables import (
    COLUMN_ROWS,
    FIRST_SWEEPS,
    ITEM_ROWS,
    MAX_HALVINGS,
    MAX_NEWTON_STEPS,
    MAX_STEP,
    MIN_GAIN,
    MIN_START,
    RIDGE,
    ROUNDING,
    TOLERANCE,
    differentiate,
    fit_tables,
)
from banditrank.estimators._position_based_intervals import eliminate_means, position_based_intervals

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_MAX_COMPILED_COLUMNS = 100  # above, `_newton` is faster: BLAS multiplies its matrices


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
    covariance
        Of the logarithms of γ of the main component, shape (D, D), in the order of its columns.
    """

    gamma: Floats
    gamma_ends: Floats
    means: Floats
    mean_ends: Floats
    covariance: Floats


def fit_rank_one(displays: Floats, clicks: Floats, start: Floats | None = None) -> RankOneFit:
    """Return the factors of maximum likelihood.

    Parameters
    ----------
    displays, clicks
        Shape (M, C).
    start
        γ of a similar table, shape (C,), to start from.

    Examples
    --------
    >>> displays = np.full((2, 2), 100.0)
    >>> fit = fit_rank_one(displays, np.array([[80.0, 40.0], [40.0, 20.0]]))
    >>> fit.gamma.round(6), fit.means.round(6)
    (array([1. , 0.5]), array([0.8, 0.4]))
    """
    gamma, means = fit_rank_one_tables(displays[None], clicks[None], None if start is None else start[None])
    return RankOneFit(gamma[0], means[0], find_components(displays, clicks))


def fit_rank_one_tables(
    displays: Floats, clicks: Floats, start: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the factors of maximum likelihood of several tables, as `fit_rank_one` scales them.

    Parameters
    ----------
    displays, clicks
        Shape (N, M, C).
    start
        γ of similar tables, shape (N, C), to start from.

    Returns
    -------
    tuple
        γ, shape (N, C), and the means, shape (N, M).
    """
    n_tables, n_items, n_columns = displays.shape
    gamma, means = np.ones((n_tables, n_columns)), np.zeros((n_tables, n_items))
    if n_columns <= _MAX_COMPILED_COLUMNS:
        fit_tables(
            np.ascontiguousarray(displays, dtype=np.float64),
            np.ascontiguousarray(clicks, dtype=np.float64),
            gamma if start is None else np.ascontiguousarray(start, dtype=np.float64),
            start is not None,
            gamma,
            means,
            np.empty((2, n_items, n_columns)),
            np.empty((n_columns, n_items)),
            np.empty((n_columns, n_columns)),
            np.empty((ITEM_ROWS, n_items)),
            np.empty((COLUMN_ROWS, n_columns)),
            np.empty((n_items, n_columns), dtype=np.bool_),
            np.empty(n_columns, dtype=np.int64),
        )
        return gamma, means
    for i in range(n_tables):
        is_used = displays[i].any(axis=0)
        if not is_used.any():
            continue
        gamma[i, is_used], means[i] = _maximize(
            displays[i][:, is_used],
            np.minimum(clicks[i], displays[i])[:, is_used],
            None if start is None else np.maximum(start[i, is_used], MIN_START),
        )
        largest = gamma[i, find_components(displays[i], clicks[i]).of_column == 0].max(initial=0.0)
        if largest > 0:
            gamma[i], means[i] = gamma[i] / largest, means[i] * largest
    return gamma, means


def _maximize(displays: Floats, clicks: Floats, start: Floats | None) -> tuple[Floats, Floats]:
    """Return γ and μ by coordinate ascent, then Newton's method, then ascent to keep factors in [0, 1]."""
    by_column, clicks_by_column = np.ascontiguousarray(displays.T), np.ascontiguousarray(clicks.T)
    gamma, means = maximize_rank_one(
        by_column,
        clicks_by_column,
        tolerance=TOLERANCE,
        max_iterations=FIRST_SWEEPS if start is None else 1,
        initial_looks=start,
    )
    rows, columns = np.flatnonzero(clicks.any(axis=1)), np.flatnonzero(clicks.any(axis=0))
    if not rows.size:
        return gamma, means
    cells = np.ix_(rows, columns)
    gamma[columns] = _newton(displays[cells], clicks[cells], gamma[columns], means[rows])
    gamma /= gamma.max()
    gamma, means = maximize_rank_one(
        by_column, clicks_by_column, tolerance=TOLERANCE, max_iterations=1, initial_looks=gamma
    )
    if means.max() < 1.0 and gamma.max() < 1.0 + TOLERANCE:
        return gamma, means  # no bound is active
    return maximize_rank_one(
        by_column,
        clicks_by_column,
        tolerance=TOLERANCE,
        max_iterations=FIRST_SWEEPS,
        initial_looks=gamma,
    )


class _Derivatives:
    """Value and derivatives of the log-likelihood of a table at given factors."""

    def __init__(self, displays: Floats, clicks: Floats) -> None:
        n_items, n_columns = displays.shape
        self._misses = np.ascontiguousarray(displays - clicks)
        self._item_clicks, self._column_clicks = clicks.sum(axis=1), clicks.sum(axis=0)
        self._scaled = np.empty((n_items, n_columns))
        self._of_items, self._of_columns = np.empty((2, n_items)), np.empty((2, n_columns))  # weights, slopes

    def evaluate(self, log_gamma: Floats, log_means: Floats) -> float:
        """Move to factors; return the log-likelihood, −∞ outside of its domain."""
        gamma, means = (np.exp(np.minimum(logs, 50.0)) for logs in (log_gamma, log_means))
        missed = differentiate(self._misses, gamma, means, self._scaled, *self._of_items, *self._of_columns)
        return float(self._item_clicks @ log_means + self._column_clicks @ log_gamma + missed)

    def newton_step(self) -> tuple[Floats, Floats]:
        """Return the step of the logarithms of γ and μ, the latter eliminated from the equations."""
        (item_weights, item_slopes), (column_weights, column_slopes) = self._of_items, self._of_columns
        item_gradient, roots = self._item_clicks - item_slopes, np.sqrt(item_weights)
        laplacian = -(self._scaled.T @ self._scaled)
        laplacian[np.diag_indices_from(laplacian)] += column_weights * (1 + RIDGE) + 1e-12
        right_side = self._column_clicks - column_slopes - (item_gradient / roots) @ self._scaled
        step = np.linalg.solve(laplacian, right_side)
        return step, (item_gradient - roots * (self._scaled @ step)) / item_weights


def _newton(displays: Floats, clicks: Floats, gamma: Floats, means: Floats) -> Floats:
    """Return the γ that Newton's method finds on the scale of logarithms, with μ eliminated.

    Parameters
    ----------
    displays, clicks
        Shape (M, C); each row and each column has clicks.
    gamma, means
        Initial factors, shapes (C,) and (M,), positive.
    """
    derivatives = _Derivatives(displays, clicks)
    log_gamma, log_means = np.log(gamma), np.log(means)
    value = derivatives.evaluate(log_gamma, log_means)
    for _ in range(MAX_NEWTON_STEPS):
        step, item_step = derivatives.newton_step()
        largest = max(np.abs(step).max(), np.abs(item_step).max())
        if not np.isfinite(largest):
            break
        size = min(1.0, MAX_STEP / max(largest, 1e-300))
        for _ in range(MAX_HALVINGS):
            columns, items = log_gamma + size * step, log_means + size * item_step
            new_value = derivatives.evaluate(columns, items)
            if new_value >= value - ROUNDING * abs(value):
                break
            size /= 2
        else:
            break
        gain = new_value - value
        log_gamma, log_means, value = columns, items, new_value
        if gain <= MIN_GAIN:
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
        return RankOneIntervals(gamma, gamma_ends, means, mean_ends, np.zeros((columns.size,) * 2))
    of_item = fit.components.of_item
    is_unclicked = (clicks.sum(axis=1) == 0) & displays[:, columns].any(axis=1)
    rows = np.flatnonzero((of_item == 0) | is_unclicked)
    part, part_clicks = displays[np.ix_(rows, columns)], clicks[np.ix_(rows, columns)]
    chosen_gamma, chosen_means = fit.gamma[columns], np.minimum(fit.means[rows], 1.0)
    information = eliminate_means(part, chosen_gamma, chosen_means)
    ends, row_ends = position_based_intervals(
        part, part_clicks, chosen_gamma, chosen_means, level, information
    )
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
    return RankOneIntervals(gamma, gamma_ends, means, mean_ends, information.covariance)
