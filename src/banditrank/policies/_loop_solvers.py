"""Solvers of equal treatment inside the simulation loop, which find one ranking per round."""

from typing import NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import dispatch_on_type, inlined
from banditrank.errors import InvalidInputError, UnknownNameError, UnsolvableError
from banditrank.policies._base import Treatment
from banditrank.policies._drawn_lottery import ALL_TYPES, LotteryBuffer, draw_from_buffer, new_lottery_buffer
from banditrank.policies._policy_guarantees import guarantee_rows
from banditrank.solvers._assignment import AssignmentWorkspace, assign, new_assignment_workspace, slope
from banditrank.solvers._branch_and_bound.search import SearchHandle, bind_search, improve_ranking, new_search
from banditrank.solvers._branch_and_bound.tree import new_tree
from banditrank.solvers._enumeration import (
    EnumerationWorkspace,
    enumerate_rankings,
    new_enumeration_workspace,
)
from banditrank.solvers._instance import Instance, score_cells
from banditrank.solvers._lottery.column_generation import (
    FACTOR,
    GAP,
    N_RANKINGS,
    OPTIMISE,
    LotteryHandle,
    bind_lottery,
    improve_lottery,
    search_lottery,
)
from banditrank.solvers._lottery.guarantees import Guarantee
from banditrank.solvers._lottery.solve import as_concave
from banditrank.solvers._solve import SolverName, choose_solver
from banditrank.utilities._formulas import CompiledUtility
from banditrank.utilities._utility import UTILITARIAN, Utility

Floats = NDArray[np.float64]

MAX_GAP = 1e-2  # relative optimality gap at which a search ends
MAX_NODES = 1000  # after which a search returns the best ranking so far
_MAX_OPEN_NODES = 400
MAX_LOTTERY_GAP = 1e-3  # relative optimality gap of a lottery
MIN_LOTTERY_GAP = 1e-6
MAX_ASSIGNMENTS = 100  # after which a search returns the best lottery so far

LOOP_SOLVERS: tuple[SolverName, ...] = (
    "assignment",
    "enumeration",
    "sampling",
    "branch-and-bound",
    "spatial",
)
"""Names of the solvers that can run in the loop."""


class AssignmentLoopSolver(NamedTuple):
    """Assignment, for a linear utility."""

    slope: float  # of the utility
    slopes: Floats  # (N,)
    scores: Floats  # (K, M)
    workspace: AssignmentWorkspace


class EnumerationLoopSolver(NamedTuple):
    """Enumeration of all rankings, or of a random share of them, for any utility."""

    utility: CompiledUtility
    is_sampled: bool
    workspace: EnumerationWorkspace


class BranchAndBoundLoopSolver(NamedTuple):
    """Branch and bound, for any utility."""

    search: SearchHandle
    latest: NDArray[np.uintp]  # (K,) the ranking of the last solved round


class LotteryLoopSolver(NamedTuple):
    """Column generation, for the best lottery of all types or of each, by a concave utility or maximin."""

    search: LotteryHandle
    lottery: LotteryBuffer  # of the last solved round
    is_personalized: bool  # whether each type has a lottery


LoopSolver: TypeAlias = (
    AssignmentLoopSolver | EnumerationLoopSolver | BranchAndBoundLoopSolver | LotteryLoopSolver
)


def check_solver(solver: SolverName, utility: Utility, treatment: Treatment) -> None:
    """Check that a solver applies to a treatment and a utility, whatever the size of the problem.

    Raises
    ------
    InvalidInputError
        If a solver is given for a treatment that has no choice of solvers.
    UnknownNameError
        If there is no such solver.
    UnsolvableError
        If the solver cannot maximise the utility, or cannot run in the loop.
    """
    if treatment == "equal":
        choose_loop_solver(solver, utility, n_items=2, n_positions=1)
        return
    if solver != "auto":
        raise InvalidInputError("solver", f"must be auto under {treatment} treatment", solver)
    if treatment == "equal-lottery":
        as_concave(utility)  # raises if there is no best lottery


