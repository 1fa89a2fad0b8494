"""Better rankings nearby: swap two positions, or show an item in place of another."""

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, inlined
from banditrank.solvers.relaxation import Node
from banditrank.solvers.task import LIVE, VALUE, Incumbent, Task, consider
from banditrank.utilities.formulas import MINIMUM, collective, slope_of

Floats = NDArray[np.float64]

_MOVES = 100


@compiled
def search_nearby(task: Task, incumbent: Incumbent, node: Node, columns: NDArray[np.uintp]) -> None:
    """Take the best move from a ranking while there is one that improves it.

    A concave objective gains no more from a move than its tangent says, so most moves need no evaluation.
    """
    instance = task.instance
    live, n_positions = task.facts[LIVE], columns.size
    filtered = not task.spatial and task.utility.code != MINIMUM
    values, scores, shown = incumbent.values, node.scores, node.room.position_of
    for _ in range(_MOVES):
        total = consider(task, incumbent, columns)
        for j in range(live):
            shown[j] = 0
        for k in range(n_positions):
            shown[columns[k]] = 1
        if filtered:
            _score_tangent(task, node, values)
        best = 1e-13 * abs(total)
        best_k, best_j, best_other = -1, 0, -1
        for k in range(n_positions):
            here = columns[k]
            for other in range(k + 1, n_positions):
                there = columns[other]
                if filtered:
                    most = scores[k, there] + scores[other, here] - scores[k, here] - scores[other, there]
                    if most <= best:
                        continue
                for i in range(values.size):
                    change = instance.preferences[i, k] - instance.preferences[i, other]
                    node.slopes[i] = values[i] + change * (instance.means[i, there] - instance.means[i, here])
                gain = _gain(task, node, total, columns, 0.0)
                if gain > best:
                    best, best_k, best_other = gain, k, other
            for j in range(live):
                if shown[j] == 1 or (filtered and scores[k, j] - scores[k, here] <= best):
                    continue
                for i in range(values.size):
                    change = instance.means[i, j] - instance.means[i, here]
                    node.slopes[i] = values[i] + instance.preferences[i, k] * change
                gain = _gain(task, node, total, columns, instance.bonuses[j] - instance.bonuses[here])
                if gain > best:
                    best, best_k, best_j, best_other = gain, k, j, -1
        if best_k < 0:
            break
        if best_other >= 0:
            columns[best_k], columns[best_other] = columns[best_other], columns[best_k]
        else:
            columns[best_k] = best_j


@inlined
def _gain(task: Task, node: Node, total: float, columns: NDArray[np.uintp], bonus: float) -> float:
    """Return by how much the values in ``node.slopes``, and the bonus, improve on the total."""
    moved = collective(task.utility, task.instance.weights, node.slopes) + bonus
    for k in range(columns.size):
        moved += task.instance.bonuses[columns[k]]
    return moved - total


@compiled
def _score_tangent(task: Task, node: Node, values: Floats) -> None:
    """Write the scores of all cells at the slopes that a ranking's values have."""
    instance, scores = task.instance, node.scores
    live = task.facts[LIVE]
    for i in range(values.size):
        point = max(values[i], task.floors[i])
        node.slopes[i] = instance.weights[i] * slope_of(task.utility, point)
    for k in range(scores.shape[0]):
        for j in range(live):
            scores[k, j] = instance.bonuses[j]
        for i in range(values.size):
            weight = node.slopes[i] * instance.preferences[i, k]
            for j in range(live):
                scores[k, j] += weight * instance.means[i, j]
