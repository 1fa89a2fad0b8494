"""Dependent rounding: draw a ranking from a lottery that is given by the probability of each cell.

Probabilities X_kj of an item at a position form a lottery if each position shows one item, Σ_j X_kj = 1, and
no item is shown more often than always, Σ_k X_kj ≤ 1. A ranking with these probabilities is drawn by
dependent rounding (Gandhi, Khuller, Parthasarathy and Srinivasan 2006): along a cycle of cells, or a path
between items that are not shown for certain, probability moves from every other cell to the cells between
them, or the other way, so that each cell keeps its expectation. Each step decides at least one cell.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, inlined, internal

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]
Integers = NDArray[np.int64]

_DECIDED = 1e-9  # distance to 0 or 1 at which a cell is decided


class LotteryWorkspace(NamedTuple):
    """Workspace of `draw_from_lottery`."""

    left: Floats  # (K, M) probabilities that are not rounded yet
    open_cells: Integers  # (M,) undecided cells of each item
    path: Integers  # (2 K + 2, 2) cells of the path: position and item
    step_of_position: Integers  # (K,) index in the path at which a position is entered; −1 if it is not
    step_of_item: Integers  # (M,)


def init_lottery_workspace(n_items: int, n_positions: int) -> LotteryWorkspace:
    """Return a workspace for a size of problem."""
    m, k = n_items, n_positions
    return LotteryWorkspace(
        np.zeros((k, m)),
        np.zeros(m, dtype=np.int64),
        np.zeros((2 * k + 2, 2), dtype=np.int64),
        np.zeros(k, dtype=np.int64),
        np.zeros(m, dtype=np.int64),
    )


@inlined
def _is_open(probability: float) -> bool:
    return _DECIDED < probability < 1.0 - _DECIDED


@compiled
def draw_from_lottery(
    lottery: Floats, workspace: LotteryWorkspace, rng: np.random.Generator, ranking: Indices
) -> None:
    """Draw a ranking that shows item j at position k with probability ``lottery[k, j]``, shape (K, M).

    Examples
    --------
    >>> ranking = np.zeros(2, dtype=np.uintp)
    >>> lottery = np.array([[0.5, 0.5, 0.0], [0.5, 0.25, 0.25]])
    >>> draw_from_lottery(lottery, init_lottery_workspace(3, 2), np.random.default_rng(1), ranking)
    >>> len(set(ranking.tolist()))
    2
    """
    left = workspace.left
    for k in range(left.shape[0]):
        for j in range(left.shape[1]):
            left[k, j] = lottery[k, j]
    for k in range(left.shape[0]):
        for other in range(k):
            _round_pair(left, k, other, rng)
    for j in range(left.shape[1]):
        workspace.open_cells[j] = 0
        for k in range(left.shape[0]):
            workspace.open_cells[j] += _is_open(left[k, j])
    start = _next_item(workspace.open_cells)
    while start >= 0:
        _round_path(workspace, start, rng)
        start = _next_item(workspace.open_cells)
    _read_ranking(workspace, ranking)


@inlined
def _next_item(open_cells: Integers) -> int:
    """Return an item with one open cell, or else with several; −1 if all cells are decided."""
    item = -1
    for j in range(open_cells.size):
        if open_cells[j] == 1:
            return j
        if open_cells[j] > 1:
            item = j
    return item


@inlined
def _read_ranking(workspace: LotteryWorkspace, ranking: Indices) -> None:
    """Write the ranking of decided cells; ``open_cells`` then marks the items that are shown."""
    for k in range(ranking.size):
        best = -1
        for j in range(workspace.open_cells.size):
            is_free = workspace.open_cells[j] == 0
            if is_free and (best < 0 or workspace.left[k, j] > workspace.left[k, best]):
                best = j
        workspace.open_cells[best] = 1
        ranking[k] = best


@internal
def _round_pair(left: Floats, k: int, other: int, rng: np.random.Generator) -> None:
    """Round cycles of two positions and two items until the positions share at most one open item."""
    first = -1
    for j in range(left.shape[1]):
        if not (_is_open(left[k, j]) and _is_open(left[other, j])):
            continue
        if first < 0:
            first = j
            continue
        up = min(1.0 - left[k, first], left[k, j], left[other, first], 1.0 - left[other, j])
        down = min(left[k, first], 1.0 - left[k, j], 1.0 - left[other, first], left[other, j])
        shift = up if rng.random() * (up + down) < down else -down
        left[k, first] += shift
        left[k, j] -= shift
        left[other, first] -= shift
        left[other, j] += shift
        if not (_is_open(left[k, first]) and _is_open(left[other, first])):
            first = j if _is_open(left[k, j]) and _is_open(left[other, j]) else -1


@internal
def _round_path(workspace: LotteryWorkspace, start: int, rng: np.random.Generator) -> None:
    """Round a path or a cycle of open cells, from an item with one open cell if there is any."""
    left, path = workspace.left, workspace.path
    first, length = _find_path(workspace, start)
    if (length - first) % 2 == 1:  # rounding errors have left a position with one open cell
        k, j = path[length - 1, 0], path[length - 1, 1]
        left[k, j] = 1.0 if left[k, j] > 0.5 else 0.0
        workspace.open_cells[j] -= 1
        return
    up = down = 1.0
    for step in range(first, length):
        probability = left[path[step, 0], path[step, 1]]
        if (step - first) % 2 == 0:
            up, down = min(up, 1.0 - probability), min(down, probability)
        else:
            up, down = min(up, probability), min(down, 1.0 - probability)
    shift = up if rng.random() * (up + down) < down else -down
    for step in range(first, length):
        k, j = path[step, 0], path[step, 1]
        left[k, j] += shift if (step - first) % 2 == 0 else -shift
        workspace.open_cells[j] -= not _is_open(left[k, j])


@inlined
def _find_path(workspace: LotteryWorkspace, start: int) -> tuple[int, int]:
    """Write a walk over open cells that ends at a dead end or closes a cycle; return the part to round."""
    path = workspace.path
    for k in range(workspace.step_of_position.size):
        workspace.step_of_position[k] = -1
    for j in range(workspace.step_of_item.size):
        workspace.step_of_item[j] = -1
    length, item, position = 0, start, -1
    while True:
        workspace.step_of_item[item] = length
        position = _other_position(workspace.left, item, position)
        if position < 0:
            return 0, length  # the item ends the path
        path[length, 0], path[length, 1] = position, item
        length += 1
        if workspace.step_of_position[position] >= 0:
            return workspace.step_of_position[position], length
        workspace.step_of_position[position] = length  # the cell by which the position is left
        item = _other_item(workspace.left, position, item)
        if item < 0:
            return 0, length
        path[length, 0], path[length, 1] = position, item
        length += 1
        if workspace.step_of_item[item] >= 0:
            return workspace.step_of_item[item], length


@inlined
def _other_position(left: Floats, item: int, position: int) -> int:
    """Return another position where the item has an open cell; −1 if there is none."""
    for k in range(left.shape[0]):
        if k != position and _is_open(left[k, item]):
            return k
    return -1


@inlined
def _other_item(left: Floats, position: int, item: int) -> int:
    """Return another item with an open cell at the position; −1 if there is none."""
    for j in range(left.shape[1]):
        if j != item and _is_open(left[position, j]):
            return j
    return -1
