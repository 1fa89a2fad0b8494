"""BatchRank: batches of items that are explored in stages, and split where confidence bounds separate."""

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
from banditrank.policies.baselines._components.kl_ucb import exploration_level, kl_ucb

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Batches(NamedTuple):
    """Batches of ranks, and the items that compete for them.

    The index of a batch is its first rank b. Its items are `items[i, b : b + sizes[i, b]]`; all batches but
    the last have as many items as ranks, so they do not overlap.
    """

    items: Indices  # (N, M) in each batch, those to be displayed next come first
    lengths: Indices  # (N, K) ranks in the batch
    sizes: Indices  # (N, K) items in the batch
    stages: Indices  # (N, K) ℓ
    numbers: Indices  # (N, K) of the stage, counted over all batches of a copy
    begun: Indices  # (N,) stages that have begun
    quotas: Floats  # (N, K) n_ℓ, observations of each item in the stage
    displayed: Floats  # (N, K) minimum number of displays of an item so far
    pending: Indices  # (N, K) number of items with that minimum
    complete: Indices  # (N, K) number of items with as many observations as the quota
    clicks: Floats  # (N, M) in this stage
    views: Floats  # (N, M) observations in this stage
    displays: Floats  # (N, M) in this stage; more than the observations if rewards are late
    lower: Floats  # (M,) workspace
    upper: Floats  # (M,) workspace


def init_batches(n_copies: int, n_items: int, n_positions: int, log_horizon: float) -> Batches:
    """Return one batch for each copy, in which all items compete for all ranks."""
    by_batch, by_item = (n_copies, n_positions), (n_copies, n_items)
    batches = Batches(
        items=np.tile(np.arange(n_items, dtype=np.intp), (n_copies, 1)),
        lengths=np.zeros(by_batch, dtype=np.intp),
        sizes=np.zeros(by_batch, dtype=np.intp),
        stages=np.zeros(by_batch, dtype=np.intp),
        numbers=np.zeros(by_batch, dtype=np.intp),
        begun=np.zeros(n_copies, dtype=np.intp),
        quotas=np.zeros(by_batch),
        displayed=np.zeros(by_batch),
        pending=np.zeros(by_batch, dtype=np.intp),
        complete=np.zeros(by_batch, dtype=np.intp),
        clicks=np.zeros(by_item),
        views=np.zeros(by_item),
        displays=np.zeros(by_item),
        lower=np.zeros(n_items),
        upper=np.zeros(n_items),
    )
    for user_type in range(n_copies):
        _begin_stage(batches, user_type, 0, n_positions, n_items, 0, log_horizon)
    return batches


@compiled
def _begin_stage(
    batches: Batches, user_type: int, first: int, length: int, size: int, stage: int, log_horizon: float
) -> None:
    """Begin a stage of a batch: n_ℓ = ⌈16 · 4^ℓ · ln T⌉ observations of each of its items."""
    i = user_type
    batches.lengths[i, first] = length
    batches.sizes[i, first] = size
    batches.stages[i, first] = stage
    batches.numbers[i, first] = batches.begun[i]
    batches.begun[i] += 1
    batches.quotas[i, first] = max(1.0, math.ceil(16.0 * 4.0**stage * log_horizon))
    batches.displayed[i, first] = 0.0
    batches.pending[i, first] = size
    batches.complete[i, first] = 0
    for place in range(first, first + size):
        batches.clicks[i, batches.items[i, place]] = 0.0
        batches.views[i, batches.items[i, place]] = 0.0
        batches.displays[i, batches.items[i, place]] = 0.0


@compiled
def end_stage(batches: Batches, user_type: int, first: int, level: float, log_horizon: float) -> None:
    """Split the batch at the last rank where bounds separate, or drop items that are too bad for it."""
    i, lower, upper = user_type, batches.lower, batches.upper
    length, size, stage = batches.lengths[i, first], batches.sizes[i, first], batches.stages[i, first]
    observed = batches.quotas[i, first]
    for rank in range(size):  # by decreasing lower bound
        item = batches.items[i, first + rank]
        mean = min(1.0, batches.clicks[i, item] / observed)
        low, high = 1.0 - kl_ucb(1.0 - mean, observed, level), kl_ucb(mean, observed, level)
        place = rank
        while place > 0 and lower[place - 1] < low:
            lower[place], upper[place] = lower[place - 1], upper[place - 1]
            batches.items[i, first + place] = batches.items[i, first + place - 1]
            place -= 1
        lower[place], upper[place] = low, high
        batches.items[i, first + place] = item
    highest = 0.0  # maximum upper bound of the items below
    for split in range(size - 1, 0, -1):
        highest = max(highest, upper[split])
        if split < length and lower[split - 1] > highest:
            _begin_stage(batches, i, first, split, split, 0, log_horizon)
            _begin_stage(batches, i, first + split, length - split, size - split, 0, log_horizon)
            return
    kept = 0
    for rank in range(size):
        if upper[rank] >= lower[length - 1]:
            batches.items[i, first + kept] = batches.items[i, first + rank]
            kept += 1
    _begin_stage(batches, i, first, length, kept, stage + 1, log_horizon)


