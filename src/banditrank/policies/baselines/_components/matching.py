"""Maximum-weight matching of items and positions, warm-started from the last round."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.solvers._assignment import AssignmentWorkspace, assign, new_assignment_workspace

Floats = NDArray[np.float64]


class Matching(NamedTuple):
    """The prices of the last matching of each copy, which start the next search."""

    prices: Floats  # (copies, M)
    workspace: AssignmentWorkspace


def init_matching(n_copies: int, n_items: int, n_positions: int) -> Matching:
    """Return prices of zero."""
    return Matching(np.zeros((n_copies, n_items)), new_assignment_workspace(n_items, n_positions))


@inlined
def best_matching(matching: Matching, copy: int, scores: Floats, ranking: NDArray[np.uintp]) -> None:
    """Write the ranking with the largest sum of scores, which have shape (K, M)."""
    prices, workspace = matching.prices[copy], matching.workspace
    for j in range(prices.size):
        workspace.prices[j] = prices[j]
    assign(scores, prices.size, workspace, ranking)
    for j in range(prices.size):
        prices[j] = workspace.prices[j]
