"""The compiled functions of a policy."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Kernel(NamedTuple):
    """The compiled functions of a policy, which work on a state of its own.

    ``rank(state, user_type, t, parameters, rng, ranking)``
        Write the ranking of round t, given that round's row of `CompiledPolicy.parameters`.
    ``observe(state, user_type, t, ranking, rewards)``
        Learn from the rewards of a ranking; of its first positions if the ranking is short. Other rankings
        may have been made since, if rewards are delayed. What ``observe`` needs to know of the state that a
        ranking was made in belongs to the *note*: an int64 array of fixed size, the field ``note`` of the
        state, shape (L,). ``rank`` writes it, and the caller of ``observe`` puts it back for the ranking that
        the rewards are of. Without a delay it is still in place. A state without a note needs none.
    ``choose(state, restriction, workspace, user_type, t, parameters, rng, ranking)``
        Write the best ranking that a loaded `Restriction` allows, given the return value of
        `CompiledPolicy.init_choice`; None if the policy cannot restrict its rankings. It is compiled on first
        use, and never part of a simulation.
    ``ranks_first``
        Whether ``rank`` runs before ``choose``, which then reads what it wrote to the state and the ranking.
        This saves the compilation of its formulas in another function. If the state has a field
        ``is_deferred``, shape (1,), it is 1 meanwhile: ``rank`` leaves the ranking to ``choose``.
    """

    rank: Callable[..., None]
    observe: Callable[..., None]
    choose: Callable[..., None] | None = None
    ranks_first: bool = False


def state_note(state: Any) -> NDArray[np.int64]:
    """Return the note of a state, shape (L,); an empty one if it has none.

    Examples
    --------
    >>> state_note(None)
    array([], dtype=int64)
    """
    note = getattr(state, "note", None)
    return np.zeros(0, dtype=np.int64) if note is None else note
