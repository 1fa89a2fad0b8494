"""A wrapper that adds a memory to a policy, for problems that change."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.counts._forgetting import BucketedCounts, Forgetting, as_forgetting
from banditrank.errors import InvalidInputError
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._wrapper import PolicyWrapper


@dataclass(frozen=True, init=False)
class Forgetful(PolicyWrapper):
    """A policy that learns from a sliding window, or from discounted counts.

    Parameters
    ----------
    policy
        The policy. One with statistics of its own cannot discount them: it restarts each time as many rounds
        have passed as its memory is long.
    memory
        A `Forgetting`, or ``window:ROUNDS`` or ``discount:ROUNDS``.

    Raises
    ------
    InvalidInputError
        If the policy is not a `CompiledPolicy`, or the memory is not valid.

    Examples
    --------
    >>> from banditrank import UCBRank
    >>> Forgetful(UCBRank(coefficient=0.5), "window:20000").describe()["memory"]
    'window:20000'
    """

    name: ClassVar[str] = "forgetful"

    memory: Forgetting

    def __init__(self, policy: CompiledPolicy, memory: Forgetting | str) -> None:
        if not isinstance(policy, CompiledPolicy):
            raise InvalidInputError("policy", "must be a CompiledPolicy (make_policy returns one)", policy)
        if not isinstance(memory, Forgetting | str):
            rule = "must be a Forgetting, or window:ROUNDS or discount:ROUNDS"
            raise InvalidInputError("memory", rule, memory)
        object.__setattr__(self, "policy", policy)
        object.__setattr__(self, "memory", as_forgetting(memory) if isinstance(memory, str) else memory)
        shared = ("name", "treatment", "utility", "assumptions", "own_statistics", "guarantees")
        for name in (*shared, "has_candidates", "distinguishes_user_types"):
            object.__setattr__(self, name, getattr(policy, name))

    def describe(self) -> dict[str, Any]:
        """Return the wrapped policy's name and parameters, and the memory."""
        return {**self.policy.describe(), "memory": str(self.memory)}

    def fingerprint(self) -> dict[str, Any]:
        """Return the wrapped policy's fingerprint, and the memory."""
        return {**self.policy.fingerprint(), "memory": str(self.memory)}

    def parameters(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the wrapped policy's parameters, with rounds capped at the length of the memory."""
        return self.policy.parameters(np.minimum(rounds, self.memory.rounds))


class ForgettingCounts:
    """The time buckets behind counts that a policy learns from.

    Parameters
    ----------
    memory
        How much past buckets count.
    like
        Counts of the shape to expect. Counts in them belong to the first bucket.
    """

    def __init__(self, memory: Forgetting, like: Counts) -> None:
        self._buckets = BucketedCounts(memory)
        self._at_bucket_start = like.scaled(0.0)

    def end_bucket(self, counts: Counts) -> Counts:
        """End a bucket.

        Parameters
        ----------
        counts
            What the policy remembered at the start of the bucket, and the rounds since.

        Returns
        -------
        Counts
            What it remembers from here on.
        """
        self._buckets.add(_difference(counts, self._at_bucket_start))
        remembered = self._buckets.weighted_total(counts)
        self._at_bucket_start = remembered.copy()
        return remembered


def _difference(after: Counts, before: Counts) -> Counts:
    """Return what was added; rounding must not make it negative."""
    return Counts(
        np.maximum(after.displays_by_position - before.displays_by_position, 0.0),
        np.maximum(after.rewards_by_position - before.rewards_by_position, 0.0),
        np.maximum(after.arrivals - before.arrivals, 0.0),
        max(after.rounds - before.rounds, 0),
    )
