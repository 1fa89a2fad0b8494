"""The arrays of counts, as compiled functions update them."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.counts._counts import Counts

Floats = NDArray[np.float64]


class CountArrays(NamedTuple):
    """The arrays of `Counts`, not copied."""

    displays: Floats  # (N, K, M)
    rewards: Floats  # (N, K, M)
    arrivals: Floats  # (N,)


def arrays_of(counts: Counts) -> CountArrays:
    """Return the arrays of counts, without copying them."""
    return CountArrays(counts.displays_by_position, counts.rewards_by_position, counts.arrivals)


class HasCountArrays(Protocol):
    """A state that includes the arrays of `Counts`."""

    @property
    def displays(self) -> Floats:
        """Shape (N, K, M)."""

    @property
    def rewards(self) -> Floats:
        """Shape (N, K, M)."""

    @property
    def arrivals(self) -> Floats:
        """Shape (N,)."""


@inlined
def record_round(arrays: HasCountArrays, user_type: int, ranking: NDArray[np.uintp], rewards: Floats) -> None:
    """Add one round: a ranking and its rewards, shape (K,) each."""
    arrays.arrivals[user_type] += 1.0
    for k in range(ranking.size):
        arrays.displays[user_type, k, ranking[k]] += 1.0
        arrays.rewards[user_type, k, ranking[k]] += rewards[k]
