"""The best matching of items and positions, found round after round: the next is near the last."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.solvers.assignment import AssignmentWorkspace, assign, new_assignment_workspace

Floats = NDArray[np.float64]


class Matching(NamedTuple):
    """Where each copy's search starts from."""

    prices: Floats  # (copies, M) of the last matching
    workspace: AssignmentWorkspace


def init_matching(n_copies: int, n_items: int, n_positions: int) -> Matching:
    """Return a start from nowhere."""
    return Matching(np.zeros((n_copies, n_items)), new_assignment_workspace(n_items, n_positions))


@inlined
def best_matching(matching: Matching, copy: int, scores: Floats, ranking: NDArray[np.uintp]) -> None:
    """Write the ranking of the largest sum of scores, shape (K, M)."""
    prices, workspace = matching.prices[copy], matching.workspace
    for j in range(prices.size):
        workspace.prices[j] = prices[j]
    assign(scores, prices.size, workspace, ranking)
    for j in range(prices.size):
        prices[j] = workspace.prices[j]
