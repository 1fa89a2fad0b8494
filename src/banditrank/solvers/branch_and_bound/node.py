"""The node in hand: which rankings it allows, and the room that bounding it needs.

A node allows some items at each position, may require some to be shown, and for spatial search confines each
type's value to an interval.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined, internal
from banditrank.solvers.assignment import AssignmentWorkspace, new_assignment_workspace
from banditrank.solvers.branch_and_bound.atoms import Atoms, new_atoms
from banditrank.solvers.branch_and_bound.envelope import Envelope, fit_envelope, new_envelope
from banditrank.solvers.branch_and_bound.matrix_game import Game, new_game
from banditrank.solvers.branch_and_bound.task import LIVE, Task

Floats = NDArray[np.float64]


class Node(NamedTuple):
    """The node in hand. Its slots number the columns of the task that it allows anywhere."""

    active: NDArray[np.uintp]  # (M,) the column of each slot
    slots: NDArray[np.int64]  # (M,) the slot of each column, −1 for none
    n_slots: NDArray[np.int64]  # (1,)
    means: Floats  # (N, M) μ by slot
    base: Floats  # (K, M) by slot: bonuses where an item may stand, −∞ where not
    required: NDArray[np.int8]  # (M,) by slot: 1 for items that must be shown
    guide: Floats  # (N,) where slopes are taken: a tangent point, or the slopes themselves
    best_guide: Floats  # (N,) that of the best bound
    slopes: Floats  # (N,) g
    scores: Floats  # (K, M) V by slot
    rows: Floats  # (K,) what a position is worth at the prices of the items
    columns: NDArray[np.uintp]  # (K,) the best assignment
    prices: Floats  # (M,) by column: what assignments in the node in hand before ended with
    size: Floats  # (1,) of the slopes that the prices are for: their sum
    workspace: AssignmentWorkspace
    envelope: Envelope
    game: Game
    atoms: Atoms


def new_node(n_user_types: int, n_items: int, n_positions: int, *, is_spatial: bool) -> Node:
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
        np.zeros(m),
        np.zeros(1),
        new_assignment_workspace(m, k),
        new_envelope(n, is_spatial=is_spatial),
        new_game(n),
        new_atoms(n, k),
    )


@internal
def load_root(task: Task, node: Node) -> None:
    """Make the node that allows every ranking."""
    node.n_slots[0] = 0
    for j in range(task.facts[LIVE]):
        node.prices[j] = 0.0
        slot = add_slot(task, node, j)
        for k in range(node.rows.size):
            node.base[k, slot] = task.instance.bonuses[j]
    node.atoms.n_atoms[0] = 0
    if task.is_spatial:
        for i in range(node.guide.size):
            node.envelope.low[i] = 0.0
            node.envelope.high[i] = np.inf
        confine_values(task, node)


@inlined
def add_slot(task: Task, node: Node, column: int) -> int:
    """Give a column of the task a slot, and return it."""
    slot = node.n_slots[0]
    node.n_slots[0] = slot + 1
    node.active[slot] = column
    node.slots[column] = slot
    node.required[slot] = 0
    node.workspace.prices[slot] = node.prices[column]
    for i in range(node.guide.size):
        node.means[i, slot] = task.instance.means[i, column]
    return int(slot)


@internal
def confine_values(task: Task, node: Node) -> bool:
    """Confine each type's value to what the allowed cells can give; False if nothing is left."""
    instance, envelope = task.instance, node.envelope
    for i in range(envelope.low.size):
        low, high = 0.0, 0.0
        for k in range(node.rows.size):
            least, most = np.inf, -np.inf
            for j in range(node.n_slots[0]):
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
