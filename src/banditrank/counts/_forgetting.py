"""Forgetting for non-stationary problems: sliding windows and discounts of counts.

Rounds are divided into buckets, each with its own counts. A policy learns from the sum of the buckets,
weighted by their age. Such counts stay additive: those of replicas or log files are merged bucket by bucket,
and any policy that learns from counts can forget.
"""

from collections import deque
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer
from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError, UnknownNameError

MAX_ROUNDS = 10**12
_N_BUCKETS = 20  # in a window, or in the time constant of a discount
_MIN_WEIGHT = 1e-3  # buckets of a smaller weight are dropped


@dataclass(frozen=True)
class Forgetting:
    """A weighting of past rounds by age.

    Parameters
    ----------
    kind
        ``window``: the last ``rounds`` rounds have weight 1, earlier ones 0. ``discount``: the weight of a
        round decays by a factor of e every ``rounds`` rounds.
    rounds
        The length of the window, or the time constant of the discount.

    Raises
    ------
    InvalidInputError
        If the kind is unknown, or the number of rounds is not positive.

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
        """Number of rounds in a bucket."""
        return -(-self.rounds // _N_BUCKETS)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Weights of the finished buckets, the most recent first."""
        if self.kind == "window":
            return np.ones(max(self.rounds // self.bucket_rounds - 1, 1))
        oldest = int(-np.log(_MIN_WEIGHT) * self.rounds / self.bucket_rounds)
        return np.exp(-np.arange(1, oldest + 1) * self.bucket_rounds / self.rounds)

    def __str__(self) -> str:
        return f"{self.kind}:{self.rounds}"


class BucketedCounts:
    """The counts of finished buckets, the most recent first.

    Parameters
    ----------
    forgetting
        The weights of the buckets.

    Examples
    --------
    >>> past = BucketedCounts(sliding_window(2))  # buckets of one round: only the last one has weight
    >>> bucket = Counts.from_arrays([[[1], [0]]], [[[1], [0]]], [1])
    >>> past.add(bucket)
    >>> past.add(bucket)
    >>> past.weighted_total(bucket).rounds
    1
    """

    def __init__(self, forgetting: Forgetting) -> None:
        self._forgetting = forgetting
        self._buckets: deque[Counts] = deque(maxlen=len(forgetting.weights))

    def add(self, bucket: Counts) -> None:
        """Add a finished bucket; a bucket without weight is dropped."""
        self._buckets.appendleft(bucket)

    def weighted_total(self, like: Counts) -> Counts:
        """Return the weighted sum of all buckets, with the shape of the given counts."""
        total = like.scaled(0.0)
        for weight, bucket in zip(self._forgetting.weights, self._buckets, strict=False):
            total += bucket.scaled(float(weight))
        return total


def sliding_window(rounds: int) -> Forgetting:
    """Return a sliding window over the last rounds, accurate to a twentieth of its length."""
    return Forgetting("window", rounds)


def discount(rounds: int) -> Forgetting:
    """Return an exponential discount: weights decay by a factor of e every ``rounds`` rounds."""
    return Forgetting("discount", rounds)


def as_forgetting(forgetting: Forgetting | str) -> Forgetting:
    """Return a forgetting, by name if a string is given.

    Parameters
    ----------
    forgetting
        A `Forgetting`, ``window:ROUNDS`` or ``discount:ROUNDS``.

    Raises
    ------
    InvalidInputError
        If the value is none of these.

    Examples
    --------
    >>> as_forgetting("window:5000")
    Forgetting(kind='window', rounds=5000)
    """
    if isinstance(forgetting, Forgetting):
        return forgetting
    kind, _, rounds = str(forgetting).partition(":")
    if not rounds.isascii() or not rounds.isdigit():
        raise InvalidInputError("memory", "must be window:ROUNDS or discount:ROUNDS", forgetting)
    return Forgetting(kind, int(rounds))
