"""GreedyRank and UCBRank with another estimator than Algorithm 1, or with a smoothed start."""

from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
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
from banditrank.policies.general_learner import GeneralLearner, learn_generally
from banditrank.policies.learner import explores
from banditrank.policies.sorting import sort_largest
from banditrank.solvers.instance import Instance
from banditrank.solvers.solve import SolverName
from banditrank.utilities.utility import Utility

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

Solver = TypeVar("Solver", bound=LoopSolver)


class GeneralPersonalizedState(NamedTuple):
    """What is known, and room to sort in."""

    learner: GeneralLearner
    indices: Floats  # (M,)
    items: Indices  # (K,)
    positions: Indices  # (K,)


class GeneralEqualState(NamedTuple, Generic[Solver]):
    """What is known, as the solver's instance too, and the solver's room."""

    learner: GeneralLearner
    instance: Instance
    solver: Solver


def start_general_personalized(learner: GeneralLearner) -> GeneralPersonalizedState:
    """Return the state for what is known."""
    k, m = learner.displays.shape[1:]
    return GeneralPersonalizedState(
        learner, np.zeros(m), np.zeros(k, dtype=np.uintp), np.zeros(k, dtype=np.uintp)
    )


def start_general_equal(
    learner: GeneralLearner, utility: Utility, solver: SolverName
) -> GeneralEqualState[LoopSolver]:
    """Return the state for what is known."""
    n, k, m = learner.displays.shape
    instance = Instance(np.zeros(n), learner.evidence.preferences, learner.means, np.zeros(m))
    room = new_loop_solver(solver, utility, n_user_types=n, n_items=m, n_positions=k)
    return GeneralEqualState(learner, instance, room)


@inlined
def _rank_personalized(
    state: GeneralPersonalizedState,
    user_type: int,
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    learner = state.learner
    if explores(learner, t, parameters[0], rng, ranking):
        return
    for j in range(state.indices.size):
        state.indices[j] = learner.means[user_type, j] + parameters[1] / learner.exposures[user_type, j]
    sort_largest(state.indices, state.items)
    sort_largest(learner.evidence.preferences[user_type], state.positions)
    for rank in range(ranking.size):
        ranking[state.positions[rank]] = state.items[rank]


@inlined
def _exploits(
    state: GeneralEqualState[Solver],
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> bool:
    """Write the ranking of a round that explores, or else weigh types and items."""
    learner = state.learner
    if explores(learner, t, parameters[0], rng, ranking):
        return False
    arrivals, weights, bonuses = learner.tallies.arrivals, state.instance.weights, state.instance.bonuses
    total = 0.0
    for i in range(arrivals.size):
        total += arrivals[i] + 1.0
    for j in range(bonuses.size):
        bonuses[j] = 0.0
    for i in range(arrivals.size):
        weights[i] = (arrivals[i] + 1.0) / total  # every type may arrive, also before one has
        for j in range(bonuses.size):
            bonuses[j] += parameters[1] / learner.exposures[i, j]
    return True


@inlined
def _rank_by_assignment(
    state: GeneralEqualState[ByAssignment],
    user_type: int,  # noqa: ARG001 - everybody is treated alike
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    if _exploits(state, t, parameters, rng, ranking):
        solve_by_assignment(state.solver, state.instance, ranking)


@inlined
def _rank_by_enumeration(
    state: GeneralEqualState[ByEnumeration],
    user_type: int,  # noqa: ARG001 - everybody is treated alike
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    if _exploits(state, t, parameters, rng, ranking):
        solve_by_enumeration(state.solver, state.instance, t, rng, ranking)


@inlined
def _rank_by_search(
    state: GeneralEqualState[BySearch],
    user_type: int,  # noqa: ARG001 - everybody is treated alike
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    if _exploits(state, t, parameters, rng, ranking):
        solve_by_search(state.solver, state.instance, parameters[2], ranking)


@inlined
def _observe(
    state: GeneralPersonalizedState | GeneralEqualState[LoopSolver],
    user_type: int,
    t: int,
    ranking: Indices,
    rewards: Floats,
) -> None:
    learn_generally(state.learner, user_type, t, ranking, rewards)


_BY_ENUMERATION = Kernel(_rank_by_enumeration, _observe)
_BY_SEARCH = Kernel(_rank_by_search, _observe)

GENERAL_PERSONALIZED = Kernel(_rank_personalized, _observe)

GENERAL_EQUAL: dict[SolverName, Kernel] = {
    "assignment": Kernel(_rank_by_assignment, _observe),
    "enumeration": _BY_ENUMERATION,
    "sampling": _BY_ENUMERATION,
    "branch-and-bound": _BY_SEARCH,
    "spatial": _BY_SEARCH,
}
"""The formulas for each solver that can run in the loop."""
