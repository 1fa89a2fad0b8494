"""Option 2 of Algorithms 2 and 3: one ranking for all, by estimated collective utility plus bonuses."""

from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, inlined
from banditrank.estimators.item_means import exposures_of
from banditrank.policies.base import Kernel
from banditrank.policies.equal_solvers import (
    ByAssignment,
    ByEnumeration,
    BySearch,
    LoopSolver,
    new_loop_solver,
    solve_by_assignment,
    solve_by_enumeration,
    solve_by_search,
)
from banditrank.policies.learner import (
    INITIAL_ROUNDS,
    REFRESH,
    UNREWARDED,
    Learner,
    explores,
    learn,
    start_learner,
)
from banditrank.solvers.instance import Instance
from banditrank.solvers.solve import SolverName
from banditrank.statistics.counts import Counts
from banditrank.utilities.utility import Utility

Floats = NDArray[np.float64]

LARGEST_GAP = 1e-2


class Beliefs(NamedTuple):
    """What the collective utility is estimated from."""

    learner: Learner
    instance: Instance  # λ̂, ρ̂, μ̂ and Σ_i a_t ln t / N_ij
    inverse_exposures: Floats  # (N, M) 1 / N_ij
    exposures: Floats  # (M,) room for N_ij of one type


Solver = TypeVar("Solver", bound=LoopSolver)


class EqualState(NamedTuple, Generic[Solver]):
    """What is believed, and the room of the solver."""

    beliefs: Beliefs
    solver: Solver


def start_equal(
    counts: Counts, turn: NDArray[np.int64], utility: Utility, solver: SolverName
) -> EqualState[LoopSolver]:
    """Return the state for counts and the chosen solver."""
    n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
    learner = start_learner(counts, turn)
    instance = Instance(np.zeros(n), learner.evidence.preferences, np.zeros((n, m)), np.zeros(m))
    beliefs = Beliefs(learner, instance, np.zeros((n, m)), np.zeros(m))
    if learner.clock[UNREWARDED] == 0:
        for user_type in range(n):
            _believe(beliefs, user_type)
    room = new_loop_solver(solver, utility, n_user_types=n, n_items=m, n_positions=k)
    return EqualState(beliefs, room)


@compiled
def _believe(beliefs: Beliefs, user_type: int) -> None:
    """Bring one type's μ̂ and 1/N up to date."""
    i = user_type
    learner = beliefs.learner
    exposures_of(learner.displays, learner.evidence.preferences, i, beliefs.exposures)
    for j in range(beliefs.exposures.size):
        inverse = 1.0 / beliefs.exposures[j]
        beliefs.inverse_exposures[i, j] = inverse
        beliefs.instance.means[i, j] = learner.reward_totals[i, j] * inverse


@inlined
def _weigh(beliefs: Beliefs, bonus: float) -> None:
    """Write λ̂ and each item's bonus, summed over types."""
    arrivals = beliefs.learner.arrivals
    weights, bonuses = beliefs.instance.weights, beliefs.instance.bonuses
    total = 0.0
    for i in range(arrivals.size):
        total += arrivals[i]
    for i in range(arrivals.size):
        weights[i] = arrivals[i] / total
    for j in range(bonuses.size):
        bonuses[j] = 0.0
    if bonus > 0.0:
        for i in range(arrivals.size):
            for j in range(bonuses.size):
                bonuses[j] += bonus * beliefs.inverse_exposures[i, j]


@inlined
def _exploits(
    beliefs: Beliefs, t: int, parameters: Floats, rng: np.random.Generator, ranking: NDArray[np.uintp]
) -> bool:
    """Write the ranking of a round that explores, or else bring the instance up to date."""
    if explores(beliefs.learner, t, parameters[0], rng, ranking):
        return False
    _weigh(beliefs, parameters[1])
    return True


@inlined
def _rank_by_assignment(
    state: EqualState[ByAssignment],
    user_type: int,  # noqa: ARG001 - everybody is treated alike
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    if _exploits(state.beliefs, t, parameters, rng, ranking):
        solve_by_assignment(state.solver, state.beliefs.instance, ranking)


@inlined
def _rank_by_enumeration(
    state: EqualState[ByEnumeration],
    user_type: int,  # noqa: ARG001 - everybody is treated alike
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    if _exploits(state.beliefs, t, parameters, rng, ranking):
        solve_by_enumeration(state.solver, state.beliefs.instance, t, rng, ranking)


@inlined
def _rank_by_search(
    state: EqualState[BySearch],
    user_type: int,  # noqa: ARG001 - everybody is treated alike
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    if _exploits(state.beliefs, t, parameters, rng, ranking):
        solve_by_search(state.solver, state.beliefs.instance, parameters[2], ranking)


@inlined
def _observe(
    state: EqualState[LoopSolver],
    user_type: int,
    t: int,
    ranking: NDArray[np.uintp],
    rewards: Floats,
) -> None:
    beliefs = state.beliefs
    if learn(beliefs.learner, user_type, t, ranking, rewards):
        if beliefs.learner.clock[INITIAL_ROUNDS] == t or t % REFRESH == 0:  # all estimates are new
            for i in range(beliefs.instance.weights.size):
                _believe(beliefs, i)
        else:
            _believe(beliefs, user_type)


_BY_ENUMERATION = Kernel(_rank_by_enumeration, _observe)
_BY_SEARCH = Kernel(_rank_by_search, _observe)

EQUAL: dict[SolverName, Kernel] = {
    "assignment": Kernel(_rank_by_assignment, _observe),
    "enumeration": _BY_ENUMERATION,
    "sampling": _BY_ENUMERATION,
    "branch-and-bound": _BY_SEARCH,
    "spatial": _BY_SEARCH,
}
"""The formulas for each solver that can run in the loop."""
