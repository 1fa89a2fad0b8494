"""BubbleRank's base lists: where they come from, and when neighbours in them change places for good."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.errors import InvalidInputError
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class BaseLists(NamedTuple):
    """The base list of each copy, and who won over whom when a coin had decided which of them came first.

    The paper's S_ij, the sum of a pair's differences, is W_ij − W_ji, and N_ij, of their sizes, W_ij + W_ji.
    """

    items: Indices  # (N, M) the list's K items, then the hidden ones, in no order
    wins: Floats  # (N, M, M) W_ij: i was clicked and j, its neighbour, was not
    log_odds: float  # ln(1 / δ)


def init_base_lists(counts: Counts, rows: tuple[tuple[int, ...], ...] | None) -> Indices:
    """Return all items, those of the base list first, shape (copies, M).

    Parameters
    ----------
    counts
        What the items have earned, by which they are sorted if there are no rows.
    rows
        The lists, K items or more, a row for each copy or one for all.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[9], [4], [0]]], [[[3], [2], [0]]], [13])
    >>> init_base_lists(counts, None), init_base_lists(counts, ((2,),))
    (array([[1, 0, 2]]), array([[2, 0, 1]]))
    """
    n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
    if rows is None:
        displays, rewards = counts.displays_by_position.sum(axis=1), counts.rewards_by_position.sum(axis=1)
        rates = np.divide(rewards, displays, out=np.zeros((n, m)), where=displays > 0)
        return np.argsort(-rates, axis=1, kind="stable").astype(np.intp)
    if len(rows) not in (1, n) or any(len(row) < k or max(row) >= m for row in rows):
        raise InvalidInputError("base", f"must have 1 or {n} rows of {k} or more of {m} items", rows)
    lists = [[*row, *(item for item in range(m) if item not in row)] for row in rows]
    return np.array([lists[copy % len(lists)] for copy in range(n)], dtype=np.intp)


@inlined
def beats(lists: BaseLists, user_type: int, item: int, other: int) -> bool:
    """Return whether an item is known to be better than another: S > 2 √(N ln(1/δ))."""
    won, lost = lists.wins[user_type, item, other], lists.wins[user_type, other, item]
    lead = won - lost
    return bool(lead > 0.0 and lead * lead > 4.0 * (won + lost) * lists.log_odds)


@inlined
def exchange(lists: BaseLists, user_type: int, n_positions: int) -> bool:
    """Move items up that are known to be better than the one above; return whether there were any."""
    i, items = user_type, lists.items
    changed = False
    for place in range(1, items.shape[1]):
        above = min(place, n_positions) - 1  # all hidden items are next to the last of the list
        if beats(lists, i, items[i, place], items[i, above]):
            items[i, place], items[i, above] = items[i, above], items[i, place]
            changed = True
    return changed
