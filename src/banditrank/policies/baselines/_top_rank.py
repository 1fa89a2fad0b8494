"""TopRank: a partition of items into blocks, from pairwise comparisons."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, inlined
from banditrank.counts._counts import Counts
from banditrank.policies._count_arrays import CountArrays, arrays_of, record_round
from banditrank.policies._kernel import Kernel
from banditrank.policies.baselines._base import HorizonBaselinePolicy
from banditrank.policies.baselines._components.item_remapping import remap_item_pairs

Floats = NDArray[np.float64]
Graph = NDArray[np.bool_]
Indices = NDArray[np.intp]


class Blocks(NamedTuple):
    """The items of each copy, sorted by block."""

    items: Indices  # (N, M)
    starts: Indices  # (N, M) for each item, the start of its block in `items`
    ends: Indices  # (N, M) for each start of a block, its end
    waiting: Indices  # (M,) workspace: number of better items in no block yet; −1 for an item in a block


def init_blocks(better: Graph) -> Blocks:
    """Return the blocks of a graph of shape (copies, M, M).

    Examples
    --------
    >>> better = np.zeros((1, 4, 4), dtype=np.bool_)
    >>> better[0, 3, 0] = better[0, 0, 1] = True
    >>> blocks = init_blocks(better)
    >>> blocks.items[0], blocks.starts[0]  # 2 and 3, then 0, then 1
    (array([2, 3, 0, 1]), array([2, 3, 0, 0]))
    """
    n, m, _ = better.shape
    items, starts, ends = (np.zeros((n, m), dtype=np.intp) for _ in range(3))
    blocks = Blocks(items, starts, ends, np.zeros(m, dtype=np.intp))
    for user_type in range(n):
        update_blocks(blocks, better, user_type)
    return blocks


@compiled
def update_blocks(blocks: Blocks, better: Graph, user_type: int) -> None:
    """Partition the items: a block holds those that no item outside of earlier blocks is better than."""
    i, n_items = user_type, blocks.waiting.size
    for item in range(n_items):
        blocks.waiting[item] = 0
        for other in range(n_items):
            blocks.waiting[item] += better[i, other, item]
    end = 0
    while end < n_items:
        start = end
        end = _fill(blocks, i, start, 0)
        if end == start:  # a cycle, improbable under the paper's assumptions: the rest is one block
            end = _fill(blocks, i, start, n_items)
        for place in range(start, end):
            for item in range(n_items):
                if blocks.waiting[item] > 0 and better[i, blocks.items[i, place], item]:
                    blocks.waiting[item] -= 1


@inlined
def _fill(blocks: Blocks, user_type: int, start: int, limit: int) -> int:
    """Make a block of the items that wait for at most ``limit`` others; return its end."""
    i, end = user_type, start
    for item in range(blocks.waiting.size):
        if 0 <= blocks.waiting[item] <= limit:
            blocks.waiting[item] = -1
            blocks.items[i, end] = item
            blocks.starts[i, item] = start
            end += 1
    blocks.ends[i, start] = end
    return end


SCALE = 4.0 * math.sqrt(2.0 / math.pi) / math.erf(math.sqrt(2.0))  # the paper's c, 3.34…


class TopRankState(NamedTuple):
    """Pairwise wins, the graph of proven comparisons, and its blocks.

    In the paper's notation S_ij = W_ij − W_ji is the sum of a pair's click differences, and N_ij = W_ij +
    W_ji the sum of their absolute values.
    """

    arrays: CountArrays
    positions: NDArray[np.uintp]  # (N, K) by decreasing examination
    log_odds: float  # ln(c / δ)
    wins: Floats  # (N, M, M) W_ij: i was clicked and j, of the same block, was not
    better: Graph  # (N, M, M) whether i is proven better than j: the graph G
    blocks: Blocks
    earned: Floats  # (M,) workspace: this round's rewards by item
    note: NDArray[np.int64]  # (K + M,) end of each block that is shown, by its start; then its items


@inlined
def is_better(won: float, lost: float, log_odds: float) -> bool:
    """Return whether S ≥ √(2 N ln(c √N / δ)), given W_ij, W_ji and ln(c / δ)."""
    lead, contests = won - lost, won + lost
    if lead <= 0.0 or lead * lead < 2.0 * contests * log_odds:
        return False  # fast path, without a logarithm
    return lead * lead >= contests * (2.0 * log_odds + math.log(contests))


@inlined
def _rank(
    state: TopRankState,
    user_type: int,
    t: int,  # noqa: ARG001 - the horizon sets the confidence
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    i, items = user_type, state.blocks.items
    start = 0
    while start < ranking.size:
        end = state.blocks.ends[i, start]
        state.note[start] = end
        for place in range(start, min(end, ranking.size)):
            other = place
            if end - place > 1:
                other += int(rng.random() * (end - place))
            items[i, place], items[i, other] = items[i, other], items[i, place]
            ranking[state.positions[i, place]] = items[i, place]
        for place in range(start, end):
            state.note[ranking.size + place] = items[i, place]
        start = end


@inlined
def _observe(
    state: TopRankState,
    user_type: int,
    t: int,  # noqa: ARG001 - the horizon sets the confidence
    ranking: NDArray[np.uintp],
    rewards: Floats,
) -> None:
    i = user_type
    record_round(state.arrays, i, ranking, rewards)
    for place in range(ranking.size):
        if ranking[state.positions[i, place]] != state.note[ranking.size + place]:
            return  # not the ranking of the note, so that blocks are unknown
    learned = False
    for k in range(ranking.size):
        state.earned[ranking[k]] = rewards[k]
    start = 0
    while start < ranking.size:
        end = state.note[start]
        for place in range(start, min(end, ranking.size)):
            if rewards[state.positions[i, place]] > 0.0:  # only a clicked item can win
                learned |= _compare_block(state, i, place, start, end)
        start = end
    for k in range(ranking.size):
        state.earned[ranking[k]] = 0.0
    if learned:
        update_blocks(state.blocks, state.better, i)


@inlined
def _compare_block(state: TopRankState, user_type: int, place: int, start: int, end: int) -> bool:
    """Compare a clicked item with the others of its block; return whether it is newly proven better."""
    i, items = user_type, state.positions.shape[1]  # index of the first item in the note
    winner = state.note[items + place]
    learned = False
    for other in range(start, end):
        loser = state.note[items + other]
        difference = state.earned[winner] - state.earned[loser]  # items not shown are not clicked
        if difference > 0.0:
            state.wins[i, winner, loser] += difference
            if not state.better[i, winner, loser] and is_better(
                state.wins[i, winner, loser], state.wins[i, loser, winner], state.log_odds
            ):
                state.better[i, winner, loser] = True
                learned = True
    return learned


@dataclass(frozen=True, kw_only=True)
class TopRank(HorizonBaselinePolicy):
    """TopRank: items shuffled within blocks, until clicks prove which are better.

    Each block holds the items that no remaining item is proven better than; the first block takes the
    positions with the highest examination. i is proven better than j once S_ij ≥ √(2 N_ij ln(c √N_ij / δ)),
    where S_ij sums the differences of their clicks while both are in one block, N_ij the absolute
    differences, c = 4√(2/π) / erf(√2) and δ = 1 / horizon. An item that is not shown counts as not clicked.

    Parameters
    ----------
    horizon
        T. Other numbers of rounds are possible: see `HorizonBaselinePolicy`.
    order
        Positions by decreasing examination, a row for each copy, or one for all.
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    InvalidInputError
        If the horizon or the order, the treatment or the utility is not valid.

    References
    ----------
    T. Lattimore, B. Kveton, S. Li and C. Szepesvári (2018), TopRank: a practical algorithm for online
    stochastic ranking. Advances in Neural Information Processing Systems 31. Algorithm 1.

    Examples
    --------
    >>> counts = Counts.empty(n_user_types=1, n_items=5, n_positions=2)
    >>> TopRank(horizon=1000).rank(counts, 0, rng=np.random.default_rng(2))
    array([1, 2])
    """

    name: ClassVar[str] = "top-rank"
    own_statistics: ClassVar[str | None] = "which of two items in a block was clicked when the other was not"
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    def init_state(self, counts: Counts, scratch: Any) -> TopRankState:  # noqa: ARG002 - keeps none
        """Return the initial state: all items in one block. Counts do not determine comparisons."""
        wins = np.zeros((counts.n_user_types, counts.n_items, counts.n_items))
        return self._state(counts, wins, wins > 0.0)

    def update_items(self, state: TopRankState, counts: Counts, previous: NDArray[np.intp]) -> TopRankState:
        """Return the state with the comparisons of remaining items; new items join the first block."""
        wins, better = remap_item_pairs(state.wins, previous), remap_item_pairs(state.better, previous)
        return self._state(counts, wins, better)

    def _state(self, counts: Counts, wins: Floats, better: Graph) -> TopRankState:
        positions, log_odds = self.ordered_positions(counts), math.log(SCALE * self.horizon)
        earned = np.zeros(counts.n_items)
        note = np.zeros(counts.n_positions + counts.n_items, dtype=np.int64)
        return TopRankState(
            arrays_of(counts), positions, log_odds, wins, better, init_blocks(better), earned, note
        )
