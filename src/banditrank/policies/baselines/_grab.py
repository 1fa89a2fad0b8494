"""GRAB: a unimodal bandit on rankings, which explores the neighbours of the leader."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank.counts._counts import Counts
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._count_arrays import arrays_of, record_round
from banditrank.policies._kernel import Kernel
from banditrank.policies.baselines._base import BaselinePolicy
from banditrank.policies.baselines._components.kl_ucb import exploration_level, kl_ucb, kl_ucb_exceeds
from banditrank.policies.baselines._components.leader_counts import (
    LeaderCounts,
    count_leader,
    init_leader_counts,
    leader_slot,
)
from banditrank.policies.baselines._components.matching import Matching, best_matching, init_matching

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class GRABState(NamedTuple):
    """Counts, mean rewards of cells, and how often each ranking has led."""

    displays: Floats  # (copies, K, M)
    rewards: Floats  # (copies, K, M)
    arrivals: Floats  # (copies,)
    means: Floats  # (copies, K, M) 0 for cells without displays
    matching: Matching
    leader_counts: LeaderCounts
    note: NDArray[np.int64]  # (2,) signature and entry of the leader
    positions: Indices  # (K,) workspace: by decreasing mean of the leader
    bounds: Floats  # (K,) workspace: of the leader
    leads: NDArray[np.bool_]  # (M,) workspace: whether the leader shows an item


@inlined
def _rank(
    state: GRABState,
    user_type: int,
    t: int,  # noqa: ARG001 - the leader has a clock of its own
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,  # noqa: ARG001
    ranking: Indices,
) -> None:
    best_matching(state.matching, user_type, state.means[user_type], ranking)  # the leader
    signature = 0
    for k in range(ranking.size):
        signature ^= state.leader_counts.codes[k, ranking[k]]
    slot = leader_slot(state.leader_counts, user_type, signature)
    state.note[0], state.note[1] = signature, slot
    times = state.leader_counts.times[user_type, slot]
    if times % state.means.shape[2] > 0.0:  # M is the size of the neighbourhood, M − 1, plus 1
        _explore(state, user_type, exploration_level(times + 1.0), ranking)


@internal
def _explore(state: GRABState, user_type: int, level: float, ranking: Indices) -> None:
    """Replace the leader by the neighbour with the largest sum of upper bounds, if that exceeds its own.

    Positions are ordered by the leader's means. A neighbour exchanges the items of two consecutive positions,
    or shows another item at the last one. Ties go to the better position, then to the lower index.
    """
    i, positions, bounds = user_type, state.positions, state.bounds
    _describe_leader(state, i, level, ranking)
    most, upper, newcomer = 0.0, -1, -1
    for rank in range(ranking.size - 1):
        k, below = positions[rank], positions[rank + 1]
        gain = _bound(state, i, k, ranking[below], level) + _bound(state, i, below, ranking[k], level)
        gain -= bounds[k] + bounds[below]
        if gain > most:
            most, upper = gain, rank
    last = positions[ranking.size - 1]
    for j in range(state.leads.size):
        target = bounds[last] + most
        if not state.leads[j] and kl_ucb_exceeds(
            state.means[i, last, j], state.displays[i, last, j], level, target
        ):
            gain = _bound(state, i, last, j, level) - bounds[last]
            if gain > most:  # true up to rounding
                most, newcomer = gain, j
    if newcomer >= 0:
        ranking[last] = newcomer
    elif upper >= 0:
        k, below = positions[upper], positions[upper + 1]
        ranking[k], ranking[below] = ranking[below], ranking[k]


@inlined
def _describe_leader(state: GRABState, user_type: int, level: float, ranking: Indices) -> None:
    """Write the items of the leader, its upper bounds, and the positions by decreasing mean."""
    means, positions = state.means[user_type], state.positions
    for j in range(state.leads.size):
        state.leads[j] = False
    for k in range(ranking.size):
        state.leads[ranking[k]] = True
        state.bounds[k] = _bound(state, user_type, k, ranking[k], level)
        place = k
        while place > 0 and means[positions[place - 1], ranking[positions[place - 1]]] < means[k, ranking[k]]:
            positions[place] = positions[place - 1]
            place -= 1
        positions[place] = k


@inlined
def _bound(state: GRABState, user_type: int, position: int, item: int, level: float) -> float:
    displays = state.displays[user_type, position, item]
    return kl_ucb(state.means[user_type, position, item], displays, level)


@inlined
def _observe(state: GRABState, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:  # noqa: ARG001
    record_round(state, user_type, ranking, rewards)
    count_leader(state.leader_counts, user_type, state.note[0], state.note[1])
    for k in range(ranking.size):
        displays = state.displays[user_type, k, ranking[k]]
        state.means[user_type, k, ranking[k]] = state.rewards[user_type, k, ranking[k]] / displays


@dataclass(frozen=True, kw_only=True)
class GRAB(BaselinePolicy):
    """GRAB: the leader, or its neighbour with the largest KL-UCB.

    The leader is the ranking with the largest sum of mean rewards S_jk / T_jk. Its neighbours exchange the
    items of two consecutive positions in the order of these means, or show another item at the last one: M −
    1 rankings, one of which is better unless the leader is optimal. Every M-th time that a ranking leads, it
    is shown; otherwise the ranking with the largest sum of KL-UCBs among it and its neighbours. Their level
    is ln n + 3 ln ln n if the ranking leads for the n-th time.

    Parameters
    ----------
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    UnknownNameError
        If the treatment or the utility is unknown.

    References
    ----------
    C.-S. Gauthier, R. Gaudel, E. Fromont and B. A. Lompo (2021), Parametric graph for unimodal ranking
    bandit. International Conference on Machine Learning 38.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[9, 9], [9, 9], [9, 9]]], [[[1, 2], [3, 8], [2, 3]]], [27])
    >>> GRAB().rank(counts, 0, rng=np.random.default_rng(0))
    array([2, 1])
    """

    name: ClassVar[str] = "grab"
    assumptions: ClassVar[Assumptions] = Assumptions(click_models=("position-based",))
    own_statistics: ClassVar[str | None] = "how often each ranking has led"
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    def init_state(self, counts: Counts, scratch: Any) -> GRABState:  # noqa: ARG002 - keeps none
        """Return the state for counts, in which no ranking has led yet."""
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        arrays = arrays_of(counts)
        return GRABState(
            *arrays,
            np.divide(arrays.rewards, arrays.displays, out=np.zeros((n, k, m)), where=arrays.displays > 0),
            init_matching(n, m, k),
            init_leader_counts(n, m, k),
            np.zeros(2, dtype=np.int64),
            np.zeros(k, dtype=np.uintp),
            np.zeros(k),
            np.zeros(m, dtype=np.bool_),
        )
