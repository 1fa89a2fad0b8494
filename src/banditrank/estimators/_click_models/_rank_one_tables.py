"""Compiled fits of rates of rank one, p = μ_j γ_c, to many small tables, one for each user type."""

import math

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled
from banditrank.estimators._binomial_likelihood import ascend
from banditrank.estimators._click_models._item_position_graph import label_columns

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.int64]

TOLERANCE = 1e-9
FIRST_SWEEPS = 8  # of coordinate ascent before Newton's method, and after it
MIN_START = 1e-6
MAX_NEWTON_STEPS = 50
MAX_HALVINGS = 30
MAX_STEP = 10.0  # of logarithms
MIN_GAIN = 1e-7  # of the log-likelihood: a step towards a factor of 0 never ends
ROUNDING = 1e-13  # of the log-likelihood, relative
RIDGE = 1e-10  # relative: the scale of each component is not identified
_MAX_PROBABILITY = 1 - 1e-12
_MAX_CHANCE = 1e6  # of cells without displays
CLICKS, WEIGHTS, SLOPES, STEP, LOGS, NEW_LOGS, FACTORS, LOOKS, DISPLAYS = range(9)
"""Rows of the workspaces of `fit_tables`; the last two are of columns only."""

ITEM_ROWS, COLUMN_ROWS = FACTORS + 1, DISPLAYS + 1
"""Number of rows of the workspaces of items and columns."""


@compiled
def differentiate(
    misses: Floats,
    gamma: Floats,
    means: Floats,
    scaled: Floats,
    item_weights: Floats,
    item_slopes: Floats,
    column_weights: Floats,
    column_slopes: Floats,
) -> float:
    """Write derivatives of Σ F ln(1 − μ γ) by the logarithms of the factors; return the sum.

    Parameters
    ----------
    misses
        F, shape (M, C).
    gamma, means
        Shapes (C,) and (M,).
    scaled
        Weights w = F p / (1 − p)² over the root of their sum for the item, shape (M, C), written.
    item_weights, item_slopes
        Sums over columns of w and of F p / (1 − p), shape (M,), written.
    column_weights, column_slopes
        Sums over items, shape (C,), written.

    Returns
    -------
    float
        −∞ if a cell with misses has a probability of 1 or more.
    """
    n_items, n_columns = misses.shape
    total = 0.0
    column_weights[:] = 0.0
    column_slopes[:] = 0.0
    for j in range(n_items):
        item_weights[j] = 0.0
        item_slopes[j] = 0.0
        for c in range(n_columns):
            chance = gamma[c] * means[j]
            scaled[j, c] = 0.0
            if misses[j, c] > 0.0:
                if chance >= 1.0:
                    return -np.inf
                chance = min(chance, _MAX_PROBABILITY)
                total += misses[j, c] * math.log1p(-chance)
                share = 1.0 / (1.0 - chance)
                slope = misses[j, c] * chance * share
                scaled[j, c] = slope * share
                item_slopes[j] += slope
                column_slopes[c] += slope
            elif chance > _MAX_CHANCE:
                return -np.inf
        for c in range(n_columns):
            item_weights[j] += scaled[j, c]
            column_weights[c] += scaled[j, c]
        item_weights[j] = max(item_weights[j], 1e-300)
        root = math.sqrt(item_weights[j])
        for c in range(n_columns):
            scaled[j, c] /= root
    return total


