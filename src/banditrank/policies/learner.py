"""What GreedyRank and UCBRank know at any moment: the counts, and Algorithm 1 kept up to date."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.estimators.position_preferences import (
    PositionEvidence,
    empty_evidence,
    estimate_preferences,
    update_preferences,
)
from banditrank.statistics.counts import Counts

Floats = NDArray[np.float64]

# places in Learner.clock
UNREWARDED, INITIAL_ROUNDS, EXPLORATIONS = range(3)


class Learner(NamedTuple):
    """The counts and what follows from them."""

    displays: Floats  # (N, K, M)
    rewards: Floats  # (N, K, M)
    arrivals: Floats  # (N,)
    reward_totals: Floats  # (N, M)  ‖S_ij‖₁
    evidence: PositionEvidence
    clock: NDArray[np.int64]  # (3,) cells without a reward, rounds of the initial phase, I_explore


def start_learner(counts: Counts, explorations: int) -> Learner:
    """Return what is known from the counts. The arrays of counts are shared, not copied."""
    rewards = counts.rewards_by_position
    evidence = empty_evidence(counts.n_user_types, counts.n_items, counts.n_positions)
    unrewarded = int((rewards <= 0).sum())
    if unrewarded == 0:
        for user_type in range(counts.n_user_types):
            estimate_preferences(counts.displays_by_position, rewards, evidence, user_type)
    clock = np.array([unrewarded, 0, explorations], dtype=np.int64)
    totals = rewards.sum(axis=1)
    return Learner(counts.displays_by_position, rewards, counts.arrivals, totals, evidence, clock)


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
    for k in range(ranking.size):
        j = ranking[k]
        learner.displays[i, k, j] += 1.0
        learner.rewards[i, k, j] += rewards[k]
        learner.reward_totals[i, j] += rewards[k]
    if not waiting:
        update_preferences(learner.displays, learner.rewards, learner.evidence, i, ranking)
    elif learner.clock[UNREWARDED] == 0:
        learner.clock[INITIAL_ROUNDS] = t
        for other in range(learner.arrivals.size):
            estimate_preferences(learner.displays, learner.rewards, learner.evidence, other)
    return bool(learner.clock[UNREWARDED] == 0)
