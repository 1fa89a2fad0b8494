"""Samples of the ranking lists of a cube, of bounded size."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._click_cube import ClickCube, CubeLists

MAX_SCORED_LISTS = 200_000
"""Maximum number of distinct ranking lists that are scored; of more, a sample is."""


def sample_lists(cube: ClickCube, maximum: int) -> CubeLists:
    """Return all distinct lists, or a random sample of them if there are more than the maximum.

    Parameters
    ----------
    cube
        The counts of a log.
    maximum
        Maximum number of distinct lists.
    """
    lists = cube.lists
    if lists.fold.size <= maximum:
        return lists
    chosen = np.sort(np.random.default_rng(0).choice(lists.fold.size, maximum, replace=False))
    return take_lists(lists, chosen)


def take_lists(lists: CubeLists, chosen: NDArray[Any]) -> CubeLists:
    """Return the lists of some indices, or of a mask."""
    return CubeLists(
        lists.fold[chosen],
        lists.user_type[chosen],
        lists.items[chosen],
        lists.clicks[chosen],
        lists.visits[chosen],
    )
