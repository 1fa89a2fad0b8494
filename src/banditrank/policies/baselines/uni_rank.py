"""UniRank: explores the orders of items that differ from the best-looking one by a merger of neighbours."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined, internal
from banditrank.policies.assumptions import Assumptions
from banditrank.policies.base import Kernel
from banditrank.policies.baselines.base import OrderedBaselinePolicy
from banditrank.policies.baselines.components.item_remapping import remap_item_pairs
from banditrank.policies.baselines.components.kl_ucb import exploration_level
from banditrank.policies.baselines.components.leader_counts import LeaderCounts, init_leader_counts, leader_slot
from banditrank.policies.baselines.components.ordered_partitions import (
    Comparisons,
    Partition,
    record_win,
    init_comparisons,
    merge_parts,
    init_partition,
    partition_items,
    shuffle_parts,
)
from banditrank.policies.count_arrays import record, arrays_of
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class UniRankState(NamedTuple):
    """The counts, comparisons of items, and how often each partition has led."""

    displays: Floats  # (copies, K, M)
    rewards: Floats  # (copies, K, M)
    arrivals: Floats  # (copies,)
    positions: Indices  # (copies, K) from the most to the least looked at
    comparisons: Comparisons
    leader: Partition
    shown: Partition
    leader_counts: LeaderCounts
    signatures: NDArray[np.int64]  # (copies,) the leader's
    slots: NDArray[np.int64]  # (copies,) where the leader's times are
    is_stale: NDArray[np.bool_]  # (copies,) whether the leader may be another by now


@inlined
def _rank(
    state: UniRankState,
    user_type: int,
    t: int,  # noqa: ARG001 - the clock is the leader's
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    i = user_type
    if state.is_stale[i]:
        _update_leader(state, i)
    slot = leader_slot(state.leader_counts, i, state.signatures[i])
    state.slots[i] = slot
    level = exploration_level(state.leader_counts.times[i, slot] + 1.0)
    merge_parts(state.comparisons, state.leader, i, level, rng, state.shown)
    shuffle_parts(state.shown, i, rng, state.positions, ranking)


@internal
def _update_leader(state: UniRankState, user_type: int) -> None:
    i, leader = user_type, state.leader
    partition_items(state.comparisons, i, leader)
    signature, begin = 0, 0
    for part in range(leader.parts[i]):
        for place in range(begin, leader.ends[i, part]):
            signature ^= state.leader_counts.codes[part, leader.items[i, place]]
        begin = leader.ends[i, part]
    state.signatures[i] = signature
    state.is_stale[i] = False


@inlined
def _observe(state: UniRankState, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:  # noqa: ARG001
    i = user_type
    record(state, i, ranking, rewards)
    state.leader_counts.times[i, state.slots[i]] += 1.0
    clicked = False
    for k in range(ranking.size):
        clicked |= rewards[k] > 0.0
    if clicked:
        _compare_parts(state, i, ranking, rewards)


@internal
def _compare_parts(state: UniRankState, user_type: int, ranking: Indices, rewards: Floats) -> None:
    """Compare the items of each part: those clicked won over those not clicked, shown or not."""
    i, shown, positions = user_type, state.shown, state.positions
    for place in range(ranking.size):
        if ranking[positions[i, place]] != shown.items[i, place]:
            return  # not the ranking of the last round: who was as well placed as whom is not known
    begin = 0
    for part in range(shown.parts[i]):
        end = shown.ends[i, part]
        for place in range(begin, min(end, ranking.size)):
            if rewards[positions[i, place]] > 0.0:
                for other in range(begin, end):
                    if other >= ranking.size or rewards[positions[i, other]] <= 0.0:
                        winner, loser = shown.items[i, place], shown.items[i, other]
                        state.is_stale[i] |= record_win(state.comparisons, i, winner, loser)
        begin = end


@dataclass(frozen=True, kw_only=True)
class UniRank(OrderedBaselinePolicy):
    """Show the leading order of items, with parts of it merged to learn whether they are in order.

    The leader is an ordered partition of the items: a part is the smallest set whose members are all ahead
    of all items below, i being ahead of j if, of the rounds in which both stood in one part and one of them
    was clicked, i won more. A ranking shows the parts from the position looked at most to that looked at
    least, the items within a part in random order, which makes comparisons fair whatever users do. Parts
    that follow each other are merged if the KL-UCB of the share of rounds that an item won over one ahead
    exceeds 1/2, at level ln n + 3 ln ln n, the partition leading for the n-th time.

    Parameters
    ----------
    order
        The positions from the most to the least looked at, a row for each copy, or one for all.
    treatment, utility
        What its regret is measured against.

    References
    ----------
    C.-S. Gauthier, R. Gaudel and E. Fromont (2022), UniRank: unimodal bandit algorithms for online ranking.
    International Conference on Machine Learning 39.

    Examples
    --------
    >>> from banditrank import kdd2012, simulate
    >>> simulate(UniRank(), kdd2012(), horizon=100, replications=2).final_regret.shape
    (2,)
    """

    name: ClassVar[str] = "uni-rank"
    assumptions: ClassVar[Assumptions] = Assumptions(
        positions="order", click_models=("cascade", "position-based")
    )
    own_statistics: ClassVar[str | None] = "comparisons of items, and how often each partition has led"
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    def start(self, counts: Counts, scratch: Any) -> UniRankState:  # noqa: ARG002 - nothing is remembered
        """Return a state without comparisons: counts do not tell who stood in one part."""
        shape = (counts.n_user_types, counts.n_items, counts.n_items)
        return self._state(counts, init_comparisons(np.zeros(shape), np.zeros(shape)))

    def update_items(self, state: UniRankState, counts: Counts, previous: NDArray[np.intp]) -> UniRankState:
        """Return the state for other items, with the comparisons of those that stay."""
        margins, rounds = state.comparisons.margins, state.comparisons.rounds
        return self._state(
            counts, init_comparisons(remap_item_pairs(margins, previous), remap_item_pairs(rounds, previous))
        )

    def _state(self, counts: Counts, comparisons: Comparisons) -> UniRankState:
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        return UniRankState(
            *arrays_of(counts),
            self.ordered_positions(counts),
            comparisons,
            init_partition(n, m, k),
            init_partition(n, m, k),
            init_leader_counts(n, m, k),
            np.zeros(n, dtype=np.int64),
            np.zeros(n, dtype=np.int64),
            np.ones(n, dtype=np.bool_),
        )
