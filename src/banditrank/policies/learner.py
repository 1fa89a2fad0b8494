"""What GreedyRank and UCBRank know at any moment: the counts, and Algorithm 1 kept up to date."""

from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.counts.counts import Counts
from banditrank.estimators.position_preferences import (
    PositionEvidence,
    empty_evidence,
    estimate_preferences,
    update_preferences,
)
from banditrank.policies.round_robin import round_robin
from banditrank.policies.tallies import Tallies, record, tallies_of

Floats = NDArray[np.float64]

Seen: TypeAlias = tuple[Floats, Floats]
"""Displays and rewards with pseudo-counts, shape (N, K, M): learned from in place of the counts."""

UNREWARDED, INITIAL_ROUNDS = range(2)  # places in Learner.clock
REFRESH = 1 << 14  # rounds between two runs of Algorithm 1 from the counts, which shed rounding errors


class Learner(NamedTuple):
    """The counts and what follows from them."""

    displays: Floats  # (N, K, M)
    rewards: Floats  # (N, K, M)
    arrivals: Floats  # (N,)
    reward_totals: Floats  # (N, M)  ‖S_ij‖₁
    evidence: PositionEvidence
    clock: NDArray[np.int64]  # (2,) cells without a reward, rounds of the initial phase
    turn: NDArray[np.int64]  # (1,) I_explore, the place of the round-robin
    counts: Tallies  # the arrays of counts, whether or not those above are the same
    apart: bool  # whether they are not


class SupportsExploring(Protocol):
    """What is needed to tell whether a round explores."""

    @property
    def displays(self) -> Floats:
        """Shape (N, K, M)."""

    @property
    def clock(self) -> NDArray[np.int64]:
        """As in `Learner`."""

    @property
    def turn(self) -> NDArray[np.int64]:
        """As in `Learner`."""


def start_learner(counts: Counts, turn: NDArray[np.int64], seen: Seen | None = None) -> Learner:
    """Return what is known from the counts, or from what was seen in their place.

    The arrays of counts, and the turn, are shared, not copied.
    """
    tallies = tallies_of(counts)
    displays, rewards, arrivals = tallies if seen is None else (*seen, counts.arrivals.copy())
    evidence = empty_evidence(counts.n_user_types, counts.n_items, counts.n_positions)
    unrewarded = int((rewards <= 0).sum())
    if unrewarded == 0:
        for user_type in range(counts.n_user_types):
            estimate_preferences(displays, rewards, evidence, user_type)
    clock = np.array([unrewarded, 0], dtype=np.int64)
    totals = rewards.sum(axis=1)
    apart = seen is not None
    return Learner(displays, rewards, arrivals, totals, evidence, clock, turn, tallies, apart)


@inlined
def learn(learner: Learner, user_type: int, t: int, ranking: NDArray[np.uintp], rewards: Floats) -> bool:
    """Take in a round; return whether Algorithm 1's estimates are valid, as after the initial phase."""
    i = user_type
    waiting = learner.clock[UNREWARDED] > 0
    if waiting:
        for k in range(ranking.size):
            if rewards[k] > 0.0 and learner.rewards[i, k, ranking[k]] <= 0.0:
                learner.clock[UNREWARDED] -= 1
    learner.arrivals[i] += 1.0
    for k in range(ranking.size):  # one loop: `record` and another take 3% longer
        j = ranking[k]
        learner.displays[i, k, j] += 1.0
        learner.rewards[i, k, j] += rewards[k]
        learner.reward_totals[i, j] += rewards[k]
    if learner.apart:
        record(learner.counts, i, ranking, rewards)
    if not waiting and t % REFRESH > 0:
        update_preferences(learner.displays, learner.rewards, learner.evidence, i, ranking)
    elif learner.clock[UNREWARDED] == 0:
        if waiting:
            learner.clock[INITIAL_ROUNDS] = t
        for other in range(learner.arrivals.size):
            estimate_preferences(learner.displays, learner.rewards, learner.evidence, other)
    return bool(learner.clock[UNREWARDED] == 0)


@inlined
def explores(
    learner: SupportsExploring,
    t: int,
    exploration: float,
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> bool:
    """Write the ranking of the initial phase, or of a round that explores, if this is one."""
    n_items = learner.displays.shape[2]
    if learner.clock[UNREWARDED] > 0:
        round_robin(t, n_items, ranking)
        return True
    if exploration > 0.0 and rng.random() < exploration:
        round_robin(learner.turn[0], n_items, ranking)
        learner.turn[0] = learner.turn[0] % n_items + 1
        return True
    return False
