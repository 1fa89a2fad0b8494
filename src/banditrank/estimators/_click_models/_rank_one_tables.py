"""Compiled fits of rates of rank one, p = μ_j γ_c, to many small tables, one for each user type.

The log-likelihood is concave in the logarithms of the factors, which are at most 0. Newton's method with an
active set maximises it: factors of 1 whose gradient points outward are fixed, the others take a step of
Newton's method that is projected on the bounds, with μ eliminated from the equations. Where such a step gains
nothing, coordinate ascent does. The fit has converged when the gradient of each factor, projected on the
bounds, is a share of at most `GRADIENT_TOLERANCE` of its clicks.

Where the long tail of a table moves γ, a second fit compares the clicks of its items within items only
(`_long_tail`): their part of the likelihood is that of Poisson counts, whose mean for each item needs no
equation, Σ T w (S / T ln γ − γ Σ S w / Σ T w γ).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled
from banditrank.estimators._binomial_likelihood import ascend, maximize_factor
from banditrank.estimators._click_models._item_position_graph import label_columns
from banditrank.estimators._click_models._long_tail import MAX_CHANCE, MIN_LOOKS

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.int64]

GRADIENT_TOLERANCE = 1e-7
"""Projected gradient of a factor's logarithm at which a fit has converged, relative to its clicks."""

MAX_STEPS = 200
"""Maximum number of steps of a fit."""

MAX_LOSS = 0.03
"""Maximum log-likelihood of comparisons within the tail that γ of maximum likelihood may lose.

It is that of a quarter of a standard error: (1/4)² / 2.
"""

_FIRST_SWEEPS = 8  # of coordinate ascent before Newton's method
_MIN_START = 1e-6
_MAX_HALVINGS = 30
_MAX_STEP = 10.0  # of logarithms
_ROUNDING = 1e-13  # of the log-likelihood, relative
_RIDGE = 1e-10  # relative: the scale of each component is not identified
_MAX_PROBABILITY = 1 - 1e-12
_CLICKS, _WEIGHTS, _SLOPES, STEP, _LOGS, _NEW_LOGS, _FACTORS, _DISPLAYS = range(8)


class Workspace(NamedTuple):
    """Arrays of a fit of a table with M items and C columns.

    Attributes
    ----------
    misses, scaled
        Displays without a click, and weights of the cells as `_evaluate` writes them, shape (M, C).
    by_column
        Misses, shape (C, M).
    matrix
        Equations of a step, shape (C, C).
    of_items, of_columns
        Clicks, weights, slopes, steps, logarithms, new logarithms, factors and displays, shapes (8, M) and
        (8, C).
    is_fixed_item, is_fixed_column
        Whether a factor does not move: without clicks it is 0, and at its bound it may be 1.
    is_tail
        Whether an item is compared within itself only, shape (M,): its misses are weighted displays, then.
    edges, labels
        Of the graph of items and columns, shapes (M, C) and (C,).
    value
        Log-likelihood, shape (1,).
    is_scale_free
        Whether no factor is fixed at its bound, shape (1,).
    """

    misses: Floats
    scaled: Floats
    by_column: Floats
    matrix: Floats
    of_items: Floats
    of_columns: Floats
    is_fixed_item: Booleans
    is_fixed_column: Booleans
    is_tail: Booleans
    edges: Booleans
    labels: Indices
    value: Floats
    is_scale_free: Booleans


def make_workspace(n_items: int, n_columns: int) -> Workspace:
    """Return the arrays of a fit."""
    return Workspace(
        np.empty((n_items, n_columns)),
        np.empty((n_items, n_columns)),
        np.empty((n_columns, n_items)),
        np.empty((n_columns, n_columns)),
        np.empty((_DISPLAYS + 1, n_items)),
        np.empty((_DISPLAYS + 1, n_columns)),
        np.empty(n_items, dtype=np.bool_),
        np.empty(n_columns, dtype=np.bool_),
        np.empty(n_items, dtype=np.bool_),
        np.empty((n_items, n_columns), dtype=np.bool_),
        np.empty(n_columns, dtype=np.int64),
        np.empty(1),
        np.empty(1, dtype=np.bool_),
    )


