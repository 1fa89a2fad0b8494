"""Linear assignment of items to positions: the best ranking when its value is a sum over cells."""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._compilation import compiled, inlined, internal
from banditrank.errors import InvalidInputError
from banditrank.model._rankings import Ranking
from banditrank.solvers._instance import Instance, score_cells, smallest_instance
from banditrank.solvers._solver import Solver, SolverOptions, SolverResult
from banditrank.utilities._utility import UTILITARIAN, Utility

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class AssignmentWorkspace(NamedTuple):
    """Workspace of `assign`, and the prices of the last solution, from which the next one starts."""

    prices: Floats  # (M,) dual prices of the items; 0 for unassigned ones
    distances: Floats  # (M,)
    position_of: Indices  # (M,) −1 for unassigned items
    came_from: Indices  # (M,)
    reached: Indices  # (M,) 1 for items that the shortest-path search has reached
    item_at: Indices  # (K,)
    delays: Floats  # (K,) by how much a price must fall before a position prefers another item
    wanted: Indices  # (K,) the item that it then prefers
    settled: Indices  # (K,) 1 for positions whose delay is final


def new_assignment_workspace(n_items: int, n_positions: int) -> AssignmentWorkspace:
    """Allocate a workspace for the given sizes."""
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

    A score of −∞ forbids a cell; the sum is −∞ if no ranking is feasible.

    Shortest augmenting paths (Jonker and Volgenant 1987), with positions as rows. The prices of an earlier
    call let most positions find their item at once. Prices prove optimality only if unassigned items have
    price 0: the price of one that does not is lowered until it is 0, or the item is assigned.
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
def row_price(scores: Floats, k: int, n_items: int, prices: Floats) -> float:
    """Return max_j (scores[k, j] − price_j), the dual value of a position.

    For any prices ≥ 0, no assignment exceeds the sum of these over positions plus the sum of the prices.
    """
    row = -np.inf
    for j in range(n_items):
        row = max(row, scores[k, j] - prices[j])
    return row


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
def _augment(
    scores: Floats, n_items: int, workspace: AssignmentWorkspace, start: int, best_gain: float
) -> bool:
    """Assign an item to one more position along the shortest augmenting path; return whether there is one."""
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
            workspace.prices[j] += max(0.0, distance - workspace.distances[j])  # negative only by rounding
    item = nearest
    while True:
        k = workspace.came_from[item]
        workspace.position_of[item] = k
        workspace.item_at[k], item = item, workspace.item_at[k]
        if k == start:
            return True


@internal
def _lower_price(scores: Floats, workspace: AssignmentWorkspace, item: int) -> None:
    """Lower the price of an unassigned item until it is 0, or the item replaces one whose price is 0.

    As the price falls, positions come to prefer the item, one after the other; the prices of the items that
    they hold then fall with it, or they would release them. The first price to reach 0 ends the search: if it
    is the item's own, the assignment is unchanged; otherwise the item of that price is released, and the
    others move along the path.
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
        released = workspace.item_at[nearest]
        if delay + workspace.prices[released] < fall:
            fall, last = delay + workspace.prices[released], nearest
        for k in range(n_positions):
            if workspace.settled[k] == 0:
                held = workspace.item_at[k]
                slack = (scores[k, held] - workspace.prices[held]) - (
                    scores[k, released] - workspace.prices[released]
                )
                if delay + max(0.0, slack) < workspace.delays[k]:
                    workspace.delays[k] = delay + max(0.0, slack)
                    workspace.wanted[k] = released
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


def best_assignment(scores: ArrayLike, allowed: NDArray[np.bool_] | None = None) -> tuple[Ranking, float]:
    """Return the ranking that maximises Σ_k scores[k, ranking[k]], and that sum.

    Parameters
    ----------
    scores
        Shape (K, M), finite, with K ≤ M.
    allowed
        Whether an item may be at a position, shape (K, M), for at least one ranking; all may by default.

    Raises
    ------
    InvalidInputError
        If the scores have another shape, or are not finite.

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
    if allowed is not None:
        table = np.where(allowed, table, -np.inf)
    ranking = np.zeros(table.shape[0], dtype=np.uintp)
    total = assign(table, table.shape[1], new_assignment_workspace(table.shape[1], table.shape[0]), ranking)
    return ranking.astype(np.intp), float(total)


def slope(utility: Utility) -> float:
    """Return the slope of a linear utility."""
    return float(utility.evaluate(1.0) - utility.evaluate(0.0))


def _unsupported_reason(utility: Utility, _items: int, _positions: int) -> str | None:
    return None if utility.shape == "linear" else f"needs a linear utility, got {utility} ({utility.shape})"


def _run(instance: Instance, utility: Utility, options: SolverOptions) -> SolverResult:
    return _assign_items(instance, utility, options.allowed)


def _assign_items(
    instance: Instance, utility: Utility, allowed: NDArray[np.bool_] | None = None
) -> SolverResult:
    scores = np.zeros((instance.n_positions, instance.n_items))
    score_cells(instance, slope(utility) * instance.weights, instance.n_items, scores)
    ranking, total = best_assignment(scores, allowed)
    constant = float(utility.evaluate(0.0)) * instance.weights.sum()
    return SolverResult(ranking, total + constant, 1)


@cache
def _prepare() -> None:
    """Compile or load all formulas by solving the smallest instance."""
    _assign_items(smallest_instance(), UTILITARIAN)


SOLVER = Solver(_unsupported_reason, _run, _prepare)
