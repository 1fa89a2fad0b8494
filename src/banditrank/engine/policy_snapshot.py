"""Rankings from the counts of one moment.

A view does not change: all rankings made from it are functions of its counts, and of the ranking's tail under
personalized treatment. So they can be made again, to explain them.

Calling compiled code takes longer than the formulas of a ranking. So many are made at a time, each with a
draw of its own; a tail holds the seed that they share, and the ranking's place among them.

Under equal treatment a view has one ranking. Who asks does not enter: the randomness of a policy that
explores is drawn for the counts, not for the user.
"""

import hashlib
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from banditrank.engine.surface import Surface
from banditrank.engine.ranking_ids import NONCE_BYTES, RandomBytes
from banditrank.policies.base import CompiledPolicy, compile_repeated_rank
from banditrank.policies.sampled_problem import SampledProblem
from banditrank.counts.counts import Counts
from banditrank.storage.records import pack_ranking

_AT_A_TIME = 64
_INCREMENT = 0xDA3E39CB94B95BDB5851F42D4C957F2D  # of the generator; any odd number will do


class PreparedRanking(NamedTuple):
    """A ranking, and what it can be made again from."""

    tail: bytes  # TAIL_BYTES
    ranking: bytes  # for whom, and the numbers of the items: what `Impression` holds
    names: tuple[str, ...]  # of the items, in order of positions


class PolicySnapshot:
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
        self.numbers = surface.active_numbers
        self.type_numbers = {name: number for number, name in enumerate(surface.user_types)}
        self._policy = surface.compiled_policy
        self._lock = threading.Lock()  # a policy's state has room to work in
        self._bits: Any = np.random.PCG64()  # its state has a type of its own
        self._rng = np.random.Generator(self._bits)
        stateless = self._policy.new_scratch() is None
        self._prepared = _Prepared(self._policy, counts, self._rng) if stateless else None
        self._ready: dict[int, list[PreparedRanking]] = {}  # by user type
        self._for_everybody: tuple[int, ...] | None = None
        if surface.treatment == "equal":
            seed = f"{surface.name} {revision} {version}".encode()
            self._for_everybody = items = self._make(0, seed, 1)[0]
            self._ready = {number: [self._made(b"", number, items)] for number in self.type_numbers.values()}

    @classmethod
    def check_rankable(cls, surface: Surface) -> None:
        """Rank by no counts at all, so that a surface for which that fails is not stored."""
        counts = Counts.empty(
            n_user_types=len(surface.user_types),
            n_items=len(surface.active_numbers),
            n_positions=surface.n_positions,
        )
        cls(surface, 0, 0, counts).rank_again(0, bytes(NONCE_BYTES))

    def rank_batch(self, user_types: Sequence[int], random_bytes: RandomBytes) -> list[PreparedRanking]:
        """Return a ranking to show to a user of each type.

        Parameters
        ----------
        user_types
            Who asks; of no account under equal treatment.
        random_bytes
            Where the randomness comes from; of no account likewise.
        """
        if self._for_everybody is not None:
            ready = self._ready
            return [
                PreparedRanking(random_bytes(NONCE_BYTES), one.ranking, one.names)
                for one in [ready[user_type][0] for user_type in user_types]
            ]
        with self._lock:
            return [self._next(user_type, random_bytes) for user_type in user_types]

    def _next(self, user_type: int, random_bytes: RandomBytes) -> PreparedRanking:
        ready = self._ready.setdefault(user_type, [])
        if not ready:
            seed = random_bytes(NONCE_BYTES - 1)
            made = self._make(user_type, seed, 1 if self._prepared is None else _AT_A_TIME)
            ready += [self._made(seed + bytes([place]), user_type, items) for place, items in enumerate(made)]
        return ready.pop()

    def rank_again(self, user_type: int, tail: bytes) -> tuple[int, ...]:
        """Return the ranking that `rank` made with a tail."""
        if self._for_everybody is not None:
            return self._for_everybody
        with self._lock:
            return self._make(user_type, tail[:-1], tail[-1] + 1)[-1]

    def sampled_problem(self, user_type: int, tail: bytes) -> SampledProblem | None:
        """Return the world that a ranking was found to be best in, None if the policy draws none.

        Items are in the order of the counts.
        """
        if self._prepared is None:
            return None
        self.rank_again(user_type, tail)
        return self._policy.sampled_problem(self._prepared.state)

    def _made(self, tail: bytes, user_type: int, items: tuple[int, ...]) -> PreparedRanking:
        names = self.surface.items
        return PreparedRanking(tail, pack_ranking(user_type, items), tuple([names[item] for item in items]))

    def _make(self, user_type: int, seed: bytes, number: int) -> list[tuple[int, ...]]:
        self._bits.state = _generator_state(seed)
        if self._prepared is not None:
            made = self._prepared.rank(user_type, number)
        else:
            made = [self._policy.rank(self.counts, user_type, rng=self._rng).tolist() for _ in range(number)]
        return [tuple([self.numbers[place] for place in ranking]) for ranking in made]


class _Prepared:
    """A policy's formulas on a state that is made once."""

    def __init__(self, policy: CompiledPolicy, counts: Counts, rng: np.random.Generator) -> None:
        self._blind = not policy.distinguishes_user_types
        known = counts.pooled() if self._blind else counts
        kernel = policy.kernel(n_items=known.n_items, n_positions=known.n_positions)
        self._repeat = compile_repeated_rank(kernel)
        now = known.rounds + 1
        self.state = policy.start(known, None)
        self._after_type = (now, policy.parameters(np.array([now]))[0], rng)
        self._rankings = np.zeros((_AT_A_TIME, known.n_positions), dtype=np.uintp)

    def rank(self, user_type: int, number: int) -> list[list[int]]:
        """Return as many rankings, each with a draw of its own."""
        rankings = self._rankings[:number]
        self._repeat(self.state, 0 if self._blind else user_type, *self._after_type, rankings)
        made: list[list[int]] = rankings.tolist()
        return made


def _generator_state(seed: bytes) -> dict[str, Any]:
    state = int.from_bytes(hashlib.blake2s(seed, digest_size=16).digest(), "little")
    return {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": _INCREMENT},
        "has_uint32": 0,
        "uinteger": 0,
    }
