"""BatchRank's batches: ranks, the items that compete for them, and how a stage of it ends."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled
from banditrank.policies.baselines.components.kl_ucb import kl_ucb

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Batches(NamedTuple):
    """Batches of ranks and the items that compete for them.

    A batch is numbered by its first rank b. Its items are `items[i, b : b + sizes[i, b]]`; all batches but
    the last have as many items as ranks, so they do not overlap.
    """

    items: Indices  # (N, M) in each batch those still to be shown first
    lengths: Indices  # (N, K) ranks in the batch
    sizes: Indices  # (N, K) items in the batch
    stages: Indices  # (N, K) ℓ
    quotas: Floats  # (N, K) n_ℓ, how often each item is observed in the stage
    observed: Floats  # (N, K) how often each item has been observed at least
    pending: Indices  # (N, K) how many items have not been observed more than that
    clicks: Floats  # (N, M) in this stage
    views: Floats  # (N, M) observations in this stage
    lower: Floats  # (M,) room
    upper: Floats  # (M,) room


def init_batches(n_copies: int, n_items: int, n_positions: int, log_horizon: float) -> Batches:
    """Return one batch for each copy: all items compete for all ranks."""
    by_batch, by_item = (n_copies, n_positions), (n_copies, n_items)
    batches = Batches(
        items=np.tile(np.arange(n_items, dtype=np.intp), (n_copies, 1)),
        lengths=np.zeros(by_batch, dtype=np.intp),
        sizes=np.zeros(by_batch, dtype=np.intp),
        stages=np.zeros(by_batch, dtype=np.intp),
        quotas=np.zeros(by_batch),
        observed=np.zeros(by_batch),
        pending=np.zeros(by_batch, dtype=np.intp),
        clicks=np.zeros(by_item),
        views=np.zeros(by_item),
        lower=np.zeros(n_items),
        upper=np.zeros(n_items),
    )
    for user_type in range(n_copies):
        _begin(batches, user_type, 0, n_positions, n_items, 0, log_horizon)
    return batches


@compiled
def _begin(
    batches: Batches, user_type: int, first: int, length: int, size: int, stage: int, log_horizon: float
) -> None:
    """Begin a stage of a batch: n_ℓ = ⌈16 · 4^ℓ · ln T⌉ observations of each of its items."""
    i = user_type
    batches.lengths[i, first] = length
    batches.sizes[i, first] = size
    batches.stages[i, first] = stage
    batches.quotas[i, first] = max(1.0, math.ceil(16.0 * 4.0**stage * log_horizon))
    batches.observed[i, first] = 0.0
    batches.pending[i, first] = size
    for place in range(first, first + size):
        batches.clicks[i, batches.items[i, place]] = 0.0
        batches.views[i, batches.items[i, place]] = 0.0


@compiled
def end_stage(batches: Batches, user_type: int, first: int, level: float, log_horizon: float) -> None:
    """Split the batch at the last rank where that is safe; else drop what is too bad for any of its ranks."""
    i, lower, upper = user_type, batches.lower, batches.upper
    length, size, stage = batches.lengths[i, first], batches.sizes[i, first], batches.stages[i, first]
    observed = batches.observed[i, first]
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
    highest = 0.0  # upper bound of the items below
    for split in range(size - 1, 0, -1):
        highest = max(highest, upper[split])
        if split < length and lower[split - 1] > highest:
            _begin(batches, i, first, split, split, 0, log_horizon)
            _begin(batches, i, first + split, length - split, size - split, 0, log_horizon)
            return
    kept = 0
    for rank in range(size):
        if upper[rank] >= lower[length - 1]:
            batches.items[i, first + kept] = batches.items[i, first + rank]
            kept += 1
    _begin(batches, i, first, length, kept, stage + 1, log_horizon)
