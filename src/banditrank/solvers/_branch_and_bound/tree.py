"""The search tree: storage of nodes, and branching."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, internal
from banditrank.solvers._branch_and_bound.atoms import MAX_STORED_ATOMS, drop_atoms, store_atoms, value_atom
from banditrank.solvers._branch_and_bound.branching import (
    COLUMN,
    INTERVAL,
    NONE,
    BranchingWorkspace,
    Split,
    new_branching_workspace,
    no_split,
    permits,
    split_cell,
    split_column,
    split_interval,
    split_row,
    weigh_types,
)
from banditrank.solvers._branch_and_bound.local_search import search_near_atoms
from banditrank.solvers._branch_and_bound.node import Node, add_slot, confine_values
from banditrank.solvers._branch_and_bound.open_nodes import (
    FREE,
    OPEN,
    OpenNodes,
    claim,
    clear,
    deepest,
    new_open_nodes,
    pop,
    push,
    release,
)
from banditrank.solvers._branch_and_bound.relaxation import Relaxer, relax_node
from banditrank.solvers._branch_and_bound.task import LIVE, TARGET, VALUE, Incumbent, Task
from banditrank.utilities._formulas import MINIMUM

Floats = NDArray[np.float64]

NODES, BRANCHINGS = range(2)  # indices of Tree.progress
ROWS_LEAD = 0  # index of Tree.trends

DONE, MORE, FULL = range(3)

_ASSIGNMENTS = 40  # for a node
_FIRST_ASSIGNMENTS = 4  # for a child, to evaluate a split (strong branching)
_TRIALS = 12  # first branchings, which try both kinds of split
_RETRIAL = 8  # every eighth branching after that tries both
_LOCAL_SEARCH = 8  # nodes between two local searches


class Tree(NamedTuple):
    """Storage of nodes at numbered places."""

    open_nodes: OpenNodes
    allowed: NDArray[np.int8]  # (P, K, M)
    required: NDArray[np.int8]  # (P, M)
    guides: Floats  # (P, N)
    lows: Floats  # (P, N)
    highs: Floats  # (P, N)
    columns: NDArray[np.uint32]  # (P, MAX_STORED_ATOMS, K)
    weights: Floats  # (P, MAX_STORED_ATOMS)
    n_atoms: NDArray[np.int64]  # (P,)
    progress: NDArray[np.int64]  # (2,) nodes and branchings so far
    trends: Floats  # (1,) lead of row splits over column splits
    family: NDArray[np.int64]  # (5,) places of a node and of its children by rows and by columns
    gains: Floats  # (5,) logarithms of the decrease of the children's bounds
    workspace: BranchingWorkspace


def new_tree(n_user_types: int, n_items: int, n_positions: int, *, capacity: int) -> Tree:
    """Allocate a tree for the given sizes and number of nodes."""
    n, m, k, p = n_user_types, n_items, n_positions, capacity
    return Tree(
        new_open_nodes(p),
        np.zeros((p, k, m), dtype=np.int8),
        np.zeros((p, m), dtype=np.int8),
        np.zeros((p, n)),
        np.zeros((p, n)),
        np.zeros((p, n)),
        np.zeros((p, MAX_STORED_ATOMS, k), dtype=np.uint32),
        np.zeros((p, MAX_STORED_ATOMS)),
        np.zeros(p, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
        np.zeros(1),
        np.zeros(5, dtype=np.int64),
        np.zeros(5),
        new_branching_workspace(n, m),
    )


@internal
def reset_tree(task: Task, node: Node, tree: Tree, bound: float) -> None:
    """Reset the tree to the current node as its root."""
    clear(tree.open_nodes)
    tree.progress[NODES], tree.progress[BRANCHINGS] = 0, 0
    tree.trends[ROWS_LEAD] = 0.0
    place = claim(tree.open_nodes, 0)
    _store_node(task, node, tree, place, no_split(), 0)
    push(tree.open_nodes, place, bound)


@internal
def explore(
    task: Task, incumbent: Incumbent, node: Node, tree: Tree, relaxer: Relaxer, max_nodes: int
) -> int:
    """Explore up to ``max_nodes`` nodes, the largest bound first; return DONE, MORE or FULL."""
    nodes = tree.open_nodes
    limit = tree.progress[NODES] + max_nodes
    while nodes.sizes[OPEN] > 0:
        if nodes.bounds[nodes.heap[0]] <= incumbent.levels[TARGET]:
            return DONE
        if tree.progress[NODES] >= limit:
            return MORE
        if nodes.sizes[FREE] < 4:
            return FULL
        tree.progress[NODES] += 1
        tree.family[0] = pop(nodes, 0 if nodes.sizes[FREE] > nodes.free.size // 4 else deepest(nodes))
        size = 1  # of the family: the node, and its children once it has any
        for member in range(tree.family.size):
            if member == size:
                break
            place = tree.family[member]
            bound = nodes.bounds[place]
            if bound > incumbent.levels[TARGET] and _load_node(task, node, tree, place):
                effort = _ASSIGNMENTS if member == 0 else _FIRST_ASSIGNMENTS
                bound = relax_node(relaxer, effort, bound)
            else:
                bound = -np.inf
            if member > 0:
                _record_child(task, incumbent, node, tree, member, bound)
            else:
                depth = nodes.depths[place] + 1
                release(nodes, place)
                if bound > -np.inf:
                    if tree.progress[NODES] % _LOCAL_SEARCH == 0:
                        search_near_atoms(task, incumbent, node, 1)
                    size += _branch(task, incumbent, node, tree, bound, depth)
        if size == tree.family.size:
            _keep_better_split(tree)
    return DONE


@compiled
def open_bound(tree: Tree) -> float:
    """Return the largest bound of an open node; −∞ if there is none."""
    nodes = tree.open_nodes
    return float(nodes.bounds[nodes.heap[0]]) if nodes.sizes[OPEN] > 0 else -np.inf


@internal
def _branch(task: Task, incumbent: Incumbent, node: Node, tree: Tree, bound: float, depth: int) -> int:
    """Create the children of the current node, and return their number: four to compare two splits."""
    weigh_types(task, node, tree.workspace)
    rows = no_split()
    if task.is_spatial:
        rows = split_interval(task, node, 0.1 * (bound - incumbent.levels[VALUE]))
    columns = rows
    if rows.kind == NONE:
        rows = split_row(task, node, tree.workspace)
        columns = rows
        if task.utility.code != MINIMUM:
            columns = split_column(task, node, tree.workspace)
        if rows.kind == NONE:
            rows = columns
        elif columns.kind == NONE:
            columns = rows
    if rows.kind == NONE:
        rows = split_cell(node)
        columns = rows
    if rows.kind == NONE:  # a single ranking is left, and it has been evaluated
        return 0
    tree.progress[BRANCHINGS] += 1
    number = tree.progress[BRANCHINGS]
    both = rows.kind != columns.kind and (number <= _TRIALS or number % _RETRIAL == 0)
    first = rows if both or rows.kind == columns.kind or tree.trends[ROWS_LEAD] >= 0.0 else columns
    children = 4 if both else 2
    for child in range(children):
        place = claim(tree.open_nodes, depth)
        _store_node(task, node, tree, place, first if child < 2 else columns, child % 2)
        tree.open_nodes.bounds[place] = bound
        tree.family[child + 1] = place
    return children


@internal
def _record_child(
    task: Task, incumbent: Incumbent, node: Node, tree: Tree, member: int, reached: float
) -> None:
    """Open a child unless it is pruned, and record the logarithm of the decrease of its bound."""
    place = tree.family[member]
    bound = tree.open_nodes.bounds[place]
    if reached == -np.inf:
        release(tree.open_nodes, place)
        reached = min(bound, incumbent.levels[TARGET])
    else:
        _store_node(task, node, tree, place, no_split(), 0)
        push(tree.open_nodes, place, reached)
    least = 1e-6 * min(bound - incumbent.levels[VALUE], 1.0)
    tree.gains[member] = np.log(max(min(bound - reached, 1e300), least, 1e-300))


@internal
def _keep_better_split(tree: Tree) -> None:
    """Close the children of the split, by rows or by columns, whose bounds decreased less."""
    lead = tree.gains[1] + tree.gains[2] - tree.gains[3] - tree.gains[4]
    tree.trends[ROWS_LEAD] = 0.9 * tree.trends[ROWS_LEAD] + 0.1 * lead
    worse = 3 if lead >= 0.0 else 1
    nodes = tree.open_nodes
    for member in range(worse, worse + 2):
        for index in range(nodes.sizes[OPEN]):
            if nodes.heap[index] == tree.family[member]:
                release(nodes, pop(nodes, index))
                break


@internal
def _store_node(task: Task, node: Node, tree: Tree, place: int, split: Split, side: int) -> None:
    """Write the current node to a place, as one side of a split."""
    for j in range(task.facts[LIVE]):
        slot = node.slots[j]
        tree.required[place, j] = node.required[slot] if slot >= 0 else 0
        for k in range(node.rows.size):
            permitted = slot >= 0 and node.base[k, slot] > -np.inf and permits(task, split, side, k, j)
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
    tree.n_atoms[place] = store_atoms(node.atoms, tree.columns[place], tree.weights[place])


@internal
def _load_node(task: Task, node: Node, tree: Tree, place: int) -> bool:
    """Load the node at a place; return False if it is infeasible."""
    for slot in range(node.n_slots[0]):  # assignments start from the prices of the previous node
        node.prices[node.active[slot]] = node.workspace.prices[slot]
    node.n_slots[0] = 0
    for j in range(task.facts[LIVE]):
        used = 0
        for k in range(node.rows.size):
            used += tree.allowed[place, k, j]
        if used == 0:
            if tree.required[place, j] == 1:
                return False
            node.slots[j] = -1
            continue
        slot = add_slot(task, node, j)
        node.required[slot] = tree.required[place, j]
        for k in range(node.rows.size):
            allowed = tree.allowed[place, k, j] == 1
            node.base[k, slot] = task.instance.bonuses[j] if allowed else -np.inf
    if node.n_slots[0] < node.rows.size:
        return False
    for i in range(node.guide.size):
        node.guide[i] = tree.guides[place, i]
        node.best_guide[i] = tree.guides[place, i]
        node.envelope.low[i] = tree.lows[place, i]
        node.envelope.high[i] = tree.highs[place, i]
    atoms = node.atoms
    atoms.n_atoms[0] = tree.n_atoms[place]
    for a in range(tree.n_atoms[place]):
        atoms.weights[a] = tree.weights[place, a]
        for k in range(node.rows.size):
            atoms.columns[a, k] = tree.columns[place, a, k]
        value_atom(task, atoms, a)
    drop_atoms(atoms, node.base, node.slots)
    return not task.is_spatial or confine_values(task, node)
