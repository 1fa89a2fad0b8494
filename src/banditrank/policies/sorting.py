"""The largest of many values, in order."""

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined


@inlined
def sort_largest(values: NDArray[np.float64], largest: NDArray[np.uintp]) -> None:
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
