"""What GreedyRank and UCBRank know with another estimator than Algorithm 1, or with a smoothed start.

Estimates are worked out again each round, in O(MK) for the type that arrived: the likelihood's go on from
those of the round before, and a few passes bring them up to date.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, inlined
from banditrank.estimators.item_means import exposures_of
from banditrank.estimators.maximum_likelihood import alternate, update_means
from banditrank.estimators.position_preferences import (
    PositionEvidence,
    empty_evidence,
    estimate_preferences,
)
from banditrank.policies.running_estimates import INITIAL_ROUNDS, UNREWARDED, AugmentedCounts
from banditrank.policies.count_arrays import CountArrays, record, arrays_of
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

_PASSES = 3  # of the likelihood's estimator in a round
_SETTLED = 1e-6  # a change that calls for no further pass
_SETTLING_PASSES = 1000  # from nothing


class RecomputedEstimates(NamedTuple):
    """The counts, the smoothed counts, and the estimates from these."""

    arrays: CountArrays
    displays: Floats  # (N, K, M) smoothed
    rewards: Floats  # (N, K, M) smoothed
    by_likelihood: bool
    evidence: PositionEvidence  # with ρ̂
    means: Floats  # (N, M) μ̂
    exposures: Floats  # (N, M) N_ij
    workspace: Floats  # (K,)
    phase: NDArray[np.int64]  # (2,) cells without a reward, rounds of the initial phase
    turn: NDArray[np.int64]  # (1,) I_explore, the place of the round-robin


def init_recomputed_estimates(
    counts: Counts, turn: NDArray[np.int64], seen: AugmentedCounts | None, *, by_likelihood: bool
) -> RecomputedEstimates:
    """Return what is known from the counts, whose arrays are shared, or from what was seen in their place."""
    n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
    displays, rewards = seen or (counts.displays_by_position.copy(), counts.rewards_by_position.copy())
    estimates = RecomputedEstimates(
        arrays_of(counts),
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
    if estimates.phase[UNREWARDED] == 0:
        for user_type in range(n):
            recompute_estimates(estimates, user_type, _SETTLING_PASSES)
    return estimates


@compiled
def recompute_estimates(estimates: RecomputedEstimates, user_type: int, passes: int) -> None:
    """Bring the estimates of a type up to date."""
    i, preferences = user_type, estimates.evidence.preferences
    if estimates.by_likelihood:
        alternate(
            estimates.displays, estimates.rewards, preferences, estimates.means, estimates.workspace, i, _SETTLED, passes
        )
    else:
        estimate_preferences(estimates.displays, estimates.rewards, estimates.evidence, i)
        update_means(estimates.displays, estimates.rewards, preferences, estimates.means, i)
    exposures_of(estimates.displays, preferences, i, estimates.exposures[i])


@inlined
def update_recomputed_estimates(
    estimates: RecomputedEstimates, user_type: int, t: int, ranking: Indices, rewards: Floats
) -> None:
    """Take in a round."""
    i = user_type
    waiting = estimates.phase[UNREWARDED] > 0
    for k in range(ranking.size):
        j = ranking[k]
        if rewards[k] > 0.0 and estimates.rewards[i, k, j] <= 0.0:
            estimates.phase[UNREWARDED] -= 1
        estimates.displays[i, k, j] += 1.0
        estimates.rewards[i, k, j] += rewards[k]
    record(estimates.arrays, i, ranking, rewards)
    if estimates.phase[UNREWARDED] > 0:
        return
    if waiting:
        estimates.phase[INITIAL_ROUNDS] = t
        for other in range(estimates.means.shape[0]):
            recompute_estimates(estimates, other, _SETTLING_PASSES)
    else:
        recompute_estimates(estimates, i, _PASSES)
