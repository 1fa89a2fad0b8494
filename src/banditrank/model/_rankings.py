"""Rankings: the item at each of the K positions."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank.errors import InvalidInputError

Ranking: TypeAlias = NDArray[np.intp]


def as_ranking(
    items: Sequence[int] | NDArray[np.integer],
    *,
    n_items: int,
    n_positions: int,
    allow_short: bool = False,
) -> Ranking:
    """Return a ranking, shape (K,), after validation: one item for each position, all different.

    With ``allow_short`` it may hold fewer items, at least one, of the first positions.

    Raises
    ------
    InvalidInputError
        If the items are not K different integers from 0 to ``n_items - 1``.

    Examples
    --------
    >>> as_ranking([3, 0], n_items=5, n_positions=2)
    array([3, 0])
    """
    try:
        ranking = np.asarray(items)
    except ValueError:  # rows of different lengths
        ranking = np.empty(0)
    if allow_short and ranking.ndim == 1 and 0 < ranking.size < n_positions:
        n_positions = ranking.size
    if ranking.dtype.kind not in "iu" or ranking.shape != (n_positions,):
        raise InvalidInputError("ranking", f"must hold {n_positions} item numbers", items)
    if ranking.min() < 0 or ranking.max() >= n_items:
        raise InvalidInputError("ranking", f"must hold items 0 to {n_items - 1}", items)
    if len(np.unique(ranking)) < n_positions:
        raise InvalidInputError("ranking", "must not contain an item twice", items)
    return ranking.astype(np.intp)
