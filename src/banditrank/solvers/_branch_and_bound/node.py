"""The current node: the rankings that it allows, and the workspace of its relaxation.

A node allows some items at each position, may require items, and in spatial search confines each type's value
to an interval.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank.solvers._assignment import AssignmentWorkspace, new_assignment_workspace
from banditrank.solvers._branch_and_bound.atoms import Atoms, new_atoms
from banditrank.solvers._branch_and_bound.envelope import Envelope, fit_envelope, new_envelope
from banditrank.solvers._branch_and_bound.matrix_game import Game, new_game
from banditrank.solvers._branch_and_bound.task import LIVE, RESTRICTED, Task

Floats = NDArray[np.float64]


class Node(NamedTuple):
    """The current node. Slots are the indices of the task's columns that it allows anywhere."""

    active: NDArray[np.uintp]  # (M,) the column of each slot
    slots: NDArray[np.int64]  # (M,) the slot of each column, −1 for none
    n_slots: NDArray[np.int64]  # (1,)
    means: Floats  # (N, M) μ by slot
    base: Floats  # (K, M) by slot: bonuses of allowed cells, −∞ for others
    required: NDArray[np.int8]  # (M,) by slot: 1 for required items
    guide: Floats  # (N,) the tangent point, or the slopes themselves
    best_guide: Floats  # (N,) the guide of the best bound
    slopes: Floats  # (N,) g
    scores: Floats  # (K, M) V by slot
    rows: Floats  # (K,) dual values of the positions
    columns: NDArray[np.uintp]  # (K,) the optimal assignment
    prices: Floats  # (M,) by column: final prices of the previous node
    size: Floats  # (1,) the sum of the slopes that the prices belong to
    workspace: AssignmentWorkspace
    envelope: Envelope
    game: Game
    atoms: Atoms


def new_node(n_user_types: int, n_items: int, n_positions: int, *, is_spatial: bool) -> Node:
    """Allocate a node for the given sizes."""
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
    """Load the root node, which allows every ranking of the task."""
    node.n_slots[0] = 0
    for j in range(task.facts[LIVE]):
        node.prices[j] = 0.0
        slot = add_slot(task, node, j)
        for k in range(node.rows.size):
            node.base[k, slot] = task.instance.bonuses[j]
        if task.facts[RESTRICTED] == 1:
            for k in range(node.rows.size):
                if task.allowed[k, j] == 0:
                    node.base[k, slot] = -np.inf
    node.atoms.n_atoms[0] = 0
    if task.is_spatial:
        for i in range(node.guide.size):
            node.envelope.low[i] = 0.0
            node.envelope.high[i] = np.inf
        confine_values(task, node)


@inlined
def add_slot(task: Task, node: Node, column: int) -> int:
    """Add a slot for a column of the task, and return it."""
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
    """Confine each type's value to the range of the allowed cells; return False if an interval is empty."""
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