class BatchRankState(NamedTuple):
    """Counts and batches."""

    arrays: CountArrays
    positions: NDArray[np.uintp]  # (N, K) by decreasing examination
    log_horizon: float  # ln T
    level: float  # δ_T = ln T + 3 ln ln T
    batches: Batches
    note: NDArray[np.int64]  # (K,) number of the stage of each rank; −1 if its item only filled the rank


@inlined
def _rank(
    state: BatchRankState,
    user_type: int,
    t: int,  # noqa: ARG001 - the horizon sets the level
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
        if pending < length:  # fillers come last so far: shuffle all ranks
            for rank in range(length - 1):
                place = state.positions[i, first + rank]
                other = state.positions[i, first + rank + int(rng.random() * (length - rank))]
                ranking[place], ranking[other] = ranking[other], ranking[place]
        _count_displays(state, i, first, length, ranking)
        first += length


@inlined
def _count_displays(
    state: BatchRankState, user_type: int, first: int, length: int, ranking: NDArray[np.uintp]
) -> None:
    """Count the displays of a batch, and move the items to be displayed next to its front."""
    i, batches = user_type, state.batches
    for rank in range(first, first + length):
        item = ranking[state.positions[i, rank]]
        is_counted = batches.displays[i, item] == batches.displayed[i, first]  # others only fill the ranks
        state.note[rank] = batches.numbers[i, first] if is_counted else -1
        batches.displays[i, item] += is_counted
    pending = 0
    for place in range(first, first + batches.pending[i, first]):
        item = batches.items[i, place]
        if batches.displays[i, item] == batches.displayed[i, first]:
            other = batches.items[i, first + pending]
            batches.items[i, first + pending], batches.items[i, place] = item, other
            pending += 1
    if pending == 0:
        batches.displayed[i, first] += 1.0
        pending = batches.sizes[i, first]
    batches.pending[i, first] = pending


@inlined
def _observe(
    state: BatchRankState,
    user_type: int,
    t: int,  # noqa: ARG001 - the horizon sets the level
    ranking: NDArray[np.uintp],
    rewards: Floats,
) -> None:
    i, batches = user_type, state.batches
    record_round(state.arrays, i, ranking, rewards)
    first = 0
    while first < ranking.size:
        length = batches.lengths[i, first]
        for rank in range(first, first + length):
            position = state.positions[i, rank]
            item = ranking[position]
            is_of_stage = state.note[rank] == batches.numbers[i, first]
            if is_of_stage and batches.views[i, item] < batches.quotas[i, first]:
                batches.clicks[i, item] += rewards[position]
                batches.views[i, item] += 1.0
                batches.complete[i, first] += batches.views[i, item] >= batches.quotas[i, first]
        if batches.complete[i, first] == batches.sizes[i, first]:
            end_stage(batches, i, first, state.level, state.log_horizon)
        first += length


@dataclass(frozen=True, kw_only=True)
class BatchRank(HorizonBaselinePolicy):
    """BatchRank: items of a batch in random order, with splits where their confidence bounds separate.

    In stage ℓ every item of a batch is observed n_ℓ = ⌈16 · 4^ℓ · ln T⌉ times. Then KL bounds of level ln T +
    3 ln ln T on the click rates decide: if the bounds of the best items separate from those of the others,
    the batch is split in two, which restart; otherwise items that are worse than as many others as the batch
    has ranks are dropped, and the next stage begins. When items change during a run, the policy restarts.

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

    def init_state(self, counts: Counts, scratch: Any) -> BatchRankState:  # noqa: ARG002 - keeps none
        """Return the initial state, one batch with all items: counts do not determine stages."""
        log_horizon = math.log(self.horizon)
        level = exploration_level(self.horizon)
        batches = init_batches(counts.n_user_types, counts.n_items, counts.n_positions, log_horizon)
        positions, note = self.ordered_positions(counts), np.zeros(counts.n_positions, dtype=np.int64)
        return BatchRankState(arrays_of(counts), positions, log_horizon, level, batches, note)