@compiled
def _evaluate(workspace: Workspace, logs: int) -> float:
    """Move to the factors of a row of logarithms; return the log-likelihood, −∞ outside of its domain.

    Derivatives by the logarithms are written: weights w = F p / (1 − p)² of items and columns, slopes
    F p / (1 − p), and the weights of cells over the root of their sum for the item.
    """
    of_items, of_columns, scaled = workspace.of_items, workspace.of_columns, workspace.scaled
    total = 0.0
    for rows in (of_items, of_columns):
        for index in range(rows.shape[1]):
            rows[_FACTORS, index] = math.exp(rows[logs, index])
            rows[_WEIGHTS, index] = rows[_SLOPES, index] = 0.0
            if rows[_CLICKS, index] > 0.0:
                total += rows[_CLICKS, index] * rows[logs, index]
    for j in range(scaled.shape[0]):
        total += (
            _evaluate_in_tail(j, logs, workspace) if workspace.is_tail[j] else _evaluate_item(j, workspace)
        )
        if total == -np.inf:
            return total
        for c in range(scaled.shape[1]):
            of_items[_WEIGHTS, j] += scaled[j, c]
            of_columns[_WEIGHTS, c] += scaled[j, c]
        of_items[_WEIGHTS, j] = max(of_items[_WEIGHTS, j], 1e-300)
        root = math.sqrt(of_items[_WEIGHTS, j])
        for c in range(scaled.shape[1]):
            scaled[j, c] /= root
    return total


@compiled
def _evaluate_item(j: int, workspace: Workspace) -> float:
    """Write weights and slopes of the cells of an item; return Σ F ln(1 − p)."""
    misses, scaled = workspace.misses, workspace.scaled
    of_items, of_columns = workspace.of_items, workspace.of_columns
    total = 0.0
    for c in range(scaled.shape[1]):
        chance = of_columns[_FACTORS, c] * of_items[_FACTORS, j]
        scaled[j, c] = 0.0
        if misses[j, c] > 0.0 and chance > 0.0:
            if chance >= 1.0:
                return -np.inf
            chance = min(chance, _MAX_PROBABILITY)
            total += misses[j, c] * math.log1p(-chance)
            share = 1.0 / (1.0 - chance)
            slope = misses[j, c] * chance * share
            scaled[j, c] = slope * share
            of_items[_SLOPES, j] += slope
            of_columns[_SLOPES, c] += slope
    return total


@compiled
def _evaluate_in_tail(j: int, logs: int, workspace: Workspace) -> float:
    """Write weights and slopes of the cells of an item of the tail; return what its mean adds.

    Its mean is the best one for γ, and its logarithm no variable: it is kept away from the bound.
    """
    of_items, of_columns, scaled = workspace.of_items, workspace.of_columns, workspace.scaled
    looks = 0.0
    for c in range(scaled.shape[1]):
        scaled[j, c] = workspace.misses[j, c] * of_columns[_FACTORS, c]
        looks += scaled[j, c]
    mean = of_items[_CLICKS, j] / looks
    for c in range(scaled.shape[1]):
        scaled[j, c] *= mean
        of_columns[_SLOPES, c] += scaled[j, c]
    of_items[_SLOPES, j] = of_items[_CLICKS, j]
    added: float = of_items[_CLICKS, j] * (math.log(mean) - of_items[logs, j])
    of_items[logs, j] = -1.0
    return added


@compiled
def fit_tables(
    displays: Floats,
    clicks: Floats,
    start: Floats,
    has_start: bool,  # noqa: FBT001 - compiled functions have no keywords
    gamma: Floats,
    means: Floats,
    is_converged: Booleans,
    has_long_tail: Booleans,
    workspace: Workspace,
) -> None:
    """Write the factors of several tables.

    Parameters
    ----------
    displays, clicks
        Shape (N, M, C).
    start, has_start
        γ to start from, shape (N, C), if there are any.
    gamma, means
        Shapes (N, C), initially ones, and (N, M), written.
    is_converged, has_long_tail
        Whether the fits have converged, and whether items of the tail are compared within themselves, shape
        (N,), initially false, written.
    workspace
        Arrays of the fit of a table.
    """
    for i in range(displays.shape[0]):
        begin(displays[i], clicks[i], start[i], has_start, workspace)
        is_converged[i] = _maximize(workspace)
        write_factors(displays[i], clicks[i], gamma[i], means[i], workspace)
        if separate_tail(displays[i], clicks[i], workspace):
            value = workspace.value[0]
            is_maximum = _maximize(workspace)
            if workspace.value[0] - value > MAX_LOSS:
                is_converged[i], has_long_tail[i] = is_maximum, True
                write_factors(displays[i], clicks[i], gamma[i], means[i], workspace)
        scale_factors(displays[i], gamma[i], means[i], workspace)


