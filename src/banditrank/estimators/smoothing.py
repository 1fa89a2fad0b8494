"""A smoothed start: pseudo-counts in place of an initial phase."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditrank.checks import check_number
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Smoothing:
    """As if every item had been shown at every position before, to users who look everywhere alike.

    Parameters
    ----------
    displays
        How often; more make the start slower to forget.
    mean
        The mean of every item then.

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
        """Return displays and rewards with pseudo-counts, shape (N, K, M)."""
        rewards = self.displays * self.mean / counts.n_positions
        return counts.displays_by_position + self.displays, counts.rewards_by_position + rewards

    def __str__(self) -> str:
        return f"{self.displays:.15g}:{self.mean:.15g}"
