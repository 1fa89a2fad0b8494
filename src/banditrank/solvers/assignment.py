"""The best assignment of items to positions, when a ranking's worth is a sum over its cells."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank.compilation import compiled, inlined, internal
from banditrank.errors import InvalidInputError
from banditrank.model.rankings import Ranking
from banditrank.solvers.instance import Instance, score_cells
from banditrank.solvers.method import Limits, Method, Outcome
from banditrank.utilities.utility import Utility

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class AssignmentRoom(NamedTuple):
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


def assignment_room(n_items: int, n_positions: int) -> AssignmentRoom:
    """Return room for problems of a size."""
    return AssignmentRoom(
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
def assign(scores: Floats, n_items: int, room: AssignmentRoom, ranking: NDArray[np.uintp]) -> float:
    """Write the ranking that maximises Σ_k scores[k, ranking[k]] over the first items, and return that sum.

    Where an item may not stand the score is −∞; so is the sum if no ranking is allowed.

    Shortest augmenting paths (Jonker and Volgenant 1987), rows being positions. Prices left by an earlier
    call make most positions find their item at once. They prove optimality only if items that end up unshown
    cost nothing; the price of one that does is lowered until it does not, or is shown.
    """
    if not _match(scores, n_items, room):
        for j in range(n_items):
            room.prices[j] = 0.0
        return -np.inf
    for j in range(n_items):
        if room.position_of[j] < 0 and room.prices[j] > 0.0:
            _lower(scores, room, j)
    total = 0.0
    for k in range(ranking.size):
        ranking[k] = room.item_at[k]
        total += scores[k, room.item_at[k]]
    return total


@inlined
def _match(scores: Floats, n_items: int, room: AssignmentRoom) -> bool:
    n_positions = scores.shape[0]
    for j in range(n_items):
        room.position_of[j] = -1
    for k in range(n_positions):
        best = 0
        best_gain = scores[k, 0] - room.prices[0]
        for j in range(1, n_items):
            gain = scores[k, j] - room.prices[j]
            if gain > best_gain:
                best, best_gain = j, gain
        if best_gain == -np.inf:
            return False
        if room.position_of[best] < 0:
            room.position_of[best] = k
            room.item_at[k] = best
        elif not _augment(scores, n_items, room, k, best_gain):
            return False
    return True


@internal
def _augment(scores: Floats, n_items: int, room: AssignmentRoom, start: int, best_gain: float) -> bool:
    """Give one more position an item, moving others along the cheapest chain; return whether there is one."""
    for j in range(n_items):
        room.distances[j] = best_gain - (scores[start, j] - room.prices[j])
        room.came_from[j] = start
        room.reached[j] = 0
    while True:
        nearest = -1
        distance = np.inf
        for j in range(n_items):
            if room.reached[j] == 0 and room.distances[j] < distance:
                nearest, distance = j, room.distances[j]
        if nearest < 0:
            return False
        room.reached[nearest] = 1
        k = room.position_of[nearest]
        if k < 0:
            break
        held = scores[k, nearest] - room.prices[nearest]
        for j in range(n_items):
            if room.reached[j] == 0:
                reached = distance + held - (scores[k, j] - room.prices[j])
                if reached < room.distances[j]:
                    room.distances[j] = reached
                    room.came_from[j] = k
    for j in range(n_items):
        if room.reached[j] == 1:
            room.prices[j] += max(0.0, distance - room.distances[j])  # no less than 0 but for rounding
    item = nearest
    while True:
        k = room.came_from[item]
        room.position_of[item] = k
        room.item_at[k], item = item, room.item_at[k]
        if k == start:
            return True


@internal
def _lower(scores: Floats, room: AssignmentRoom, item: int) -> None:
    """Lower the price of an unshown item until it is 0, or the item takes the place of one whose price is.

    As the price falls, positions come to want the item, one after the other; the prices of the items that
    they hold then fall with it, or they would let them go. The first price to reach 0 ends it: if that is the
    item's own nothing moves, and if not the item of that price is let go, and others move along the chain.
    """
    n_positions = room.item_at.size
    for k in range(n_positions):
        held = room.item_at[k]
        gain = scores[k, held] - room.prices[held]
        room.delays[k] = max(0.0, gain - (scores[k, item] - room.prices[item]))
        room.wanted[k] = item
        room.settled[k] = 0
    fall, last = room.prices[item], -1
    while True:
        nearest, delay = -1, fall
        for k in range(n_positions):
            if room.settled[k] == 0 and room.delays[k] < delay:
                nearest, delay = k, room.delays[k]
        if nearest < 0:
            break
        room.settled[nearest] = 1
        let_go = room.item_at[nearest]
        if delay + room.prices[let_go] < fall:
            fall, last = delay + room.prices[let_go], nearest
        for k in range(n_positions):
            if room.settled[k] == 0:
                held = room.item_at[k]
                slack = (scores[k, held] - room.prices[held]) - (scores[k, let_go] - room.prices[let_go])
                if delay + max(0.0, slack) < room.delays[k]:
                    room.delays[k] = delay + max(0.0, slack)
                    room.wanted[k] = let_go
    for k in range(n_positions):
        if room.settled[k] == 1 and room.delays[k] < fall:
            held = room.item_at[k]
            room.prices[held] = max(0.0, room.prices[held] - (fall - room.delays[k]))
    room.prices[item] = max(0.0, room.prices[item] - fall)
    if last < 0:
        return
    k = last
    room.position_of[room.item_at[k]] = -1
    room.prices[room.item_at[k]] = 0.0
    while True:
        taken = room.wanted[k]
        held_by = room.position_of[taken]
        room.item_at[k] = taken
        room.position_of[taken] = k
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
    total = assign(table, table.shape[1], assignment_room(table.shape[1], table.shape[0]), ranking)
    return ranking.astype(np.intp), float(total)


def slope(utility: Utility) -> float:
    """Return the slope of a linear utility: what a unit of value weighs against a unit of bonus."""
    return float(utility.evaluate(1.0) - utility.evaluate(0.0))


def _refuse(utility: Utility, _items: int, _positions: int) -> str | None:
    return None if utility.shape == "linear" else f"needs a linear utility, got {utility} ({utility.shape})"


def _run(instance: Instance, utility: Utility, _: Limits) -> Outcome:
    scores = np.zeros((instance.n_positions, instance.n_items))
    score_cells(instance, slope(utility) * instance.weights, instance.n_items, scores)
    ranking, total = best_assignment(scores)
    constant = float(utility.evaluate(0.0)) * instance.weights.sum()
    return Outcome(ranking, total + constant, 1)


METHOD = Method(_refuse, _run)