@compiled
def _maximize(workspace: Workspace) -> bool:
    """Maximise the likelihood of a table; return if the fit has converged."""
    for _ in range(MAX_STEPS):
        if find_fixed(workspace) <= GRADIENT_TOLERANCE:
            return True
        is_blocked = True
        while is_blocked:
            _write_equations(workspace)
            _eliminate(workspace.matrix, workspace.of_columns[STEP])
            is_blocked = complete_step(workspace)
        move(workspace)
    return False


@compiled
def begin(
    displays: Floats,
    clicks: Floats,
    start: Floats,
    has_start: bool,  # noqa: FBT001
    workspace: Workspace,
) -> None:
    """Write a table to the workspace, and factors to start from.

    Parameters
    ----------
    displays, clicks
        Shape (M, C).
    start, has_start
        γ to start from, shape (C,), if there are any.
    workspace
        Written.
    """
    n_items, n_columns = displays.shape
    of_items, of_columns = workspace.of_items, workspace.of_columns
    of_items[_CLICKS, :] = 0.0
    of_columns[_CLICKS, :] = 0.0
    workspace.is_tail[:] = False
    of_columns[_DISPLAYS, :] = 0.0
    for j in range(n_items):
        for c in range(n_columns):
            shown = displays[j, c]
            clicked = min(clicks[j, c], shown)
            workspace.misses[j, c] = workspace.by_column[c, j] = shown - clicked
            of_items[_CLICKS, j] += clicked
            of_columns[_CLICKS, c] += clicked
            of_columns[_DISPLAYS, c] += shown
    for c in range(n_columns):
        of_columns[_FACTORS, c] = 0.0
        if of_columns[_DISPLAYS, c] > 0.0:
            of_columns[_FACTORS, c] = min(max(start[c], _MIN_START), 1.0) if has_start else 1.0
    _climb(workspace, 1 if has_start else _FIRST_SWEEPS)


@compiled
def separate_tail(displays: Floats, clicks: Floats, workspace: Workspace) -> bool:
    """Compare items of the tail within themselves from now on; return whether there are any with clicks.

    Parameters
    ----------
    displays, clicks
        Shape (M, C).
    workspace
        Factors of maximum likelihood; written.
    """
    n_items, n_columns = displays.shape
    of_items, of_columns = workspace.of_items, workspace.of_columns
    largest, n_clicks, n_looks, has_tail = 0.0, 0.0, 0.0, False
    for c in range(n_columns):
        largest = max(largest, of_columns[_FACTORS, c])
    for j in range(n_items):
        looks = 0.0
        for c in range(n_columns):
            looks += displays[j, c] * of_columns[_FACTORS, c] / max(largest, 1e-300)
        if looks < MIN_LOOKS:
            n_clicks, n_looks = n_clicks + of_items[_CLICKS, j], n_looks + looks
            workspace.is_tail[j] = of_items[_CLICKS, j] > 0.0
            has_tail = has_tail or workspace.is_tail[j]
    if not has_tail:
        return False
    for c in range(n_columns):
        chance = n_clicks / n_looks * of_columns[_FACTORS, c] / largest
        weight = 1.0 / (1.0 - min(chance, MAX_CHANCE))
        for j in range(n_items):
            if workspace.is_tail[j]:
                clicked = (weight - 1.0) * min(clicks[j, c], displays[j, c])
                workspace.misses[j, c] = weight * displays[j, c]
                of_items[_CLICKS, j] += clicked
                of_columns[_CLICKS, c] += clicked
    workspace.value[0] = _evaluate(workspace, _LOGS)
    return True


@compiled
def write_factors(
    displays: Floats, clicks: Floats, gamma: Floats, means: Floats, workspace: Workspace
) -> None:
    """Write γ of the columns with displays, shape (C,), and the means that are most likely with it, (M,)."""
    n_items, n_columns = displays.shape
    of_items, of_columns = workspace.of_items, workspace.of_columns
    for c in range(n_columns):
        if of_columns[_DISPLAYS, c] > 0.0:
            gamma[c] = of_columns[_FACTORS, c]
    for j in range(n_items):
        means[j] = of_items[_FACTORS, j]
        if workspace.is_tail[j]:
            n_clicks = 0.0
            for c in range(n_columns):
                clicked = min(clicks[j, c], displays[j, c])
                workspace.misses[j, c] = displays[j, c] - clicked
                n_clicks += clicked
            means[j] = maximize_factor(n_clicks, workspace.misses[j], of_columns[_FACTORS])


