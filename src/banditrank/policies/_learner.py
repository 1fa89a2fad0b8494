"""Online learning with a policy, one round at a time."""

from collections import deque
from collections.abc import Sequence
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._checks import check_integer, check_number
from banditrank.counts._counts import Counts, as_reward_array, check_counts
from banditrank.errors import InvalidInputError
from banditrank.model._problem import Problem
from banditrank.model._rankings import Ranking, as_ranking
from banditrank.policies._base import CompiledPolicy, Policy
from banditrank.policies._copies import copy_policy
from banditrank.policies._drawn_lottery import DrawnLottery, read_lottery, state_lottery
from banditrank.policies._forgetful import ForgettingCounts
from banditrank.policies._kernel import state_note
from banditrank.policies._restriction import (
    Candidates,
    Pins,
    as_candidates,
    as_pins,
    check_restricted,
    restriction_unsupported,
)


class Learner:
    """A policy with its counts and state, which learns one round at a time.

    `Policy.start` creates it. With the same generator it returns the same rankings as the simulator. Not
    thread-safe.

    Feedback may arrive late and in any order. A policy with statistics of its own (`Policy.own_statistics`)
    attributes it to what the ranking was made from, for the last 1,000 rankings without feedback.

    Parameters
    ----------
    policy
        The policy. It is copied, so that learners that start from one policy share nothing.
    counts
        Counts to start from. They are copied.
    rng
        Generator of the policy.

    Raises
    ------
    UnsolvableError
        If the policy's solver cannot solve problems of this size.

    Examples
    --------
    >>> from banditrank import ThompsonRank, kdd2012
    >>> learner = ThompsonRank().start(kdd2012(), rng=1)
    >>> ranking = learner.rank(0)  # for a user of type 0
    >>> learner.update(0, ranking, position=1)  # the item at the second position was clicked
    >>> learner.update(1, learner.rank(1))  # a user of type 1 clicked nothing
    >>> learner.rounds, float(learner.counts.rewards.sum())
    (2, 1.0)
    """

    def __init__(self, policy: Policy, counts: Counts, *, rng: np.random.Generator) -> None:
        self.policy = policy = copy_policy(policy)
        self._rng = rng
        self._counts = counts.copy()
        self._initial_rounds = counts.rounds
        self._updates = 0
        self._is_forgetting_due = False
        self._scratch = policy.new_scratch()
        self._forgetting = None if policy.memory is None else ForgettingCounts(policy.memory, counts)
        self._compiled = None
        if isinstance(policy, CompiledPolicy):
            self._compiled = _CompiledState(policy, counts, self._scratch, self._rng)

    @property
    def counts(self) -> Counts:
        """A copy of the counts that the policy learns from: all rounds, or those that it remembers."""
        return self._counts.copy()

    @property
    def rounds(self) -> int:
        """Number of rounds so far, including those of the counts at the start."""
        return self._initial_rounds + self._updates

    @property
    def lottery(self) -> DrawnLottery | None:
        """The lottery that the last ranking was drawn from, under equal-lottery treatment or with guarantees.

        Under personalized treatment it is that of the user's type. None before the first ranking, and if the
        last one was an exploration.

        Examples
        --------
        >>> from banditrank import ThompsonRank, kdd2012
        >>> learner = ThompsonRank(treatment="equal-lottery", utility="nash").start(kdd2012(), rng=1)
        >>> ranking = learner.rank(0)
        >>> round(float(learner.lottery.probabilities.sum()), 9)
        1.0
        """
        return None if self._compiled is None else self._compiled.lottery()

    def rank(
        self,
        user_type: int,
        candidates: Candidates | None = None,
        pinned: Pins | None = None,
        *,
        allow_short: bool = False,
    ) -> Ranking:
        """Return the ranking to show to a user, shape (K,).

        Parameters
        ----------
        user_type
            User type that arrived, from 0.
        candidates
            Items that may be shown to this user, in any order; all items by default. The policy learns about
            all items, and shows the best of the candidates.
        pinned
            Items that must be shown, by position from 0. They need not be candidates.
        allow_short
            Whether to return a shorter ranking, of the first positions, if there are fewer candidates than
            positions that are not pinned.

        Raises
        ------
        InvalidInputError
            If there is no such user type, item or position, there are too few candidates, the policy cannot
            restrict its rankings (`Policy.has_candidates`), or a custom policy or utility fails.

        Examples
        --------
        >>> from banditrank import ThompsonRank
        >>> learner = ThompsonRank().start(n_items=9, n_positions=3, rng=1)
        >>> sorted(learner.rank(0, candidates=[2, 4, 8]).tolist())
        [2, 4, 8]
        >>> int(learner.rank(0, candidates=[2, 4, 8], pinned={1: 5})[1])
        5
        """
        self._counts.check_user_type(user_type)
        self._forget_if_due()
        if candidates is None and pinned is None:
            if self._compiled is not None:
                return self._compiled.rank(int(user_type), self.rounds + 1)
            ranking = self.policy.rank(self._counts, user_type, rng=self._rng, scratch=self._scratch)
            return self._as_ranking(ranking)
        if not self.policy.has_candidates:
            raise restriction_unsupported(self.policy, candidates=candidates, pinned=pinned)
        items = as_candidates(candidates, n_items=self._counts.n_items)
        pins = None if pinned is None else as_pins(pinned, n_positions=self._counts.n_positions)
        if self._compiled is not None:
            return self._compiled.choose(
                int(user_type), self.rounds + 1, items, pins, allow_short=allow_short
            )
        chosen = self.policy.rank(
            self._counts,
            user_type,
            rng=self._rng,
            scratch=self._scratch,
            candidates=candidates,
            pinned=pinned,
            allow_short=allow_short,
        )
        ranking = self._as_ranking(chosen, is_short_allowed=allow_short)
        check_restricted(ranking, items, pins)
        return ranking

    def update(
        self,
        user_type: int,
        ranking: Sequence[int] | NDArray[np.integer],
        position: int | None = None,
        *,
        reward: float | None = None,
        rewards: ArrayLike | None = None,
    ) -> None:
        """Learn from the feedback of a user on a ranking.

        Parameters
        ----------
        user_type
            User type that saw the ranking, from 0.
        ranking
            Ranking that was shown, shape (K,); shorter if only the first positions were filled, which
            policies with `Policy.has_candidates` can learn from.
        position
            Position of the item that was clicked, from 0; None if nothing was clicked.
        reward
            Reward at that position; 1 by default. At most the policy's ``max_reward``, if it has one.
        rewards
            Reward at each position, shape (K,), instead of a position and a reward.

        Raises
        ------
        InvalidInputError
            If an argument is not valid, or ``rewards`` is combined with ``position`` or ``reward``. Nothing
            is learned then.
        """
        shown = self._as_ranking(ranking, is_short_allowed=self.policy.has_candidates)
        earned = feedback_rewards(shown.size, position, reward, rewards, max_reward_of(self.policy))
        self._forget_if_due()
        self._counts.record(user_type, shown, rewards=earned, allow_short=True)
        if self._compiled is not None:
            self._compiled.observe(int(user_type), self.rounds + 1, shown, earned)
        self._updates += 1
        forget_every = self.policy.forget_every
        self._is_forgetting_due = forget_every is not None and self._updates % forget_every == 0

    def _as_ranking(
        self, ranking: Sequence[int] | NDArray[np.integer], *, is_short_allowed: bool = False
    ) -> Ranking:
        counts = self._counts
        return as_ranking(
            ranking, n_items=counts.n_items, n_positions=counts.n_positions, allow_short=is_short_allowed
        )

    def _forget_if_due(self) -> None:
        if not self._is_forgetting_due:
            return
        self._is_forgetting_due = False
        restarts = self._compiled is not None and self.policy.own_statistics is not None
        if restarts or self._forgetting is None:
            self._counts = self._counts.scaled(0.0)
        else:
            self._counts = self._forgetting.end_bucket(self._counts)
        if self._compiled is not None:
            self._compiled.restart(self._counts)


