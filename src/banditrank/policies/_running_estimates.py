"""Running estimates of GreedyRank and UCBRank: Algorithm 1, updated incrementally after each round."""

from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.counts._counts import Counts
from banditrank.estimators._position_preferences import (
    PositionEvidence,
    empty_evidence,
    estimate_preferences,
    update_preferences,
)
from banditrank.policies._count_arrays import CountArrays, arrays_of, record_round
from banditrank.policies._restriction import Restriction, place_in_turn
from banditrank.policies._round_robin import round_robin

Floats = NDArray[np.float64]

AugmentedCounts: TypeAlias = tuple[Floats, Floats]
"""Displays and rewards with pseudo-counts, shape (N, K, M) each, which replace the counts in estimates."""

UNREWARDED, INITIAL_ROUNDS = range(2)  # indices of RunningEstimates.phase
REFRESH_ROUNDS = 1 << 14  # rounds between full runs of Algorithm 1, which remove rounding errors


class RunningEstimates(NamedTuple):
    """The counts and the estimates from them."""

    displays: Floats  # (N, K, M)
    rewards: Floats  # (N, K, M)
    arrivals: Floats  # (N,)
    reward_totals: Floats  # (N, M)  ‖S_ij‖₁
    evidence: PositionEvidence
    phase: NDArray[np.int64]  # (2,) cells without a reward, length of the initial phase
    turn: NDArray[np.int64]  # (1,) I_explore, the turn of the round-robin exploration
    counts: CountArrays  # the arrays of counts
    is_separate: bool  # whether displays, rewards and arrivals are other arrays, with pseudo-counts


class ExplorationState(Protocol):
    """The fields of a state that `try_explore` reads."""

    @property
    def displays(self) -> Floats:
        """Shape (N, K, M)."""

    @property
    def phase(self) -> NDArray[np.int64]:
        """See `RunningEstimates`."""

    @property
    def turn(self) -> NDArray[np.int64]:
        """See `RunningEstimates`."""


def init_running_estimates(
    counts: Counts, turn: NDArray[np.int64], augmented: AugmentedCounts | None = None
) -> RunningEstimates:
    """Return the estimates from counts, or from augmented counts.

    The arrays of counts and the turn are not copied.
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
def update_running_estimates(
    estimates: RunningEstimates, user_type: int, t: int, ranking: NDArray[np.uintp], rewards: Floats
) -> bool:
    """Update the estimates with a round; return whether they are valid, i.e. the initial phase is over."""
    i = user_type
    waiting = estimates.phase[UNREWARDED] > 0
    if waiting:
        for k in range(ranking.size):
            if rewards[k] > 0.0 and estimates.rewards[i, k, ranking[k]] <= 0.0:
                estimates.phase[UNREWARDED] -= 1
    estimates.arrivals[i] += 1.0
    for k in range(ranking.size):  # one loop: calling `record_round` takes 3% longer
        j = ranking[k]
        estimates.displays[i, k, j] += 1.0
        estimates.rewards[i, k, j] += rewards[k]
        estimates.reward_totals[i, j] += rewards[k]
    if estimates.is_separate:
        record_round(estimates.counts, i, ranking, rewards)
    is_whole = ranking.size == estimates.displays.shape[1]  # not a short ranking
    if not waiting and t % REFRESH_ROUNDS > 0 and is_whole:
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
    """Write a round-robin ranking and return True in the initial phase and in rounds that explore."""
    n_items = estimates.displays.shape[2]
    if estimates.phase[UNREWARDED] > 0:
        round_robin(t, n_items, ranking)
        return True
    if exploration > 0.0 and rng.random() < exploration:
        round_robin(estimates.turn[0], n_items, ranking)
        estimates.turn[0] = estimates.turn[0] % n_items + 1
        return True
    return False


@inlined
def try_explore_restricted(
    estimates: ExplorationState,
    restriction: Restriction,
    t: int,
    exploration: float,
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> bool:
    """Explore like `try_explore`, in the same rounds, but only the available items in turn.

    The turn is not reduced modulo M here, so that candidates that stay the same are shown equally often.
    """
    if estimates.phase[UNREWARDED] > 0:
        place_in_turn(restriction, t, ranking)
        return True
    if exploration > 0.0 and rng.random() < exploration:
        place_in_turn(restriction, estimates.turn[0], ranking)
        estimates.turn[0] += 1
        return True
    return False