@compiled
def _climb(workspace: Workspace, n_sweeps: int) -> None:
    """Improve the factors by coordinate ascent from γ, and take their logarithms."""
    of_items, of_columns = workspace.of_items, workspace.of_columns
    ascend(
        workspace.by_column,
        workspace.misses,
        of_items[_CLICKS],
        of_columns[_CLICKS],
        of_columns[_FACTORS],
        of_items[_FACTORS],
        0.0,
        n_sweeps,
    )
    for rows in (of_items, of_columns):
        for index in range(rows.shape[1]):
            factor = rows[_FACTORS, index]
            rows[_LOGS, index] = math.log(factor) if rows[_CLICKS, index] > 0.0 else -np.inf
    workspace.value[0] = _evaluate(workspace, _LOGS)


@compiled
def find_fixed(workspace: Workspace) -> float:
    """Find the factors that a step does not move, and remove the fixed items from the equations.

    Returns
    -------
    float
        The largest gradient projected on the bounds, relative to the clicks of its factor.
    """
    of_items, of_columns = workspace.of_items, workspace.of_columns
    item_gradient, n_items = _find_fixed_factors(of_items, workspace.is_fixed_item)
    column_gradient, n_columns = _find_fixed_factors(of_columns, workspace.is_fixed_column)
    _remove_fixed_items(workspace)
    workspace.is_scale_free[0] = n_items + n_columns == 0
    if workspace.is_scale_free[0]:
        workspace.is_fixed_column[of_columns[_LOGS].argmax()] = True
    return max(item_gradient, column_gradient)


@compiled
def _find_fixed_factors(rows: Floats, is_fixed: Booleans) -> tuple[float, int]:
    """Return the largest projected gradient, and the number of factors that are fixed at 1."""
    largest, n_bound = 0.0, 0
    for index in range(is_fixed.size):
        clicks = rows[_CLICKS, index]
        gradient = clicks - rows[_SLOPES, index]
        is_bound = clicks > 0.0 and rows[_LOGS, index] >= 0.0 and gradient > 0.0
        is_fixed[index] = clicks <= 0.0 or is_bound
        n_bound += is_bound
        if not is_fixed[index]:
            largest = max(largest, abs(gradient) / clicks)
    return largest, n_bound


@compiled
def _remove_fixed_items(workspace: Workspace) -> None:
    for j in range(workspace.is_fixed_item.size):
        if workspace.is_fixed_item[j]:
            for c in range(workspace.is_fixed_column.size):
                workspace.scaled[j, c] = 0.0


@compiled
def _write_equations(workspace: Workspace) -> None:
    """Write the equations of the step of γ, μ eliminated."""
    scaled, matrix = workspace.scaled, workspace.matrix
    n_items, n_columns = scaled.shape
    for c in range(n_columns):
        for d in range(c + 1):
            matrix[c, d] = 0.0
    for j in range(n_items):
        if not workspace.is_fixed_item[j]:
            for c in range(n_columns):
                weight = scaled[j, c]
                if weight > 0.0:
                    for d in range(c + 1):
                        matrix[c, d] -= weight * scaled[j, d]
    for c in range(n_columns):
        for d in range(c):
            matrix[d, c] = matrix[c, d]
    complete_equations(workspace)


@compiled
def complete_equations(workspace: Workspace) -> None:
    """Add the diagonal to the equations of γ whose matrix is −Aᵀ A, A being the scaled weights.

    The right side is written to the step of γ.
    """
    scaled, matrix = workspace.scaled, workspace.matrix
    of_items, of_columns = workspace.of_items, workspace.of_columns
    n_items, n_columns = scaled.shape
    right_side = of_columns[STEP]
    for c in range(n_columns):
        right_side[c] = of_columns[_CLICKS, c] - of_columns[_SLOPES, c]
        matrix[c, c] += of_columns[_WEIGHTS, c] * (1 + _RIDGE) + 1e-12
    for j in range(n_items):
        if not workspace.is_fixed_item[j]:
            gradient = (of_items[_CLICKS, j] - of_items[_SLOPES, j]) / math.sqrt(of_items[_WEIGHTS, j])
            for c in range(n_columns):
                right_side[c] -= gradient * scaled[j, c]
    for c in range(n_columns):
        if workspace.is_fixed_column[c]:
            for d in range(n_columns):
                matrix[c, d] = matrix[d, c] = 0.0
            matrix[c, c] = 1.0
            right_side[c] = 0.0