@compiled
def fit_tables(
    displays: Floats,
    clicks: Floats,
    start: Floats,
    has_start: bool,  # noqa: FBT001 - compiled functions have no keywords
    gamma: Floats,
    means: Floats,
    tables: Floats,
    by_column: Floats,
    matrix: Floats,
    of_items: Floats,
    of_columns: Floats,
    edges: Booleans,
    labels: Indices,
) -> None:
    """Write the factors of several tables: the steps of `fit_rank_one_tables` without a call for each.

    Parameters
    ----------
    displays, clicks
        Shape (N, M, C).
    start, has_start
        γ to start from, shape (N, C), if there are any.
    gamma, means
        Shapes (N, C), initially ones, and (N, M), written.
    tables, by_column, matrix, of_items, of_columns, edges, labels
        Workspaces of shapes (2, M, C), (C, M), (C, C), (`ITEM_ROWS`, M), (`COLUMN_ROWS`, C), (M, C) and
        (C,).
    """
    n_tables, n_items, n_columns = displays.shape
    misses, scaled = tables[0], tables[1]
    item_clicks, column_clicks, looks = of_items[CLICKS], of_columns[CLICKS], of_columns[LOOKS]
    for i in range(n_tables):
        item_clicks[:] = 0.0
        column_clicks[:] = 0.0
        looks[:] = 0.0
        of_columns[DISPLAYS, :] = 0.0
        n_clicks = 0.0
        for j in range(n_items):
            for c in range(n_columns):
                shown = displays[i, j, c]
                clicked = min(clicks[i, j, c], shown)
                misses[j, c] = by_column[c, j] = shown - clicked
                item_clicks[j] += clicked
                n_clicks += clicked
                column_clicks[c] += clicked
                of_columns[DISPLAYS, c] += shown
                if shown > 0.0:
                    looks[c] = max(start[i, c], MIN_START) if has_start else 1.0
        sweeps = 1 if has_start else FIRST_SWEEPS
        ascend(by_column, misses, item_clicks, column_clicks, looks, means[i], TOLERANCE, sweeps)
        if n_clicks > 0.0:
            _improve(misses, scaled, matrix, of_items, of_columns, means[i])
            ascend(by_column, misses, item_clicks, column_clicks, looks, means[i], TOLERANCE, 1)
            if _largest(means[i]) >= 1.0 or _largest(looks) >= 1.0 + TOLERANCE:  # a bound is active
                ascend(
                    by_column, misses, item_clicks, column_clicks, looks, means[i], TOLERANCE, FIRST_SWEEPS
                )
        for c in range(n_columns):
            if of_columns[DISPLAYS, c] > 0.0:
                gamma[i, c] = looks[c]
        _scale(displays[i], of_items, of_columns, edges, labels, gamma[i], means[i])


@compiled
def _scale(  # noqa: C901 - loops
    displays: Floats,
    of_items: Floats,
    of_columns: Floats,
    edges: Booleans,
    labels: Indices,
    gamma: Floats,
    means: Floats,
) -> None:
    """Divide γ by the largest one of the component with the most clicks, and multiply the means by it."""
    n_items, n_columns = displays.shape
    for c in range(n_columns):
        labels[c] = -1
        for j in range(n_items):
            edges[j, c] = displays[j, c] > 0.0 and of_items[CLICKS, j] > 0.0
            if edges[j, c]:
                labels[c] = c
    label_columns(edges, labels)
    most, largest = -1.0, 0.0
    for label in range(n_columns):
        total, highest = 0.0, 0.0
        for c in range(n_columns):
            if labels[c] == label:
                total += of_columns[CLICKS, c]
                highest = max(highest, gamma[c])
        if labels[label] == label and total > most:
            most, largest = total, highest
    if largest > 0.0:
        for c in range(n_columns):
            gamma[c] /= largest
        for j in range(n_items):
            means[j] *= largest


@compiled
def _improve(  # noqa: C901, PLR0912 - loops
    misses: Floats, scaled: Floats, matrix: Floats, of_items: Floats, of_columns: Floats, means: Floats
) -> None:
    """Write the γ of Newton's method to the looks of columns: the steps of `_newton` in `_rank_one`.

    Items and columns without clicks have a logarithm of −∞, and do not move.

    Parameters
    ----------
    misses, scaled
        Shape (M, C), the latter a workspace.
    matrix
        Workspace of shape (C, C).
    of_items, of_columns
        Clicks, weights, slopes, steps, logarithms, new logarithms and factors, shapes (`ITEM_ROWS`, M) and
        (`COLUMN_ROWS`, C); the looks of columns are the initial γ.
    means
        Initial means, shape (M,).
    """
    logs, new_logs, column_step = of_columns[LOGS], of_columns[NEW_LOGS], of_columns[STEP]
    item_logs, new_item_logs, item_step = of_items[LOGS], of_items[NEW_LOGS], of_items[STEP]
    looks = of_columns[LOOKS]
    for c in range(logs.size):
        logs[c] = new_logs[c] = math.log(looks[c]) if of_columns[CLICKS, c] > 0.0 else -np.inf
    for j in range(item_logs.size):
        item_logs[j] = new_item_logs[j] = math.log(means[j]) if of_items[CLICKS, j] > 0.0 else -np.inf
    value = _value_at(misses, scaled, of_items, of_columns)
    for _ in range(MAX_NEWTON_STEPS):
        largest = _newton_step(scaled, matrix, of_items, of_columns)
        if not np.isfinite(largest):
            break
        size = min(1.0, MAX_STEP / max(largest, 1e-300))
        is_better = False
        new_value = value
        for _ in range(MAX_HALVINGS):
            for c in range(logs.size):
                new_logs[c] = logs[c] + size * column_step[c]
            for j in range(item_logs.size):
                new_item_logs[j] = item_logs[j] + size * item_step[j]
            new_value = _value_at(misses, scaled, of_items, of_columns)
            if new_value >= value - ROUNDING * abs(value):
                is_better = True
                break
            size /= 2
        if not is_better:
            break
        gain = new_value - value
        _copy(new_logs, logs)
        _copy(new_item_logs, item_logs)
        value = new_value
        if gain <= MIN_GAIN:
            break
    highest = _largest(logs)
    for c in range(logs.size):
        if of_columns[CLICKS, c] > 0.0:
            looks[c] = math.exp(logs[c] - highest)
    highest = _largest(looks)
    for c in range(logs.size):
        looks[c] /= highest


