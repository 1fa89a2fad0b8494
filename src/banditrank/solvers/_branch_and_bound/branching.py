"""Branching: the split of a node that best separates the rankings in its mixture.

Forbidding one item at one position hardly lowers the bound. Splitting the items at a position by their means
to a type does (rows), and so does splitting the positions of an item by a type's preferences (columns), which
matters when all types have the same preferences.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank.solvers._branch_and_bound.atoms import slope_at
from banditrank.solvers._branch_and_bound.envelope import envelope_height
from banditrank.solvers._branch_and_bound.node import Node
from banditrank.solvers._branch_and_bound.task import LIVE, Task
from banditrank.utilities._formulas import MINIMUM, utility_of

Floats = NDArray[np.float64]

NONE, ROW, COLUMN, CELL, INTERVAL = range(5)

_MIN_WIDTH = 0.002  # of an interval to split, as a share of a type's largest value


class Split(NamedTuple):
    """A split of a node into two children; the first (side 0) has the rankings with this property.

    ROW
        The item at ``position`` has a mean to ``user_type`` above the threshold.
    COLUMN
        ``item`` is at a position whose preference of ``user_type`` is above the threshold.
    CELL
        ``item`` is at ``position``.
    INTERVAL
        The value of ``user_type`` is at least the threshold.
    """

    kind: int
    position: int
    item: int
    user_type: int
    threshold: float


class BranchingWorkspace(NamedTuple):
    """Workspace of the choice of a split."""

    bends: Floats  # (N,) curvature of each type's objective
    means: Floats  # (M, N) mean preference of an item's positions over the mixture
    squares: Floats  # (M, N) its mean square


def new_branching_workspace(n_user_types: int, n_items: int) -> BranchingWorkspace:
    """Allocate a workspace for the given sizes."""
    n, m = n_user_types, n_items
    return BranchingWorkspace(np.zeros(n), np.zeros((m, n)), np.zeros((m, n)))


@inlined
def no_split() -> Split:
    """Return the empty split."""
    return Split(int(NONE), 0, 0, 0, 0.0)


@internal
def weigh_types(task: Task, node: Node, workspace: BranchingWorkspace) -> None:
    """Write the curvature of the relaxation's objective in each type's value, at the mixture."""
    for i in range(workspace.bends.size):
        weight = task.instance.weights[i]
        if task.utility.code == MINIMUM:
            workspace.bends[i] = np.sqrt(max(0.0, node.best_guide[i])) + 1e-9
        elif task.is_spatial:
            slope, bend = slope_at(task, node.envelope, i, node.atoms.mixture[i])
            width = node.envelope.high[i] - node.envelope.low[i]
            workspace.bends[i] = weight * (bend + abs(slope) / max(width, 1e-9))
        else:
            workspace.bends[i] = weight * slope_at(task, node.envelope, i, node.atoms.mixture[i])[1]


@internal
def split_row(task: Task, node: Node, workspace: BranchingWorkspace) -> Split:
    """Return the split of a position's items that separates the mixture most, or the empty split."""
    atoms, instance = node.atoms, task.instance
    most, position, user_type, centre = 0.0, -1, 0, 0.0
    for k in range(node.rows.size):
        for i in range(workspace.bends.size):
            mean, square = 0.0, 0.0
            for a in range(atoms.n_atoms[0]):
                if atoms.weights[a] > 0.0:
                    value = instance.means[i, atoms.columns[a, k]]
                    mean += atoms.weights[a] * value
                    square += atoms.weights[a] * value * value
            variance = square - mean * mean
            look = instance.preferences[i, k]
            if variance > 1e-14 and workspace.bends[i] * look * look * variance > most:
                most = workspace.bends[i] * look * look * variance
                position, user_type, centre = k, i, mean
    if position < 0:
        return no_split()
    below, above = -np.inf, np.inf
    for a in range(atoms.n_atoms[0]):
        if atoms.weights[a] > 0.0:
            value = instance.means[user_type, atoms.columns[a, position]]
            if value <= centre:
                below = max(below, value)
            else:
                above = min(above, value)
    if not -np.inf < below < above < np.inf:
        return no_split()
    return Split(int(ROW), position, 0, user_type, 0.5 * (below + above))


