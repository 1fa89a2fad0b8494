"""Top-k selection, and assignment of the top items to positions."""

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, inlined


@inlined
def top_k(values: NDArray[np.float64], indices: NDArray[np.uintp]) -> None:
    """Write the indices of the k largest values by decreasing value, shape (k,).

    Ties go to the lower index.
    """
    kept = 0
    for j in range(values.size):
        if kept == indices.size and values[j] <= values[indices[kept - 1]]:
            continue
        place = min(kept, indices.size - 1)
        kept = place + 1
        while place > 0 and values[indices[place - 1]] < values[j]:
            indices[place] = indices[place - 1]
            place -= 1
        indices[place] = j


@inlined
def assign_in_order(
    items: NDArray[np.uintp], positions: NDArray[np.uintp], ranking: NDArray[np.uintp]
) -> None:
    """Write the ranking that shows the r-th item at the r-th position, all of shape (K,)."""
    for rank in range(ranking.size):
        ranking[positions[rank]] = items[rank]


@compiled
def random_argmax(values: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Return the index of the largest value; ties are broken uniformly at random.

    Examples
    --------
    >>> random_argmax(np.array([0.2, 0.7, 0.5]), np.random.default_rng(0))
    1
    """
    best, ties = 0, 1
    for place in range(1, values.size):
        if values[place] > values[best]:
            best, ties = place, 1
        elif values[place] == values[best]:
            ties += 1
            if rng.random() * ties < 1.0:
                best = place
    return best
