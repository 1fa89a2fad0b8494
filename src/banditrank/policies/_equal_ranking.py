"""Equal ranking, option 2 of Algorithms 2 and 3: the best collective utility by estimates plus bonuses.

The same estimates of all user types serve personalized treatment with guarantees: they bind the lotteries of
the types together.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, inlined
from banditrank.counts._counts import Counts
from banditrank.estimators._item_means import exposures_of
from banditrank.policies._kernel import Kernel
from banditrank.policies._loop_solvers import LoopSolver, draw_personalized, solve_in_loop
from banditrank.policies._restricted_solver import RestrictedSolver, solve_restricted
from banditrank.policies._restriction import Restriction
from banditrank.policies._running_estimates import (
    INITIAL_ROUNDS,
    REFRESH_ROUNDS,
    UNREWARDED,
    AugmentedCounts,
    RunningEstimates,
    init_running_estimates,
    try_explore,
    try_explore_restricted,
    update_running_estimates,
)
from banditrank.solvers._instance import Instance, copy_instance

Floats = NDArray[np.float64]


class CollectiveEstimates(NamedTuple):
    """Estimates of the collective utility."""

    estimates: RunningEstimates
    instance: Instance  # λ̂, ρ̂, μ̂ and Σ_i a_t ln t / N_ij
    inverse_exposures: Floats  # (N, M) 1 / N_ij
    exposures: Floats  # (M,) workspace for N_ij of one type


class EqualState(NamedTuple):
    """Estimates and solver."""

    collective: CollectiveEstimates
    solver: LoopSolver

    @property
    def estimates(self) -> RunningEstimates:
        """Running estimates."""
        return self.collective.estimates


def init_equal(
    counts: Counts,
    turn: NDArray[np.int64],
    augmented: AugmentedCounts | None,
    solver: LoopSolver,
) -> EqualState:
    """Return the state for counts and a solver."""
    n, m = counts.n_user_types, counts.n_items
    estimates = init_running_estimates(counts, turn, augmented)
    instance = Instance(np.zeros(n), estimates.evidence.preferences, np.zeros((n, m)), np.zeros(m))
    collective = CollectiveEstimates(estimates, instance, np.zeros((n, m)), np.zeros(m))
    if estimates.phase[UNREWARDED] == 0:
        for user_type in range(n):
            _update_means(collective, user_type)
    return EqualState(collective, solver)


@compiled
def _update_means(collective: CollectiveEstimates, user_type: int) -> None:
    """Update μ̂ and 1/N of one user type."""
    i = user_type
    estimates = collective.estimates
    exposures_of(estimates.displays, estimates.evidence.preferences, i, collective.exposures)
    for j in range(collective.exposures.size):
        inverse = 1.0 / collective.exposures[j]
        collective.inverse_exposures[i, j] = inverse
        collective.instance.means[i, j] = estimates.reward_totals[i, j] * inverse


@inlined
def _update_weights(collective: CollectiveEstimates, bonus: float) -> None:
    """Write λ̂, and the bonus of each item summed over user types."""
    arrivals = collective.estimates.arrivals
    weights, bonuses = collective.instance.weights, collective.instance.bonuses
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
                bonuses[j] += bonus * collective.inverse_exposures[i, j]


@inlined
def _rank(
    state: EqualState,
    user_type: int,  # noqa: ARG001 - all types get the same ranking
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    exploration, bonus, gap = parameters[0], parameters[1], parameters[2]
    if not try_explore(state.collective.estimates, t, exploration, rng, ranking):
        _update_weights(state.collective, bonus)
        solve_in_loop(state.solver, state.collective.instance, t, gap, rng, ranking)


@inlined
def _observe(
    state: EqualState,
    user_type: int,
    t: int,
    ranking: NDArray[np.uintp],
    rewards: Floats,
) -> None:
    collective = state.collective
    if update_running_estimates(collective.estimates, user_type, t, ranking, rewards):
        if (
            collective.estimates.phase[INITIAL_ROUNDS] == t or t % REFRESH_ROUNDS == 0
        ):  # all estimates were recomputed
            for i in range(collective.instance.weights.size):
                _update_means(collective, i)
        else:
            _update_means(collective, user_type)


@inlined
def _choose(
    state: EqualState,
    restriction: Restriction,
    workspace: RestrictedSolver,
    user_type: int,  # noqa: ARG001 - all types get the same ranking
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    collective = state.collective
    if not try_explore_restricted(collective.estimates, restriction, t, parameters[0], rng, ranking):
        _update_weights(collective, parameters[1])
        solve_restricted(workspace, collective.instance, restriction, t, rng, ranking)


@inlined
def _draw(
    state: Any,  # an `EqualState` with a `LotteryLoopSolver`
    user_type: int,
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    """Draw from the best lottery of a user type, whose index of an item is μ̂ plus its bonus."""
    exploration, bonus, gap = parameters[0], parameters[1], parameters[2]
    collective, instance = state.collective, state.solver.search.instance
    if not try_explore(collective.estimates, t, exploration, rng, ranking):
        _update_weights(collective, 0.0)
        copy_instance(collective.instance, instance)
        if bonus > 0.0:
            for i in range(instance.means.shape[0]):
                for j in range(instance.means.shape[1]):
                    instance.means[i, j] += bonus * collective.inverse_exposures[i, j]
        draw_personalized(state.solver, user_type, gap, rng, ranking)


EQUAL_KERNEL = Kernel(_rank, _observe, _choose)
PERSONALIZED_LOTTERY_KERNEL = Kernel(_draw, _observe)
