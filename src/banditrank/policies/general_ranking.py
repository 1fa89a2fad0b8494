"""GreedyRank and UCBRank with another estimator than Algorithm 1, or with a smoothed start."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.policies.base import Kernel
from banditrank.policies.equal_solvers import LoopSolver, new_loop_solver, solve_in_loop
from banditrank.policies.general_learner import GeneralLearner, learn_generally
from banditrank.policies.learner import explores
from banditrank.policies.sorting import place_in_order, sort_largest
from banditrank.solvers.instance import Instance
from banditrank.solvers.solve import SolverName
from banditrank.utilities.utility import Utility

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class GeneralPersonalizedState(NamedTuple):
    """What is known, and room to sort in."""

    learner: GeneralLearner
    indices: Floats  # (M,)
    items: Indices  # (K,)
    positions: Indices  # (K,)


class GeneralEqualState(NamedTuple):
    """What is known, as the solver's instance too, and the solver's room."""

    learner: GeneralLearner
    instance: Instance
    solver: LoopSolver


def start_general_personalized(learner: GeneralLearner) -> GeneralPersonalizedState:
    """Return the state for what is known."""
    k, m = learner.displays.shape[1:]
    return GeneralPersonalizedState(
        learner, np.zeros(m), np.zeros(k, dtype=np.uintp), np.zeros(k, dtype=np.uintp)
    )


def start_general_equal(learner: GeneralLearner, utility: Utility, solver: SolverName) -> GeneralEqualState:
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
    place_in_order(state.items, state.positions, ranking)


@inlined
def _rank_equally(
    state: GeneralEqualState,
    user_type: int,  # noqa: ARG001 - everybody is treated alike
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    if not explores(state.learner, t, parameters[0], rng, ranking):
        _weigh(state, parameters[1])
        solve_in_loop(state.solver, state.instance, t, parameters[2], rng, ranking)


@inlined
def _weigh(state: GeneralEqualState, bonus: float) -> None:
    """Write the shares of types and each item's bonus."""
    learner = state.learner
    arrivals, weights, bonuses = learner.tallies.arrivals, state.instance.weights, state.instance.bonuses
    total = 0.0
    for i in range(arrivals.size):
        total += arrivals[i] + 1.0
    for j in range(bonuses.size):
        bonuses[j] = 0.0
    for i in range(arrivals.size):
        weights[i] = (arrivals[i] + 1.0) / total  # every type may arrive, also before one has
        for j in range(bonuses.size):
            bonuses[j] += bonus / learner.exposures[i, j]


@inlined
def _observe(
    state: GeneralPersonalizedState | GeneralEqualState,
    user_type: int,
    t: int,
    ranking: Indices,
    rewards: Floats,
) -> None:
    learn_generally(state.learner, user_type, t, ranking, rewards)


GENERAL_PERSONALIZED = Kernel(_rank_personalized, _observe)
GENERAL_EQUAL = Kernel(_rank_equally, _observe)
