"""Lotteries of a snapshot, from which every ranking is drawn by its own nonce."""

import hashlib
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate

from banditrank.engine._experiment import random_point


@dataclass(frozen=True)
class ServedLottery:
    """A lottery over rankings, the same for all users or for those of a type.

    Parameters
    ----------
    rankings
        Item numbers of each ranking, the most probable first.
    probabilities
        Probability of each ranking.
    kept_factor
        Share of all guarantees that the lottery keeps by the beliefs that it was made from; 1 unless they
        cannot be kept together there.

    Examples
    --------
    >>> lottery = ServedLottery(((2, 0), (1, 0)), (0.75, 0.25))
    >>> [lottery.draw(number.to_bytes(8)) for number in range(8)]
    [0, 0, 0, 1, 1, 0, 0, 0]
    """

    rankings: tuple[tuple[int, ...], ...]
    probabilities: tuple[float, ...]
    kept_factor: float = 1.0

    def draw(self, nonce: bytes) -> int:
        """Return the index of the ranking that a nonce draws."""
        index = bisect_right(self._ends, draw_point(nonce))
        return min(index, len(self.probabilities) - 1)  # the probabilities sum to 1 but for rounding

    @cached_property
    def _ends(self) -> tuple[float, ...]:
        """Points up to which each ranking is drawn."""
        return tuple(accumulate(self.probabilities))


def draw_point(nonce: bytes) -> float:
    """Return the point in [0, 1) at which a nonce draws from a lottery.

    Ranking r is drawn if the point is below the sum of the first r probabilities, and not below that of the
    first r − 1.

    Examples
    --------
    >>> round(draw_point(bytes(8)), 2)
    0.46
    """
    return random_point(partial(_digest, nonce))


def _digest(nonce: bytes, size: int) -> bytes:
    return hashlib.blake2s(nonce, digest_size=size, person=b"lottery").digest()
