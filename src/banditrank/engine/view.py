"""Rankings from the counts of one moment.

A view does not change: all rankings made from it are functions of its counts, and of the ranking's key under
personalized treatment. So they can be made again, to explain them.

Under equal treatment a view has one ranking. Who asks does not enter: the randomness of a policy that
explores is drawn for the counts, not for the user.
"""

import hashlib
import threading
from typing import Any

import numpy as np

from banditrank.compilation import locked_entry, quick_entry
from banditrank.engine.surface import Surface
from banditrank.policies.base import CompiledPolicy, call_rank
from banditrank.policies.drawn_world import DrawnWorld
from banditrank.statistics.counts import Counts

_MANY_CALLS = 20  # after which it pays to make them quick
_INCREMENT = 0xDA3E39CB94B95BDB5851F42D4C957F2D  # of the generator; any odd number will do


class View:
    """What to show, by the counts up to a version.

    Parameters
    ----------
    surface
        Its definition at that time.
    revision, version
        Of the definition and of the counts.
    counts
        Of the items that can be shown, in the order of their numbers.
    """

    def __init__(self, surface: Surface, revision: int, version: int, counts: Counts) -> None:
        self.surface = surface
        self.revision = revision
        self.version = version
        self.counts = counts
        self.numbers = surface.shown_numbers
        self.type_numbers = {name: number for number, name in enumerate(surface.user_types)}
        self._policy = surface.made_policy
        self._lock = threading.Lock()  # a policy's state has room to work in
        self._bits: Any = np.random.PCG64()  # its state has a type of its own
        self._rng = np.random.Generator(self._bits)
        stateless = self._policy.new_scratch() is None
        self._prepared = _Prepared(self._policy, counts, self._rng) if stateless else None
        self._for_everybody: tuple[int, ...] | None = None
        if surface.treatment == "equal":
            seed = f"{surface.name} {revision} {version}".encode()
            self._for_everybody = self._rank(0, seed)

    def rank(self, user_type: int, key: bytes) -> tuple[int, ...]:
        """Return the numbers of the items to show, in order of positions.

        Parameters
        ----------
        user_type
            Who asks; of no account under equal treatment.
        key
            The ranking's, which its randomness is drawn from; of no account likewise.
        """
        if self._for_everybody is not None:
            return self._for_everybody
        return self._rank(user_type, key)

    def drawn_world(self, user_type: int, key: bytes) -> DrawnWorld | None:
        """Return the world that `rank` finds the ranking to be best in, None if the policy draws none.

        Items are in the order of the counts.
        """
        with self._lock:
            if self._prepared is None:
                return None
            if self._for_everybody is None:  # else nothing was drawn since
                self._choose(user_type, key)
            return self._policy.drawn_world(self._prepared.state)

    def _rank(self, user_type: int, seed: bytes) -> tuple[int, ...]:
        with self._lock:
            return self._choose(user_type, seed)

    def _choose(self, user_type: int, seed: bytes) -> tuple[int, ...]:
        self._bits.state = _generator_state(seed)
        if self._prepared is not None:
            chosen = self._prepared.rank(user_type)
        else:
            chosen = self._policy.rank(self.counts, user_type, rng=self._rng).tolist()
        return tuple([self.numbers[place] for place in chosen])


class _Prepared:
    """A policy's formulas on a state that is made once."""

    def __init__(self, policy: CompiledPolicy, counts: Counts, rng: np.random.Generator) -> None:
        self._blind = not policy.distinguishes_user_types
        known = counts.pooled() if self._blind else counts
        self._formula = policy.kernel(n_items=known.n_items, n_positions=known.n_positions).rank
        now = known.rounds + 1
        self.state = policy.start(known, None)
        self._ranking = np.zeros(known.n_positions, dtype=np.uintp)
        self._after_type = (now, policy.parameters(np.array([now]))[0], rng, self._ranking)
        self._entry = locked_entry(call_rank, self._formula)
        self._calls = 0

    def rank(self, user_type: int) -> list[int]:
        self._calls += 1
        if self._calls == _MANY_CALLS:
            self._entry = quick_entry(call_rank, self._formula, self.state, 0, *self._after_type)
        self._entry(self.state, 0 if self._blind else user_type, *self._after_type)
        places: list[int] = self._ranking.tolist()
        return places


def _generator_state(seed: bytes) -> dict[str, Any]:
    state = int.from_bytes(hashlib.blake2s(seed, digest_size=16).digest(), "little")
    return {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": _INCREMENT},
        "has_uint32": 0,
        "uinteger": 0,
    }
