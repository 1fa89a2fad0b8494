"""The bound of a node: how much any ranking that the node allows can be worth.

A node allows some items at each position, may require some to be shown, and for spatial search confines each
type's value to an interval. Cells that no better ranking uses are ruled out along the way.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined, internal
from banditrank.solvers.assignment import AssignmentRoom, assign, assignment_room
from banditrank.solvers.branch_and_bound.atoms import (
    COUNT,
    Atoms,
    add_atom,
    drop_atoms,
    improve_mixture,
    new_atoms,
    slope_at,
)
from banditrank.solvers.branch_and_bound.bounds import Tangent, bound_at, total_at
from banditrank.solvers.branch_and_bound.envelope import (
    GRID,
    Envelope,
    conjugate,
    fit_envelope,
    most_between,
    new_envelope,
)
from banditrank.solvers.branch_and_bound.matrix_game import Game, new_game, play
from banditrank.solvers.branch_and_bound.task import LIVE, PLAIN, TARGET, VALUE, Incumbent, Task, consider
from banditrank.utilities.formulas import LOGARITHM, MINIMUM, POWER, slope_of, utility_of

Floats = NDArray[np.float64]

SLOTS = 0  # place in Node.facts

_CLOSE = 0.1  # how much of the mixture's lead over the best ranking the bound may add before branching
_CLOSE_MAXIMIN = 0.6


class Node(NamedTuple):
    """The node in hand. Its slots number the columns of the task that it allows anywhere."""

    active: NDArray[np.uintp]  # (M,) the column of each slot
    slots: NDArray[np.int64]  # (M,) the slot of each column, −1 for none
    facts: NDArray[np.int64]  # (1,) how many slots there are
    means: Floats  # (N, M) μ by slot
    base: Floats  # (K, M) by slot: bonuses where an item may stand, −∞ where not
    required: NDArray[np.int8]  # (M,) by slot: 1 for items that must be shown
    guide: Floats  # (N,) where slopes are taken: a tangent point, or the slopes themselves
    best_guide: Floats  # (N,) that of the best bound
    slopes: Floats  # (N,) g
    scores: Floats  # (K, M) V by slot
    rows: Floats  # (K,) what a position is worth at the prices of the items
    columns: NDArray[np.uintp]  # (K,) the best assignment
    room: AssignmentRoom
    envelope: Envelope
    game: Game
    atoms: Atoms


def new_node(n_user_types: int, n_items: int, n_positions: int, *, spatial: bool) -> Node:
    """Return room for nodes of a size."""
    n, m, k = n_user_types, n_items, n_positions
    return Node(
        np.zeros(m, dtype=np.uintp),
        np.zeros(m, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros((n, m)),
        np.zeros((k, m)),
        np.zeros(m, dtype=np.int8),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros((k, m)),
        np.zeros(k),
        np.zeros(k, dtype=np.uintp),
        assignment_room(m, k),
        new_envelope(n, spatial=spatial),
        new_game(n),
        new_atoms(n, k),
    )


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
        tangent = _aim(task, node, min(1e-3, 0.05 * abs(bound - incumbent.levels[TARGET])))
        total = _price(task, node)
        if total == -np.inf:
            return -np.inf
        consider(task, incumbent, node.columns)
        reached = bound_at(task.utility, tangent, total)
        if reached < lowest:
            lowest = reached
            bound = min(bound, reached)
            for i in range(node.guide.size):
                node.best_guide[i] = node.guide[i]
        target = incumbent.levels[TARGET]
        if bound <= target:
            return -np.inf
        critical = total_at(task.utility, tangent, target)
        if _rule_out(node, total - critical):
            drop_atoms(node.atoms, node.base, node.slots)
        if task.spatial and not _tighten(task, node, reached - target):
            return -np.inf
        new = add_atom(task, node.atoms, node.columns)
        if minimum:
            height = play(node.game, node.atoms)
            for i in range(node.guide.size):
                node.guide[i] = 0.3 * node.best_guide[i] + 0.7 * node.game.prices[i]
        else:
            tolerance = 0.1 * (lowest - max(height, incumbent.levels[VALUE])) if new else 0.1 * tolerance
            height = improve_mixture(task, node.envelope, node.atoms, min(tolerance, 0.1 * abs(bound)))
            _point(task, node)
        if bound - height <= close * (height - incumbent.levels[VALUE]):
            break
    return bound


@inlined
def _point(task: Task, node: Node) -> None:
    """Take the next slopes at the mixture."""
    for i in range(node.guide.size):
        value = node.atoms.mixture[i]
        if task.spatial:
            slope = task.instance.weights[i] * slope_at(task, node.envelope, i, value)[0]
            node.guide[i] = 0.7 * slope + 0.3 * node.best_guide[i]
        else:
            node.guide[i] = max(0.7 * value + 0.3 * node.best_guide[i], task.floors[i])


@internal
def _aim(task: Task, node: Node, enough: float) -> Tangent:
    """Write the slopes at the guide, and return what bounds follow from them."""
    weights = task.instance.weights
    height, lift = 0.0, 0.0
    if task.utility.code == MINIMUM:
        for i in range(weights.size):
            node.slopes[i] = node.guide[i]
        return Tangent(0.0, 0.0, False)
    if task.spatial:
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
    scales = task.facts[PLAIN] == 1 and task.utility.code in (LOGARITHM, POWER)
    return Tangent(height, lift, scales)


@internal
def _price(task: Task, node: Node) -> float:
    """Find the best assignment at the slopes; return a bound that its prices prove, −∞ if there is none.

    For any prices v ≥ 0 of items, no assignment exceeds Σ_k max_j (V_kj − v_j) + Σ_j v_j. Items that must be
    shown may have a negative price; they are made to be shown by adding a large amount to their scores, which
    is taken off again.
    """
    instance, scores, prices = task.instance, node.scores, node.room.prices
    live, n_positions = node.facts[SLOTS], scores.shape[0]
    required, largest = 0, 0.0
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
    if assign(scores, live, node.room, node.columns) == -np.inf:
        return -np.inf
    bound = 0.0
    for j in range(live):
        bound += prices[j]
        if node.required[j] == 1:
            if node.room.position_of[j] < 0:
                return -np.inf
            bound -= extra
    for k in range(n_positions):
        row = -np.inf
        for j in range(live):
            row = max(row, scores[k, j] - prices[j])
        node.rows[k] = row
        bound += row
        node.columns[k] = node.active[node.columns[k]]
    return bound


@internal
def _rule_out(node: Node, slack: float) -> bool:
    """Rule out the cells that cost an assignment more than the slack; return whether there were any."""
    prices = node.room.prices
    found = False
    for k in range(node.rows.size):
        most = node.rows[k] - slack
        for j in range(node.facts[SLOTS]):
            if node.scores[k, j] - prices[j] <= most and node.base[k, j] > -np.inf:
                node.base[k, j] = -np.inf
                found = True
    return found


@internal
def _tighten(task: Task, node: Node, slack: float) -> bool:
    """Shrink the intervals to values at which a type loses no more than the slack; False if one vanishes."""
    envelope = node.envelope
    for i in range(envelope.low.size):
        weight, slope, heights = task.instance.weights[i], node.slopes[i], envelope.heights[i]
        low, high = envelope.low[i], envelope.high[i]
        width = (high - low) / GRID
        least = envelope.conjugates[i] - slack
        first, last = 0, GRID
        while first < last and _cell_is_below(task, weight, slope, low, width, heights, first, least):
            first += 1
        while last > first and _cell_is_below(task, weight, slope, low, width, heights, last - 1, least):
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
def _cell_is_below(
    task: Task, weight: float, slope: float, low: float, width: float, heights: Floats, c: int, least: float
) -> bool:
    a = low + c * width
    at_most = most_between(task.utility, weight, slope, a, a + width, heights[c], heights[c + 1])
    return at_most < least


@internal
def open_node(task: Task, node: Node) -> None:
    """Make the node that allows every ranking."""
    node.facts[SLOTS] = 0
    for j in range(task.facts[LIVE]):
        slot = add_slot(task, node, j)
        for k in range(node.rows.size):
            node.base[k, slot] = task.instance.bonuses[j]
    node.atoms.facts[COUNT] = 0
    if task.spatial:
        for i in range(node.guide.size):
            node.envelope.low[i] = 0.0
            node.envelope.high[i] = np.inf
        confine(task, node)


@inlined
def add_slot(task: Task, node: Node, column: int) -> int:
    """Give a column of the task a slot, and return it."""
    slot = node.facts[SLOTS]
    node.facts[SLOTS] = slot + 1
    node.active[slot] = column
    node.slots[column] = slot
    node.required[slot] = 0
    node.room.prices[slot] = 0.0
    for i in range(node.guide.size):
        node.means[i, slot] = task.instance.means[i, column]
    return int(slot)


@internal
def confine(task: Task, node: Node) -> bool:
    """Confine each type's value to what the allowed cells can give; False if nothing is left."""
    instance, envelope = task.instance, node.envelope
    for i in range(envelope.low.size):
        low, high = 0.0, 0.0
        for k in range(node.rows.size):
            least, most = np.inf, -np.inf
            for j in range(node.facts[SLOTS]):
                if node.base[k, j] > -np.inf:
                    least = min(least, node.means[i, j])
                    most = max(most, node.means[i, j])
            low += instance.preferences[i, k] * least
            high += instance.preferences[i, k] * most
        low = max(low * (1.0 - 1e-12), envelope.low[i])
        high = min(high * (1.0 + 1e-12), envelope.high[i])
        if low > high:
            return False
        envelope.low[i], envelope.high[i] = low, high
        fit_envelope(task.utility, envelope, i)
    return True
