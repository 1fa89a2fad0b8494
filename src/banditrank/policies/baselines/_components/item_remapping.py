"""Remapping of per-item and pairwise statistics when items change."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def remap_items(values: NDArray[Any], previous: NDArray[np.intp], fill: float = 0.0) -> NDArray[Any]:
    """Return per-item statistics, on the last axis, after items changed.

    Parameters
    ----------
    values
        Previous statistics, shape (..., M before).
    previous
        Previous index of each item, −1 for a new one, shape (M,).
    fill
        Statistic of a new item.

    Examples
    --------
    >>> remap_items(np.array([[5.0, 6.0, 7.0]]), np.array([2, -1, 0]))
    array([[7., 0., 5.]])
    """
    known = values[..., np.maximum(previous, 0)]
    return np.ascontiguousarray(np.where(previous >= 0, known, values.dtype.type(fill)))


def remap_item_pairs(values: NDArray[Any], previous: NDArray[np.intp]) -> NDArray[Any]:
    """Return pairwise statistics, on the last two axes, after items changed; those of new items are 0.

    Examples
    --------
    >>> remap_item_pairs(np.array([[0.0, 3.0], [2.0, 0.0]]), np.array([1, -1, 0]))
    array([[0., 0., 2.],
           [0., 0., 0.],
           [3., 0., 0.]])
    """
    by_first = remap_items(values.swapaxes(-1, -2), previous).swapaxes(-1, -2)
    return remap_items(by_first, previous)