def optimality_gaps(rounds: NDArray[np.int64]) -> Floats:
    """Return optimality gaps that decrease as √(ln t / t), as the error of the estimates does, shape (t,)."""
    return np.asarray(np.minimum(MAX_GAP, 0.3 * np.sqrt(np.log(rounds) / rounds)))


def lottery_gaps(rounds: NDArray[np.int64], treatment: Treatment) -> Floats:
    """Return optimality gaps of lotteries, which decrease as 1/t, shape (t,).

    The value is flat around the best lottery under a smooth utility: errors of the estimates cost their
    square. That of personalized lotteries is linear, so their gap is always small: a large one would leave
    the order of items to the rankings that the search starts from.
    """
    if treatment == "personalized":
        return np.full(len(rounds), MIN_LOTTERY_GAP)
    return np.asarray(np.clip(10.0 / rounds, MIN_LOTTERY_GAP, MAX_LOTTERY_GAP))


def choose_loop_solver(solver: SolverName, utility: Utility, *, n_items: int, n_positions: int) -> SolverName:
    """Return the requested solver, or for ``auto`` the first that fits.

    Raises
    ------
    UnknownNameError
        If there is no such solver.
    UnsolvableError
        If it cannot maximise the utility, solve problems of this size, or run in the loop.
    """
    if solver not in get_args(SolverName):
        raise UnknownNameError("solver", solver, ("auto", *LOOP_SOLVERS))
    chosen = choose_solver(solver, utility, n_items=n_items, n_positions=n_positions)
    if chosen not in LOOP_SOLVERS:
        raise UnsolvableError(f"solver {chosen} cannot run in every round: use {', '.join(LOOP_SOLVERS)}")
    return chosen


def init_lottery_solver(
    treatment: Treatment,
    utility: Utility,
    guarantees: tuple[Guarantee, ...] = (),
    *,
    n_user_types: int,
    n_items: int,
    n_positions: int,
) -> LotteryLoopSolver:
    """Return a solver of lotteries with its workspace, for instances of a size.

    Parameters
    ----------
    treatment
        ``equal-lottery``: one lottery for all types; ``personalized``: one for each, with the largest total
        value.
    utility
        Utility of the lottery for all: concave or maximin.
    guarantees
        What the lotteries keep.
    n_user_types, n_items, n_positions
        N, M and K.

    Raises
    ------
    InvalidInputError
        If a guarantee is of an item or a user type that does not exist, or exposures sum to more than 1.
    """
    is_personalized = treatment == "personalized"
    objective = UTILITARIAN if is_personalized else as_concave(utility)
    rows = guarantee_rows(guarantees, n_user_types=n_user_types, n_items=n_items, n_positions=n_positions)
    search = bind_lottery(
        *(n_user_types, n_items, n_positions, objective.compiled()),
        guarantees=rows,
        is_personalized=is_personalized,
        capacity=0,  # the minimum: rankings of earlier rounds are seldom needed again
    )
    buffer = new_lottery_buffer(search.support.size, n_positions)
    return LotteryLoopSolver(search, buffer, is_personalized)


def init_loop_solver(
    solver: SolverName, utility: Utility, *, n_user_types: int, n_items: int, n_positions: int
) -> LoopSolver:
    """Return a solver with its workspace, for instances of a size."""
    n, m, k = n_user_types, n_items, n_positions
    if solver == "assignment":
        return AssignmentLoopSolver(
            slope(utility), np.zeros(n), np.zeros((k, m)), new_assignment_workspace(m, k)
        )
    if solver in ("enumeration", "sampling"):
        return EnumerationLoopSolver(
            utility.compiled(), solver == "sampling", new_enumeration_workspace(n, m, k)
        )
    instance = Instance(np.zeros(n), np.zeros((n, k)), np.zeros((n, m)), np.zeros(m))
    tree = new_tree(n, m, k, capacity=_MAX_OPEN_NODES)
    search = bind_search(new_search(n, m, k, utility), tree, instance)
    return BranchAndBoundLoopSolver(search, np.arange(k, dtype=np.uintp))


