"""The posterior sample that a ranking was chosen for."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SampledProblem:
    """A posterior sample of the problem: of one user type, or of all types under equal treatment.

    Attributes
    ----------
    arrival_rates
        Weights of the user types, shape (n,); 1 for a single type.
    position_preferences
        Shape (n, K).
    item_means
        Shape (n, M). A sample may exceed the maximum reward.
    """

    arrival_rates: Floats
    position_preferences: Floats
    item_means: Floats