@internal
def split_column(task: Task, node: Node, workspace: BranchingWorkspace) -> Split:
    """Return the split of an item's positions that separates the mixture most, or the empty split."""
    atoms, instance = node.atoms, task.instance
    n = workspace.bends.size
    for j in range(task.facts[LIVE]):
        for i in range(n):
            workspace.means[j, i] = 0.0
            workspace.squares[j, i] = 0.0
    for a in range(atoms.n_atoms[0]):
        weight = atoms.weights[a]
        if weight > 0.0:
            for k in range(node.rows.size):
                j = atoms.columns[a, k]
                for i in range(n):
                    look = instance.preferences[i, k]
                    workspace.means[j, i] += weight * look
                    workspace.squares[j, i] += weight * look * look
    most, item, user_type = 0.0, -1, 0
    for j in range(task.facts[LIVE]):
        for i in range(n):
            variance = workspace.squares[j, i] - workspace.means[j, i] * workspace.means[j, i]
            appeal = instance.means[i, j]
            if variance > 1e-14 and workspace.bends[i] * appeal * appeal * variance > most:
                most = workspace.bends[i] * appeal * appeal * variance
                item, user_type = j, i
    if item < 0:
        return no_split()
    inside, outside = False, False
    slot = node.slots[item]
    for k in range(node.rows.size):
        if instance.preferences[user_type, k] > workspace.means[item, user_type]:
            inside |= node.base[k, slot] > -np.inf
        else:
            outside |= node.base[k, slot] > -np.inf
    if not inside or (not outside and node.required[slot] == 1):
        return no_split()
    return Split(int(COLUMN), 0, item, user_type, workspace.means[item, user_type])


@internal
def split_cell(node: Node) -> Split:
    """Return the split by the cell of weight closest to one half, or by a cell of the widest position."""
    atoms = node.atoms
    best, position, item = 0.0, -1, 0
    for k in range(node.rows.size):
        for a in range(atoms.n_atoms[0]):
            share = 0.0
            for b in range(atoms.n_atoms[0]):
                if atoms.columns[b, k] == atoms.columns[a, k]:
                    share += atoms.weights[b]
            if share * (1.0 - share) > max(best, 1e-9):
                best = share * (1.0 - share)
                position, item = k, int(np.int64(atoms.columns[a, k]))
    if position >= 0:
        return Split(int(CELL), position, item, 0, 0.0)
    widest = 1
    for k in range(node.rows.size):
        width, allowed = 0, 0
        for j in range(node.n_slots[0]):
            if node.base[k, j] > -np.inf:
                width += 1
                allowed = int(np.int64(node.active[j]))
        if width > widest:
            # The item of the last assignment may have been fixed since: that split would change nothing.
            widest, position, item = width, k, allowed
    if position < 0:
        return no_split()
    return Split(int(CELL), position, item, 0, 0.0)


@internal
def split_interval(task: Task, node: Node, gap: float) -> Split:
    """Return the split of the interval whose envelope exceeds f most, if by more than the gap."""
    envelope = node.envelope
    worst, user_type = gap, -1
    for i in range(envelope.low.size):
        value = min(max(node.atoms.mixture[i], envelope.low[i]), envelope.high[i])
        above = envelope_height(envelope, i, value) - utility_of(task.utility, value)
        width = envelope.high[i] - envelope.low[i]
        if task.instance.weights[i] * above > worst and width > _MIN_WIDTH * task.ceilings[i]:
            worst, user_type = task.instance.weights[i] * above, i
    if user_type < 0:
        return no_split()
    low, high = envelope.low[user_type], envelope.high[user_type]
    value = min(max(node.atoms.mixture[user_type], low + 0.1 * (high - low)), high - 0.1 * (high - low))
    return Split(int(INTERVAL), 0, 0, user_type, value)


@inlined
def permits(task: Task, split: Split, side: int, k: int, j: int) -> bool:
    """Return whether a child allows item j at position k."""
    if split.kind == ROW and k == split.position:
        return bool(task.instance.means[split.user_type, j] > split.threshold) == (side == 0)
    if split.kind == COLUMN and j == split.item:
        return bool(task.instance.preferences[split.user_type, k] > split.threshold) == (side == 0)
    if split.kind == CELL:
        if side == 0:
            return (k == split.position) == (j == split.item)
        return k != split.position or j != split.item
    return True
