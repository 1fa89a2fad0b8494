"""Exact equal treatment for every utility: branch and bound over sets of items at positions.

For concave utilities and the minimum over types, and with intervals of the types' values for those that are not
concave (spatial). Written for small memory and no allocation: the same code runs inside the simulation loop.
"""

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, internal
from banditrank.solvers.atoms import COUNT, drop_atoms
from banditrank.solvers.instance import Instance, values_of
from banditrank.solvers.local_search import search_near_atoms, search_nearby
from banditrank.solvers.method import Limits, Method, Outcome
from banditrank.solvers.relaxation import Node, new_node, open_node, relax
from banditrank.solvers.task import (
    LIVE,
    TARGET,
    Incumbent,
    Task,
    consider,
    forget_incumbent,
    new_incumbent,
    new_task,
    take,
)
from banditrank.solvers.tree import FULL, MORE, NODES, Tree, explore, new_tree, open_bound, plant
from banditrank.utilities.formulas import CUSTOM, MINIMUM
from banditrank.utilities.utility import Utility

Floats = NDArray[np.float64]

_ROOT_ASSIGNMENTS = 400
_CHUNK = 20  # nodes between two looks at the clock
_MEMORY = 256_000_000  # bytes for open nodes


class Search(NamedTuple):
    """Room for one search."""

    task: Task
    incumbent: Incumbent
    node: Node


def new_search(n_user_types: int, n_items: int, n_positions: int, utility: Utility) -> Search:
    """Return room for instances of a size."""
    n, m, k = n_user_types, n_items, n_positions
    spatial = utility.shape == "non-concave"
    return Search(
        new_task(n, m, k, utility.compiled(), spatial=spatial),
        new_incumbent(n, k),
        new_node(n, m, k, spatial=spatial),
    )


@compiled
def search_root(search: Search, instance: Instance, start: NDArray[np.uintp], gap: float) -> float:
    """Bound the whole instance, starting from a ranking; −∞ if the incumbent is good enough."""
    task, incumbent, node = search
    take(task, instance)
    forget_incumbent(incumbent, gap)
    for k in range(start.size):
        incumbent.ranking[k] = start[k]
        incumbent.columns[k] = start[k]
    open_node(task, node)
    consider(task, incumbent, start)
    _guide_to(task, incumbent, node)
    bound = relax(task, incumbent, node, np.int64(1), np.inf)
    if bound == -np.inf:
        return bound
    search_nearby(task, incumbent, node, incumbent.columns)
    bound = relax(task, incumbent, node, np.int64(_ROOT_ASSIGNMENTS), bound)
    if bound == -np.inf:
        return bound
    for k in range(start.size):
        incumbent.columns[k] = incumbent.ranking[k]
    search_nearby(task, incumbent, node, incumbent.columns)
    search_near_atoms(task, incumbent, node, np.int64(3))
    for i in range(node.guide.size):
        node.guide[i] = node.best_guide[i]
    bound = relax(task, incumbent, node, np.int64(_ROOT_ASSIGNMENTS), bound)
    if bound > -np.inf:
        _drop_columns(task, node)
    return bound


@internal
def _guide_to(task: Task, incumbent: Incumbent, node: Node) -> None:
    """Take the first slopes at the incumbent's values."""
    values_of(task.instance, incumbent.ranking, incumbent.values)
    for i in range(node.guide.size):
        if task.utility.code == MINIMUM:
            node.guide[i] = 1.0 / node.guide.size
        elif task.spatial:
            envelope = node.envelope
            rise = envelope.heights[i, -1] - envelope.heights[i, 0]
            width = max(envelope.high[i] - envelope.low[i], 1e-9)
            node.guide[i] = task.instance.weights[i] * rise / width
        else:
            node.guide[i] = max(incumbent.values[i], task.floors[i])


@internal
def _drop_columns(task: Task, node: Node) -> None:
    """Forget the items that are ruled out everywhere."""
    drop_atoms(node.atoms, node.base)
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
            node.room.prices[left] = node.room.prices[j]
            for i in range(node.guide.size):
                instance.means[i, left] = instance.means[i, j]
            for k in range(node.rows.size):
                node.base[k, left] = node.base[k, j]
            for a in range(node.atoms.facts[COUNT]):
                for k in range(node.rows.size):
                    if node.atoms.columns[a, k] == j:
                        node.atoms.columns[a, k] = left
        left += 1
    task.facts[LIVE] = left


def _refuse(utility: Utility, _items: int, _positions: int) -> str | None:
    if utility.shape == "maximin":
        return None
    if utility.shape != "concave":
        return f"needs a concave utility or maximin, got {utility} ({utility.shape})"
    if utility.code == CUSTOM and utility.derivative is None:
        return f"needs the derivative of a concave function, got none for {utility}"
    return None


def _refuse_spatial(utility: Utility, _items: int, _positions: int) -> str | None:
    if utility.shape != "non-concave":
        return f"needs a utility that is not concave, got {utility} ({utility.shape})"
    if utility.lipschitz is None:
        return f"needs a bound on the slope (lipschitz), got none for {utility}"
    return None


def _run(instance: Instance, utility: Utility, limits: Limits) -> Outcome:
    n, m, k = instance.n_user_types, instance.n_items, instance.n_positions
    search = new_search(n, m, k, utility)
    start = np.arange(k) if limits.warm_start is None else limits.warm_start
    bound = search_root(search, instance, start.astype(np.uintp), limits.target_gap)
    nodes = 1
    if bound > -np.inf:
        live = int(search.task.facts[LIVE])
        capacity = int(np.clip(_MEMORY // (k * live + 2 * k * 16 + 24 * n + 200), 64, 200_000))
        tree = new_tree(n, live, k, capacity=capacity)
        plant(search.task, search.node, tree, bound)
        while explore(*search, tree, _CHUNK) == MORE and time.perf_counter() < limits.deadline:
            pass
        bound = open_bound(tree)
        nodes += int(tree.facts[NODES])
    ranking = search.incumbent.ranking.astype(np.intp)
    return Outcome(ranking, max(bound, search.incumbent.levels[TARGET]), nodes)


METHOD = Method(_refuse, _run)
SPATIAL = Method(_refuse_spatial, _run)
