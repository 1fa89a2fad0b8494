"""UniRank: a unimodal bandit on ordered partitions of items, which explores merges of neighbouring parts."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank.counts._counts import Counts
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._count_arrays import arrays_of, record_round
from banditrank.policies._kernel import Kernel
from banditrank.policies.baselines._base import OrderedBaselinePolicy
from banditrank.policies.baselines._components.item_remapping import remap_item_pairs
from banditrank.policies.baselines._components.kl_ucb import exploration_level, kl_ucb, kl_ucb_exceeds
from banditrank.policies.baselines._components.leader_counts import (
    LeaderCounts,
    count_leader,
    init_leader_counts,
    leader_slot,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.uintp]


class Comparisons(NamedTuple):
    """Pairwise comparisons: rounds in which one of two items of a part was clicked and the other was not."""

    margins: Floats  # (copies, M, M) wins of the row's item minus wins of the column's
    rounds: Floats  # (copies, M, M)
    wins: Integers  # (copies, M) number of items that an item has a positive margin over


class Partition(NamedTuple):
    """An ordered partition of each copy: first the parts that are shown, then all other items."""

    items: Indices  # (copies, M)
    ends: Integers  # (copies, K) end of each part that is shown
    parts: Integers  # (copies,) number of parts that are shown


def init_comparisons(margins: Floats, rounds: Floats) -> Comparisons:
    """Return comparisons with given margins and rounds, shape (copies, M, M) each."""
    return Comparisons(margins, rounds, (margins > 0).sum(axis=2).astype(np.int64))


def init_partition(n_copies: int, n_items: int, n_positions: int) -> Partition:
    """Return the partition with all items in one part."""
    return Partition(
        np.tile(np.arange(n_items, dtype=np.uintp), (n_copies, 1)),
        np.full((n_copies, n_positions), n_items, dtype=np.int64),
        np.ones(n_copies, dtype=np.int64),
    )


@inlined
def record_win(comparisons: Comparisons, copy: int, winner: int, loser: int) -> bool:
    """Record a win of one item over another; return whether it changed which of them is ahead."""
    margins = comparisons.margins
    comparisons.rounds[copy, winner, loser] += 1.0
    comparisons.rounds[copy, loser, winner] += 1.0
    margins[copy, winner, loser] += 1.0
    margins[copy, loser, winner] -= 1.0
    if margins[copy, winner, loser] == 1.0:
        comparisons.wins[copy, winner] += 1
        return True
    if margins[copy, winner, loser] == 0.0:
        comparisons.wins[copy, loser] -= 1
        return True
    return False


@internal
def partition_items(comparisons: Comparisons, copy: int, partition: Partition) -> None:
    """Write the partition implied by the comparisons.

    Each part is the smallest set of remaining items whose every member is ahead of every other remaining
    item. Members are ahead of all non-members, so the item that is ahead of the most others is a member, and
    so is every item that a member is not ahead of. Parts are found until they fill the positions.
    """
    items, ends, margins, wins = partition.items, partition.ends, comparisons.margins, comparisons.wins
    n_items, n_positions = items.shape[1], ends.shape[1]
    begin, part = 0, 0
    while begin < n_positions:
        for place in range(begin + 1, n_items):
            if wins[copy, items[copy, place]] > wins[copy, items[copy, begin]]:
                _swap(items, copy, begin, place)
        end, member = begin + 1, begin
        while member < end:
            for place in range(end, n_items):
                if margins[copy, items[copy, member], items[copy, place]] <= 0.0:
                    _swap(items, copy, end, place)
                    end += 1
            member += 1
        ends[copy, part] = end
        part += 1
        begin = end
    partition.parts[copy] = part


@inlined
def _swap(items: Indices, copy: int, first: int, second: int) -> None:
    items[copy, first], items[copy, second] = items[copy, second], items[copy, first]


@internal
def merge_parts(
    comparisons: Comparisons,
    leader: Partition,
    copy: int,
    level: float,
    rng: np.random.Generator,
    merged: Partition,
) -> None:
    """Write the leader with consecutive parts merged that may be in the wrong order.

    From the top down, a part is merged with the next if an item of the next may be better than one of its
    own. The last part that is shown gets the most promising item that is not shown, if it may be better than
    one of its own.
    """
    items = leader.items
    for place in range(items.shape[1]):
        merged.items[copy, place] = items[copy, place]
    part, parts, begin = 0, 0, 0
    while part < leader.parts[copy]:
        end = leader.ends[copy, part]
        if part + 1 < leader.parts[copy]:
            if _may_be_better(comparisons, items, copy, begin, end, leader.ends[copy, part + 1], level):
                part += 1
                end = leader.ends[copy, part]
        elif end < items.shape[1]:
            place = _most_promising(comparisons, items, copy, begin, end, level, rng)
            if place >= 0:
                _swap(merged.items, copy, end, place)
                end += 1
        merged.ends[copy, parts] = end
        parts += 1
        part += 1
        begin = end
    merged.parts[copy] = parts


@inlined
def _may_be_better(
    comparisons: Comparisons, items: Indices, copy: int, begin: int, end: int, next_end: int, level: float
) -> bool:
    """Return whether an item from ``end`` on may be better than one from ``begin`` on.

    It may if the KL-UCB of its share of won rounds exceeds 1/2, which is decided without computing it.
    """
    for place in range(begin, end):
        for other in range(end, next_end):
            rounds = comparisons.rounds[copy, items[copy, other], items[copy, place]]
            share = _share(comparisons, copy, items[copy, other], items[copy, place])
            if kl_ucb_exceeds(share, rounds, level, 0.5):
                return True
    return False


@inlined
def _most_promising(
    comparisons: Comparisons,
    items: Indices,
    copy: int,
    begin: int,
    end: int,
    level: float,
    rng: np.random.Generator,
) -> int:
    """Return the index, from ``end`` on, of the item with the largest KL-UCB; −1 if none exceeds 1/2."""
    best, most, ties = -1, 0.5, 0
    for other in range(end, items.shape[1]):
        bound = 0.0
        for place in range(begin, end):
            rounds = comparisons.rounds[copy, items[copy, other], items[copy, place]]
            share = _share(comparisons, copy, items[copy, other], items[copy, place])
            bound = max(bound, kl_ucb(share, rounds, level))
        if bound > most:
            best, most, ties = other, bound, 1
        elif best >= 0 and bound == most:
            ties += 1
            if rng.random() * ties < 1.0:
                best = other
    return best


@inlined
def _share(comparisons: Comparisons, copy: int, item: int, ahead: int) -> float:
    """Return the share of rounds that an item won against one ahead of it, of which there is at least one."""
    margin: float = comparisons.margins[copy, item, ahead]
    rounds: float = comparisons.rounds[copy, item, ahead]
    return 0.5 + 0.5 * margin / rounds


@internal
def shuffle_parts(
    partition: Partition, copy: int, rng: np.random.Generator, positions: Indices, ranking: Indices
) -> None:
    """Write a ranking that shows one part after another, the items of each in random order."""
    items = partition.items
    begin = 0
    for part in range(partition.parts[copy]):
        end = partition.ends[copy, part]
        for place in range(begin, min(end, ranking.size)):
            if end - place > 1:
                _swap(items, copy, place, place + int(rng.random() * (end - place)))
            ranking[positions[copy, place]] = items[copy, place]
        begin = end


_ENDS = 3  # index of the first end in a note


class UniRankState(NamedTuple):
    """Counts, comparisons of items, and how often each partition has led."""

    displays: Floats  # (copies, K, M)
    rewards: Floats  # (copies, K, M)
    arrivals: Floats  # (copies,)
    positions: Indices  # (copies, K) by decreasing examination
    comparisons: Comparisons
    leader: Partition
    shown: Partition  # workspace
    leader_counts: LeaderCounts
    signatures: NDArray[np.int64]  # (copies,) of the leader
    is_stale: NDArray[np.bool_]  # (copies,) whether the leader may have changed
    note: Integers  # (3 + K + M,) signature and entry of the leader; parts, their ends and items, as shown


@inlined
def _rank(
    state: UniRankState,
    user_type: int,
    t: int,  # noqa: ARG001 - the leader has a clock of its own
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    i = user_type
    if state.is_stale[i]:
        _update_leader(state, i)
    slot = leader_slot(state.leader_counts, i, state.signatures[i])
    level = exploration_level(state.leader_counts.times[i, slot] + 1.0)
    merge_parts(state.comparisons, state.leader, i, level, rng, state.shown)
    shuffle_parts(state.shown, i, rng, state.positions, ranking)
    state.note[0], state.note[1] = state.signatures[i], slot
    _note_parts(state.note, state.shown, i)


@inlined
def _note_parts(note: Integers, shown: Partition, copy: int) -> None:
    n_parts, n_positions = shown.parts[copy], shown.ends.shape[1]
    note[2] = n_parts
    for part in range(n_parts):
        note[_ENDS + part] = shown.ends[copy, part]
    for place in range(shown.ends[copy, n_parts - 1]):
        note[_ENDS + n_positions + place] = shown.items[copy, place]


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
    record_round(state, i, ranking, rewards)
    count_leader(state.leader_counts, i, state.note[0], state.note[1])
    clicked = False
    for k in range(ranking.size):
        clicked |= rewards[k] > 0.0
    if clicked:
        _compare_parts(state, i, ranking, rewards)


@internal
def _compare_parts(state: UniRankState, user_type: int, ranking: Indices, rewards: Floats) -> None:
    """Compare the items of each part: clicked items win over the others, shown or not."""
    i, note, positions = user_type, state.note, state.positions
    first = _ENDS + ranking.size  # index of the first item in the note
    for place in range(ranking.size):
        if ranking[positions[i, place]] != note[first + place]:
            return  # not the ranking of the note, so that parts are unknown
    begin = 0
    for part in range(note[2]):
        end = note[_ENDS + part]
        for place in range(begin, min(end, ranking.size)):
            if rewards[positions[i, place]] > 0.0:
                for other in range(begin, end):
                    if other >= ranking.size or rewards[positions[i, other]] <= 0.0:
                        winner, loser = note[first + place], note[first + other]
                        state.is_stale[i] |= record_win(state.comparisons, i, winner, loser)
        begin = end


@dataclass(frozen=True, kw_only=True)
class UniRank(OrderedBaselinePolicy):
    """UniRank: the leading ordered partition of items, with parts merged where their order is uncertain.

    The leader is an ordered partition of the items: a part is the smallest set whose members are all ahead of
    all items below, i being ahead of j if it won more of the rounds in which both were in one part and one of
    them was clicked. A ranking shows the parts by decreasing examination, the items within a part in random
    order, which makes comparisons fair under any click model. Consecutive parts are merged if the KL-UCB of
    the share of rounds that an item won against one ahead exceeds 1/2, at level ln n + 3 ln ln n if the
    partition leads for the n-th time.

    Parameters
    ----------
    order
        Positions by decreasing examination, a row for each copy, or one for all.
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    InvalidInputError
        If the order, the treatment or the utility is not valid.

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

    def init_state(self, counts: Counts, scratch: Any) -> UniRankState:  # noqa: ARG002 - keeps none
        """Return a state without comparisons: counts do not show which items were in one part."""
        shape = (counts.n_user_types, counts.n_items, counts.n_items)
        return self._state(counts, init_comparisons(np.zeros(shape), np.zeros(shape)))

    def update_items(self, state: UniRankState, counts: Counts, previous: NDArray[np.intp]) -> UniRankState:
        """Return the state for other items, with the comparisons of remaining ones."""
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
            np.ones(n, dtype=np.bool_),
            np.zeros(_ENDS + k + m, dtype=np.int64),
        )
