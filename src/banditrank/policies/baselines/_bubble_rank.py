"""BubbleRank: safe improvement of an initial list by exchanges of neighbours."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.policies._count_arrays import CountArrays, arrays_of, record_round
from banditrank.policies._kernel import Kernel
from banditrank.policies.baselines._base import HorizonBaselinePolicy
from banditrank.policies.baselines._components.item_remapping import remap_item_pairs

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class BaseLists(NamedTuple):
    """The base list of each copy, and the wins of neighbours in random order.

    In the paper's notation S_ij = W_ij − W_ji is the sum of a pair's click differences, and N_ij = W_ij +
    W_ji the sum of their absolute values.
    """

    items: Indices  # (N, M) the K items of the list, then the hidden ones in any order
    wins: Floats  # (N, M, M) W_ij: i was clicked and j, its neighbour, was not
    log_odds: float  # ln(1 / δ)


def init_base_lists(counts: Counts, rows: tuple[tuple[int, ...], ...] | None) -> Indices:
    """Return all items with those of the base list first, shape (copies, M).

    Parameters
    ----------
    counts
        Counts, by whose click rates items are sorted if there are no rows.
    rows
        Base lists of K items or more, a row for each copy, or one for all.

    Raises
    ------
    InvalidInputError
        If the rows do not fit the counts.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[9], [4], [0]]], [[[3], [2], [0]]], [13])
    >>> init_base_lists(counts, None), init_base_lists(counts, ((2,),))
    (array([[1, 0, 2]]), array([[2, 0, 1]]))
    """
    n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
    if rows is None:
        displays, rewards = counts.displays_by_position.sum(axis=1), counts.rewards_by_position.sum(axis=1)
        rates = np.divide(rewards, displays, out=np.zeros((n, m)), where=displays > 0)
        return np.argsort(-rates, axis=1, kind="stable").astype(np.intp)
    if len(rows) not in (1, n) or any(len(row) < k or max(row) >= m for row in rows):
        raise InvalidInputError("base_list", f"must have 1 or {n} rows of {k} or more of {m} items", rows)
    lists = [[*row, *(item for item in range(m) if item not in row)] for row in rows]
    return np.array([lists[copy % len(lists)] for copy in range(n)], dtype=np.intp)


@inlined
def beats(lists: BaseLists, user_type: int, item: int, other: int) -> bool:
    """Return whether an item is proven better than another: S > 2 √(N ln(1/δ))."""
    won, lost = lists.wins[user_type, item, other], lists.wins[user_type, other, item]
    lead = won - lost
    return bool(lead > 0.0 and lead * lead > 4.0 * (won + lost) * lists.log_odds)


@inlined
def exchange(lists: BaseLists, user_type: int, n_positions: int) -> bool:
    """Move up the items that are proven better than the one above; return whether there were any."""
    i, items = user_type, lists.items
    changed = False
    for place in range(1, items.shape[1]):
        above = min(place, n_positions) - 1  # hidden items are all neighbours of the last
        if beats(lists, i, items[i, place], items[i, above]):
            items[i, place], items[i, above] = items[i, above], items[i, place]
            changed = True
    return changed


NO_RIVAL = -1


class BubbleRankState(NamedTuple):
    """Counts and base lists."""

    arrays: CountArrays
    positions: NDArray[np.uintp]  # (N, K) by decreasing examination
    lists: BaseLists
    is_unsettled: NDArray[np.bool_]  # (N,) whether the list changed in the last round
    note: NDArray[np.int64]  # (3,) first pair, last item of the list, and the hidden item compared with it


@inlined
def _first_pair(state: BubbleRankState, user_type: int) -> int:
    """Return h = t mod 2, t being the round of the copy: ranks h and h + 1 are the first pair."""
    return (int(state.arrays.arrivals[user_type]) + 1) % 2


@inlined
def _rank(
    state: BubbleRankState,
    user_type: int,
    t: int,  # noqa: ARG001 - each copy counts its rounds
    parameters: Floats,  # noqa: ARG001 - there are none
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    i, lists, last = user_type, state.lists, ranking.size - 1
    first = _first_pair(state, i)
    state.note[0], state.note[1], state.note[2] = first, lists.items[i, last], NO_RIVAL
    for place in range(ranking.size):
        ranking[state.positions[i, place]] = lists.items[i, place]
    for place in range(first, last, 2):
        item, other = lists.items[i, place], lists.items[i, place + 1]
        if not beats(lists, i, item, other) and rng.random() < 0.5:
            ranking[state.positions[i, place]] = other
            ranking[state.positions[i, place + 1]] = item
    if last >= first and (last - first) % 2 == 0:  # the last rank is the upper one of a pair
        state.note[2] = _draw_rival(lists, i, last, rng)
        if state.note[2] != NO_RIVAL and rng.random() < 0.5:
            ranking[state.positions[i, last]] = state.note[2]


@inlined
def _draw_rival(lists: BaseLists, user_type: int, last: int, rng: np.random.Generator) -> int:
    """Return a random hidden item that the last one is not proven better than, if any."""
    i, items = user_type, lists.items
    candidates = 0
    for place in range(last + 1, items.shape[1]):
        candidates += not beats(lists, i, items[i, last], items[i, place])
    if candidates > 0:
        skip = int(rng.random() * candidates)
        for place in range(last + 1, items.shape[1]):
            if not beats(lists, i, items[i, last], items[i, place]):
                if skip == 0:
                    return int(items[i, place])
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
    learned = state.is_unsettled[i]
    for place in range(state.note[0], last, 2):
        above, below = state.positions[i, place], state.positions[i, place + 1]
        difference = rewards[above] - rewards[below]
        if difference > 0.0:
            lists.wins[i, ranking[above], ranking[below]] += difference
        else:
            lists.wins[i, ranking[below], ranking[above]] -= difference
        learned |= difference != 0.0
    earned = rewards[state.positions[i, last]]
    item, rival = state.note[1], state.note[2]
    if rival != NO_RIVAL and earned > 0.0:
        if ranking[state.positions[i, last]] == item:
            lists.wins[i, item, rival] += earned
        else:
            lists.wins[i, rival, item] += earned
        learned = True
    record_round(state.arrays, i, ranking, rewards)
    if learned:  # otherwise no neighbours are to be exchanged
        state.is_unsettled[i] = exchange(lists, i, ranking.size)


@dataclass(frozen=True, kw_only=True)
class BubbleRank(HorizonBaselinePolicy):
    """BubbleRank: neighbours of a base list in random order, until clicks prove which is better.

    In odd rounds the second and third, fourth and fifth, … are neighbours, in even rounds the first and
    second, third and fourth, … They are exchanged permanently once S > 2 √(N ln(1/δ)), where S sums the
    differences of their clicks, N the absolute differences, and δ = horizon⁻⁴, as the paper's regret bound
    suggests. It is safe: a ranking has at most K/2 more pairs in the wrong order than the base list, which is
    very unlikely to get worse.

    The paper's list holds all items. Here there may be more items than positions. Hidden items have no order:
    when the last rank is the upper one of a pair, it is paired with a hidden item, drawn from those that its
    own item is not proven better than. One of the two is shown at random; the other counts as not clicked. So
    a ranking holds at most one item that is not in the base list, at the last rank.

    Parameters
    ----------
    base_list
        Initial list, best item first: K items or more (of which the first K are shown), a row for each copy,
        or one for all. By default items by decreasing click rate in the initial counts, ties by index.
    horizon
        T. Other numbers of rounds are possible: see `HorizonBaselinePolicy`.
    order
        Positions by decreasing examination, a row for each copy, or one for all.
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    InvalidInputError
        If the base list, the horizon or the order, the treatment or the utility is not valid.

    References
    ----------
    C. Li, B. Kveton, T. Lattimore, I. Markov, M. de Rijke, C. Szepesvári and M. Zoghi (2019), BubbleRank:
    safe online learning to re-rank via implicit click feedback. Uncertainty in Artificial Intelligence 35.
    Algorithm 1.

    Examples
    --------
    >>> counts = Counts.empty(n_user_types=1, n_items=5, n_positions=2)
    >>> BubbleRank(base_list=((3, 1),)).rank(counts, 0, rng=np.random.default_rng(2))
    array([3, 0])
    """

    name: ClassVar[str] = "bubble-rank"
    own_statistics: ClassVar[str | None] = "which of two neighbours was clicked when the other was not"
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    base_list: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.base_list is not None:
            rows = tuple(tuple(int(item) for item in row) for row in self.base_list)
            for row in rows:
                if len(set(row)) < len(row) or min(row, default=-1) < 0:
                    raise InvalidInputError("base_list", "must hold distinct item indices in each row", row)
            object.__setattr__(self, "base_list", rows)

    def init_state(self, counts: Counts, scratch: Any) -> BubbleRankState:  # noqa: ARG002 - keeps none
        """Return the initial state: the base list, without comparisons."""
        wins = np.zeros((counts.n_user_types, counts.n_items, counts.n_items))
        return self._state(counts, init_base_lists(counts, self.base_list), wins)

    def update_items(
        self, state: BubbleRankState, counts: Counts, previous: NDArray[np.intp]
    ) -> BubbleRankState:
        """Return the state without removed items, the others moved up; new items are hidden."""
        indices = {int(before): now for now, before in enumerate(previous) if before >= 0}
        new = np.flatnonzero(previous < 0).tolist()
        lists = [
            [indices[item] for item in row if item in indices] + new for row in state.lists.items.tolist()
        ]
        return self._state(
            counts, np.array(lists, dtype=np.intp), remap_item_pairs(state.lists.wins, previous)
        )

    def _state(self, counts: Counts, items: Indices, wins: Floats) -> BubbleRankState:
        lists = BaseLists(items, wins, 4.0 * math.log(self.horizon))
        is_unsettled = np.ones(counts.n_user_types, dtype=np.bool_)
        note = np.array([0, 0, NO_RIVAL], dtype=np.int64)
        return BubbleRankState(arrays_of(counts), self.ordered_positions(counts), lists, is_unsettled, note)
