"""Forgetting: how much the past counts, for worlds that change.

Time is cut into buckets of rounds, each with counts of its own. What is remembered is the sum of the buckets,
each weighed by its age. Such counts stay additive: those of two replicas or log files can still be merged,
bucket by bucket, and any policy that learns from counts forgets without knowing it.
"""

from collections import deque
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from banditrank.checks import check_integer
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.counts.counts import Counts

MAX_ROUNDS = 10**12
_BUCKETS = 20  # in a window, or in the time after which the past counts e times less
_FORGOTTEN = 1e-3  # weights below this are none


@dataclass(frozen=True)
class Forgetting:
    """How much the past counts.

    Parameters
    ----------
    kind
        ``window``: the last rounds count, those before do not. ``discount``: a round counts e times less
        after so many rounds.
    rounds
        How many.

    Examples
    --------
    >>> sliding_window(20_000).bucket_rounds
    1000
    >>> discount(20_000).weights[:3].round(3)
    array([0.951, 0.905, 0.861])
    """

    kind: str
    rounds: int

    def __post_init__(self) -> None:
        if self.kind not in ("window", "discount"):
            raise UnknownNameError("memory", self.kind, ("window:ROUNDS", "discount:ROUNDS"))
        check_integer("memory's rounds", self.rounds, 1, MAX_ROUNDS)

    @property
    def bucket_rounds(self) -> int:
        """Rounds in a bucket: what is forgotten at once."""
        return -(-self.rounds // _BUCKETS)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """What finished buckets count, the youngest first."""
        if self.kind == "window":
            return np.ones(max(self.rounds // self.bucket_rounds - 1, 1))
        oldest = int(-np.log(_FORGOTTEN) * self.rounds / self.bucket_rounds)
        return np.exp(-np.arange(1, oldest + 1) * self.bucket_rounds / self.rounds)

    def __str__(self) -> str:
        return f"{self.kind}:{self.rounds}"


class BucketedCounts:
    """The counts of the past, bucket by bucket.

    Examples
    --------
    >>> past = BucketedCounts(sliding_window(2))  # buckets of one round: the last finished one counts
    >>> bucket = Counts.from_arrays([[[1], [0]]], [[[1], [0]]], [1])
    >>> past.add(bucket)
    >>> past.add(bucket)
    >>> past.weighted_total(bucket).rounds
    1
    """

    def __init__(self, forgetting: Forgetting) -> None:
        self._memory = forgetting
        self._buckets: deque[Counts] = deque(maxlen=len(forgetting.weights))

    def add(self, bucket: Counts) -> None:
        """Add a finished bucket; what is too old is dropped."""
        self._buckets.appendleft(bucket)

    def weighted_total(self, like: Counts) -> Counts:
        """Return what the past amounts to, in counts of the given shape."""
        total = like.scaled(0.0)
        for weight, bucket in zip(self._memory.weights, self._buckets, strict=False):
            total += bucket.scaled(float(weight))
        return total


def sliding_window(rounds: int) -> Forgetting:
    """Remember the last rounds, to within a twentieth of them."""
    return Forgetting("window", rounds)


def discount(rounds: int) -> Forgetting:
    """Remember everything, a round e times less after so many rounds."""
    return Forgetting("discount", rounds)


def as_forgetting(text: str) -> Forgetting:
    """Return a memory by name, ``window:ROUNDS`` or ``discount:ROUNDS``.

    Examples
    --------
    >>> as_forgetting("window:5000")
    Memory(kind='window', rounds=5000)
    """
    kind, _, rounds = text.partition(":")
    if not rounds.isascii() or not rounds.isdigit():
        raise InvalidInputError("memory", "must be window:ROUNDS or discount:ROUNDS", text)
    return Forgetting(kind, int(rounds))
