"""TopRank: items in blocks, from what is known to be better than what."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.policies.base import Kernel
from banditrank.policies.baselines.base import HorizonBaselinePolicy
from banditrank.policies.baselines.components.blocks import Blocks, Graph, init_blocks, update_blocks
from banditrank.policies.baselines.components.item_remapping import remap_item_pairs
from banditrank.policies.count_arrays import CountArrays, record, arrays_of
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]

SCALE = 4.0 * math.sqrt(2.0 / math.pi) / math.erf(math.sqrt(2.0))  # the paper's c, 3.34…


class TopRankState(NamedTuple):
    """Who won over whom, what that proves, and the blocks that follow from it.

    The paper's S_ij, the sum of a pair's differences, is W_ij − W_ji, and N_ij, of their sizes, W_ij + W_ji.
    """

    arrays: CountArrays
    positions: NDArray[np.uintp]  # (N, K) from the most to the least looked at
    log_odds: float  # ln(c / δ)
    wins: Floats  # (N, M, M) W_ij: i was clicked and j, of the same block, was not
    better: Graph  # (N, M, M) whether i is known to be better than j: the graph G
    blocks: Blocks
    earned: Floats  # (M,) room: this round's rewards by item


@inlined
def is_better(won: float, lost: float, log_odds: float) -> bool:
    """Return whether S ≥ √(2 N ln(c √N / δ)), given W_ij, W_ji and ln(c / δ)."""
    lead, contests = won - lost, won + lost
    if lead <= 0.0 or lead * lead < 2.0 * contests * log_odds:
        return False  # most of the time: no logarithm is needed to know
    return lead * lead >= contests * (2.0 * log_odds + math.log(contests))


@inlined
def _rank(
    state: TopRankState,
    user_type: int,
    t: int,  # noqa: ARG001 - of no account
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    i, items = user_type, state.blocks.items
    start = 0
    while start < ranking.size:
        end = state.blocks.ends[i, start]
        for place in range(start, min(end, ranking.size)):
            other = place
            if end - place > 1:
                other += int(rng.random() * (end - place))
            items[i, place], items[i, other] = items[i, other], items[i, place]
            ranking[state.positions[i, place]] = items[i, place]
        start = end


@inlined
def _observe(
    state: TopRankState,
    user_type: int,
    t: int,  # noqa: ARG001 - of no account
    ranking: NDArray[np.uintp],
    rewards: Floats,
) -> None:
    i, blocks = user_type, state.blocks
    record(state.arrays, i, ranking, rewards)
    learned = False
    for k in range(ranking.size):
        state.earned[ranking[k]] = rewards[k]
    for k in range(ranking.size):
        if rewards[k] > 0.0:  # only who was clicked can come out better
            winner = ranking[k]
            start = blocks.starts[i, winner]
            for place in range(start, blocks.ends[i, start]):
                loser = blocks.items[i, place]
                difference = rewards[k] - state.earned[loser]  # items not shown are not clicked
                if difference > 0.0:
                    state.wins[i, winner, loser] += difference
                    if not state.better[i, winner, loser] and is_better(
                        state.wins[i, winner, loser], state.wins[i, loser, winner], state.log_odds
                    ):
                        state.better[i, winner, loser] = True
                        learned = True
    for k in range(ranking.size):
        state.earned[ranking[k]] = 0.0
    if learned:
        update_blocks(blocks, state.better, i)


@dataclass(frozen=True, kw_only=True)
class TopRank(HorizonBaselinePolicy):
    """Shuffle items within blocks, until clicks tell which is better.

    Each block holds the items that no remaining one is known to be better than; the first block takes the
    positions looked at most. i is known to be better than j once S_ij ≥ √(2 N_ij ln(c √N_ij / δ)), where S_ij
    sums the differences of their clicks while both are in one block, N_ij the sizes of these differences,
    c = 4√(2/π) / erf(√2) and δ = 1 / horizon. An item that is not shown is not clicked.

    Parameters
    ----------
    horizon
        T. It may be played for other than so many rounds: see `HorizonBaselinePolicy`.
    order
        The positions from the most to the least looked at, a row for each copy, or one for all.
    treatment, utility
        What its regret is measured against.

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

    def start(self, counts: Counts, scratch: Any) -> TopRankState:  # noqa: ARG002 - none is kept
        """Return the state of one that knows nothing: all items in one block."""
        wins = np.zeros((counts.n_user_types, counts.n_items, counts.n_items))
        return self._state(counts, wins, wins > 0.0)

    def update_items(self, state: TopRankState, counts: Counts, previous: NDArray[np.intp]) -> TopRankState:
        """Return the state with what is known of the items that stay; new ones join the first block."""
        wins, better = remap_item_pairs(state.wins, previous), remap_item_pairs(state.better, previous)
        return self._state(counts, wins, better)

    def _state(self, counts: Counts, wins: Floats, better: Graph) -> TopRankState:
        positions, log_odds = self.ordered_positions(counts), math.log(SCALE * self.horizon)
        earned = np.zeros(counts.n_items)
        return TopRankState(
            arrays_of(counts), positions, log_odds, wins, better, init_blocks(better), earned
        )
