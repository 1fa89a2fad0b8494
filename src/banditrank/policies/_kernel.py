"""The compiled functions of a policy."""

from collections.abc import Callable
from typing import NamedTuple


class Kernel(NamedTuple):
    """The compiled functions of a policy, which work on a state of its own.

    ``rank(state, user_type, t, parameters, rng, ranking)``
        Write the ranking of round t, given that round's row of `CompiledPolicy.parameters`.
    ``observe(state, user_type, t, ranking, rewards)``
        Learn from the rewards of a ranking.
    """

    rank: Callable[..., None]
    observe: Callable[..., None]
