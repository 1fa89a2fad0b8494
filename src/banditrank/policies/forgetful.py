"""Any policy, with a memory that forgets."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditrank.errors import InvalidInputError
from banditrank.policies.base import CompiledPolicy
from banditrank.policies.wrapper import PolicyWrapper
from banditrank.counts.forgetting import Forgetting, as_forgetting


@dataclass(frozen=True, init=False)
class Forgetful(PolicyWrapper):
    """A policy that learns from a window of the past, or from a past that counts less the older it is.

    Parameters
    ----------
    inner
        The policy. One that keeps statistics of its own cannot forget bit by bit: it starts afresh each time
        as many rounds have passed as its memory is long.
    memory
        What it remembers: a `Forgetting`, or ``window:ROUNDS`` or ``discount:ROUNDS``.

    Examples
    --------
    >>> from banditrank import UCBRank
    >>> Forgetful(UCBRank(0.5), "window:20000").describe()["memory"]
    'window:20000'
    """

    name: ClassVar[str] = "forgetful"

    memory: Forgetting

    def __init__(self, inner: CompiledPolicy, memory: Forgetting | str) -> None:
        if not isinstance(inner, CompiledPolicy):
            raise InvalidInputError("inner", "must be a CompiledPolicy (find_policy makes one)", inner)
        if not isinstance(memory, Forgetting | str):
            rule = "must be a Memory, or window:ROUNDS or discount:ROUNDS"
            raise InvalidInputError("memory", rule, memory)
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "memory", as_forgetting(memory) if isinstance(memory, str) else memory)
        shared = ("name", "treatment", "utility", "assumptions", "own_statistics", "distinguishes_user_types")
        for name in shared:
            object.__setattr__(self, name, getattr(inner, name))

    def describe(self) -> dict[str, Any]:
        """Return the inner policy's name and parameters, and the memory."""
        return {**self.inner.describe(), "memory": str(self.memory)}

    def fingerprint(self) -> dict[str, Any]:
        """Return the inner policy's, and the memory."""
        return {**self.inner.fingerprint(), "memory": str(self.memory)}

    def parameters(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the inner policy's, as if no more rounds had been played than are remembered."""
        return self.inner.parameters(np.minimum(rounds, self.memory.rounds))
