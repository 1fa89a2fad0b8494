"""Lists of the cells that have displays, for formulas that would otherwise read thousands of empty cells.

With many items a user type sees few of the cells of item and position for long. Their lists are kept while
that is so; afterwards, and with few items, formulas read all cells.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import internal

Floats = NDArray[np.float64]

MIN_CELLS = 4096
"""Number of cells of a type from which on they are listed."""

_LISTED_SHARE = 0.25  # of the cells of a type, up to which they are listed


class DisplayedCells(NamedTuple):
    """Cells and items with displays of each type, in the order of their first display."""

    n_cells: NDArray[np.intp]  # (N,) −1 if they are not listed
    positions: NDArray[np.uint16]  # (N, C)
    items: NDArray[np.uint32]  # (N, C)
    n_items: NDArray[np.intp]  # (N,)
    displayed_items: NDArray[np.uint32]  # (N, M); (N, 0) if there are too few cells for lists
    is_displayed: NDArray[np.bool_]  # (N, M), likewise


def find_displayed_cells(displays: Floats) -> DisplayedCells:
    """Return the cells with displays.

    Parameters
    ----------
    displays
        Shape (N, K, M).

    Examples
    --------
    >>> displays = np.zeros((1, 2, 5000))
    >>> displays[0, 1, [7, 9]] = 1.0
    >>> cells = find_displayed_cells(displays)
    >>> cells.n_cells, cells.items[0, :2], cells.positions[0, :2]
    (array([2]), array([7, 9], dtype=uint32), array([1, 1], dtype=uint16))
    """
    n, k, m = displays.shape
    is_listed = MIN_CELLS <= k * m <= np.iinfo(np.uint32).max
    capacity = int(k * m * _LISTED_SHARE) if is_listed else 0
    n_listed = m if is_listed else 0
    cells = DisplayedCells(
        np.full(n, -1),
        np.zeros((n, capacity), dtype=np.uint16),
        np.zeros((n, capacity), dtype=np.uint32),
        np.zeros(n, dtype=np.intp),
        np.zeros((n, n_listed), dtype=np.uint32),
        np.zeros((n, n_listed), dtype=np.bool_),
    )
    for i in range(n if is_listed else 0):
        positions, items = np.nonzero(displays[i])
        if len(items) <= capacity:
            cells.n_cells[i] = len(items)
            cells.positions[i, : len(items)] = positions
            cells.items[i, : len(items)] = items
        found = np.unique(items)
        cells.n_items[i] = len(found)
        cells.displayed_items[i, : len(found)] = found
        cells.is_displayed[i, found] = True
    return cells


@internal
def add_displayed_cell(cells: DisplayedCells, user_type: int, position: int, item: int) -> None:
    """Add a cell at its first display."""
    i = user_type
    if cells.displayed_items.shape[1] == 0:
        return
    if not cells.is_displayed[i, item]:
        cells.is_displayed[i, item] = True
        cells.displayed_items[i, cells.n_items[i]] = item
        cells.n_items[i] += 1
    size = cells.n_cells[i]
    if size == cells.items.shape[1]:
        cells.n_cells[i] = -1
    elif size >= 0:
        cells.positions[i, size] = position
        cells.items[i, size] = item
        cells.n_cells[i] = size + 1
