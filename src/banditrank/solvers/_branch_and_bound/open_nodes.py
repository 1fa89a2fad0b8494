"""The priority queue of open nodes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal

Floats = NDArray[np.float64]

OPEN, FREE = range(2)  # indices of OpenNodes.sizes


class OpenNodes(NamedTuple):
    """Places of the tree: a heap of those with open nodes, and a stack of free ones."""

    bounds: Floats  # (P,) by place
    depths: NDArray[np.int64]  # (P,) by place
    heap: NDArray[np.int64]  # (P,) places of open nodes, the largest bound first
    free: NDArray[np.int64]  # (P,) free places
    sizes: NDArray[np.int64]  # (2,) of the heap and of the stack


def new_open_nodes(capacity: int) -> OpenNodes:
    """Allocate a queue with the given number of places."""
    return OpenNodes(
        np.zeros(capacity),
        np.zeros(capacity, dtype=np.int64),
        np.zeros(capacity, dtype=np.int64),
        np.zeros(capacity, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


@internal
def clear(nodes: OpenNodes) -> None:
    """Close all nodes."""
    for place in range(nodes.free.size):
        nodes.free[place] = nodes.free.size - 1 - place
    nodes.sizes[OPEN], nodes.sizes[FREE] = 0, nodes.free.size


@inlined
def claim(nodes: OpenNodes, depth: int) -> int:
    """Return a free place for a node of the given depth; there must be one."""
    nodes.sizes[FREE] -= 1
    place = int(nodes.free[nodes.sizes[FREE]])
    nodes.depths[place] = depth
    return place


@inlined
def release(nodes: OpenNodes, place: int) -> None:
    """Free a place."""
    nodes.free[nodes.sizes[FREE]] = place
    nodes.sizes[FREE] += 1


@internal
def push(nodes: OpenNodes, place: int, bound: float) -> None:
    """Add the node at a place to the queue."""
    nodes.bounds[place] = bound
    hole = nodes.sizes[OPEN]
    nodes.sizes[OPEN] += 1
    _rise(nodes, hole, place)


@internal
def _rise(nodes: OpenNodes, hole: int, place: int) -> None:
    while hole > 0:
        parent = (hole - 1) // 2
        if nodes.bounds[nodes.heap[parent]] >= nodes.bounds[place]:
            break
        nodes.heap[hole] = nodes.heap[parent]
        hole = parent
    nodes.heap[hole] = place


@internal
def pop(nodes: OpenNodes, index: int) -> int:
    """Remove and return the node at an index of the heap; index 0 has the largest bound."""
    place = int(nodes.heap[index])
    nodes.sizes[OPEN] -= 1
    count = nodes.sizes[OPEN]
    if index == count:
        return place
    moved = nodes.heap[count]
    hole = index
    while True:
        child = 2 * hole + 1
        if child >= count:
            break
        if child + 1 < count and nodes.bounds[nodes.heap[child + 1]] > nodes.bounds[nodes.heap[child]]:
            child += 1
        if nodes.bounds[nodes.heap[child]] <= nodes.bounds[moved]:
            break
        nodes.heap[hole] = nodes.heap[child]
        hole = child
    _rise(nodes, hole, moved)
    return place


@internal
def deepest(nodes: OpenNodes) -> int:
    """Return the heap index of the deepest open node: exploring it frees places soonest."""
    best = 0
    for index in range(nodes.sizes[OPEN]):
        if nodes.depths[nodes.heap[index]] > nodes.depths[nodes.heap[best]]:
            best = index
    return best