MAX_NOTES = 1_000
"""Maximum number of rankings without feedback whose notes a learner keeps: see `Kernel`."""

_Note: TypeAlias = tuple[tuple[int, bytes], NDArray[np.int64]]
"""User type and ranking, and the note of the state that the ranking was made in."""


class _CompiledState:
    """The state of a compiled policy. It has counts of its own, which the kernel adds to."""

    def __init__(
        self, policy: CompiledPolicy, counts: Counts, scratch: Any, rng: np.random.Generator
    ) -> None:
        self._policy = policy
        self._scratch = scratch
        self._rng = rng
        self.restart(counts)

    def restart(self, counts: Counts) -> None:
        own = counts.copy() if self._policy.distinguishes_user_types else counts.pooled()
        self._kernel = self._policy.bind(own, self._rng, scratch=self._scratch)
        self._notes: deque[_Note] = deque(maxlen=MAX_NOTES)  # the earliest first
        self._last_type = 0

    def lottery(self) -> DrawnLottery | None:
        buffer = state_lottery(self._kernel.state)
        return None if buffer is None else read_lottery(buffer, self._last_type)

    def rank(self, user_type: int, t: int) -> Ranking:
        parameters = self._policy.parameters(np.array([t]))[0]
        if (buffer := state_lottery(self._kernel.state)) is not None:
            buffer.size[0] = 0
            self._last_type = user_type
        ranking = self._kernel.rank(self._known_type(user_type), t, parameters)
        self._policy.utility.raise_callback_error()
        note = state_note(self._kernel.state)
        if note.size > 0:
            self._notes.append(((self._known_type(user_type), ranking.tobytes()), note.copy()))
        return ranking.astype(np.intp)

    def choose(
        self,
        user_type: int,
        t: int,
        candidates: NDArray[np.intp],
        pinned: NDArray[np.intp] | None,
        *,
        allow_short: bool,
    ) -> Ranking:
        parameters = self._policy.parameters(np.array([t]))[0]
        seen_type = self._known_type(user_type)
        ranking = self._kernel.choose(seen_type, t, parameters, candidates, pinned, allow_short=allow_short)
        self._policy.utility.raise_callback_error()
        return ranking.astype(np.intp)

    def observe(self, user_type: int, t: int, ranking: Ranking, rewards: NDArray[np.float64]) -> None:
        seen_type, shown = self._known_type(user_type), ranking.astype(np.uintp)
        key = (seen_type, shown.tobytes())
        for index, (noted, note) in enumerate(self._notes):
            if noted == key:
                state_note(self._kernel.state)[:] = note
                del self._notes[index]
                break
        self._kernel.observe(seen_type, t, shown, rewards)

    def _known_type(self, user_type: int) -> int:
        return user_type if self._policy.distinguishes_user_types else 0


