"""Statistics of items, and of pairs of items, when items come and go."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def carried_over(values: NDArray[Any], kept: NDArray[np.intp], fill: float = 0.0) -> NDArray[Any]:
    """Return statistics of items, on the last axis, after items came and went.

    Parameters
    ----------
    values
        The statistics until now.
    kept
        For each item its number until now, −1 for a new one.
    fill
        The statistic of a new item.

    Examples
    --------
    >>> carried_over(np.array([[5.0, 6.0, 7.0]]), np.array([2, -1, 0]))
    array([[7., 0., 5.]])
    """
    known = values[..., np.maximum(kept, 0)]
    return np.ascontiguousarray(np.where(kept >= 0, known, values.dtype.type(fill)))


def pairs_carried_over(values: NDArray[Any], kept: NDArray[np.intp]) -> NDArray[Any]:
    """Return statistics of pairs of items, on the last two axes; there are none of a new item.

    Examples
    --------
    >>> pairs_carried_over(np.array([[0.0, 3.0], [2.0, 0.0]]), np.array([1, -1, 0]))
    array([[0., 0., 2.],
           [0., 0., 0.],
           [3., 0., 0.]])
    """
    by_first = carried_over(values.swapaxes(-1, -2), kept).swapaxes(-1, -2)
    return carried_over(by_first, kept)
