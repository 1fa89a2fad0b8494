"""Statistics of pairs of items: who was clicked when the other was not."""

import numpy as np
from numpy.typing import NDArray

from banditrank.statistics.counts import Counts

Floats = NDArray[np.float64]


def no_wins(counts: Counts) -> Floats:
    """Return room for the wins of each item over each, shape (copies, M, M).

    With W_ij such wins of i over j, the papers' statistics are S_ij = W_ij − W_ji, the sum of the pair's
    differences, and N_ij = W_ij + W_ji, the sum of their sizes.
    """
    return np.zeros((counts.n_user_types, counts.n_items, counts.n_items))


def wins_of_kept(wins: Floats, kept: NDArray[np.intp]) -> Floats:
    """Return the wins among the items that there are now.

    Parameters
    ----------
    wins
        Those among the items until now, shape (copies, items, items).
    kept
        For each item its number until now, −1 for a new one, which has neither won nor lost.

    Examples
    --------
    >>> wins_of_kept(np.array([[[0.0, 3.0], [2.0, 0.0]]]), np.array([1, -1, 0]))[0]
    array([[0., 0., 2.],
           [0., 0., 0.],
           [3., 0., 0.]])
    """
    known = np.where((kept[:, None] >= 0) & (kept[None, :] >= 0), wins[:, kept][:, :, kept], 0.0)
    return np.ascontiguousarray(known)
