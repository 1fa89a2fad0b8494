"""Rankings from the counts of one version.

A snapshot is immutable: each of its rankings is a function of its counts and, under personalized treatment
and lotteries, of the impression's nonce. Any ranking can therefore be recomputed, to explain it.

Calling compiled code takes longer than computing one ranking, so rankings are computed in batches, each with
random numbers of its own. The nonce of an impression holds the seed of the batch and the index within it.

Under equal treatment a snapshot has one ranking for each set of allowed items. It does not depend on the
caller: the random numbers of an exploring policy are drawn for the counts, not for the user or the items.

Under equal treatment by a lottery a snapshot has one lottery, which does not depend on the caller either.
Under personalized treatment with guarantees it has one of each user type. Each ranking is drawn by the nonce
of its impression.

In an experiment there is a snapshot of each arm, with the counts that the arm's policy learns from.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.engine._allowed_items import ALL_ITEMS, AllowedItems
from banditrank.engine._counts_replica import CountsReplica
from banditrank.engine._experiment import (
    FIXED,
    POLICY_ARM,
    Arm,
    arm_at,
    arm_policy,
    assign,
    check_visitor,
    random_point,
)
from banditrank.engine._ranking_ids import NONCE_BYTES, RandomBytes
from banditrank.engine._served_lottery import ServedLottery
from banditrank.engine._surface import Surface
from banditrank.policies._base import CompiledPolicy, is_equal
from banditrank.policies._drawn_lottery import DrawnLottery, read_lottery, state_lottery
from banditrank.policies._restriction import as_pins, restriction_unsupported
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
    arm
        The arm of the surface's experiment that is ranked; None for the surface's policy.

    Attributes
    ----------
    policy_name
        Name of the policy; ``fixed`` for a fixed order.
    lotteries
        The lottery that the rankings of each user type are drawn from, the same for all under equal
        treatment; None without any.
    arm_name, arm_code
        Name and code of the arm; None and 0 without an experiment.
    """

    def __init__(
        self, surface: Surface, revision: int, version: int, counts: Counts, *, arm: Arm | None = None
    ) -> None:
        self.surface = surface
        self.revision = revision
        self.version = version
        self.counts = counts
        self.numbers = surface.active_numbers
        self.column_of = {number: column for column, number in enumerate(self.numbers)}
        self.user_type_numbers = {name: number for number, name in enumerate(surface.user_types)}
        self._order = _fixed_order(surface, arm)  # numbers of all active items, None for a policy
        self.policy = surface.compiled_policy
        if arm is not None and self._order is None:
            self.policy = arm_policy(arm, surface)
        self.policy_name = self.policy.name if self._order is None else FIXED
        self.arm_name: str | None = None
        self.arm_code = 0
        if surface.period is not None:
            self.arm_name = POLICY_ARM if arm is None else arm.name
            self.arm_code = surface.period.codes[surface.period.arms.index(self.arm_name)]
        self._lock = threading.Lock()  # the policy's state includes working memory
        self._bit_generator: Any = np.random.PCG64()  # the type of its state is not public
        self._rng = np.random.Generator(self._bit_generator)
        is_stateless = self._order is None and self.policy.new_scratch() is None
        self._batch = _BatchRanker(self.policy, counts, self._rng) if is_stateless else None
        self._prepared: dict[int, list[PreparedRanking]] = {}  # by user type
        self._equal_ranking: tuple[int, ...] | None = None
        salt = "" if arm is None else f" {arm.name}"
        self._equal_seed = f"{surface.name} {revision} {version}{salt}".encode()
        self._allowed_rankings: OrderedDict[AllowedItems, tuple[int, ...]] = OrderedDict()  # equal treatment
        self.lotteries: tuple[ServedLottery, ...] | None = None
        self._drawn: dict[tuple[int, int], PreparedRanking] = {}  # by user type and index in the lottery
        if self._order is None and self.policy.has_lotteries:
            self.lotteries = self._compute_lotteries()
        elif surface.treatment == "equal" or self._order is not None:
            self._equal_ranking = items = self._compute(0, self._equal_seed, 1)[0]
            self._prepared = {
                number: [self._prepare(b"", number, items)] for number in self.user_type_numbers.values()
            }

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
        if (lotteries := self.lotteries) is not None:
            return [self._draw(lotteries[one], one, random_bytes(NONCE_BYTES)) for one in user_types]
        with self._lock:
            return [self._next(user_type, random_bytes) for user_type in user_types]

    def check_restrictable(self, **given: object) -> None:
        """Raise if the policy cannot restrict its rankings.

        Parameters
        ----------
        given
            The fields of a request that restrict them, for the message.

        Raises
        ------
        InvalidInputError
            If it cannot.
        """
        if self._order is None and not self.policy.has_candidates:
            raise restriction_unsupported(self.policy, **given)

    def rank_allowed(
        self, user_types: Sequence[int], allowed: AllowedItems, random_bytes: RandomBytes
    ) -> list[PreparedRanking]:
        """Return the best ranking of allowed items for a user of each type; see `check_restrictable`."""
        nonces = [random_bytes(NONCE_BYTES) for _ in user_types]
        return [
            self._prepare(nonce, user_type, self.recompute(user_type, nonce, allowed))
            for nonce, user_type in zip(nonces, user_types, strict=True)
        ]

    def _draw(self, lottery: ServedLottery, user_type: int, nonce: bytes) -> PreparedRanking:
        index = lottery.draw(nonce)
        drawn = self._drawn.get((user_type, index))
        if drawn is None:
            drawn = self._prepare(b"", user_type, lottery.rankings[index])
            self._drawn[user_type, index] = drawn
        return PreparedRanking(nonce, drawn.ranking, drawn.items)

    def _next(self, user_type: int, random_bytes: RandomBytes) -> PreparedRanking:
        prepared = self._prepared.get(user_type)
        if not prepared:
            seed = random_bytes(NONCE_BYTES - 1)
            rankings = self._compute(user_type, seed, 1 if self._batch is None else _BATCH)
            prepared = self._prepared[user_type] = [
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
        if self.lotteries is not None:
            lottery = self.lotteries[user_type]
            return lottery.rankings[lottery.draw(nonce)]
        with self._lock:
            return self._compute(user_type, nonce[:-1], nonce[-1] + 1)[-1]

    def load_candidates_code(self) -> None:
        """Rank the fewest candidates, if the policy can restrict its rankings, and discard the result."""
        if self._order is None and self.policy.has_candidates:
            with self._lock:
                self._choose(0, self._equal_seed, AllowedItems(self.numbers[: self.surface.n_positions]))

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
        return self.policy.sampled_problem(self._batch.state)

    def _prepare(self, nonce: bytes, user_type: int, items: tuple[int, ...]) -> PreparedRanking:
        names = self.surface.items
        ranking = pack_ranking(user_type, items, self.arm_code)
        return PreparedRanking(nonce, ranking, tuple([names[item] for item in items]))

    def _compute(self, user_type: int, seed: bytes, n_rankings: int) -> list[tuple[int, ...]]:
        if self._order is not None:
            return [self._order[: self.surface.n_positions]] * n_rankings
        self._bit_generator.state = _generator_state(seed)
        if self._batch is not None:
            rankings = self._batch.rank(user_type, n_rankings)
        else:
            rankings = [
                self.policy.rank(self.counts, user_type, rng=self._rng).tolist() for _ in range(n_rankings)
            ]
        return [tuple([self.numbers[index] for index in ranking]) for ranking in rankings]

    def _compute_lotteries(self) -> tuple[ServedLottery, ...]:
        """Return the lottery of each user type; of one ranking if the policy explores."""
        self._bit_generator.state = _generator_state(self._equal_seed)
        ranker = self._batch
        if ranker is None:
            scratch = self.policy.random_scratch(self.counts, self._rng)
            ranker = _BatchRanker(self.policy, self.counts, self._rng, scratch)
        n_user_types = len(self.user_type_numbers)
        is_for_all = is_equal(self.policy.treatment)
        drawn = ranker.draw_lotteries(1 if is_for_all else n_user_types)
        self.policy.utility.raise_callback_error()
        lotteries = tuple(self._served_lottery(one) for one in drawn)
        return lotteries * n_user_types if is_for_all else lotteries

    def _served_lottery(self, drawn: DrawnLottery) -> ServedLottery:
        """Return a lottery with item numbers: equal rankings merged, the most probable first."""
        numbers = np.array(self.numbers)[drawn.rankings].tolist()  # (S, K)
        shares: dict[tuple[int, ...], float] = {}
        for ranking, probability in zip(numbers, drawn.probabilities.tolist(), strict=True):
            shares[tuple(ranking)] = shares.get(tuple(ranking), 0.0) + probability
        rankings = sorted(shares, key=lambda ranking: (-shares[ranking], ranking))
        total = sum(shares.values())  # 1 but for rounding
        probabilities = tuple(shares[ranking] / total for ranking in rankings)
        return ServedLottery(tuple(rankings), probabilities, min(drawn.kept_factor, 1.0))

    def _choose(self, user_type: int, seed: bytes, allowed: AllowedItems) -> tuple[int, ...]:
        """Return the best ranking of allowed items."""
        if self._order is not None:
            return allowed.first_of(self._order, self.surface.n_positions)
        self._bit_generator.state = _generator_state(seed)
        candidates, pinned = allowed.columns(self.column_of)
        allow_short = self.surface.allow_short_rankings
        if self._batch is not None:
            chosen = self._batch.choose(user_type, candidates, pinned, allow_short=allow_short)
        else:
            chosen = self.policy.rank(
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

    def __init__(
        self, policy: CompiledPolicy, counts: Counts, rng: np.random.Generator, scratch: Any = None
    ) -> None:
        self.policy = policy
        self._is_type_blind = not policy.distinguishes_user_types
        pooled = counts.pooled() if self._is_type_blind else counts
        self._kernel = policy.bind(pooled, rng, scratch=scratch)
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

    def draw_lotteries(self, n_user_types: int) -> list[DrawnLottery]:
        """Return the lotteries of the first user types, or a ranking alone if there are none."""
        buffer = state_lottery(self.state)
        if buffer is not None:
            buffer.size[0] = 0
        ranking = np.array(self.rank(0, 1), dtype=np.intp)  # (1, K)
        read = [None if buffer is None else read_lottery(buffer, i) for i in range(n_user_types)]
        return [DrawnLottery(ranking, np.ones(1)) if one is None else one for one in read]

    def choose(
        self,
        user_type: int,
        candidates: NDArray[np.intp] | None,
        pinned: dict[int, int],
        *,
        allow_short: bool,
    ) -> list[int]:
        """Return the best ranking of candidates and pinned items; the policy must be restrictable."""
        pins = as_pins(pinned, n_positions=self._rankings.shape[1]) if pinned else None
        seen_type = 0 if self._is_type_blind else user_type
        chosen = self._kernel.choose(
            seen_type, self._round, self._parameters, candidates, pins, allow_short=allow_short
        )
        result: list[int] = chosen.tolist()
        return result


class ArmSnapshots:
    """Snapshots of a surface's policy and of the arms of its experiment, from counts of one version.

    Parameters
    ----------
    policy
        Snapshot of the surface's policy.
    arms
        Snapshots of the arms in order; None for those with the share 0. Empty without an experiment.

    Attributes
    ----------
    has_one_arm
        Whether the surface's policy ranks all visits.
    """

    def __init__(self, policy: PolicySnapshot, arms: Sequence[PolicySnapshot | None] = ()) -> None:
        self.policy = policy
        self._arms = (policy, *arms)
        self.running = tuple(one for one in self._arms if one is not None)
        self.has_one_arm = len(self._arms) == 1
        experiment = policy.surface.experiment
        self._experiment = experiment
        self._salt = b"" if experiment is None else experiment.salt(policy.surface.name)

    @classmethod
    def of_replica(cls, surface: Surface, revision: int, replica: CountsReplica) -> "ArmSnapshots":
        """Return the snapshots of a surface from the counts in this process."""
        groups = list(dict.fromkeys(_codes_of_arms(surface).values()))  # arms that learn alike share counts
        version, counts = replica.counts_by_codes(surface, surface.active_numbers, groups)
        return cls._of_counts(surface, revision, version, dict(zip(groups, counts, strict=True)))

    @classmethod
    def _of_counts(
        cls, surface: Surface, revision: int, version: int, counts: Mapping[frozenset[int], Counts]
    ) -> "ArmSnapshots":
        snapshots = {
            arm: PolicySnapshot(surface, revision, version, counts[codes], arm=arm)
            for arm, codes in _codes_of_arms(surface).items()
        }
        arms = () if surface.experiment is None else surface.experiment.arms
        return cls(snapshots[None], [snapshots.get(arm) for arm in arms])

    @classmethod
    def check_rankable(cls, surface: Surface) -> None:
        """Compute a ranking of each arm from empty counts: a surface that cannot be ranked is not stored.

        Raises
        ------
        InvalidInputError
            If an arm does not fit the surface.
        """
        counts = Counts.empty(
            n_user_types=len(surface.user_types),
            n_items=len(surface.active_numbers),
            n_positions=surface.n_positions,
        )
        if surface.experiment is not None:
            surface.experiment.check_surface(surface)
        by_codes = dict.fromkeys(_codes_of_arms(surface).values(), counts)
        snapshots = cls._of_counts(surface, 0, 0, by_codes)
        for snapshot in snapshots.running:
            snapshot.recompute(0, bytes(NONCE_BYTES))
        snapshots.load_candidates_code()

    def load_candidates_code(self) -> None:
        """Rank candidates once in each arm that can, so that no request waits until that code is compiled."""
        for snapshot in self.running:
            snapshot.load_candidates_code()

    def of_visits(self, visitors: Sequence[str | None], random_bytes: RandomBytes) -> list[PolicySnapshot]:
        """Return the snapshot that ranks each visit: of the visitor's arm, or of one by chance.

        Raises
        ------
        InvalidInputError
            If a visitor id is not 1 to 200 characters.
        """
        if self._experiment is None:
            for visitor in visitors:
                if visitor is not None:
                    check_visitor(visitor)
            return [self.policy] * len(visitors)
        arms = self._experiment.arms
        numbers = [
            arm_at(random_point(random_bytes), arms) if visitor is None else assign(visitor, self._salt, arms)
            for visitor in visitors
        ]
        return [self._arms[number] or self.policy for number in numbers]

    def of_code(self, arm_code: int) -> PolicySnapshot:
        """Return the snapshot of the arm with a code."""
        return next((one for one in self.running if one.arm_code == arm_code), self.policy)


def _codes_of_arms(surface: Surface) -> dict[Arm | None, frozenset[int]]:
    """Return the codes of the visits that each arm learns from; None is the surface's policy.

    Arms with the share 0 are left out.
    """
    arms = () if surface.experiment is None else surface.experiment.arms
    return {None: surface.learned_codes} | {
        arm: surface.learned_codes if arm.is_learned_from else surface.codes_of_arm(arm.name)
        for arm in arms
        if arm.share > 0
    }


def _fixed_order(surface: Surface, arm: Arm | None) -> tuple[int, ...] | None:
    """Return the active items of a fixed order, followed by the others; None for another policy."""
    if arm is None or arm.policy != FIXED:
        return None
    numbers = surface.active_item_numbers
    listed = [numbers[item] for item in arm.order if item in numbers]
    return tuple(dict.fromkeys([*listed, *surface.active_numbers]))


def _generator_state(seed: bytes) -> dict[str, Any]:
    state = int.from_bytes(hashlib.blake2s(seed, digest_size=16).digest(), "little")
    return {
        "bit_generator": "PCG64",
        "state": {"state": state, "inc": _INCREMENT},
        "has_uint32": 0,
        "uinteger": 0,
    }
