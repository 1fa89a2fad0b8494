"""Local search: swap two positions, or replace an item by another."""

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank.solvers._branch_and_bound.node import Node
from banditrank.solvers._branch_and_bound.task import LIVE, Incumbent, Task, is_forbidden, update_incumbent
from banditrank.solvers._instance import bonus_of, score_cells
from banditrank.utilities._formulas import MINIMUM, collective, slope_of

Floats = NDArray[np.float64]

_MAX_MOVES = 100
_SHARPNESS = 60.0  # of the soft minimum, relative to the value


@internal
def search_nearby(task: Task, incumbent: Incumbent, node: Node, columns: NDArray[np.uintp]) -> None:
    """Apply the best allowed move to a ranking while one improves it.

    The tangent bounds the gain of a move in a concave objective, so most moves need no evaluation. The
    minimum over types hardly ever changes by one move: a soft minimum replaces it.
    """
    instance = task.instance
    live, n_positions = task.facts[LIVE], columns.size
    # The arrays of the node are scratch between two relaxations.
    values, moved, scores, shown = incumbent.values, node.slopes, node.scores, node.workspace.position_of
    sharpness = 0.0
    for _ in range(_MAX_MOVES):
        total = update_incumbent(task, incumbent, columns)
        bonus = bonus_of(instance, columns)
        if task.utility.code == MINIMUM:
            sharpness = _SHARPNESS / max(total, 1e-300)
            total = _soft_minimum(values, sharpness) + bonus
        if total == -np.inf:
            return
        for j in range(live):
            shown[j] = 0
        for k in range(n_positions):
            shown[columns[k]] = 1
        if not task.is_spatial:
            _score_tangent(task, node, values, sharpness)
        best = 1e-13 * abs(total)
        best_k, best_j, best_other = -1, 0, -1
        for k in range(n_positions):
            here = columns[k]
            for other in range(k + 1, n_positions):
                there = columns[other]
                if not task.is_spatial:
                    most = scores[k, there] + scores[other, here] - scores[k, here] - scores[other, there]
                    if most <= best:
                        continue
                if is_forbidden(task, k, there) or is_forbidden(task, other, here):
                    continue
                for i in range(values.size):
                    change = instance.preferences[i, k] - instance.preferences[i, other]
                    moved[i] = values[i] + change * (instance.means[i, there] - instance.means[i, here])
                gain = _worth(task, moved, sharpness) + bonus - total
                if gain > best:
                    best, best_k, best_other = gain, k, other
            for j in range(live):
                if shown[j] == 1 or (not task.is_spatial and scores[k, j] - scores[k, here] <= best):
                    continue
                if is_forbidden(task, k, j):
                    continue
                for i in range(values.size):
                    change = instance.means[i, j] - instance.means[i, here]
                    moved[i] = values[i] + instance.preferences[i, k] * change
                more = instance.bonuses[j] - instance.bonuses[here]
                gain = _worth(task, moved, sharpness) + bonus + more - total
                if gain > best:
                    best, best_k, best_j, best_other = gain, k, j, -1
        if best_k < 0:
            break
        if best_other >= 0:
            columns[best_k], columns[best_other] = columns[best_other], columns[best_k]
        else:
            columns[best_k] = best_j


@inlined
def _worth(task: Task, values: Floats, sharpness: float) -> float:
    if task.utility.code == MINIMUM:
        return _soft_minimum(values, sharpness)
    return collective(task.utility, task.instance.weights, values)


@inlined
def _soft_minimum(values: Floats, sharpness: float) -> float:
    """Return −ln Σ_i e^(−sharpness·u_i) over the sharpness: concave, and close to the minimum."""
    least = np.inf
    for i in range(values.size):
        least = min(least, values[i])
    total = 0.0
    for i in range(values.size):
        total += np.exp(-sharpness * (values[i] - least))
    return float(least - np.log(total) / sharpness)


@internal
def _score_tangent(task: Task, node: Node, values: Floats, sharpness: float) -> None:
    """Write the scores of all cells at the slopes of a ranking's values."""
    instance = task.instance
    for i in range(values.size):
        if task.utility.code == MINIMUM:
            node.slopes[i] = np.exp(-sharpness * (values[i] - _soft_minimum(values, sharpness)))
        else:
            point = max(values[i], task.floors[i])
            node.slopes[i] = instance.weights[i] * slope_of(task.utility, point)
    score_cells(instance, node.slopes, task.facts[LIVE], node.scores)


@internal
def search_near_atoms(task: Task, incumbent: Incumbent, node: Node, n_atoms: int) -> None:
    """Run local search from the ``n_atoms`` atoms of the largest weight."""
    atoms = node.atoms
    last = np.inf
    for _ in range(n_atoms):
        heaviest = -1
        for a in range(atoms.n_atoms[0]):
            if atoms.weights[a] < last and (heaviest < 0 or atoms.weights[a] > atoms.weights[heaviest]):
                heaviest = a
        if heaviest < 0:
            return
        last = atoms.weights[heaviest]
        for k in range(node.rows.size):
            incumbent.columns[k] = atoms.columns[heaviest, k]
        search_nearby(task, incumbent, node, incumbent.columns)
