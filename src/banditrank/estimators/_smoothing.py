"""Additive smoothing: pseudo-counts in place of an initial phase."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_number
from banditrank.counts._counts import Counts

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Smoothing:
    """Pseudo-counts for every item at every position, with equal position preferences.

    Parameters
    ----------
    displays
        Pseudo-displays of each cell; more give the prior more weight.
    mean
        Prior mean of every item.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range.

    Examples
    --------
    >>> counts = Counts.empty(n_user_types=1, n_items=3, n_positions=2)
    >>> displays, rewards = Smoothing(displays=4.0).smoothed(counts)
    >>> displays[0, 0, 0], rewards[0, 0, 0]
    (np.float64(4.0), np.float64(1.0))
    """

    displays: float = 1.0
    mean: float = 0.5

    def __post_init__(self) -> None:
        check_number("smoothing's displays", self.displays, 1e-6, 1e9)
        check_number("smoothing's mean", self.mean, 1e-6, 1.0)

    def smoothed(self, counts: Counts) -> tuple[Floats, Floats]:
        """Return displays and rewards plus pseudo-counts, both of shape (N, K, M)."""
        rewards = self.displays * self.mean / counts.n_positions
        return counts.displays_by_position + self.displays, counts.rewards_by_position + rewards

    def __str__(self) -> str:
        return f"{self.displays:.15g}:{self.mean:.15g}"
