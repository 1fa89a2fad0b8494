"""BatchRank: batches of items explored in stages, and split where they come apart."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.policies.base import Kernel
from banditrank.policies.baselines.base import HorizonBaselinePolicy
from banditrank.policies.baselines.components.batches import Batches, end_stage, init_batches
from banditrank.policies.baselines.components.kl_ucb import exploration_level
from banditrank.policies.count_arrays import CountArrays, record, arrays_of
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]


class BatchRankState(NamedTuple):
    """The counts and the batches."""

    arrays: CountArrays
    positions: NDArray[np.uintp]  # (N, K) from the most to the least looked at
    log_horizon: float  # ln T
    level: float  # δ_T = ln T + 3 ln ln T
    batches: Batches


@inlined
def _rank(
    state: BatchRankState,
    user_type: int,
    t: int,  # noqa: ARG001 - of no account
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    i, batches = user_type, state.batches
    items = batches.items
    first = 0
    while first < ranking.size:
        length, pending = batches.lengths[i, first], batches.pending[i, first]
        for rank in range(length):
            choices = pending if rank < pending else batches.sizes[i, first]
            place, other = first + rank, first + rank + int(rng.random() * (choices - rank))
            items[i, place], items[i, other] = items[i, other], items[i, place]
            ranking[state.positions[i, place]] = items[i, place]
        if pending < length:  # those observed before come last so far: any of them may come anywhere
            for rank in range(length - 1):
                place = state.positions[i, first + rank]
                other = state.positions[i, first + rank + int(rng.random() * (length - rank))]
                ranking[place], ranking[other] = ranking[other], ranking[place]
        first += length


@inlined
def _observe(
    state: BatchRankState,
    user_type: int,
    t: int,  # noqa: ARG001 - of no account
    ranking: NDArray[np.uintp],
    rewards: Floats,
) -> None:
    i, batches = user_type, state.batches
    record(state.arrays, i, ranking, rewards)
    first = 0
    while first < ranking.size:
        length = batches.lengths[i, first]
        for rank in range(first, first + length):
            position = state.positions[i, rank]
            item = ranking[position]
            if batches.views[i, item] == batches.observed[i, first]:  # else it was shown to fill the ranks
                batches.clicks[i, item] += rewards[position]
                batches.views[i, item] += 1.0
        pending = 0
        for place in range(first, first + batches.pending[i, first]):
            item = batches.items[i, place]
            if batches.views[i, item] == batches.observed[i, first]:
                other = batches.items[i, first + pending]
                batches.items[i, first + pending], batches.items[i, place] = item, other
                pending += 1
        if pending == 0:
            batches.observed[i, first] += 1.0
            pending = batches.sizes[i, first]
        batches.pending[i, first] = pending
        if batches.observed[i, first] >= batches.quotas[i, first]:
            end_stage(batches, i, first, state.level, state.log_horizon)
        first += length


@dataclass(frozen=True, kw_only=True)
class BatchRank(HorizonBaselinePolicy):
    """Show the items of a batch equally often in random places, and split it where their bounds come apart.

    In stage ℓ every item of a batch is observed n_ℓ = ⌈16 · 4^ℓ · ln T⌉ times; then KL bounds of level
    ln T + 3 ln ln T around the shares of clicks decide. If the upper ones of a batch are all better than the
    others it is split in two, which start anew; if not, items are dropped that are worse than as many as the
    batch has ranks, and the next stage begins. When items come or go during a run, all begins anew.

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
    M. Zoghi, T. Tunys, M. Ghavamzadeh, B. Kveton, C. Szepesvári and Z. Wen (2017), Online learning to rank in
    stochastic click models. International Conference on Machine Learning 34. Algorithm 1.

    Examples
    --------
    >>> counts = Counts.empty(n_user_types=1, n_items=5, n_positions=2)
    >>> BatchRank(horizon=1000).rank(counts, 0, rng=np.random.default_rng(2))
    array([1, 2])
    """

    name: ClassVar[str] = "batch-rank"
    own_statistics: ClassVar[str | None] = "clicks in the present stage of each batch of items"
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    def start(self, counts: Counts, scratch: Any) -> BatchRankState:  # noqa: ARG002 - none is kept
        """Return the state of one that knows nothing: all items in one batch, which takes all positions."""
        log_horizon = math.log(self.horizon)
        level = exploration_level(self.horizon)
        batches = init_batches(counts.n_user_types, counts.n_items, counts.n_positions, log_horizon)
        return BatchRankState(
            arrays_of(counts), self.ordered_positions(counts), log_horizon, level, batches
        )
