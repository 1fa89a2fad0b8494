"""Rankings from the counts of one version.

A snapshot is immutable: each of its rankings is a function of its counts and, under personalized treatment,
of the impression's nonce. Any ranking can therefore be recomputed, to explain it.

Calling compiled code takes longer than computing one ranking, so rankings are computed in batches, each with
random numbers of its own. The nonce of an impression holds the seed of the batch and the index within it.

Under equal treatment a snapshot has one ranking for each set of allowed items. It does not depend on the
caller: the random numbers of an exploring policy are drawn for the counts, not for the user or the items.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.engine._allowed_items import ALL_ITEMS, AllowedItems
from banditrank.engine._ranking_ids import NONCE_BYTES, RandomBytes
from banditrank.engine._surface import Surface
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._restriction import restriction_unsupported
from banditrank.policies._sampled_problem import SampledProblem
from banditrank.storage._records import pack_ranking

_BATCH = 64
_MAX_ALLOWED_RANKINGS = 1024  # cached rankings of a snapshot, by allowed items
_INCREMENT = 0xDA3E39CB94B95BDB5851F42D4C957F2D  # of the PCG64 generator; any odd number works


class PreparedRanking(NamedTuple):
    """A ranking that is ready to be shown."""

    nonce: bytes  # NONCE_BYTES
    ranking: bytes  # user type and item numbers, as in `Impression`
    items: tuple[str, ...]  # names, in order of positions


class PolicySnapshot:
    """Rankings of a surface from the counts of one version. Thread-safe.

    Parameters
    ----------
    surface
        Its definition.
    revision, version
        Versions of the definition and of the counts.
    counts
        Counts of the active items, in the order of their numbers.
    """

    def __init__(self, surface: Surface, revision: int, version: int, counts: Counts) -> None:
        self.surface = surface
        self.revision = revision
        self.version = version
        self.counts = counts
        self.numbers = surface.active_numbers
        self.user_type_numbers = {name: number for number, name in enumerate(surface.user_types)}
        self._policy = surface.compiled_policy
        self._lock = threading.Lock()  # the policy's state includes working memory
        self._bit_generator: Any = np.random.PCG64()  # the type of its state is not public
        self._rng = np.random.Generator(self._bit_generator)
        is_stateless = self._policy.new_scratch() is None
        self._batch = _BatchRanker(self._policy, counts, self._rng) if is_stateless else None
        self._prepared: dict[int, list[PreparedRanking]] = {}  # by user type
        self._equal_ranking: tuple[int, ...] | None = None
        self._equal_seed = f"{surface.name} {revision} {version}".encode()
        self._allowed_rankings: OrderedDict[AllowedItems, tuple[int, ...]] = OrderedDict()  # equal treatment
        if surface.treatment == "equal":
            self._equal_ranking = items = self._compute(0, self._equal_seed, 1)[0]
            self._prepared = {
                number: [self._prepare(b"", number, items)] for number in self.user_type_numbers.values()
            }

    @classmethod
    def check_rankable(cls, surface: Surface) -> None:
        """Compute one ranking from empty counts, so that a surface that cannot be ranked is not stored."""
        counts = Counts.empty(
            n_user_types=len(surface.user_types),
            n_items=len(surface.active_numbers),
            n_positions=surface.n_positions,
        )
        cls(surface, 0, 0, counts).recompute(0, bytes(NONCE_BYTES))

    def rank_batch(self, user_types: Sequence[int], random_bytes: RandomBytes) -> list[PreparedRanking]:
        """Return a ranking for a user of each type.

        Parameters
        ----------
        user_types
            Numbers of the user types.
        random_bytes
            Source of nonces.
        """
        if self._equal_ranking is not None:
            prepared = self._prepared
            return [
                PreparedRanking(random_bytes(NONCE_BYTES), one.ranking, one.items)
                for one in [prepared[user_type][0] for user_type in user_types]
            ]
        with self._lock:
            return [self._next(user_type, random_bytes) for user_type in user_types]

    def rank_allowed(
        self, user_types: Sequence[int], allowed: AllowedItems, random_bytes: RandomBytes
    ) -> list[PreparedRanking]:
        """Return the best ranking of allowed items for a user of each type.

        Raises
        ------
        InvalidInputError
            If the policy cannot restrict its rankings.
        """
        nonces = [random_bytes(NONCE_BYTES) for _ in user_types]
        return [
            self._prepare(nonce, user_type, self.recompute(user_type, nonce, allowed))
            for nonce, user_type in zip(nonces, user_types, strict=True)
        ]

    def _next(self, user_type: int, random_bytes: RandomBytes) -> PreparedRanking:
        prepared = self._prepared.setdefault(user_type, [])
        if not prepared:
            seed = random_bytes(NONCE_BYTES - 1)
            rankings = self._compute(user_type, seed, 1 if self._batch is None else _BATCH)
            prepared += [
                self._prepare(seed + bytes([index]), user_type, items) for index, items in enumerate(rankings)
            ]
        return prepared.pop()

    def recompute(self, user_type: int, nonce: bytes, allowed: AllowedItems = ALL_ITEMS) -> tuple[int, ...]:
        """Return the item numbers of the ranking that was shown with a nonce, of allowed items."""
        if allowed != ALL_ITEMS:
            with self._lock:
                if self._equal_ranking is None:
                    return self._choose(user_type, nonce, allowed)
                return self._choose_for_all(allowed)
        if self._equal_ranking is not None:
            return self._equal_ranking
        with self._lock:
            return self._compute(user_type, nonce[:-1], nonce[-1] + 1)[-1]

    def _choose_for_all(self, allowed: AllowedItems) -> tuple[int, ...]:
        ranking = self._allowed_rankings.pop(allowed, None)
        if ranking is None:
            ranking = self._choose(0, self._equal_seed, allowed)
        self._allowed_rankings[allowed] = ranking  # the latest is last
        if len(self._allowed_rankings) > _MAX_ALLOWED_RANKINGS:
            self._allowed_rankings.popitem(last=False)
        return ranking

    def sampled_problem(
        self, user_type: int, nonce: bytes, allowed: AllowedItems = ALL_ITEMS
    ) -> SampledProblem | None:
        """Return the posterior sample behind a ranking, None if the policy does not sample.

        Items are in the order of the counts.
        """
        if self._batch is None:
            return None
        if allowed != ALL_ITEMS and self._equal_ranking is not None:
            with self._lock:  # not a cached ranking: its sample is no longer in the state
                self._choose(0, self._equal_seed, allowed)
        else:
            self.recompute(user_type, nonce, allowed)
        return self._policy.sampled_problem(self._batch.state)

    def _prepare(self, nonce: bytes, user_type: int, items: tuple[int, ...]) -> PreparedRanking:
        names = self.surface.items
        return PreparedRanking(nonce, pack_ranking(user_type, items), tuple([names[item] for item in items]))

    def _compute(self, user_type: int, seed: bytes, n_rankings: int) -> list[tuple[int, ...]]:
        self._bit_generator.state = _generator_state(seed)
        if self._batch is not None:
            rankings = self._batch.rank(user_type, n_rankings)
        else:
            rankings = [
                self._policy.rank(self.counts, user_type, rng=self._rng).tolist() for _ in range(n_rankings)
            ]
        return [tuple([self.numbers[index] for index in ranking]) for ranking in rankings]

    def _choose(self, user_type: int, seed: bytes, allowed: AllowedItems) -> tuple[int, ...]:
        """Return the best ranking of allowed items."""
        self._bit_generator.state = _generator_state(seed)
        candidates, pinned = allowed.columns(self.numbers)
        allow_short = self.surface.allow_short_rankings
        if self._batch is not None:
            chosen = self._batch.choose(user_type, candidates, pinned, allow_short=allow_short)
        else:
            chosen = self._policy.rank(
                self.counts,
                user_type,
                rng=self._rng,
                candidates=candidates,
                pinned=pinned,
                allow_short=allow_short,
            ).tolist()
        return tuple([self.numbers[index] for index in chosen])


class _BatchRanker:
    """A policy's compiled formulas with a state that is created once."""

    def __init__(self, policy: CompiledPolicy, counts: Counts, rng: np.random.Generator) -> None:
        self._policy = policy
        self._is_type_blind = not policy.distinguishes_user_types
        pooled = counts.pooled() if self._is_type_blind else counts
        self._kernel = policy.bind(pooled, rng)
        self._round = pooled.rounds + 1
        self._parameters = policy.parameters(np.array([self._round]))[0]
        self._rankings = np.zeros((_BATCH, pooled.n_positions), dtype=np.uintp)

    @property
    def state(self) -> Any:
        """State of the policy."""
        return self._kernel.state

    def rank(self, user_type: int, n_rankings: int) -> list[list[int]]:
        """Return independent rankings for a user type."""
        rankings = self._rankings[:n_rankings]
        seen_type = 0 if self._is_type_blind else user_type
        self._kernel.rank_repeatedly(seen_type, self._round, self._parameters, rankings)
        result: list[list[int]] = rankings.tolist()
        return result

    def choose(
        self,
        user_type: int,
        candidates: NDArray[np.intp] | None,
        pinned: dict[int, int],
        *,
        allow_short: bool,
    ) -> list[int]:
        """Return the best ranking of candidates and pinned items.

        Raises
        ------
        InvalidInputError
            If the policy cannot restrict its rankings.
        """
        if not self._policy.has_candidates:
            raise restriction_unsupported(self._policy.name, candidates, pinned)
        pins = np.full(self._rankings.shape[1], -1, dtype=np.intp)
        for position, item in pinned.items():
            pins[position] = item
        seen_type = 0 if self._is_type_blind else user_type
        chosen = self._kernel.choose(
            seen_type, self._round, self._parameters, candidates, pins, allow_short=allow_short
        )
        result: list[int] = chosen.tolist()
        return result


def _generator_state(seed: bytes) -> dict[str, Any]:
    state = int.from_bytes(hashlib.blake2s(seed, digest_size=16).digest(), "little")
    return {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": _INCREMENT},
        "has_uint32": 0,
        "uinteger": 0,
    }
