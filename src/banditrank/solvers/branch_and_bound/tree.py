"""The tree of nodes: which are open, which comes next, and how a node makes two."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, inlined, internal
from banditrank.solvers.branch_and_bound.atoms import COUNT, drop_atoms, value_atom
from banditrank.solvers.branch_and_bound.branching import (
    COLUMN,
    INTERVAL,
    NONE,
    BranchingRoom,
    Split,
    branching_room,
    permits,
    split_cell,
    split_column,
    split_interval,
    split_row,
    weigh_types,
    whole,
)
from banditrank.solvers.branch_and_bound.local_search import search_near_atoms
from banditrank.solvers.branch_and_bound.relaxation import Node, confine, relax
from banditrank.solvers.branch_and_bound.task import LIVE, TARGET, VALUE, Incumbent, Task
from banditrank.utilities.formulas import MINIMUM

Floats = NDArray[np.float64]

KEPT = 16  # atoms that a node remembers
OPEN, FREE, NODES, BRANCHINGS = range(4)  # places in Tree.facts
ROWS_LEAD = 0  # place in Tree.trends

DONE, MORE, FULL = range(3)

_ASSIGNMENTS = 40  # for a node
_FIRST_ASSIGNMENTS = 4  # for a child, to tell how good a split is
_TRIALS = 12  # branchings that try both ways of splitting
_LOCAL_SEARCH = 8  # nodes between two local searches
_RETRIAL = 8  # and one in so many after that


class Tree(NamedTuple):
    """Room for nodes; ``order`` is a heap of the open ones by decreasing bound, then the free places."""

    bounds: Floats  # (P,)
    depths: NDArray[np.int64]  # (P,)
    allowed: NDArray[np.int8]  # (P, K, M)
    required: NDArray[np.int8]  # (P, M)
    guides: Floats  # (P, N)
    lows: Floats  # (P, N)
    highs: Floats  # (P, N)
    columns: NDArray[np.uint16]  # (P, KEPT, K)
    weights: Floats  # (P, KEPT)
    counts: NDArray[np.int64]  # (P,)
    heap: NDArray[np.int64]  # (P,) open nodes
    free: NDArray[np.int64]  # (P,) places without a node
    facts: NDArray[np.int64]  # (4,) open and free places; nodes and branchings so far
    trends: Floats  # (1,) by how much splitting rows has been better than columns
    room: BranchingRoom


def new_tree(n_user_types: int, n_items: int, n_positions: int, *, capacity: int) -> Tree:
    """Return room for so many nodes."""
    n, m, k, p = n_user_types, n_items, n_positions, capacity
    return Tree(
        np.zeros(p),
        np.zeros(p, dtype=np.int64),
        np.zeros((p, k, m), dtype=np.int8),
        np.zeros((p, m), dtype=np.int8),
        np.zeros((p, n)),
        np.zeros((p, n)),
        np.zeros((p, n)),
        np.zeros((p, KEPT, k), dtype=np.uint16),
        np.zeros((p, KEPT)),
        np.zeros(p, dtype=np.int64),
        np.zeros(p, dtype=np.int64),
        np.zeros(p, dtype=np.int64),
        np.zeros(4, dtype=np.int64),
        np.zeros(1),
        branching_room(n, m),
    )


@compiled
def plant(task: Task, node: Node, tree: Tree, bound: float) -> None:
    """Empty the tree but for the node in hand."""
    for place in range(tree.free.size):
        tree.free[place] = tree.free.size - 1 - place
    tree.facts[OPEN], tree.facts[FREE] = 0, tree.free.size
    tree.facts[NODES], tree.facts[BRANCHINGS] = 0, 0
    tree.trends[ROWS_LEAD] = 0.0
    place = _claim(tree)
    tree.depths[place] = 0
    _keep(task, node, tree, place, whole(), 0)
    _push(tree, place, bound)


@compiled
def explore(task: Task, incumbent: Incumbent, node: Node, tree: Tree, most: int) -> int:
    """Look at up to so many nodes, the most promising first; say whether it is DONE, or FULL."""
    limit = tree.facts[NODES] + most
    while tree.facts[OPEN] > 0:
        if tree.bounds[tree.heap[0]] <= incumbent.levels[TARGET]:
            return DONE
        if tree.facts[NODES] >= limit:
            return MORE
        if tree.facts[FREE] < 4:
            return FULL
        tree.facts[NODES] += 1
        place = _pop(tree, 0 if tree.facts[FREE] > tree.free.size // 4 else _deepest(tree))
        bound = tree.bounds[place]
        depth = tree.depths[place]
        alive = bound > incumbent.levels[TARGET] and _fetch(task, node, tree, place)
        _release(tree, place)
        if alive:
            bound = relax(task, incumbent, node, int(_ASSIGNMENTS), bound)
            if bound > -np.inf:
                if tree.facts[NODES] % _LOCAL_SEARCH == 0:
                    search_near_atoms(task, incumbent, node, 1)
                _branch(task, incumbent, node, tree, bound, depth + 1)
    return DONE


@compiled
def open_bound(tree: Tree) -> float:
    """Return the largest bound of an open node; −∞ if there is none."""
    return float(tree.bounds[tree.heap[0]]) if tree.facts[OPEN] > 0 else -np.inf


@internal
def _branch(task: Task, incumbent: Incumbent, node: Node, tree: Tree, bound: float, depth: int) -> None:
    weigh_types(task, node, tree.room)
    if task.spatial:
        split = split_interval(task, node, 0.1 * (bound - incumbent.levels[VALUE]))
        if split.kind != NONE:
            first, second = _spawn(task, node, tree, split, depth)
            _try(task, incumbent, node, tree, first, bound)
            _try(task, incumbent, node, tree, second, bound)
            return
    rows = split_row(task, node, tree.room)
    columns = rows if task.utility.code == MINIMUM else split_column(task, node, tree.room)
    if rows.kind == NONE and columns.kind == NONE:
        rows = split_cell(task, node)
        if rows.kind == NONE:  # one ranking is left, and it has been looked at
            return
        columns = rows
    elif rows.kind == NONE:
        rows = columns
    elif columns.kind == NONE:
        columns = rows
    tree.facts[BRANCHINGS] += 1
    number = tree.facts[BRANCHINGS]
    both = rows.kind != columns.kind and (number <= _TRIALS or number % _RETRIAL == 0)
    if not both:
        split = rows if rows.kind == columns.kind or tree.trends[ROWS_LEAD] >= 0.0 else columns
        first, second = _spawn(task, node, tree, split, depth)
        _try(task, incumbent, node, tree, first, bound)
        _try(task, incumbent, node, tree, second, bound)
        return
    first, second = _spawn(task, node, tree, rows, depth)
    third, fourth = _spawn(task, node, tree, columns, depth)
    by_rows = _try(task, incumbent, node, tree, first, bound)
    by_rows += _try(task, incumbent, node, tree, second, bound)
    by_columns = _try(task, incumbent, node, tree, third, bound)
    by_columns += _try(task, incumbent, node, tree, fourth, bound)
    tree.trends[ROWS_LEAD] = 0.9 * tree.trends[ROWS_LEAD] + 0.1 * (by_rows - by_columns)
    if by_rows >= by_columns:
        _withdraw(tree, third)
        _withdraw(tree, fourth)
    else:
        _withdraw(tree, first)
        _withdraw(tree, second)


@internal
def _spawn(task: Task, node: Node, tree: Tree, split: Split, depth: int) -> tuple[int, int]:
    """Make both children of the node in hand; they are not open yet."""
    first, second = _claim(tree), _claim(tree)
    _keep(task, node, tree, first, split, 0)
    _keep(task, node, tree, second, split, 1)
    tree.depths[first] = depth
    tree.depths[second] = depth
    return first, second


@internal
def _try(task: Task, incumbent: Incumbent, node: Node, tree: Tree, place: int, bound: float) -> float:
    """Bound a child and open it if something in it matters; return the logarithm of what its bound gained."""
    reached = -np.inf
    if _fetch(task, node, tree, place):
        reached = relax(task, incumbent, node, int(_FIRST_ASSIGNMENTS), bound)
    if reached == -np.inf:
        _release(tree, place)
        reached = min(bound, incumbent.levels[TARGET])
    else:
        _keep(task, node, tree, place, whole(), 0)
        _push(tree, place, reached)
    least = 1e-6 * min(bound - incumbent.levels[VALUE], 1.0)
    return float(np.log(max(min(bound - reached, 1e300), least, 1e-300)))


@internal
def _keep(task: Task, node: Node, tree: Tree, place: int, split: Split, side: int) -> None:
    """Write the node in hand to a place, as one side of a split."""
    for j in range(task.facts[LIVE]):
        tree.required[place, j] = node.required[j]
        for k in range(node.rows.size):
            permitted = node.base[k, j] > -np.inf and permits(task, split, side, k, j)
            tree.allowed[place, k, j] = 1 if permitted else 0
    if split.kind == COLUMN and side == 0:
        tree.required[place, split.item] = 1
    for i in range(node.guide.size):
        tree.guides[place, i] = node.best_guide[i]
        tree.lows[place, i] = node.envelope.low[i]
        tree.highs[place, i] = node.envelope.high[i]
    if split.kind == INTERVAL:
        if side == 0:
            tree.lows[place, split.user_type] = split.threshold
        else:
            tree.highs[place, split.user_type] = split.threshold
    atoms = node.atoms
    count = 0
    for a in range(atoms.facts[COUNT]):
        if atoms.weights[a] > 0.0 and count < KEPT:
            tree.weights[place, count] = atoms.weights[a]
            for k in range(node.rows.size):
                tree.columns[place, count, k] = atoms.columns[a, k]
            count += 1
    tree.counts[place] = count


@internal
def _fetch(task: Task, node: Node, tree: Tree, place: int) -> bool:
    """Take the node at a place in hand; return whether it can hold anything at all."""
    for j in range(task.facts[LIVE]):
        node.required[j] = tree.required[place, j]
        for k in range(node.rows.size):
            allowed = tree.allowed[place, k, j] == 1
            node.base[k, j] = task.instance.bonuses[j] if allowed else -np.inf
    for i in range(node.guide.size):
        node.guide[i] = tree.guides[place, i]
        node.best_guide[i] = tree.guides[place, i]
        node.envelope.low[i] = tree.lows[place, i]
        node.envelope.high[i] = tree.highs[place, i]
    atoms = node.atoms
    atoms.facts[COUNT] = tree.counts[place]
    for a in range(tree.counts[place]):
        atoms.weights[a] = tree.weights[place, a]
        for k in range(node.rows.size):
            atoms.columns[a, k] = tree.columns[place, a, k]
        value_atom(task, atoms, a)
    drop_atoms(atoms, node.base)
    return not task.spatial or confine(task, node)


@inlined
def _claim(tree: Tree) -> int:
    tree.facts[FREE] -= 1
    return int(tree.free[tree.facts[FREE]])


@inlined
def _release(tree: Tree, place: int) -> None:
    tree.free[tree.facts[FREE]] = place
    tree.facts[FREE] += 1


@internal
def _push(tree: Tree, place: int, bound: float) -> None:
    """Open a node."""
    tree.bounds[place] = bound
    hole = tree.facts[OPEN]
    tree.facts[OPEN] += 1
    _rise(tree, hole, place)


@internal
def _rise(tree: Tree, hole: int, place: int) -> None:
    while hole > 0:
        parent = (hole - 1) // 2
        if tree.bounds[tree.heap[parent]] >= tree.bounds[place]:
            break
        tree.heap[hole] = tree.heap[parent]
        hole = parent
    tree.heap[hole] = place


@internal
def _pop(tree: Tree, index: int) -> int:
    """Take the node at an index of the heap out of it; the first has the largest bound."""
    place = int(tree.heap[index])
    tree.facts[OPEN] -= 1
    count = tree.facts[OPEN]
    if index == count:
        return place
    moved = tree.heap[count]
    hole = index
    while True:
        child = 2 * hole + 1
        if child >= count:
            break
        if child + 1 < count and tree.bounds[tree.heap[child + 1]] > tree.bounds[tree.heap[child]]:
            child += 1
        if tree.bounds[tree.heap[child]] <= tree.bounds[moved]:
            break
        tree.heap[hole] = tree.heap[child]
        hole = child
    _rise(tree, hole, moved)
    return place


@internal
def _deepest(tree: Tree) -> int:
    """Return the index of the deepest open node: finishing it frees places soonest."""
    best = 0
    for index in range(tree.facts[OPEN]):
        if tree.depths[tree.heap[index]] > tree.depths[tree.heap[best]]:
            best = index
    return best


@internal
def _withdraw(tree: Tree, place: int) -> None:
    """Close a node again, if it is open."""
    for index in range(tree.facts[OPEN]):
        if tree.heap[index] == place:
            _release(tree, _pop(tree, index))
            return
