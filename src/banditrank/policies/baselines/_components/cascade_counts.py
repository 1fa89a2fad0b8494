"""Observations of items in the cascade model: examinations, and first clicks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.policies._count_arrays import record_round

Floats = NDArray[np.float64]


@inlined
def record_cascade(
    state: Any, user_type: int, ranking: NDArray[np.uintp], rewards: Floats, n_visible: int
) -> None:
    """Record a round in the counts of a state, and what users examine in its ``looks`` and ``clicks``.

    Items below the first click are not examined; without a click, those in the first positions are.

    Parameters
    ----------
    state
        A named tuple with the fields of `CountArrays`, ``positions`` in the order of examination, and
        ``looks`` and ``clicks`` of shape (copies, M).
    user_type, ranking, rewards
        The round.
    n_visible
        Number of positions that users without a click examine.
    """
    record_round(state, user_type, ranking, rewards)
    n_examined = min(n_visible, ranking.size)
    for rank in range(ranking.size):
        position = state.positions[user_type, rank]
        if rewards[position] > 0.0:
            state.clicks[user_type, ranking[position]] += 1.0
            n_examined = rank + 1
            break
    for rank in range(n_examined):
        state.looks[user_type, ranking[state.positions[user_type, rank]]] += 1.0