@compiled
def _copy(source: Floats, target: Floats) -> None:
    for index in range(target.size):
        target[index] = source[index]


@compiled
def _largest(values: Floats) -> float:
    largest: float = values[0]
    for index in range(1, values.size):
        largest = max(largest, values[index])
    return largest


@compiled
def _value_at(misses: Floats, scaled: Floats, of_items: Floats, of_columns: Floats) -> float:
    """Move to the new logarithms; return the log-likelihood, −∞ outside of its domain."""
    value = 0.0
    for c in range(of_columns.shape[1]):
        of_columns[FACTORS, c] = math.exp(min(of_columns[NEW_LOGS, c], 50.0))
        if of_columns[CLICKS, c] > 0.0:
            value += of_columns[CLICKS, c] * of_columns[NEW_LOGS, c]
    for j in range(of_items.shape[1]):
        of_items[FACTORS, j] = math.exp(min(of_items[NEW_LOGS, j], 50.0))
        if of_items[CLICKS, j] > 0.0:
            value += of_items[CLICKS, j] * of_items[NEW_LOGS, j]
    return value + differentiate(
        misses,
        of_columns[FACTORS],
        of_items[FACTORS],
        scaled,
        of_items[WEIGHTS],
        of_items[SLOPES],
        of_columns[WEIGHTS],
        of_columns[SLOPES],
    )


@compiled
def _newton_step(  # noqa: C901, PLR0912 - loops
    scaled: Floats, matrix: Floats, of_items: Floats, of_columns: Floats
) -> float:
    """Write the step of the logarithms, μ eliminated from the equations; return the largest one."""
    n_items, n_columns = scaled.shape
    step = of_columns[STEP]
    for c in range(n_columns):
        step[c] = of_columns[CLICKS, c] - of_columns[SLOPES, c]
        for d in range(c + 1):
            matrix[c, d] = 0.0
    for j in range(n_items):
        gradient = (of_items[CLICKS, j] - of_items[SLOPES, j]) / math.sqrt(of_items[WEIGHTS, j])
        for c in range(n_columns):
            weight = scaled[j, c]
            if weight > 0.0:
                step[c] -= gradient * weight
                for d in range(c + 1):
                    matrix[c, d] -= weight * scaled[j, d]
    for c in range(n_columns):
        matrix[c, c] += of_columns[WEIGHTS, c] * (1 + RIDGE) + 1e-12
        for d in range(c):
            matrix[d, c] = matrix[c, d]
    _eliminate(matrix, step)
    largest = 0.0
    for j in range(n_items):
        root = math.sqrt(of_items[WEIGHTS, j])
        moved = 0.0
        for c in range(n_columns):
            moved += scaled[j, c] * step[c]
        of_items[STEP, j] = (of_items[CLICKS, j] - of_items[SLOPES, j] - root * moved) / of_items[WEIGHTS, j]
        if not abs(of_items[STEP, j]) <= largest:  # also if it is NaN
            largest = abs(of_items[STEP, j])
    for c in range(n_columns):
        if not abs(step[c]) <= largest:
            largest = abs(step[c])
    return largest


@compiled
def _eliminate(matrix: Floats, vector: Floats) -> None:  # noqa: C901 - loops
    """Solve linear equations by elimination with pivots, in place; NaN or infinite if they are singular."""
    size = vector.size
    for column in range(size):
        pivot = column
        for row in range(column + 1, size):
            if abs(matrix[row, column]) > abs(matrix[pivot, column]):
                pivot = row
        if pivot != column:
            for other in range(size):
                matrix[column, other], matrix[pivot, other] = matrix[pivot, other], matrix[column, other]
            vector[column], vector[pivot] = vector[pivot], vector[column]
        for row in range(column + 1, size):
            factor = matrix[row, column] / matrix[column, column]
            if factor != 0.0:
                for other in range(column + 1, size):
                    matrix[row, other] -= factor * matrix[column, other]
                vector[row] -= factor * vector[column]
    for row in range(size - 1, -1, -1):
        for other in range(row + 1, size):
            vector[row] -= matrix[row, other] * vector[other]
        vector[row] /= matrix[row, row]
