"""Branch and bound of one instance: root relaxation, local search, tree.

The same formulas serve `solve` and, with preallocated workspaces, the simulation loop.
"""

import time
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, internal
from banditrank.model._rankings import Ranking
from banditrank.solvers._branch_and_bound.atoms import MAX_STORED_ATOMS, drop_atoms
from banditrank.solvers._branch_and_bound.local_search import search_near_atoms, search_nearby
from banditrank.solvers._branch_and_bound.node import Node, add_slot, load_root, new_node
from banditrank.solvers._branch_and_bound.relaxation import (
    RelaxationState,
    new_relaxation_state,
    relax,
    restore_relaxation,
    store_relaxation,
)
from banditrank.solvers._branch_and_bound.task import (
    LIVE,
    TARGET,
    VALUE,
    Incumbent,
    Task,
    load_instance,
    new_incumbent,
    new_task,
    reset_incumbent,
    update_incumbent,
)
from banditrank.solvers._branch_and_bound.tree import (
    MORE,
    NODES,
    Tree,
    explore,
    new_tree,
    open_bound,
    reset_tree,
)
from banditrank.solvers._instance import Instance, values_of
from banditrank.solvers._solver import Progress, Solver, SolverOptions, SolverResult
from banditrank.utilities._formulas import CUSTOM, MINIMUM
from banditrank.utilities._utility import NASH, Utility

Floats = NDArray[np.float64]

_ROOT_ASSIGNMENTS = 60  # between two checks of the deadline
_GAP_MARGIN = 0.9  # share of the target gap, so that rounding cannot exceed it
_MIN_PROGRESS = 0.02  # relative to the gap, to refine the root bound again
_NODES_PER_CHECK = 8  # between two checks of the deadline
_MAX_TREE_BYTES = 256_000_000


class Search(NamedTuple):
    """The workspace of successive searches."""

    task: Task
    incumbent: Incumbent
    node: Node
    relaxation: RelaxationState


def new_search(n_user_types: int, n_items: int, n_positions: int, utility: Utility) -> Search:
    """Allocate a search for the given sizes."""
    n, m, k = n_user_types, n_items, n_positions
    is_spatial = utility.shape == "non-concave"
    return Search(
        new_task(n, m, k, utility.compiled(), is_spatial=is_spatial),
        new_incumbent(n, k),
        new_node(n, m, k, is_spatial=is_spatial),
        new_relaxation_state(n, k),
    )


@compiled
def start_search(
    search: Search, instance: Instance, start: NDArray[np.uintp], gap: float, aside: float
) -> None:
    """Load an instance and a starting ranking.

    Every type must have a positive weight and an item of positive value. ``aside`` is the constant utility of
    the other types: the allowed ``gap`` is relative to the sum of both.
    """
    task, incumbent, node, _ = search
    load_instance(task, instance)
    reset_incumbent(incumbent, gap, aside)
    for k in range(start.size):
        incumbent.ranking[k] = start[k]
    load_root(task, node)
    update_incumbent(task, incumbent, start)
    _guide_to(task, incumbent, node)


@compiled
def refine_bound(search: Search, bound: float) -> float:
    """Return a better bound on the instance; −∞ if the incumbent is proved to be within the gap.

    Without a bound yet, start with one assignment at the starting ranking, which often proves it optimal.
    Continue with more from the final relaxation of the last search, and again after a local search.
    """
    task, incumbent, node, relaxation = search
    for stage in range(0 if bound == np.inf else 1, 3):
        if stage == 1 and relaxation.n_atoms[0] > 0:
            restore_relaxation(task, node, relaxation)
        elif stage == 2:
            # No column has been dropped yet, so columns are items.
            for k in range(incumbent.columns.size):
                incumbent.columns[k] = incumbent.ranking[k]
            search_nearby(task, incumbent, node, incumbent.columns)
            search_near_atoms(task, incumbent, node, 3)
            for i in range(node.guide.size):
                node.guide[i] = node.best_guide[i]
        bound = relax(task, incumbent, node, 1 if stage == 0 else _ROOT_ASSIGNMENTS, bound)
        if bound == -np.inf:
            break
    store_relaxation(node, relaxation)
    return bound


@internal
def _guide_to(task: Task, incumbent: Incumbent, node: Node) -> None:
    """Set the guide to the incumbent's values."""
    values_of(task.instance, incumbent.ranking, incumbent.values)
    for i in range(node.guide.size):
        if task.utility.code == MINIMUM:
            node.guide[i] = 1.0 / node.guide.size
        elif task.is_spatial:
            envelope = node.envelope
            rise = envelope.heights[i, -1] - envelope.heights[i, 0]
            width = max(envelope.high[i] - envelope.low[i], 1e-9)
            node.guide[i] = task.instance.weights[i] * rise / width
        else:
            node.guide[i] = max(incumbent.values[i], task.floors[i])


@compiled
def drop_columns(task: Task, node: Node) -> None:
    """Drop columns without an allowed cell. The current node must have a slot for every column."""
    drop_atoms(node.atoms, node.base, node.slots)
    instance, left = task.instance, 0
    for j in range(task.facts[LIVE]):
        used = False
        for k in range(node.rows.size):
            used |= node.base[k, j] > -np.inf
        if not used:
            continue
        if left < j:
            task.items[left] = task.items[j]
            instance.bonuses[left] = instance.bonuses[j]
            for i in range(node.guide.size):
                instance.means[i, left] = instance.means[i, j]
            for k in range(node.rows.size):
                node.base[k, left] = node.base[k, j]
            for a in range(node.atoms.n_atoms[0]):
                for k in range(node.rows.size):
                    if node.atoms.columns[a, k] == j:
                        node.atoms.columns[a, k] = left
        left += 1
    task.facts[LIVE] = left
    node.n_slots[0] = 0
    for j in range(left):
        node.prices[j] = 0.0
        add_slot(task, node, j)


