"""Items in blocks, made from a graph that tells which are better than which."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, inlined

Graph = NDArray[np.bool_]
Indices = NDArray[np.intp]


class Blocks(NamedTuple):
    """The items of each copy, block after block."""

    items: Indices  # (N, M)
    starts: Indices  # (N, M) for each item, where its block starts in `items`
    ends: Indices  # (N, M) for each start of a block, where it ends
    waiting: Indices  # (M,) room: how many better items are in no block yet, −1 for an item that is in one


def init_blocks(better: Graph) -> Blocks:
    """Return the blocks of a graph, shape (copies, M, M).

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
    """Put into each block the items that no item outside of earlier blocks is known to be better than."""
    i, n_items = user_type, blocks.waiting.size
    for item in range(n_items):
        blocks.waiting[item] = 0
        for other in range(n_items):
            blocks.waiting[item] += better[i, other, item]
    end = 0
    while end < n_items:
        start = end
        end = _fill(blocks, i, start, 0)
        if end == start:  # a circle, improbable in the papers' worlds: what is left is one block
            end = _fill(blocks, i, start, n_items)
        for place in range(start, end):
            for item in range(n_items):
                if blocks.waiting[item] > 0 and better[i, blocks.items[i, place], item]:
                    blocks.waiting[item] -= 1


@inlined
def _fill(blocks: Blocks, user_type: int, start: int, limit: int) -> int:
    """Make a block of the items that wait for at most so many others; return where it ends."""
    i, end = user_type, start
    for item in range(blocks.waiting.size):
        if 0 <= blocks.waiting[item] <= limit:
            blocks.waiting[item] = -1
            blocks.items[i, end] = item
            blocks.starts[i, item] = start
            end += 1
    blocks.ends[i, start] = end
    return end
