"""Restrictions of rankings to allowed cells: which item may be at which position."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank.errors import InvalidInputError
from banditrank.model._rankings import Ranking

Booleans = NDArray[np.bool_]


class AllowedCells(NamedTuple):
    """The cells of all allowed rankings, by column; columns are the items of these rankings."""

    items: NDArray[np.intp]  # (C,) the item of each column, in increasing order
    cells: Booleans | None  # (K, C) whether an allowed ranking contains the cell; None if all do
    ranking: Ranking  # (K,) columns of an allowed ranking

    def columns_of(self, field: str, ranking: Ranking) -> Ranking:
        """Return the columns of a ranking's items, shape (K,).

        Raises
        ------
        InvalidInputError
            If a cell of the ranking is not allowed.
        """
        columns = np.minimum(np.searchsorted(self.items, ranking), self.items.size - 1)
        is_allowed = self.items[columns] == ranking
        if self.cells is not None:
            is_allowed &= self.cells[np.arange(ranking.size), columns]
        if not is_allowed.all():
            position = int(np.argmin(is_allowed))
            rule = "must hold allowed items only"
            raise InvalidInputError(field, rule, f"item {ranking[position]} at position {position}")
        return columns


def as_allowed_cells(allowed: ArrayLike, *, n_items: int, n_positions: int) -> AllowedCells:
    """Return the cells that rankings of allowed cells contain.

    An allowed cell that is in no such ranking is left out, for example that of an item that another position
    needs. Every remaining item can then be shown, as in a problem without a restriction.

    Parameters
    ----------
    allowed
        Whether an item may be at a position, shape (K, M), boolean.
    n_items, n_positions
        M and K.

    Raises
    ------
    InvalidInputError
        If the array is not boolean, has another shape, or allows no ranking.

    Examples
    --------
    >>> cells = as_allowed_cells([[True, True, True], [False, True, False]], n_items=3, n_positions=2)
    >>> cells.cells  # item 1 is needed at position 1
    array([[ True, False,  True],
           [False,  True, False]])
    >>> as_allowed_cells([[False, True, False], [False, True, False]], n_items=3, n_positions=2)
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: allowed must have an item of its own for each position, got 'only 1
        for positions 0, 1'
    """
    table = np.asarray(allowed)
    if table.dtype != np.bool_ or table.shape != (n_positions, n_items):
        rule = f"must be a boolean array of shape ({n_positions}, {n_items})"
        raise InvalidInputError("allowed", rule, f"{table.dtype} of shape {table.shape}")
    matching = _match(table)
    cells = _supported_cells(table, matching)
    items = np.flatnonzero(cells.any(axis=0))
    kept = np.ascontiguousarray(cells[:, items])
    return AllowedCells(items, None if kept.all() else kept, np.searchsorted(items, matching))


def _match(allowed: Booleans) -> Ranking:
    """Return a ranking of allowed cells, by augmenting paths."""
    n_positions, n_items = allowed.shape
    ranking = np.full(n_positions, -1, dtype=np.intp)
    position_of = np.full(n_items, -1, dtype=np.intp)
    for start in range(n_positions):
        came_from = np.full(n_items, -1, dtype=np.intp)  # the position from which an item was reached
        reached, last = [start], -1
        for position in reached:
            new = np.flatnonzero(allowed[position] & (came_from < 0))
            came_from[new] = position
            if (free := new[position_of[new] < 0]).size:
                last = int(free[0])
                break
            reached.extend(position_of[new].tolist())
        if last < 0:
            share = ", ".join(map(str, sorted(reached)))
            rule = "must have an item of its own for each position"
            raise InvalidInputError("allowed", rule, f"only {(came_from >= 0).sum()} for positions {share}")
        while last >= 0:
            position = came_from[last]
            position_of[last] = position
            ranking[position], last = last, ranking[position]
    return ranking


def _supported_cells(allowed: Booleans, ranking: Ranking) -> Booleans:
    """Return the cells that are in at least one ranking of allowed cells, shape (K, M).

    An item that the given ranking does not show can be shown at every position that allows it. An item that
    it shows at position p can be shown at position k if p can take an item that is not shown, directly or by
    moving other items, or if such moves end with the item at k.
    """
    n_positions = ranking.size
    moves = allowed[:, ranking]  # (K, K) position p may take the item at q
    for q in range(n_positions):
        moves |= moves[:, q : q + 1] & moves[q]
    is_unshown = np.ones(allowed.shape[1], dtype=np.bool_)
    is_unshown[ranking] = False
    can_replace = allowed[:, is_unshown].any(axis=1)  # (K,)
    can_leave = (moves & can_replace).any(axis=1)  # (K,) moves include each position itself
    cells = allowed.copy()
    cells[:, ranking] &= can_leave | moves.T
    return cells
