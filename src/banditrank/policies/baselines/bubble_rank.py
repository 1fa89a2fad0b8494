"""BubbleRank: a list that is there already, improved by exchanging neighbours, safely."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.errors import InvalidInputError
from banditrank.policies.base import Kernel
from banditrank.policies.baselines.base import HorizonBaselinePolicy
from banditrank.policies.baselines.components.base_lists import BaseLists, beats, exchange, init_base_lists
from banditrank.policies.baselines.components.item_remapping import remap_item_pairs
from banditrank.policies.count_arrays import CountArrays, record, arrays_of
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

NO_RIVAL = -1


class BubbleRankState(NamedTuple):
    """The counts and the base lists."""

    arrays: CountArrays
    positions: NDArray[np.uintp]  # (N, K) from the most to the least looked at
    lists: BaseLists
    rivals: Indices  # (N,) where among the items the hidden one is that the last of the list is up against
    unsettled: NDArray[np.bool_]  # (N,) whether the list changed in the last round


@inlined
def _first_pair(state: BubbleRankState, user_type: int) -> int:
    """Return h = t mod 2, where t is the copy's own round: places h and h + 1 are the first pair."""
    return (int(state.arrays.arrivals[user_type]) + 1) % 2


@inlined
def _rank(
    state: BubbleRankState,
    user_type: int,
    t: int,  # noqa: ARG001 - a copy counts its own rounds
    parameters: Floats,  # noqa: ARG001 - there are none
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    i, lists, last = user_type, state.lists, ranking.size - 1
    first = _first_pair(state, i)
    for place in range(ranking.size):
        ranking[state.positions[i, place]] = lists.items[i, place]
    for place in range(first, last, 2):
        item, other = lists.items[i, place], lists.items[i, place + 1]
        if not beats(lists, i, item, other) and rng.random() < 0.5:
            ranking[state.positions[i, place]] = other
            ranking[state.positions[i, place + 1]] = item
    state.rivals[i] = NO_RIVAL
    if last >= first and (last - first) % 2 == 0:  # the last place is the upper one of a pair
        state.rivals[i] = _draw_rival(lists, i, last, rng)
        if state.rivals[i] != NO_RIVAL and rng.random() < 0.5:
            ranking[state.positions[i, last]] = lists.items[i, state.rivals[i]]


@inlined
def _draw_rival(lists: BaseLists, user_type: int, last: int, rng: np.random.Generator) -> int:
    """Return where a hidden item is that the last of the list is not known to be better than, if any."""
    i, items = user_type, lists.items
    candidates = 0
    for place in range(last + 1, items.shape[1]):
        candidates += not beats(lists, i, items[i, last], items[i, place])
    if candidates > 0:
        skip = int(rng.random() * candidates)
        for place in range(last + 1, items.shape[1]):
            if not beats(lists, i, items[i, last], items[i, place]):
                if skip == 0:
                    return place
                skip -= 1
    return NO_RIVAL


@inlined
def _observe(
    state: BubbleRankState,
    user_type: int,
    t: int,  # noqa: ARG001 - as above
    ranking: NDArray[np.uintp],
    rewards: Floats,
) -> None:
    i, lists, last = user_type, state.lists, ranking.size - 1
    learned = state.unsettled[i]
    for place in range(_first_pair(state, i), last, 2):
        above, below = state.positions[i, place], state.positions[i, place + 1]
        difference = rewards[above] - rewards[below]
        if difference > 0.0:
            lists.wins[i, ranking[above], ranking[below]] += difference
        else:
            lists.wins[i, ranking[below], ranking[above]] -= difference
        learned |= difference != 0.0
    earned = rewards[state.positions[i, last]]
    if state.rivals[i] != NO_RIVAL and earned > 0.0:
        item, rival = lists.items[i, last], lists.items[i, state.rivals[i]]
        if ranking[state.positions[i, last]] == item:
            lists.wins[i, item, rival] += earned
        else:
            lists.wins[i, rival, item] += earned
        learned = True
    record(state.arrays, i, ranking, rewards)
    if learned:  # else a look at all neighbours would find what it found last time: nothing to exchange
        state.unsettled[i] = exchange(lists, i, ranking.size)


@dataclass(frozen=True, kw_only=True)
class BubbleRank(HorizonBaselinePolicy):
    """Improve a base list: neighbours swap by the toss of a coin until clicks tell which is better.

    In odd rounds the second and third, fourth and fifth, … are neighbours, in even rounds the first and
    second, third and fourth, … They swap for good once S > 2 √(N ln(1/δ)), where S sums the differences of
    their clicks, N the sizes of these differences, and δ = horizon⁻⁴, as the paper's regret bound suggests.
    It is safe: what is shown has at most K/2 more pairs in the wrong order than the base list, and that is
    most unlikely to get worse than it was.

    The paper's list holds all items. Here there may be more than positions: hidden ones have no order, and
    when the last place is the upper one of a pair, it is paired with a hidden item drawn from those that its
    own is not known to be better than. A coin decides which of the two is shown; the other is not clicked.
    So all that is ever shown beside the base list's items is one hidden item, in the last place.

    Parameters
    ----------
    base
        The list to start from, best item first: K items or more (of more, the first K are shown), a row for
        each copy, or one for all. Left out: items by rewards per display in the counts that it starts from,
        ties by number.
    horizon
        T. It may be played for other than so many rounds: see `HorizonBaselinePolicy`.
    order
        The positions from the most to the least looked at, a row for each copy, or one for all.
    treatment, utility
        What its regret is measured against.

    References
    ----------
    C. Li, B. Kveton, T. Lattimore, I. Markov, M. de Rijke, C. Szepesvári and M. Zoghi (2019), BubbleRank:
    safe online learning to re-rank via implicit click feedback. Uncertainty in Artificial Intelligence 35.
    Algorithm 1.

    Examples
    --------
    >>> counts = Counts.empty(n_user_types=1, n_items=5, n_positions=2)
    >>> BubbleRank(base=((3, 1),)).rank(counts, 0, rng=np.random.default_rng(2))
    array([3, 0])
    """

    name: ClassVar[str] = "bubble-rank"
    own_statistics: ClassVar[str | None] = "which of two neighbours was clicked when the other was not"
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    base: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.base is not None:
            rows = tuple(tuple(int(item) for item in row) for row in self.base)
            for row in rows:
                if len(set(row)) < len(row) or min(row, default=-1) < 0:
                    raise InvalidInputError("base", "must hold numbers of different items in each row", row)
            object.__setattr__(self, "base", rows)

    def start(self, counts: Counts, scratch: Any) -> BubbleRankState:  # noqa: ARG002 - none is kept
        """Return the state of one that knows the base list and nothing else."""
        wins = np.zeros((counts.n_user_types, counts.n_items, counts.n_items))
        return self._state(counts, init_base_lists(counts, self.base), wins)

    def update_items(self, state: BubbleRankState, counts: Counts, previous: NDArray[np.intp]) -> BubbleRankState:
        """Return the state without the items that left, others moved up; new items are hidden at first."""
        numbers = {int(before): now for now, before in enumerate(previous) if before >= 0}
        new = np.flatnonzero(previous < 0).tolist()
        lists = [
            [numbers[item] for item in row if item in numbers] + new for row in state.lists.items.tolist()
        ]
        return self._state(counts, np.array(lists, dtype=np.intp), remap_item_pairs(state.lists.wins, previous))

    def _state(self, counts: Counts, items: Indices, wins: Floats) -> BubbleRankState:
        lists = BaseLists(items, wins, 4.0 * math.log(self.horizon))
        rivals = np.full(counts.n_user_types, NO_RIVAL, dtype=np.intp)
        unsettled = np.ones(counts.n_user_types, dtype=np.bool_)
        return BubbleRankState(arrays_of(counts), self.ordered_positions(counts), lists, rivals, unsettled)
