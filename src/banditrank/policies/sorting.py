"""The largest of many values, and where what they belong to is shown."""

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, inlined


@inlined
def top_k(values: NDArray[np.float64], largest: NDArray[np.uintp]) -> None:
    """Write the numbers of the largest values, as many as there is room for, by decreasing value.

    Ties go to the lower number.
    """
    kept = 0
    for j in range(values.size):
        if kept == largest.size and values[j] <= values[largest[kept - 1]]:
            continue
        place = min(kept, largest.size - 1)
        kept = place + 1
        while place > 0 and values[largest[place - 1]] < values[j]:
            largest[place] = largest[place - 1]
            place -= 1
        largest[place] = j


@inlined
def assign_in_order(
    items: NDArray[np.uintp], positions: NDArray[np.uintp], ranking: NDArray[np.uintp]
) -> None:
    """Write the ranking that shows the first item at the first of the positions, and so on."""
    for rank in range(ranking.size):
        ranking[positions[rank]] = items[rank]


@compiled
def largest(values: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Return where the largest value is, drawn uniformly if it is in several places.

    Examples
    --------
    >>> largest(np.array([0.2, 0.7, 0.5]), np.random.default_rng(0))
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
