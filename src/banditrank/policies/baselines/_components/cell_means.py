"""Mean rewards of cells and widths 1/√N of their confidence bounds, kept up to date round by round."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.policies._count_arrays import record_round

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


def init_cell_means(
    displays: Floats, rewards: Floats, *, unshown_mean: float, unshown_width: float
) -> tuple[Floats, Floats]:
    """Return the mean reward and the width of each cell, and given numbers for cells without displays.

    Parameters
    ----------
    displays, rewards
        Shape (copies, K, M), like the results.
    unshown_mean, unshown_width
        Mean and width of a cell without displays.

    Examples
    --------
    >>> means, widths = init_cell_means(
    ...     np.array([[[4.0, 0.0]]]), np.array([[[1.0, 0.0]]]), unshown_mean=1.0, unshown_width=0.0
    ... )
    >>> means, widths
    (array([[[0.25, 1.  ]]]), array([[[0.5, 0. ]]]))
    """
    means, widths = np.full(displays.shape, unshown_mean), np.full(displays.shape, unshown_width)
    np.divide(rewards, displays, out=means, where=displays > 0)
    np.divide(1.0, np.sqrt(displays), out=widths, where=displays > 0)
    return means, widths


@inlined
def observe_cells(state: Any, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:  # noqa: ARG001
    """Record a round, and update ``means`` and ``widths``: ``observe`` of a `Kernel`."""
    i = user_type
    record_round(state, i, ranking, rewards)
    for k in range(ranking.size):
        j = ranking[k]
        state.means[i, k, j] = state.rewards[i, k, j] / state.displays[i, k, j]
        state.widths[i, k, j] = 1.0 / math.sqrt(state.displays[i, k, j])