MAX_REWARD = 1e9
"""Maximum reward at a position for policies that state none."""


def max_reward_of(policy: object) -> float:
    """Return the maximum reward at a position that a policy, and the policies inside it, can learn from.

    Examples
    --------
    >>> from banditrank import Forgetful, ThompsonRank, UCBRank
    >>> max_reward_of(Forgetful(ThompsonRank(max_reward=2), "window:10")), max_reward_of(UCBRank())
    (2.0, 1000000000.0)
    """
    inner = [getattr(policy, name, None) for name in ("policy", "baseline")]
    limits = [max_reward_of(each) for each in inner if each is not None]
    return min([float(getattr(policy, "max_reward", MAX_REWARD)), *limits])


def feedback_rewards(
    n_positions: int,
    position: int | None,
    reward: float | None,
    rewards: ArrayLike | None,
    max_reward: float = MAX_REWARD,
) -> NDArray[np.float64]:
    """Return the reward at each position, shape (K,): see `Learner.update`.

    Raises
    ------
    InvalidInputError
        If an argument is not valid, or ``rewards`` is combined with ``position`` or ``reward``.

    Examples
    --------
    >>> feedback_rewards(3, position=1, reward=None, rewards=None)
    array([0., 1., 0.])
    """
    if rewards is not None:
        for field, value in (("position", position), ("reward", reward)):
            if value is not None:
                raise InvalidInputError(field, "must be left out if rewards are given", value)
        given = as_reward_array(rewards, n_positions)
        if given.max(initial=0.0) > max_reward:
            raise InvalidInputError("rewards", f"must be at most {max_reward:.15g}", float(given.max()))
        return given
    earned = np.zeros(n_positions)
    if position is not None:
        clicked = check_integer("position", position, 0, n_positions - 1)
        earned[clicked] = check_number("reward", 1.0 if reward is None else reward, 0.0, max_reward)
    elif reward is not None:
        raise InvalidInputError("reward", "must be left out if no position is given", reward)
    return earned


def start_learner(
    policy: Policy,
    problem: Problem | None,
    *,
    n_user_types: int | None,
    n_items: int | None,
    n_positions: int | None,
    counts: Counts | None,
    rng: np.random.Generator | int | None,
) -> Learner:
    """Return a learner for a problem, sizes or counts: see `Policy.start`.

    Raises
    ------
    InvalidInputError
        If the size is missing, ambiguous or not valid, or ``rng`` is not valid.
    UnsolvableError
        If the policy's solver cannot solve problems of this size.
    """
    sizes = {"n_user_types": n_user_types, "n_items": n_items, "n_positions": n_positions}
    if problem is not None:
        if not isinstance(problem, Problem):
            raise InvalidInputError("problem", "must be a Problem", problem)
        for field, value in sizes.items():
            if value is not None:
                raise InvalidInputError(field, "must be left out if a problem is given", value)
        shape = (problem.n_user_types, problem.n_items, problem.n_positions)
    elif counts is not None and all(value is None for value in sizes.values()):
        check_counts(counts)
        shape = counts.displays.shape
    else:
        shape = (
            check_integer("n_user_types", 1 if n_user_types is None else n_user_types, 1),
            _check_size("n_items", n_items),
            _check_size("n_positions", n_positions),
        )
    if counts is None:
        counts = Counts.empty(n_user_types=shape[0], n_items=shape[1], n_positions=shape[2])
    check_counts(counts)
    if counts.displays.shape != shape:
        raise InvalidInputError("counts", f"must have shape {shape}", counts.displays.shape)
    return Learner(policy, counts, rng=as_generator(rng))


def _check_size(field: str, value: int | None) -> int:
    if value is None:
        raise InvalidInputError(field, "must be given unless a problem or counts are", value)
    return check_integer(field, value, 1)


def as_generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Return a generator, given one or its seed; seeded by the operating system by default.

    Raises
    ------
    InvalidInputError
        If ``rng`` is neither.
    """
    if rng is None or isinstance(rng, np.random.Generator):
        return np.random.default_rng(rng)
    if isinstance(rng, bool) or not isinstance(rng, Integral) or rng < 0:
        raise InvalidInputError("rng", "must be a numpy.random.Generator or a seed", rng)
    return np.random.default_rng(int(rng))
