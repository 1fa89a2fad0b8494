"""What GreedyRank and UCBRank know at any moment: the counts, and Algorithm 1 kept up to date."""

from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.estimators.position_preferences import (
    PositionEvidence,
    empty_evidence,
    estimate_preferences,
    update_preferences,
)
from banditrank.policies.round_robin import round_robin
from banditrank.policies.count_arrays import CountArrays, record, arrays_of
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]

AugmentedCounts: TypeAlias = tuple[Floats, Floats]
"""Displays and rewards with pseudo-counts, shape (N, K, M): learned from in place of the counts."""

UNREWARDED, INITIAL_ROUNDS = range(2)  # places in Learner.clock
REFRESH_ROUNDS = 1 << 14  # rounds between two runs of Algorithm 1 from the counts, which shed rounding errors


class RunningEstimates(NamedTuple):
    """The counts and what follows from them."""

    displays: Floats  # (N, K, M)
    rewards: Floats  # (N, K, M)
    arrivals: Floats  # (N,)
    reward_totals: Floats  # (N, M)  ‖S_ij‖₁
    evidence: PositionEvidence
    phase: NDArray[np.int64]  # (2,) cells without a reward, rounds of the initial phase
    turn: NDArray[np.int64]  # (1,) I_explore, the place of the round-robin
    counts: CountArrays  # the arrays of counts, whether or not those above are the same
    is_separate: bool  # whether they are not


class ExplorationState(Protocol):
    """What is needed to tell whether a round explores."""

    @property
    def displays(self) -> Floats:
        """Shape (N, K, M)."""

    @property
    def phase(self) -> NDArray[np.int64]:
        """As in `RunningEstimates`."""

    @property
    def turn(self) -> NDArray[np.int64]:
        """As in `RunningEstimates`."""


def init_running_estimates(counts: Counts, turn: NDArray[np.int64], augmented: AugmentedCounts | None = None) -> RunningEstimates:
    """Return what is known from the counts, or from what was seen in their place.

    The arrays of counts, and the turn, are shared, not copied.
    """
    arrays = arrays_of(counts)
    displays, rewards, arrivals = arrays if augmented is None else (*augmented, counts.arrivals.copy())
    evidence = empty_evidence(counts.n_user_types, counts.n_items, counts.n_positions)
    unrewarded = int((rewards <= 0).sum())
    if unrewarded == 0:
        for user_type in range(counts.n_user_types):
            estimate_preferences(displays, rewards, evidence, user_type)
    phase = np.array([unrewarded, 0], dtype=np.int64)
    totals = rewards.sum(axis=1)
    is_separate = augmented is not None
    return RunningEstimates(displays, rewards, arrivals, totals, evidence, phase, turn, arrays, is_separate)


@inlined
def update_running_estimates(estimates: RunningEstimates, user_type: int, t: int, ranking: NDArray[np.uintp], rewards: Floats) -> bool:
    """Take in a round; return whether Algorithm 1's estimates are valid, as after the initial phase."""
    i = user_type
    waiting = estimates.phase[UNREWARDED] > 0
    if waiting:
        for k in range(ranking.size):
            if rewards[k] > 0.0 and estimates.rewards[i, k, ranking[k]] <= 0.0:
                estimates.phase[UNREWARDED] -= 1
    estimates.arrivals[i] += 1.0
    for k in range(ranking.size):  # one loop: `record` and another take 3% longer
        j = ranking[k]
        estimates.displays[i, k, j] += 1.0
        estimates.rewards[i, k, j] += rewards[k]
        estimates.reward_totals[i, j] += rewards[k]
    if estimates.is_separate:
        record(estimates.counts, i, ranking, rewards)
    if not waiting and t % REFRESH_ROUNDS > 0:
        update_preferences(estimates.displays, estimates.rewards, estimates.evidence, i, ranking)
    elif estimates.phase[UNREWARDED] == 0:
        if waiting:
            estimates.phase[INITIAL_ROUNDS] = t
        for other in range(estimates.arrivals.size):
            estimate_preferences(estimates.displays, estimates.rewards, estimates.evidence, other)
    return bool(estimates.phase[UNREWARDED] == 0)


@inlined
def try_explore(
    estimates: ExplorationState,
    t: int,
    exploration: float,
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> bool:
    """Write the ranking of the initial phase, or of a round that explores, if this is one."""
    n_items = estimates.displays.shape[2]
    if estimates.phase[UNREWARDED] > 0:
        round_robin(t, n_items, ranking)
        return True
    if exploration > 0.0 and rng.random() < exploration:
        round_robin(estimates.turn[0], n_items, ranking)
        estimates.turn[0] = estimates.turn[0] % n_items + 1
        return True
    return False
