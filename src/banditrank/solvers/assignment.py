"""The best assignment of items to positions, when a ranking's worth is a sum over its cells."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank.compilation import compiled, inlined, internal
from banditrank.errors import InvalidInputError
from banditrank.model.rankings import Ranking
from banditrank.solvers.instance import Instance, score_cells
from banditrank.solvers.solver import SolverOptions, Solver, SolverResult
from banditrank.utilities.utility import Utility

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class AssignmentWorkspace(NamedTuple):
    """Working room of `assign`, and the prices of the last solution: the next one starts from them."""

    prices: Floats  # (M,) what taking an item costs the other positions; 0 for items not shown
    distances: Floats  # (M,)
    position_of: Indices  # (M,) −1 for items not shown
    came_from: Indices  # (M,)
    reached: Indices  # (M,) 1 for items that the search has reached
    item_at: Indices  # (K,)
    delays: Floats  # (K,) by how much a price must fall before a position wants the item
    wanted: Indices  # (K,) which item it then wants
    settled: Indices  # (K,) 1 for positions whose delay is final


def new_assignment_workspace(n_items: int, n_positions: int) -> AssignmentWorkspace:
    """Return room for problems of a size."""
    return AssignmentWorkspace(
        np.zeros(n_items),
        np.zeros(n_items),
        np.zeros(n_items, dtype=np.intp),
        np.zeros(n_items, dtype=np.intp),
        np.zeros(n_items, dtype=np.intp),
        np.zeros(n_positions, dtype=np.intp),
        np.zeros(n_positions),
        np.zeros(n_positions, dtype=np.intp),
        np.zeros(n_positions, dtype=np.intp),
    )


@compiled
def assign(scores: Floats, n_items: int, workspace: AssignmentWorkspace, ranking: NDArray[np.uintp]) -> float:
    """Write the ranking that maximises Σ_k scores[k, ranking[k]] over the first items, and return that sum.

    Where an item may not stand the score is −∞; so is the sum if no ranking is allowed.

    Shortest augmenting paths (Jonker and Volgenant 1987), rows being positions. Prices left by an earlier
    call make most positions find their item at once. They prove optimality only if items that end up unshown
    cost nothing; the price of one that does is lowered until it does not, or is shown.
    """
    if not _match(scores, n_items, workspace):
        for j in range(n_items):
            workspace.prices[j] = 0.0
        return -np.inf
    for j in range(n_items):
        if workspace.position_of[j] < 0 and workspace.prices[j] > 0.0:
            _lower_price(scores, workspace, j)
    total = 0.0
    for k in range(ranking.size):
        ranking[k] = workspace.item_at[k]
        total += scores[k, workspace.item_at[k]]
    return total


@inlined
def _match(scores: Floats, n_items: int, workspace: AssignmentWorkspace) -> bool:
    n_positions = scores.shape[0]
    for j in range(n_items):
        workspace.position_of[j] = -1
    for k in range(n_positions):
        best = 0
        best_gain = scores[k, 0] - workspace.prices[0]
        for j in range(1, n_items):
            gain = scores[k, j] - workspace.prices[j]
            if gain > best_gain:
                best, best_gain = j, gain
        if best_gain == -np.inf:
            return False
        if workspace.position_of[best] < 0:
            workspace.position_of[best] = k
            workspace.item_at[k] = best
        elif not _augment(scores, n_items, workspace, k, best_gain):
            return False
    return True


@internal
def _augment(scores: Floats, n_items: int, workspace: AssignmentWorkspace, start: int, best_gain: float) -> bool:
    """Give one more position an item, moving others along the cheapest chain; return whether there is one."""
    for j in range(n_items):
        workspace.distances[j] = best_gain - (scores[start, j] - workspace.prices[j])
        workspace.came_from[j] = start
        workspace.reached[j] = 0
    while True:
        nearest = -1
        distance = np.inf
        for j in range(n_items):
            if workspace.reached[j] == 0 and workspace.distances[j] < distance:
                nearest, distance = j, workspace.distances[j]
        if nearest < 0:
            return False
        workspace.reached[nearest] = 1
        k = workspace.position_of[nearest]
        if k < 0:
            break
        held = scores[k, nearest] - workspace.prices[nearest]
        for j in range(n_items):
            if workspace.reached[j] == 0:
                reached = distance + held - (scores[k, j] - workspace.prices[j])
                if reached < workspace.distances[j]:
                    workspace.distances[j] = reached
                    workspace.came_from[j] = k
    for j in range(n_items):
        if workspace.reached[j] == 1:
            workspace.prices[j] += max(0.0, distance - workspace.distances[j])  # no less than 0 but for rounding
    item = nearest
    while True:
        k = workspace.came_from[item]
        workspace.position_of[item] = k
        workspace.item_at[k], item = item, workspace.item_at[k]
        if k == start:
            return True


@internal
def _lower_price(scores: Floats, workspace: AssignmentWorkspace, item: int) -> None:
    """Lower the price of an unshown item until it is 0, or the item takes the place of one whose price is.

    As the price falls, positions come to want the item, one after the other; the prices of the items that
    they hold then fall with it, or they would let them go. The first price to reach 0 ends it: if that is the
    item's own nothing moves, and if not the item of that price is let go, and others move along the chain.
    """
    n_positions = workspace.item_at.size
    for k in range(n_positions):
        held = workspace.item_at[k]
        gain = scores[k, held] - workspace.prices[held]
        workspace.delays[k] = max(0.0, gain - (scores[k, item] - workspace.prices[item]))
        workspace.wanted[k] = item
        workspace.settled[k] = 0
    fall, last = workspace.prices[item], -1
    while True:
        nearest, delay = -1, fall
        for k in range(n_positions):
            if workspace.settled[k] == 0 and workspace.delays[k] < delay:
                nearest, delay = k, workspace.delays[k]
        if nearest < 0:
            break
        workspace.settled[nearest] = 1
        let_go = workspace.item_at[nearest]
        if delay + workspace.prices[let_go] < fall:
            fall, last = delay + workspace.prices[let_go], nearest
        for k in range(n_positions):
            if workspace.settled[k] == 0:
                held = workspace.item_at[k]
                slack = (scores[k, held] - workspace.prices[held]) - (scores[k, let_go] - workspace.prices[let_go])
                if delay + max(0.0, slack) < workspace.delays[k]:
                    workspace.delays[k] = delay + max(0.0, slack)
                    workspace.wanted[k] = let_go
    for k in range(n_positions):
        if workspace.settled[k] == 1 and workspace.delays[k] < fall:
            held = workspace.item_at[k]
            workspace.prices[held] = max(0.0, workspace.prices[held] - (fall - workspace.delays[k]))
    workspace.prices[item] = max(0.0, workspace.prices[item] - fall)
    if last < 0:
        return
    k = last
    workspace.position_of[workspace.item_at[k]] = -1
    workspace.prices[workspace.item_at[k]] = 0.0
    while True:
        taken = workspace.wanted[k]
        held_by = workspace.position_of[taken]
        workspace.item_at[k] = taken
        workspace.position_of[taken] = k
        if taken == item:
            return
        k = held_by


def best_assignment(scores: ArrayLike) -> tuple[Ranking, float]:
    """Return the ranking that maximises Σ_k scores[k, ranking[k]], and that sum.

    Parameters
    ----------
    scores
        Shape (K, M), finite, with K ≤ M.

    Examples
    --------
    >>> best_assignment([[3.0, 2.0, 0.0], [3.0, 1.0, 0.0]])
    (array([1, 0]), 5.0)
    """
    table = np.ascontiguousarray(scores, dtype=np.float64)
    if table.ndim != 2 or not 1 <= table.shape[0] <= table.shape[1]:
        raise InvalidInputError("scores", "must have shape (K, M) with 1 ≤ K ≤ M", table.shape)
    if not np.isfinite(table).all():
        raise InvalidInputError("scores", "must be finite", float(table[~np.isfinite(table)][0]))
    ranking = np.zeros(table.shape[0], dtype=np.uintp)
    total = assign(table, table.shape[1], new_assignment_workspace(table.shape[1], table.shape[0]), ranking)
    return ranking.astype(np.intp), float(total)


def slope(utility: Utility) -> float:
    """Return the slope of a linear utility: what a unit of value weighs against a unit of bonus."""
    return float(utility.of(1.0) - utility.of(0.0))


def _unsupported_reason(utility: Utility, _items: int, _positions: int) -> str | None:
    return None if utility.shape == "linear" else f"needs a linear utility, got {utility} ({utility.shape})"


def _run(instance: Instance, utility: Utility, _: SolverOptions) -> SolverResult:
    scores = np.zeros((instance.n_positions, instance.n_items))
    score_cells(instance, slope(utility) * instance.weights, instance.n_items, scores)
    ranking, total = best_assignment(scores)
    constant = float(utility.of(0.0)) * instance.weights.sum()
    return SolverResult(ranking, total + constant, 1)


SOLVER = Solver(_unsupported_reason, _run)
