"""Branch and bound of one instance: root relaxation, local search, tree.

The same formulas serve `solve` and, with preallocated workspaces, the simulation loop.
"""

import time
from functools import cache
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank._native_calls import NativeArguments, call_native, load_arguments
from banditrank.model._rankings import Ranking
from banditrank.solvers._assignment import best_assignment
from banditrank.solvers._branch_and_bound.atoms import MAX_STORED_ATOMS, drop_atoms
from banditrank.solvers._branch_and_bound.local_search import search_near_atoms, search_nearby
from banditrank.solvers._branch_and_bound.node import Node, add_slot, load_root, new_node
from banditrank.solvers._branch_and_bound.relaxation import (
    RelaxationState,
    Relaxer,
    bind_relaxation,
    new_relaxation_state,
    relax_node,
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
from banditrank.solvers._instance import (
    IS_RESTRICTED,
    N_ITEMS,
    Instance,
    copy_instance,
    smallest_instance,
    values_of,
)
from banditrank.solvers._solver import Progress, Solver, SolverOptions, SolverResult
from banditrank.utilities._formulas import CUSTOM, MINIMUM
from banditrank.utilities._utility import NASH, Utility

Floats = NDArray[np.float64]

_ROOT_ASSIGNMENTS = 60  # between two checks of the deadline
_GAP_MARGIN = 0.9  # share of the target gap, so that rounding cannot exceed it
_MIN_PROGRESS = 0.02  # relative to the gap, to refine the root bound again
_NODES_PER_CHECK = 8  # between two checks of the deadline
_MAX_TREE_BYTES = 256_000_000
_MIN_TREE_CAPACITY = 64

START, REFINE, DROP, RESET, EXPLORE = range(5)  # indices of SearchHandle.steps
ALLOWED, CONSTANT, BOUND = range(
    3
)  # of SearchHandle.numbers: the gap, the utility set aside, the upper bound


class Search(NamedTuple):
    """The workspace of successive searches."""

    task: Task
    incumbent: Incumbent
    node: Node
    relaxation: RelaxationState
    relaxer: Relaxer


def new_search(n_user_types: int, n_items: int, n_positions: int, utility: Utility) -> Search:
    """Allocate a search for the given sizes."""
    n, m, k = n_user_types, n_items, n_positions
    is_spatial = utility.shape == "non-concave"
    task = new_task(n, m, k, utility.compiled(), is_spatial=is_spatial)
    incumbent, node = new_incumbent(n, k), new_node(n, m, k, is_spatial=is_spatial)
    relaxer = bind_relaxation(task, incumbent, node)
    return Search(task, incumbent, node, new_relaxation_state(n, k), relaxer)


def start_search(pointer: Any, _: int, __: int) -> None:
    """Load the instance and the starting ranking: a native function with `SearchArguments`.

    Every type must have a positive weight and an item of positive value. The constant is the utility of the
    other types: the allowed gap is relative to the sum of both. The starting ranking must hold allowed cells
    only. A restricted search ignores the relaxation of the last one, whose restriction was another.
    """
    arguments = load_arguments(pointer)[0]
    task, incumbent, node = arguments.search.task, arguments.search.incumbent, arguments.search.node
    start, numbers = arguments.ranking, arguments.numbers
    load_instance(task, arguments.instance, arguments.sizes[N_ITEMS], arguments.sizes[IS_RESTRICTED])
    if arguments.sizes[IS_RESTRICTED] == 1:
        arguments.search.relaxation.n_atoms[0] = 0
    reset_incumbent(incumbent, numbers[ALLOWED], numbers[CONSTANT])
    for k in range(start.size):
        incumbent.ranking[k] = start[k]
    load_root(task, node)
    update_incumbent(task, incumbent, start)
    _guide_to(task, incumbent, node)


def refine_bound(pointer: Any, _: int, __: int) -> None:
    """Replace the bound by a better one, −∞ if the incumbent is proved to be within the gap.

    Without a bound yet, start with one assignment at the starting ranking, which often proves it optimal.
    Continue with more from the final relaxation of the last search, and again after a local search.
    """
    arguments = load_arguments(pointer)[0]
    task, incumbent, node, relaxation, relaxer = arguments.search
    bound = arguments.numbers[BOUND]
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
        bound = relax_node(relaxer, 1 if stage == 0 else _ROOT_ASSIGNMENTS, bound)
        if bound == -np.inf:
            break
    store_relaxation(node, relaxation)
    arguments.numbers[BOUND] = bound


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


def drop_columns(pointer: Any, _: int, __: int) -> None:
    """Drop columns without an allowed cell. The current node must have a slot for every column."""
    search = load_arguments(pointer)[0].search
    task, node = search.task, search.node
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
                task.allowed[k, left] = task.allowed[k, j]
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


class SearchArguments(NamedTuple):
    """Arguments of the steps of a search."""

    search: Search
    tree: Tree
    instance: Instance
    ranking: NDArray[np.uintp]  # (K,) the starting ranking
    numbers: Floats  # (3,)
    sizes: NDArray[
        np.int64
    ]  # (2,) see `banditrank.solvers._instance`; items are the first ones of the instance
    status: NDArray[np.int64]  # (1,) result of the last exploration


class SearchHandle(NamedTuple):
    """A search whose steps are called by address, by Python and by the formulas of policies."""

    memory: NDArray[np.uint64]  # the `SearchArguments`
    steps: NDArray[np.int64]  # (5,) addresses of native functions
    instance: Instance
    ranking: NDArray[np.uintp]  # (K,)
    incumbent: NDArray[np.uintp]  # (K,)
    numbers: Floats  # (3,)
    sizes: NDArray[np.int64]  # (2,)
    allowed: NDArray[np.int8]  # (K, M) that of the task: overwritten by a search
    status: NDArray[np.int64]  # (1,)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a search cannot be copied: it contains addresses")


def bind_search(search: Search, tree: Tree, instance: Instance) -> SearchHandle:
    """Return a search of an instance, without a restriction, that is called by address."""
    ranking, numbers, sizes, status = (
        np.zeros_like(search.incumbent.ranking),
        np.zeros(3),
        np.array([instance.n_items, 0], dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )
    native = NativeArguments(SearchArguments(search, tree, instance, ranking, numbers, sizes, status))
    addresses = np.zeros(5, dtype=np.int64)
    addresses[START] = native.native_function(start_search)
    addresses[REFINE] = native.native_function(refine_bound)
    addresses[DROP] = native.native_function(drop_columns)
    addresses[RESET] = native.native_function(_open_tree)
    addresses[EXPLORE] = native.native_function(_explore_tree)
    return SearchHandle(
        *(native.memory, addresses, instance, ranking, search.incumbent.ranking),
        *(numbers, sizes, search.task.allowed, status),
    )


def _open_tree(pointer: Any, _: int, __: int) -> None:
    """Reset the tree to the current node as its root."""
    arguments = load_arguments(pointer)[0]
    reset_tree(arguments.search.task, arguments.search.node, arguments.tree, arguments.numbers[BOUND])


def _explore_tree(pointer: Any, max_nodes: int, _: int) -> None:
    """Explore up to ``max_nodes`` nodes, and write the status."""
    arguments = load_arguments(pointer)[0]
    task, incumbent, node, _relaxation, relaxer = arguments.search
    arguments.status[0] = explore(task, incumbent, node, arguments.tree, relaxer, max_nodes)


@inlined
def run_step(handle: SearchHandle, step: int, max_nodes: int) -> None:
    """Run a step of a search; ``max_nodes`` is the number of nodes to explore."""
    call_native(handle.steps[step], handle.memory.ctypes.data, max_nodes, 0)


@internal
def improve_ranking(
    handle: SearchHandle, instance: Instance, gap: float, max_nodes: int, ranking: NDArray[np.uintp]
) -> None:
    """Replace a ranking by one within the gap of the optimum, or by the best of ``max_nodes`` nodes.

    For instances that change little from call to call: the ranking is that of the last call, whose final
    relaxation is the starting point. One assignment usually proves that the ranking is still good enough.
    """
    copy_instance(instance, handle.instance)
    for k in range(ranking.size):
        handle.ranking[k] = ranking[k]
    search_loaded(handle, gap, max_nodes)
    for k in range(ranking.size):
        ranking[k] = handle.incumbent[k]


@internal
def search_loaded(handle: SearchHandle, gap: float, max_nodes: int) -> None:
    """Search from the ranking of the handle for one within the gap of its instance's optimum.

    The incumbent of the handle is that ranking, or the best of ``max_nodes`` nodes.
    """
    handle.numbers[ALLOWED], handle.numbers[CONSTANT], handle.numbers[BOUND] = gap, 0.0, np.inf
    run_step(handle, START, 0)
    run_step(handle, REFINE, 0)
    if handle.numbers[BOUND] > -np.inf:
        run_step(handle, DROP, 0)
        run_step(handle, RESET, 0)
        run_step(handle, EXPLORE, max_nodes)


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
    if options.allowed is None:
        served = counts & ((instance.preferences.max(axis=1) > 0) & (instance.means.max(axis=1) > 0))
    else:
        gains = instance.preferences[:, :, None] * instance.means[:, None, :]  # (N, K, M)
        served = counts & (gains * options.allowed).any(axis=(1, 2))
    constant = float(
        instance.weights[counts & ~served] @ utility.evaluate(np.zeros((counts & ~served).sum()))
    )
    if constant == -np.inf:  # every ranking has value −∞
        return SolverResult(start, -np.inf, 0)
    is_constant = not served.any() or (utility.code == MINIMUM and (counts & ~served).any())
    if is_constant:
        best = _most_bonuses(instance, options.allowed)
        return SolverResult(best, constant + float(instance.bonuses[best].sum()), 0)
    relevant = Instance(
        instance.weights[served],
        instance.preferences[served],
        instance.means[served],
        instance.bonuses.copy(),
    )
    result = _search(relevant, utility, options, start, constant)
    return result._replace(upper_bound=result.upper_bound + constant)


def _most_bonuses(instance: Instance, allowed: NDArray[np.bool_] | None) -> Ranking:
    """Return the allowed ranking with the largest sum of bonuses."""
    if allowed is None:
        return np.argsort(-instance.bonuses, kind="stable")[: instance.n_positions]
    return best_assignment(np.tile(instance.bonuses, (instance.n_positions, 1)), allowed)[0]


def _search(
    instance: Instance, utility: Utility, options: SolverOptions, start: Ranking, aside: float
) -> SolverResult:
    n, m, k = instance.n_user_types, instance.n_items, instance.n_positions
    search = new_search(n, m, k, utility)
    task, incumbent = search.task, search.incumbent
    root = bind_search(search, new_tree(n, 1, k, capacity=_MIN_TREE_CAPACITY), instance)
    root.ranking[:] = start
    if options.allowed is not None:
        root.allowed[:] = options.allowed
        root.sizes[IS_RESTRICTED] = 1
    root.numbers[:] = _GAP_MARGIN * options.target_gap, aside, np.inf
    run_step(root, START, 0)
    run_step(root, REFINE, 0)
    utility.raise_callback_error()
    bound, before = root.numbers[BOUND], np.inf
    while bound > -np.inf and before - bound > _MIN_PROGRESS * (bound - incumbent.levels[VALUE]):
        if time.perf_counter() >= options.deadline:
            break
        before = bound
        run_step(root, REFINE, 0)
        bound = root.numbers[BOUND]
    nodes = 1
    if bound > -np.inf:
        run_step(root, DROP, 0)
        live = int(task.facts[LIVE])
        capacity = int(
            np.clip(
                _MAX_TREE_BYTES // (k * live + 2 * k * MAX_STORED_ATOMS + 24 * n + 200),
                _MIN_TREE_CAPACITY,
                200_000,
            )
        )
        tree = new_tree(n, live, k, capacity=capacity)
        handle = bind_search(search, tree, instance)
        handle.numbers[BOUND] = bound
        run_step(handle, RESET, 0)
        while time.perf_counter() < options.deadline:
            run_step(handle, EXPLORE, _NODES_PER_CHECK)
            utility.raise_callback_error()
            if handle.status[0] != MORE:
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
    tree = new_tree(1, 1, 1, capacity=8)
    handle = bind_search(new_search(1, 1, 1, NASH), tree, smallest_instance())
    handle.numbers[BOUND] = np.inf
    for step in (START, REFINE, DROP):
        run_step(handle, step, 0)
    handle.numbers[BOUND] = -np.inf
    run_step(handle, RESET, 0)
    run_step(handle, EXPLORE, _NODES_PER_CHECK)
    open_bound(tree)


SOLVER = Solver(_unsupported_reason, _run, _prepare)
SPATIAL_SOLVER = Solver(_spatial_unsupported_reason, _run, _prepare)