@compiled
def improve_ranking(
    search: Search, tree: Tree, instance: Instance, gap: float, max_nodes: int, ranking: NDArray[np.uintp]
) -> None:
    """Replace a ranking by one within the gap of the optimum, or by the best of ``max_nodes`` nodes.

    For instances that change little from call to call: the ranking is that of the last call, whose final
    relaxation is the starting point. One assignment usually proves that the ranking is still good enough.
    """
    task, incumbent, node, _ = search
    start_search(search, instance, ranking, gap, 0.0)
    bound = refine_bound(search, np.inf)
    if bound > -np.inf:
        drop_columns(task, node)
        reset_tree(task, node, tree, bound)
        explore(task, incumbent, node, tree, max_nodes)
    for k in range(ranking.size):
        ranking[k] = incumbent.ranking[k]


def _unsupported_reason(utility: Utility, _items: int, _positions: int) -> str | None:
    if utility.shape == "maximin":
        return None
    if utility.shape != "concave":
        return f"needs a concave utility or maximin, got {utility} ({utility.shape})"
    if utility.code == CUSTOM and utility.derivative is None:
        return f"needs the derivative of a concave function, got none for {utility}"
    return None


def _spatial_unsupported_reason(utility: Utility, _items: int, _positions: int) -> str | None:
    if utility.shape != "non-concave":
        return f"needs a utility that is not concave, got {utility} ({utility.shape})"
    if utility.lipschitz is None:
        return f"needs a bound on the slope (lipschitz), got none for {utility}"
    return None


def _run(instance: Instance, utility: Utility, options: SolverOptions) -> SolverResult:
    """Set aside the types whose value is 0 in every ranking, and search for the others."""
    start = np.arange(instance.n_positions) if options.warm_start is None else options.warm_start
    counts = instance.weights > 0
    served = counts & ((instance.preferences.max(axis=1) > 0) & (instance.means.max(axis=1) > 0))
    constant = float(
        instance.weights[counts & ~served] @ utility.evaluate(np.zeros((counts & ~served).sum()))
    )
    if constant == -np.inf:  # every ranking has value −∞
        return SolverResult(start, -np.inf, 0)
    is_constant = not served.any() or (utility.code == MINIMUM and (counts & ~served).any())
    if is_constant:
        best = np.argsort(-instance.bonuses, kind="stable")[: instance.n_positions]
        return SolverResult(best, constant + float(instance.bonuses[best].sum()), 0)
    relevant = Instance(
        instance.weights[served],
        instance.preferences[served],
        instance.means[served],
        instance.bonuses.copy(),
    )
    result = _search(relevant, utility, options, start, constant)
    return result._replace(upper_bound=result.upper_bound + constant)


def _search(
    instance: Instance, utility: Utility, options: SolverOptions, start: Ranking, aside: float
) -> SolverResult:
    n, m, k = instance.n_user_types, instance.n_items, instance.n_positions
    search = new_search(n, m, k, utility)
    task, incumbent, node, _ = search
    start_search(search, instance, start.astype(np.uintp), _GAP_MARGIN * options.target_gap, aside)
    bound, before = refine_bound(search, np.inf), np.inf
    while bound > -np.inf and before - bound > _MIN_PROGRESS * (bound - incumbent.levels[VALUE]):
        if time.perf_counter() >= options.deadline:
            break
        before = bound
        bound = refine_bound(search, bound)
    nodes = 1
    if bound > -np.inf:
        drop_columns(task, node)
        live = int(task.facts[LIVE])
        capacity = int(
            np.clip(_MAX_TREE_BYTES // (k * live + 2 * k * MAX_STORED_ATOMS + 24 * n + 200), 64, 200_000)
        )
        tree = new_tree(n, live, k, capacity=capacity)
        reset_tree(task, node, tree, bound)
        while time.perf_counter() < options.deadline:
            if explore(task, incumbent, node, tree, _NODES_PER_CHECK) != MORE:
                break
            found = Progress(
                int(tree.progress[NODES]), incumbent.levels[VALUE] + aside, open_bound(tree) + aside
            )
            if not options.on_progress(found):
                break
        bound = open_bound(tree)
        nodes += int(tree.progress[NODES])
    return SolverResult(incumbent.ranking.astype(np.intp), max(bound, incumbent.levels[TARGET]), nodes)


@cache
def _prepare() -> None:
    """Compile or load all formulas by running each on the smallest instance."""
    search = new_search(1, 1, 1, NASH)
    instance = Instance(np.ones(1), np.ones((1, 1)), np.ones((1, 1)), np.zeros(1))
    start_search(search, instance, np.zeros(1, dtype=np.uintp), 0.0, 0.0)
    refine_bound(search, np.inf)
    drop_columns(search.task, search.node)
    tree = new_tree(1, 1, 1, capacity=8)
    reset_tree(search.task, search.node, tree, -np.inf)
    explore(search.task, search.incumbent, search.node, tree, _NODES_PER_CHECK)
    open_bound(tree)


SOLVER = Solver(_unsupported_reason, _run, _prepare)
SPATIAL_SOLVER = Solver(_spatial_unsupported_reason, _run, _prepare)
