"""Rankings of GreedyRank and UCBRank by maximum likelihood, or with a smoothed start.

Unlike `running_estimates`, estimates are recomputed in each round, in O(MK) for the user type that arrived.
Those of maximum likelihood start from the estimates of the round before, and take a few passes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, inlined
from banditrank.counts._counts import Counts
from banditrank.estimators._item_means import exposures_of
from banditrank.estimators._maximum_likelihood import alternate, update_means
from banditrank.estimators._position_preferences import PositionEvidence, empty_evidence, estimate_preferences
from banditrank.policies._count_arrays import CountArrays, arrays_of, record_round
from banditrank.policies._kernel import Kernel
from banditrank.policies._loop_solvers import LoopSolver, draw_personalized, solve_in_loop
from banditrank.policies._restricted_solver import RestrictedSolver, solve_restricted
from banditrank.policies._restriction import AVAILABLE, Restriction, place_best
from banditrank.policies._running_estimates import (
    INITIAL_ROUNDS,
    UNREWARDED,
    AugmentedCounts,
    try_explore,
    try_explore_restricted,
)
from banditrank.policies._sorting import assign_in_order, top_k
from banditrank.solvers._instance import Instance, copy_instance

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]
_MAX_PASSES = 3  # of maximum likelihood in a round
_TOLERANCE = 1e-6  # change of a pass at which it stops
_MAX_INITIAL_PASSES = 1000  # of maximum likelihood at the start


class RecomputedEstimates(NamedTuple):
    """The counts, the augmented counts, and the estimates from these."""

    arrays: CountArrays
    displays: Floats  # (N, K, M) augmented
    rewards: Floats  # (N, K, M) augmented
    by_likelihood: bool
    evidence: PositionEvidence  # with ρ̂
    means: Floats  # (N, M) μ̂
    exposures: Floats  # (N, M) N_ij
    workspace: Floats  # (K,)
    phase: NDArray[np.int64]  # (2,) cells without a reward, length of the initial phase
    turn: NDArray[np.int64]  # (1,) I_explore, the turn of the round-robin exploration


def init_recomputed_estimates(
    counts: Counts, turn: NDArray[np.int64], augmented: AugmentedCounts | None, *, by_likelihood: bool
) -> RecomputedEstimates:
    """Return the estimates from counts, whose arrays are not copied, or from augmented counts."""
    n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
    displays, rewards = augmented or (counts.displays_by_position.copy(), counts.rewards_by_position.copy())
    estimates = RecomputedEstimates(
        arrays_of(counts),
        displays,
        rewards,
        by_likelihood,
        empty_evidence(n, m, k),
        np.zeros((n, m)),
        np.zeros((n, m)),
        np.zeros(k),
        np.array([(rewards <= 0).sum(), 0], dtype=np.int64),
        turn,
    )
    if estimates.phase[UNREWARDED] == 0:
        for user_type in range(n):
            recompute_estimates(estimates, user_type, _MAX_INITIAL_PASSES)
    return estimates


@compiled
def recompute_estimates(estimates: RecomputedEstimates, user_type: int, passes: int) -> None:
    """Recompute the estimates of a user type."""
    i, preferences = user_type, estimates.evidence.preferences
    if estimates.by_likelihood:
        alternate(
            estimates.displays,
            estimates.rewards,
            preferences,
            estimates.means,
            estimates.workspace,
            i,
            _TOLERANCE,
            passes,
        )
    else:
        estimate_preferences(estimates.displays, estimates.rewards, estimates.evidence, i)
        update_means(estimates.displays, estimates.rewards, preferences, estimates.means, i)
    exposures_of(estimates.displays, preferences, i, estimates.exposures[i])


@inlined
def update_recomputed_estimates(
    estimates: RecomputedEstimates, user_type: int, t: int, ranking: Indices, rewards: Floats
) -> None:
    """Update the estimates with a round."""
    i = user_type
    waiting = estimates.phase[UNREWARDED] > 0
    for k in range(ranking.size):
        j = ranking[k]
        if rewards[k] > 0.0 and estimates.rewards[i, k, j] <= 0.0:
            estimates.phase[UNREWARDED] -= 1
        estimates.displays[i, k, j] += 1.0
        estimates.rewards[i, k, j] += rewards[k]
    record_round(estimates.arrays, i, ranking, rewards)
    if estimates.phase[UNREWARDED] > 0:
        return
    if waiting:
        estimates.phase[INITIAL_ROUNDS] = t
        for other in range(estimates.means.shape[0]):
            recompute_estimates(estimates, other, _MAX_INITIAL_PASSES)
    else:
        recompute_estimates(estimates, i, _MAX_PASSES)


class RecomputedPersonalizedState(NamedTuple):
    """Estimates, and workspaces to sort in."""

    estimates: RecomputedEstimates
    indices: Floats  # (M,)
    items: Indices  # (K,)
    positions: Indices  # (K,)


class RecomputedEqualState(NamedTuple):
    """Estimates, the solver's instance that shares them, and the solver."""

    estimates: RecomputedEstimates
    instance: Instance
    solver: LoopSolver


