"""The bound of a node: how much any ranking that the node allows can be worth.

Cells that no better ranking uses are ruled out along the way.
"""

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined, internal
from banditrank.solvers.assignment import assign
from banditrank.solvers.branch_and_bound.atoms import add_atom, drop_atoms, improve_mixture, slope_at
from banditrank.solvers.branch_and_bound.bounds import ROUNDING, Tangent, bound_at, total_at
from banditrank.solvers.branch_and_bound.envelope import GRID, conjugate, fit_envelope, upper_bound_between
from banditrank.solvers.branch_and_bound.matrix_game import solve_game
from banditrank.solvers.branch_and_bound.node import Node
from banditrank.solvers.branch_and_bound.task import PLAIN, TARGET, VALUE, Incumbent, Task, update_incumbent
from banditrank.utilities.formulas import LOGARITHM, MINIMUM, POWER, slope_of, utility_of

Floats = NDArray[np.float64]

_CLOSE = 0.1  # how much of the mixture's lead over the best ranking the bound may add before branching
_CLOSE_MAXIMIN = 0.6


@internal
def relax(task: Task, incumbent: Incumbent, node: Node, most: int, bound: float) -> float:
    """Return a bound on what the node allows, not above ``bound``, or −∞ if nothing in it matters.

    At most ``most`` assignments are solved; every one is a ranking that may become the incumbent.
    """
    minimum = task.utility.code == MINIMUM
    close = _CLOSE_MAXIMIN if minimum else _CLOSE
    lowest, height = np.inf, -np.inf
    tolerance = np.inf
    for _ in range(most):
        tangent = _take_tangent(task, node, min(1e-3, 0.05 * abs(bound - incumbent.levels[TARGET])))
        total = _solve_assignment(task, node)
        if total == -np.inf:
            return -np.inf
        update_incumbent(task, incumbent, node.columns)
        reached = bound_at(task.utility, tangent, total, node.guide.size)
        if reached < lowest:
            lowest = reached
            bound = min(bound, reached)
            for i in range(node.guide.size):
                node.best_guide[i] = node.guide[i]
        target = incumbent.levels[TARGET]
        if bound <= target:
            return -np.inf
        critical = total_at(task.utility, tangent, target, node.guide.size)
        if _fix_cells(node, total - critical):
            drop_atoms(node.atoms, node.base, node.slots)
        if task.is_spatial and not _tighten_intervals(task, node, reached - target):
            return -np.inf
        new = add_atom(task, node.atoms, node.columns)
        if minimum:
            height = solve_game(node.game, node.atoms)
            for i in range(node.guide.size):
                node.guide[i] = 0.3 * node.best_guide[i] + 0.7 * node.game.prices[i]
        else:
            tolerance = 0.1 * (lowest - max(height, incumbent.levels[VALUE])) if new else 0.1 * tolerance
            height = improve_mixture(task, node.envelope, node.atoms, min(tolerance, 0.1 * abs(bound)))
            _move_guide(task, node)
        if bound - height <= close * (height - incumbent.levels[VALUE]):
            break
    return bound


@inlined
def _move_guide(task: Task, node: Node) -> None:
    """Take the next slopes at the mixture."""
    for i in range(node.guide.size):
        value = node.atoms.mixture[i]
        if task.is_spatial:
            slope = task.instance.weights[i] * slope_at(task, node.envelope, i, value)[0]
            node.guide[i] = 0.7 * slope + 0.3 * node.best_guide[i]
        else:
            node.guide[i] = max(0.7 * value + 0.3 * node.best_guide[i], task.floors[i])


@internal
def _take_tangent(task: Task, node: Node, enough: float) -> Tangent:
    """Write the slopes at the guide, and return what bounds follow from them."""
    weights = task.instance.weights
    height, lift = 0.0, 0.0
    if task.utility.code == MINIMUM:
        for i in range(weights.size):
            node.slopes[i] = node.guide[i]
        return Tangent(0.0, 0.0, False)
    if task.is_spatial:
        for i in range(weights.size):
            node.slopes[i] = node.guide[i]
            share = enough / weights.size
            at_most = conjugate(task.utility, weights[i], node.guide[i], node.envelope, i, share)
            node.envelope.conjugates[i] = at_most
            height += at_most
        return Tangent(height, 0.0, False)
    for i in range(weights.size):
        slope = weights[i] * slope_of(task.utility, node.guide[i])
        node.slopes[i] = slope
        height += weights[i] * utility_of(task.utility, node.guide[i])
        lift += slope * node.guide[i]
    if not (-np.inf < height < np.inf and -np.inf < lift < np.inf):  # a function of one's own gave no number
        for i in range(weights.size):
            node.slopes[i] = 0.0
        return Tangent(np.inf, 0.0, False)
    is_scalable = task.facts[PLAIN] == 1 and task.utility.code in (LOGARITHM, POWER)
    return Tangent(height, lift, is_scalable)