@inlined
def _solve_by_assignment(
    solver: AssignmentLoopSolver,
    instance: Instance,
    t: int,  # noqa: ARG001 - exact, like the next two
    gap: float,  # noqa: ARG001
    rng: np.random.Generator,  # noqa: ARG001
    ranking: NDArray[np.uintp],
) -> None:
    for i in range(solver.slopes.size):
        solver.slopes[i] = solver.slope * instance.weights[i]
    n_items = solver.scores.shape[1]
    score_cells(instance, solver.slopes, n_items, solver.scores)
    assign(solver.scores, n_items, solver.workspace, ranking)


@inlined
def sampled_share(t: int) -> float:
    """Return the share of rankings that sampling evaluates in a round."""
    # The paper does not specify its schedule, except that the limit is 1.
    return float(1.0 - 1.0 / np.sqrt(t))


@inlined
def _solve_by_enumeration(
    solver: EnumerationLoopSolver,
    instance: Instance,
    t: int,
    gap: float,  # noqa: ARG001 - exact
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    share = sampled_share(t) if solver.is_sampled else 1.0
    enumerate_rankings(instance, solver.utility, share, rng, solver.workspace, ranking)


@inlined
def _solve_by_search(
    solver: BranchAndBoundLoopSolver,
    instance: Instance,
    t: int,  # noqa: ARG001 - the gap depends on it
    gap: float,
    rng: np.random.Generator,  # noqa: ARG001
    ranking: NDArray[np.uintp],
) -> None:
    improve_ranking(solver.search, instance, gap, MAX_NODES, solver.latest)
    for k in range(ranking.size):
        ranking[k] = solver.latest[k]


@inlined
def _solve_by_column_generation(
    solver: LotteryLoopSolver,
    instance: Instance,
    t: int,  # noqa: ARG001 - the gap depends on it
    gap: float,
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    improve_lottery(solver.search, instance, gap, MAX_ASSIGNMENTS)
    _draw(solver, 0, rng, ranking)


@inlined
def _draw(
    solver: LotteryLoopSolver, user_type: int, rng: np.random.Generator, ranking: NDArray[np.uintp]
) -> None:
    """Keep the lotteries of the last search, and draw from that of a type."""
    search, lottery = solver.search, solver.lottery
    size = search.counts[N_RANKINGS]
    for s in range(size):
        column = search.support[s]
        lottery.probabilities[s] = search.probabilities[s]
        lottery.owners[s] = search.owners[column] if solver.is_personalized else ALL_TYPES
        for k in range(ranking.size):
            lottery.rankings[s, k] = search.rankings[column, k]
    lottery.size[0], lottery.factor[0] = size, search.numbers[FACTOR]
    draw_from_buffer(lottery, user_type, rng.random(), ranking)


@inlined
def draw_personalized(
    solver: LotteryLoopSolver,
    user_type: int,
    gap: float,
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    """Write a ranking drawn from the best lottery of a type, for the instance in the solver's search.

    Parameters
    ----------
    solver
        A solver of personalized lotteries, with λ, ρ and μ written to ``search.instance``.
    user_type
        The type.
    gap
        Relative gap at which the search stops.
    rng
        Generator of the draw.
    ranking
        Where to write the ranking, shape (K,).
    """
    solver.search.numbers[GAP] = gap
    search_lottery(solver.search, MAX_ASSIGNMENTS, OPTIMISE)
    _draw(solver, user_type, rng, ranking)


@dispatch_on_type(
    {
        AssignmentLoopSolver: _solve_by_assignment,
        EnumerationLoopSolver: _solve_by_enumeration,
        BranchAndBoundLoopSolver: _solve_by_search,
        LotteryLoopSolver: _solve_by_column_generation,
    }
)
def solve_in_loop(
    solver: LoopSolver,
    instance: Instance,
    t: int,
    gap: float,
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    """Write the best ranking, shape (K,): within a relative gap by search, among sampled ones by sampling.

    A solver of lotteries writes a ranking that it draws from the best lottery.

    Raises
    ------
    NotImplementedError
        If it is not called by a compiled function.
    """
    raise NotImplementedError("called by compiled functions only")
