"""What GreedyRank and UCBRank know with another estimator than Algorithm 1, or with a smoothed start.

Estimates are worked out again each round, in O(MK) for the type that arrived: the likelihood's go on from
those of the round before, and a few passes bring them up to date.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, inlined
from banditrank.counts.counts import Counts
from banditrank.estimators.item_means import exposures_of
from banditrank.estimators.maximum_likelihood import alternate, update_means
from banditrank.estimators.position_preferences import (
    PositionEvidence,
    empty_evidence,
    estimate_preferences,
)
from banditrank.policies.learner import INITIAL_ROUNDS, UNREWARDED, Seen
from banditrank.policies.tallies import Tallies, record, tallies_of

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

_PASSES = 3  # of the likelihood's estimator in a round
_SETTLED = 1e-6  # a change that calls for no further pass
_SETTLING_PASSES = 1000  # from nothing


class GeneralLearner(NamedTuple):
    """The counts, the smoothed counts, and the estimates from these."""

    tallies: Tallies
    displays: Floats  # (N, K, M) smoothed
    rewards: Floats  # (N, K, M) smoothed
    by_likelihood: bool
    evidence: PositionEvidence  # with ρ̂
    means: Floats  # (N, M) μ̂
    exposures: Floats  # (N, M) N_ij
    room: Floats  # (K,)
    clock: NDArray[np.int64]  # (2,) cells without a reward, rounds of the initial phase
    turn: NDArray[np.int64]  # (1,) I_explore, the place of the round-robin


def start_general(
    counts: Counts, turn: NDArray[np.int64], seen: Seen | None, *, by_likelihood: bool
) -> GeneralLearner:
    """Return what is known from the counts, whose arrays are shared, or from what was seen in their place."""
    n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
    displays, rewards = seen or (counts.displays_by_position.copy(), counts.rewards_by_position.copy())
    learner = GeneralLearner(
        tallies_of(counts),
        displays,
        rewards,
        by_likelihood,
        empty_evidence(n, m, k),
        np.zeros((n, m)),
        np.zeros((n, m)),
        np.zeros(k),
        np.array([(rewards <= 0).sum(), 0], dtype=np.int64),
        turn,
    )
    if learner.clock[UNREWARDED] == 0:
        for user_type in range(n):
            update_estimates(learner, user_type, _SETTLING_PASSES)
    return learner


@compiled
def update_estimates(learner: GeneralLearner, user_type: int, passes: int) -> None:
    """Bring the estimates of a type up to date."""
    i, preferences = user_type, learner.evidence.preferences
    if learner.by_likelihood:
        alternate(
            learner.displays, learner.rewards, preferences, learner.means, learner.room, i, _SETTLED, passes
        )
    else:
        estimate_preferences(learner.displays, learner.rewards, learner.evidence, i)
        update_means(learner.displays, learner.rewards, preferences, learner.means, i)
    exposures_of(learner.displays, preferences, i, learner.exposures[i])


@inlined
def learn_generally(
    learner: GeneralLearner, user_type: int, t: int, ranking: Indices, rewards: Floats
) -> None:
    """Take in a round."""
    i = user_type
    waiting = learner.clock[UNREWARDED] > 0
    for k in range(ranking.size):
        j = ranking[k]
        if rewards[k] > 0.0 and learner.rewards[i, k, j] <= 0.0:
            learner.clock[UNREWARDED] -= 1
        learner.displays[i, k, j] += 1.0
        learner.rewards[i, k, j] += rewards[k]
    record(learner.tallies, i, ranking, rewards)
    if learner.clock[UNREWARDED] > 0:
        return
    if waiting:
        learner.clock[INITIAL_ROUNDS] = t
        for other in range(learner.means.shape[0]):
            update_estimates(learner, other, _SETTLING_PASSES)
    else:
        update_estimates(learner, i, _PASSES)