@internal
def _solve_assignment(task: Task, node: Node) -> float:
    """Find the best assignment at the slopes; return a bound that its prices prove, −∞ if there is none.

    For any prices v ≥ 0 of items, no assignment exceeds Σ_k max_j (V_kj − v_j) + Σ_j v_j. Items that must be
    shown may have a negative price; they are made to be shown by adding a large amount to their scores, which
    is taken off again.
    """
    instance, scores, prices = task.instance, node.scores, node.workspace.prices
    live, n_positions = node.n_slots[0], scores.shape[0]
    _reset_prices_of_another_scale(node)
    required, largest, extra = 0, 0.0, 0.0
    for j in range(live):
        required += node.required[j]
    for k in range(n_positions):
        for j in range(live):
            scores[k, j] = node.base[k, j]
        for i in range(node.slopes.size):
            weight = node.slopes[i] * instance.preferences[i, k]
            for j in range(live):
                scores[k, j] += weight * node.means[i, j]
    if required > 0:
        for k in range(n_positions):
            for j in range(live):
                if scores[k, j] > -np.inf:
                    largest = max(largest, abs(scores[k, j]))
        extra = 2.0 * n_positions * largest + 1.0
        for j in range(live):
            if node.required[j] == 1:
                for k in range(n_positions):
                    scores[k, j] += extra
    if assign(scores, live, node.workspace, node.columns) == -np.inf:
        return -np.inf
    bound, size = 0.0, required * extra
    for j in range(live):
        bound += prices[j]
        size += prices[j]
        if node.required[j] == 1:
            if node.workspace.position_of[j] < 0:
                return -np.inf
            bound -= extra
    for k in range(n_positions):
        row = -np.inf
        for j in range(live):
            row = max(row, scores[k, j] - prices[j])
        node.rows[k] = row
        bound += row
        size += abs(row)
        node.columns[k] = node.active[node.columns[k]]
    return float(bound + (n_positions + node.slopes.size + 8) * ROUNDING * size)


@inlined
def _reset_prices_of_another_scale(node: Node) -> None:
    """Start from no prices if the slopes are much steeper or flatter than those that the prices are for.

    Prices far above the scores would leave nothing of them but rounding errors.
    """
    size = 0.0
    for i in range(node.slopes.size):
        size += node.slopes[i]
    if not 0.25 * node.size[0] <= size <= 4.0 * node.size[0]:
        for j in range(node.prices.size):
            node.prices[j] = 0.0
            node.workspace.prices[j] = 0.0
        node.size[0] = size


@internal
def _fix_cells(node: Node, slack: float) -> bool:
    """Rule out the cells that cost an assignment more than the slack; return whether there were any."""
    prices = node.workspace.prices
    found = False
    for k in range(node.rows.size):
        most = node.rows[k] - slack
        for j in range(node.n_slots[0]):
            if node.scores[k, j] - prices[j] <= most and node.base[k, j] > -np.inf:
                node.base[k, j] = -np.inf
                found = True
    return found


@internal
def _tighten_intervals(task: Task, node: Node, slack: float) -> bool:
    """Shrink the intervals to values at which a type loses no more than the slack; False if one vanishes."""
    envelope = node.envelope
    for i in range(envelope.low.size):
        weight, slope, heights = task.instance.weights[i], node.slopes[i], envelope.heights[i]
        low, high = envelope.low[i], envelope.high[i]
        width = (high - low) / GRID
        least = envelope.conjugates[i] - slack
        first, last = 0, GRID
        while first < last and _is_cell_below(task, weight, slope, low, width, heights, first, least):
            first += 1
        while last > first and _is_cell_below(task, weight, slope, low, width, heights, last - 1, least):
            last -= 1
        if first == last:
            return False
        if last - first < GRID:
            # Rounding must not shave off what was not excluded.
            if first > 0:
                envelope.low[i] = (low + first * width) * (1.0 - 1e-12)
            if last < GRID:
                envelope.high[i] = (low + last * width) * (1.0 + 1e-12)
            fit_envelope(task.utility, envelope, i)
    return True


@inlined
def _is_cell_below(
    task: Task, weight: float, slope: float, low: float, width: float, heights: Floats, c: int, least: float
) -> bool:
    a = low + c * width
    at_most = upper_bound_between(task.utility, weight, slope, a, a + width, heights[c], heights[c + 1])
    return at_most < least
