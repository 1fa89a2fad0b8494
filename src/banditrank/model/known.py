"""What is known or estimated of a world."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class ProblemLike(Protocol):
    """What is known or estimated of a world: a `Problem`, or `Estimates`."""

    @property
    def arrival_rates(self) -> Floats:
        """λ, shape (N,)."""

    @property
    def position_preferences(self) -> Floats:
        """ρ, shape (N, K)."""

    @property
    def item_means(self) -> Floats:
        """μ, shape (N, M)."""
