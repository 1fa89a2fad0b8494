"""The world that a policy drew when it chose a ranking: why it chose that one."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SampledProblem:
    """What a policy took for true for one ranking: of one user type, or of all under equal treatment.

    Attributes
    ----------
    arrival_rates
        The weights of the types, shape (n,); 1 for a single one.
    position_preferences
        Shape (n, K).
    item_means
        Shape (n, M). A draw may exceed what is possible.
    """

    arrival_rates: Floats
    position_preferences: Floats
    item_means: Floats
