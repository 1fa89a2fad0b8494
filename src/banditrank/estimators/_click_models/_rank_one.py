"""Rates of rank one, p = μ_j γ_c: one fit, information and intervals for position-based and user-browsing.

The columns c are positions, or pairs of the last click above and a position. With w = T p / (1 − p), the
information about ln γ after eliminating ln μ is the graph Laplacian L = diag(w_·c) − Wᵀ diag(1 / w_j·) W, and
the variance of ln γ_c / γ_d is the effective resistance (e_c − e_d)ᵀ L⁺ (e_c − e_d).
"""

from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.estimators._click_models._item_position_graph import GraphComponents, find_components
from banditrank.estimators._click_models._long_tail import informative_rates, shrink_means
from banditrank.estimators._click_models._rank_one_tables import (
    GRADIENT_TOLERANCE,
    MAX_LOSS,
    MAX_STEPS,
    STEP,
    Workspace,
    begin,
    complete_equations,
    complete_step,
    find_fixed,
    fit_tables,
    make_workspace,
    move,
    scale_factors,
    separate_tail,
    write_factors,
)
from banditrank.estimators._position_based_intervals import eliminate_means, position_based_intervals

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_MAX_COMPILED_COLUMNS = 100  # above, `_maximize` is faster: BLAS multiplies its matrices


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


class RankOneTables(NamedTuple):
    """Factors of several tables, as `fit_rank_one` scales them.

    Attributes
    ----------
    gamma, means
        Shapes (N, C) and (N, M).
    is_converged
        Whether each of the fits is a maximum, shape (N,).
    has_long_tail
        Whether maximum likelihood would be biased by items with few looks, which are compared within
        themselves instead, shape (N,).
    """

    gamma: Floats
    means: Floats
    is_converged: Booleans
    has_long_tail: Booleans

    @property
    def long_tails(self) -> tuple[int, ...]:
        """Indices of the tables with items of the tail that are compared within themselves."""
        return tuple(np.flatnonzero(self.has_long_tail).tolist())

    @property
    def unconverged(self) -> tuple[int, ...]:
        """Indices of the tables whose fit is not a maximum."""
        return tuple(np.flatnonzero(~self.is_converged).tolist())


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
    is_shrunk
        Whether a mean is shrunk to the average of the tail, shape (M,): that of all items of the tail if
        one of them would be 1.
    """

    gamma: Floats
    gamma_ends: Floats
    means: Floats
    mean_ends: Floats
    covariance: Floats
    is_shrunk: Booleans


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
    found = fit_rank_one_tables(displays[None], clicks[None], None if start is None else start[None])
    return RankOneFit(found.gamma[0], found.means[0], find_components(displays, clicks))


def fit_rank_one_tables(displays: Floats, clicks: Floats, start: Floats | None = None) -> RankOneTables:
    """Return the factors of maximum likelihood of several tables, as `fit_rank_one` scales them.

    Parameters
    ----------
    displays, clicks
        Shape (N, M, C).
    start
        γ of similar tables, shape (N, C), to start from.
    """
    n_tables, n_items, n_columns = displays.shape
    found = RankOneTables(
        np.ones((n_tables, n_columns)),
        np.zeros((n_tables, n_items)),
        np.zeros(n_tables, dtype=np.bool_),
        np.zeros(n_tables, dtype=np.bool_),
    )
    workspace = make_workspace(n_items, n_columns)
    first = found.gamma if start is None else start
    if n_columns <= _MAX_COMPILED_COLUMNS:
        shown, clicked, first = (
            np.ascontiguousarray(table, dtype=np.float64) for table in (displays, clicks, first)
        )
        fit_tables(
            shown,
            clicked,
            first,
            start is not None,
            found.gamma,
            found.means,
            found.is_converged,
            found.has_long_tail,
            workspace,
        )
        return found
    for i in range(n_tables):
        shown, clicked = (np.ascontiguousarray(table[i], dtype=np.float64) for table in (displays, clicks))
        factors = found.gamma[i], found.means[i], workspace
        begin(shown, clicked, np.asarray(first[i], dtype=np.float64), start is not None, workspace)
        found.is_converged[i] = _maximize(workspace)
        write_factors(shown, clicked, *factors)
        if separate_tail(shown, clicked, workspace):
            value = workspace.value[0]
            is_maximum = _maximize(workspace)
            if workspace.value[0] - value > MAX_LOSS:
                found.is_converged[i], found.has_long_tail[i] = is_maximum, True
                write_factors(shown, clicked, *factors)
        scale_factors(shown, *factors)
    return found


def _maximize(workspace: Workspace) -> bool:
    """Maximise the likelihood of a table as `fit_tables` does, with matrices of BLAS; return if it has."""
    step = workspace.of_columns[STEP]
    for _ in range(MAX_STEPS):
        if find_fixed(workspace) <= GRADIENT_TOLERANCE:
            return True
        is_blocked = True
        while is_blocked:
            np.matmul(workspace.scaled.T, -workspace.scaled, out=workspace.matrix)
            complete_equations(workspace)
            with suppress(np.linalg.LinAlgError):  # a step along the gradient, then
                step[:] = np.linalg.solve(workspace.matrix, step)
            is_blocked = complete_step(workspace)
        move(workspace)
    return False


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
        no_covariance = np.zeros((columns.size,) * 2)
        is_shrunk = np.zeros(means.size, dtype=np.bool_)
        return RankOneIntervals(gamma, gamma_ends, means, mean_ends, no_covariance, is_shrunk)
    of_item = fit.components.of_item
    is_unclicked = (clicks.sum(axis=1) == 0) & displays[:, columns].any(axis=1)
    rows = np.flatnonzero((of_item == 0) | is_unclicked)
    part, part_clicks = displays[np.ix_(rows, columns)], clicks[np.ix_(rows, columns)]
    chosen_gamma, chosen_means = fit.gamma[columns], np.minimum(fit.means[rows], 1.0)
    rates = informative_rates(part, part_clicks, chosen_gamma, chosen_means)
    information = eliminate_means(part, chosen_gamma, rates.means, rates.chances)
    ends, row_ends = position_based_intervals(
        part, part_clicks, chosen_gamma, chosen_means, level, information
    )
    is_shrunk = np.zeros(means.size, dtype=np.bool_)
    if columns.size > 1 and (chosen_means[rates.is_tail] >= 1.0).any():
        is_shrunk[rows] = rates.is_tail & (part @ chosen_gamma > 0)
        tail = is_shrunk[rows]
        shrunk = shrink_means(part_clicks[tail].sum(axis=1), part[tail] @ chosen_gamma)
        chosen_means[tail] = shrunk.clip(*row_ends[tail].T)
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
    return RankOneIntervals(gamma, gamma_ends, means, mean_ends, information.covariance, is_shrunk)