def init_recomputed_personalized(estimates: RecomputedEstimates) -> RecomputedPersonalizedState:
    """Return the state for estimates."""
    k, m = estimates.displays.shape[1:]
    return RecomputedPersonalizedState(
        estimates, np.zeros(m), np.zeros(k, dtype=np.uintp), np.zeros(k, dtype=np.uintp)
    )


def init_recomputed_equal(estimates: RecomputedEstimates, solver: LoopSolver) -> RecomputedEqualState:
    """Return the state for estimates and a solver."""
    n, _, m = estimates.displays.shape
    instance = Instance(np.zeros(n), estimates.evidence.preferences, estimates.means, np.zeros(m))
    return RecomputedEqualState(estimates, instance, solver)


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
    user_type: int,  # noqa: ARG001 - all types get the same ranking
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
    """Write the weights of user types, and the bonus of each item."""
    estimates = state.estimates
    arrivals, weights, bonuses = estimates.arrays.arrivals, state.instance.weights, state.instance.bonuses
    total = 0.0
    for i in range(arrivals.size):
        total += arrivals[i] + 1.0
    for j in range(bonuses.size):
        bonuses[j] = 0.0
    for i in range(arrivals.size):
        weights[i] = (arrivals[i] + 1.0) / total  # positive before the first arrival of a type
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


@inlined
def _choose_personalized(
    state: RecomputedPersonalizedState,
    restriction: Restriction,
    workspace: None,  # noqa: ARG001 - none
    user_type: int,
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    i, estimates, values = user_type, state.estimates, restriction.values
    if try_explore_restricted(estimates, restriction, t, parameters[0], rng, ranking):
        return
    for index in range(restriction.sizes[AVAILABLE]):
        j = restriction.items[index]
        values[j] = estimates.means[i, j] + parameters[1] / estimates.exposures[i, j]
    place_best(restriction, values, estimates.evidence.preferences[i], ranking)


@inlined
def _choose_equal(
    state: RecomputedEqualState,
    restriction: Restriction,
    workspace: RestrictedSolver,
    user_type: int,  # noqa: ARG001 - all types get the same ranking
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    if not try_explore_restricted(state.estimates, restriction, t, parameters[0], rng, ranking):
        _update_weights(state, parameters[1])
        solve_restricted(workspace, state.instance, restriction, t, rng, ranking)


@inlined
def _draw_personalized(
    state: Any,  # a `RecomputedEqualState` with a `LotteryLoopSolver`
    user_type: int,
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    """Draw from the best lottery of a user type, whose index of an item is μ̂ plus its bonus."""
    estimates, instance = state.estimates, state.solver.search.instance
    if not try_explore(estimates, t, parameters[0], rng, ranking):
        _update_weights(state, 0.0)
        copy_instance(state.instance, instance)
        for i in range(instance.means.shape[0]):
            for j in range(instance.means.shape[1]):
                instance.means[i, j] += parameters[1] / estimates.exposures[i, j]
        draw_personalized(state.solver, user_type, parameters[2], rng, ranking)


RECOMPUTED_PERSONALIZED_KERNEL = Kernel(_rank_personalized, _observe, _choose_personalized)
RECOMPUTED_EQUAL_KERNEL = Kernel(_rank_equal, _observe, _choose_equal)
RECOMPUTED_PERSONALIZED_LOTTERY_KERNEL = Kernel(_draw_personalized, _observe)
