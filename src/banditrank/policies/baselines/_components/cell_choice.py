"""The best matching among candidates, by the scores of cells in the state."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.policies._restricted_solver import load_columns
from banditrank.policies._restriction import LENGTH, Restriction
from banditrank.solvers._assignment import AssignmentWorkspace, assign, new_assignment_workspace

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class CellChoice(NamedTuple):
    """Workspace of the matching among candidates."""

    scores: Floats  # (K, M) by column
    allowed: NDArray[np.int8]  # (K, M) by column
    columns: Indices  # (M,) the item of each column
    start: Indices  # (K,)
    workspace: AssignmentWorkspace


def init_cell_choice(n_items: int, n_positions: int) -> CellChoice:
    """Return a workspace for a size of problem."""
    m, k = n_items, n_positions
    return CellChoice(
        np.zeros((k, m)),
        np.zeros((k, m), dtype=np.int8),
        np.zeros(m, dtype=np.uintp),
        np.zeros(k, dtype=np.uintp),
        new_assignment_workspace(m, k),
    )


@inlined
def choose_cells(
    state: Any,
    restriction: Restriction,
    workspace: CellChoice,
    user_type: int,  # noqa: ARG001 - the scores are those of the user
    t: int,  # noqa: ARG001
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,  # noqa: ARG001
    ranking: Indices,
) -> None:
    """Write the best allowed ranking by ``state.scores``: ``choose`` of a `Kernel` that ranks first."""
    columns, scores = workspace.columns, workspace.scores
    n_columns = load_columns(restriction, workspace.allowed, columns, workspace.start)
    for column in range(n_columns):
        workspace.workspace.prices[column] = 0.0
        j = columns[column]
        for k in range(ranking.size):
            scores[k, column] = 0.0 if workspace.allowed[k, column] == 1 else -np.inf
            if j < state.scores.shape[1]:
                scores[k, column] += state.scores[k, j]
    assign(scores, n_columns, workspace.workspace, ranking)
    for k in range(restriction.sizes[LENGTH]):
        ranking[k] = columns[ranking[k]]
