"""GreedyRank and UCBRank with another estimator than Algorithm 1, or with a smoothed start."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.policies.base import Kernel
from banditrank.policies.loop_solvers import LoopSolver, init_loop_solver, solve_in_loop
from banditrank.policies.general_learner import RecomputedEstimates, update_recomputed_estimates
from banditrank.policies.running_estimates import try_explore
from banditrank.policies.sorting import assign_in_order, top_k
from banditrank.solvers.instance import Instance
from banditrank.solvers.solve import SolverName
from banditrank.utilities.utility import Utility

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class RecomputedPersonalizedState(NamedTuple):
    """What is known, and room to sort in."""

    estimates: RecomputedEstimates
    indices: Floats  # (M,)
    items: Indices  # (K,)
    positions: Indices  # (K,)


class RecomputedEqualState(NamedTuple):
    """What is known, as the solver's instance too, and the solver's room."""

    estimates: RecomputedEstimates
    instance: Instance
    solver: LoopSolver


def init_recomputed_personalized(estimates: RecomputedEstimates) -> RecomputedPersonalizedState:
    """Return the state for what is known."""
    k, m = estimates.displays.shape[1:]
    return RecomputedPersonalizedState(
        estimates, np.zeros(m), np.zeros(k, dtype=np.uintp), np.zeros(k, dtype=np.uintp)
    )


def init_recomputed_equal(estimates: RecomputedEstimates, utility: Utility, solver: SolverName) -> RecomputedEqualState:
    """Return the state for what is known."""
    n, k, m = estimates.displays.shape
    instance = Instance(np.zeros(n), estimates.evidence.preferences, estimates.means, np.zeros(m))
    workspace = init_loop_solver(solver, utility, n_user_types=n, n_items=m, n_positions=k)
    return RecomputedEqualState(estimates, instance, workspace)


@inlined
def _rank_personalized(
    state: RecomputedPersonalizedState,
    user_type: int,
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    estimates = state.estimates
    if try_explore(estimates, t, parameters[0], rng, ranking):
        return
    for j in range(state.indices.size):
        state.indices[j] = estimates.means[user_type, j] + parameters[1] / estimates.exposures[user_type, j]
    top_k(state.indices, state.items)
    top_k(estimates.evidence.preferences[user_type], state.positions)
    assign_in_order(state.items, state.positions, ranking)


@inlined
def _rank_equal(
    state: RecomputedEqualState,
    user_type: int,  # noqa: ARG001 - everybody is treated alike
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    if not try_explore(state.estimates, t, parameters[0], rng, ranking):
        _update_weights(state, parameters[1])
        solve_in_loop(state.solver, state.instance, t, parameters[2], rng, ranking)


@inlined
def _update_weights(state: RecomputedEqualState, bonus: float) -> None:
    """Write the shares of types and each item's bonus."""
    estimates = state.estimates
    arrivals, weights, bonuses = estimates.arrays.arrivals, state.instance.weights, state.instance.bonuses
    total = 0.0
    for i in range(arrivals.size):
        total += arrivals[i] + 1.0
    for j in range(bonuses.size):
        bonuses[j] = 0.0
    for i in range(arrivals.size):
        weights[i] = (arrivals[i] + 1.0) / total  # every type may arrive, also before one has
        for j in range(bonuses.size):
            bonuses[j] += bonus / estimates.exposures[i, j]


@inlined
def _observe(
    state: RecomputedPersonalizedState | RecomputedEqualState,
    user_type: int,
    t: int,
    ranking: Indices,
    rewards: Floats,
) -> None:
    update_recomputed_estimates(state.estimates, user_type, t, ranking, rewards)


RECOMPUTED_PERSONALIZED_KERNEL = Kernel(_rank_personalized, _observe)
RECOMPUTED_EQUAL_KERNEL = Kernel(_rank_equal, _observe)
