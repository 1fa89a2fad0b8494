"""Solvers of equal treatment among the rankings that a restriction allows.

Unlike the solvers of `_loop_solvers`, which start from the last round, a solution depends on the instance and
the restriction alone: users with the same candidates get the same ranking, whatever was solved in between.

The solver sees columns: the available items, the pinned items, each allowed at its position only, and for a
short ranking an item of value 0 at each position that is not shown.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import dispatch_on_type, inlined, internal
from banditrank.policies._loop_solvers import (
    MAX_NODES,
    AssignmentLoopSolver,
    BranchAndBoundLoopSolver,
    EnumerationLoopSolver,
    LoopSolver,
    init_loop_solver,
    sampled_share,
)
from banditrank.policies._restriction import FREE, LENGTH, PINNED, UNAVAILABLE, Restriction
from banditrank.solvers._assignment import assign
from banditrank.solvers._branch_and_bound.search import search_loaded
from banditrank.solvers._enumeration import enumerate_rankings
from banditrank.solvers._instance import IS_RESTRICTED, N_ITEMS, Instance, score_cells
from banditrank.solvers._solve import SolverName
from banditrank.utilities._utility import Utility

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

EXACT_GAP = 1e-9  # relative optimality gap at which a search ends


class RestrictedSolver(NamedTuple):
    """A solver, and the columns that it sees."""

    solver: LoopSolver
    instance: Instance  # by column
    allowed: NDArray[np.int8]  # (K, M) by column: 1 for allowed cells
    columns: Indices  # (M,) the item of each column
    start: Indices  # (K,) the columns of an allowed ranking


def init_restricted_solver(
    solver: SolverName, utility: Utility, *, n_user_types: int, n_items: int, n_positions: int
) -> RestrictedSolver:
    """Return a solver with its workspace, for instances of a size."""
    n, m, k = n_user_types, n_items, n_positions
    loop_solver = init_loop_solver(solver, utility, n_user_types=n, n_items=m, n_positions=k)
    instance = Instance(np.zeros(n), np.zeros((n, k)), np.zeros((n, m)), np.zeros(m))
    allowed = np.zeros((k, m), dtype=np.int8)
    if isinstance(loop_solver, EnumerationLoopSolver):
        allowed = loop_solver.workspace.allowed
    elif isinstance(loop_solver, BranchAndBoundLoopSolver):
        instance, allowed = loop_solver.search.instance, loop_solver.search.allowed
    return RestrictedSolver(
        loop_solver, instance, allowed, np.zeros(m, dtype=np.uintp), np.zeros(k, dtype=np.uintp)
    )


@inlined
def solve_restricted(
    restricted: RestrictedSolver,
    instance: Instance,
    restriction: Restriction,
    t: int,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    """Write the best allowed ranking, the first positions of shape (K,); among sampled ones by sampling."""
    n_columns = load_columns(restriction, restricted.allowed, restricted.columns, restricted.start)
    _load_instance(restricted, instance, n_columns)
    _solve_columns(restricted.solver, restricted, n_columns, t, rng, ranking)
    for k in range(restriction.sizes[LENGTH]):
        ranking[k] = restricted.columns[ranking[k]]


@internal
def load_columns(
    restriction: Restriction, allowed: NDArray[np.int8], columns: Indices, start: Indices
) -> int:
    """Write the columns of a restriction, and return their number.

    Parameters
    ----------
    restriction
        The loaded restriction.
    allowed
        Whether a column may be at a position, shape (K, M).
    columns
        The item of each column, shape (M,); M for an item of value 0. Items are in increasing order.
    start
        The columns of an allowed ranking, shape (K,).
    """
    pinned, roles, length = restriction.pinned, restriction.roles, restriction.sizes[LENGTH]
    n_columns, position = 0, 0
    for j in range(roles.size):
        if roles[j] == UNAVAILABLE:
            continue
        columns[n_columns] = j
        for k in range(pinned.size):
            is_open = k < length and (pinned[k] == j if roles[j] == PINNED else pinned[k] < 0)
            allowed[k, n_columns] = 1 if is_open else 0
            if roles[j] == PINNED and is_open:
                start[k] = n_columns
        while position < length and pinned[position] >= 0:
            position += 1
        if roles[j] == FREE and position < length:
            start[position] = n_columns
            position += 1
        n_columns += 1
    for hidden in range(length, pinned.size):
        columns[n_columns] = roles.size
        for k in range(pinned.size):
            allowed[k, n_columns] = 1 if k == hidden else 0
        start[hidden] = n_columns
        n_columns += 1
    return n_columns


@internal
def _load_instance(restricted: RestrictedSolver, instance: Instance, n_columns: int) -> None:
    """Copy the items of the columns."""
    mine, n_items = restricted.instance, instance.bonuses.size
    for i in range(instance.weights.size):
        mine.weights[i] = instance.weights[i]
        for k in range(instance.preferences.shape[1]):
            mine.preferences[i, k] = instance.preferences[i, k]
    for column in range(n_columns):
        j = restricted.columns[column]
        mine.bonuses[column] = instance.bonuses[j] if j < n_items else 0.0
        for i in range(instance.weights.size):
            mine.means[i, column] = instance.means[i, j] if j < n_items else 0.0


@inlined
def _solve_by_assignment(
    solver: AssignmentLoopSolver,
    restricted: RestrictedSolver,
    n_columns: int,
    t: int,  # noqa: ARG001 - exact
    rng: np.random.Generator,  # noqa: ARG001
    ranking: Indices,
) -> None:
    for i in range(solver.slopes.size):
        solver.slopes[i] = solver.slope * restricted.instance.weights[i]
    score_cells(restricted.instance, solver.slopes, n_columns, solver.scores)
    for column in range(n_columns):
        solver.workspace.prices[column] = 0.0
        for k in range(ranking.size):
            if restricted.allowed[k, column] == 0:
                solver.scores[k, column] = -np.inf
    assign(solver.scores, n_columns, solver.workspace, ranking)


@inlined
def _solve_by_enumeration(
    solver: EnumerationLoopSolver,
    restricted: RestrictedSolver,
    n_columns: int,
    t: int,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    workspace = solver.workspace
    workspace.sizes[N_ITEMS] = n_columns
    workspace.sizes[IS_RESTRICTED] = 1
    share = sampled_share(t) if solver.is_sampled else 1.0
    enumerate_rankings(restricted.instance, solver.utility, share, rng, workspace, ranking)


@inlined
def _solve_by_search(
    solver: BranchAndBoundLoopSolver,
    restricted: RestrictedSolver,
    n_columns: int,
    t: int,  # noqa: ARG001 - exact
    rng: np.random.Generator,  # noqa: ARG001
    ranking: Indices,
) -> None:
    handle = solver.search
    handle.sizes[N_ITEMS], handle.sizes[IS_RESTRICTED] = n_columns, 1
    for k in range(ranking.size):
        handle.ranking[k] = restricted.start[k]
    search_loaded(handle, EXACT_GAP, MAX_NODES)
    for k in range(ranking.size):
        ranking[k] = handle.incumbent[k]


@dispatch_on_type(
    {
        AssignmentLoopSolver: _solve_by_assignment,
        EnumerationLoopSolver: _solve_by_enumeration,
        BranchAndBoundLoopSolver: _solve_by_search,
    }
)
def _solve_columns(
    solver: LoopSolver,
    restricted: RestrictedSolver,
    n_columns: int,
    t: int,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    """Write the columns of the best allowed ranking, shape (K,).

    Raises
    ------
    NotImplementedError
        If it is not called by a compiled function.
    """
    raise NotImplementedError("called by compiled functions only")