@compiled
def complete_step(workspace: Workspace) -> bool:
    """Write the step of μ for that of γ; return whether it must be found again.

    It must if it would move factors beyond their bound of 1 at once: they are fixed, then.
    """
    of_items, of_columns, scaled = workspace.of_items, workspace.of_columns, workspace.scaled
    for j in range(of_items.shape[1]):
        of_items[STEP, j] = 0.0
        if not workspace.is_fixed_item[j]:
            moved = 0.0
            for c in range(of_columns.shape[1]):
                moved += scaled[j, c] * of_columns[STEP, c]
            gradient = of_items[_CLICKS, j] - of_items[_SLOPES, j]
            weight = of_items[_WEIGHTS, j]
            of_items[STEP, j] = (gradient - math.sqrt(weight) * moved) / weight
    is_item_blocked = _fix_blocked(of_items, workspace.is_fixed_item)
    is_column_blocked = _fix_blocked(of_columns, workspace.is_fixed_column)
    _remove_fixed_items(workspace)
    return is_item_blocked or is_column_blocked


@compiled
def _fix_blocked(rows: Floats, is_fixed: Booleans) -> bool:
    is_any = False
    for index in range(is_fixed.size):
        if not is_fixed[index] and rows[_LOGS, index] >= 0.0 and rows[STEP, index] > 0.0:
            is_fixed[index] = is_any = True
    return is_any


@compiled
def _project_step(size: float, workspace: Workspace) -> None:
    """Write the new logarithms, at most 0. Where the scale is free, the largest γ remains 1."""
    of_items, of_columns = workspace.of_items, workspace.of_columns
    shift = 0.0
    if workspace.is_scale_free[0]:
        shift = -np.inf
        for c in range(of_columns.shape[1]):
            shift = max(shift, of_columns[_LOGS, c] + size * of_columns[STEP, c])
    for c in range(of_columns.shape[1]):
        of_columns[_NEW_LOGS, c] = min(of_columns[_LOGS, c] + size * of_columns[STEP, c] - shift, 0.0)
    for j in range(of_items.shape[1]):
        of_items[_NEW_LOGS, j] = min(of_items[_LOGS, j] + size * of_items[STEP, j] + shift, 0.0)


@compiled
def _largest_step(rows: Floats) -> float:
    largest = 0.0
    for index in range(rows.shape[1]):
        if not abs(rows[STEP, index]) <= largest:  # also if it is NaN
            largest = abs(rows[STEP, index])
    return largest


@compiled
def move(workspace: Workspace) -> None:
    """Take the projected step whose part of γ solves the equations, or else one of coordinate ascent."""
    of_items, of_columns = workspace.of_items, workspace.of_columns
    value = workspace.value[0]
    size = min(1.0, _MAX_STEP / max(_largest_step(of_items), _largest_step(of_columns), 1e-300))
    for _ in range(_MAX_HALVINGS if size > 0.0 else 0):  # not if it is NaN
        _project_step(size, workspace)
        new_value = _evaluate(workspace, _NEW_LOGS)
        if new_value >= value - _ROUNDING * abs(value):
            for rows in (of_items, of_columns):
                for index in range(rows.shape[1]):
                    rows[_LOGS, index] = rows[_NEW_LOGS, index]
            workspace.value[0] = new_value
            return
        size /= 2
    workspace.value[0] = _evaluate(workspace, _LOGS)
    if not workspace.is_tail.any():
        _climb(workspace, 1)


@compiled
def scale_factors(  # noqa: C901 - loops
    displays: Floats, gamma: Floats, means: Floats, workspace: Workspace
) -> None:
    """Divide γ by the largest one of the component with the most clicks, and multiply the means by it."""
    n_items, n_columns = displays.shape
    edges, labels = workspace.edges, workspace.labels
    for c in range(n_columns):
        labels[c] = -1
        for j in range(n_items):
            edges[j, c] = displays[j, c] > 0.0 and workspace.of_items[_CLICKS, j] > 0.0
            if edges[j, c]:
                labels[c] = c
    label_columns(edges, labels)
    most, largest = -1.0, 0.0
    for label in range(n_columns):
        total, highest = 0.0, 0.0
        for c in range(n_columns):
            if labels[c] == label:
                total += workspace.of_columns[_CLICKS, c]
                highest = max(highest, gamma[c])
        if labels[label] == label and total > most:
            most, largest = total, highest
    if largest > 0.0:
        for c in range(n_columns):
            gamma[c] /= largest
        for j in range(n_items):
            means[j] *= largest


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
