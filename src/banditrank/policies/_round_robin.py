"""Round-robin exploration: line 2 of Algorithms 2 and 3, [(n + k) mod M] + 1 → k for k = 1..K."""

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined


@inlined
def round_robin(turn: int, n_items: int, ranking: NDArray[np.uintp]) -> None:
    """Write the ranking of a turn (the paper's t or I_explore), shape (K,), items and positions from 0."""
    for position in range(ranking.size):
        ranking[position] = (turn + position + 1) % n_items
