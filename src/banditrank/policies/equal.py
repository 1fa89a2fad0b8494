"""Option 2 of Algorithms 2 and 3: one ranking for all, by estimated collective utility plus bonuses."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, inlined
from banditrank.counts.counts import Counts
from banditrank.estimators.item_means import exposures_of
from banditrank.policies.base import Kernel
from banditrank.policies.equal_solvers import LoopSolver, new_loop_solver, solve_in_loop
from banditrank.policies.learner import (
    INITIAL_ROUNDS,
    REFRESH,
    UNREWARDED,
    Learner,
    Seen,
    explores,
    learn,
    start_learner,
)
from banditrank.solvers.instance import Instance
from banditrank.solvers.solve import SolverName
from banditrank.utilities.utility import Utility

Floats = NDArray[np.float64]


class Beliefs(NamedTuple):
    """What the collective utility is estimated from."""

    learner: Learner
    instance: Instance  # λ̂, ρ̂, μ̂ and Σ_i a_t ln t / N_ij
    inverse_exposures: Floats  # (N, M) 1 / N_ij
    exposures: Floats  # (M,) room for N_ij of one type


class EqualState(NamedTuple):
    """What is believed, and the room of the solver."""

    beliefs: Beliefs
    solver: LoopSolver

    @property
    def learner(self) -> Learner:
        """What is known."""
        return self.beliefs.learner


def start_equal(
    counts: Counts, turn: NDArray[np.int64], seen: Seen | None, utility: Utility, solver: SolverName
) -> EqualState:
    """Return the state for counts and the chosen solver."""
    n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
    learner = start_learner(counts, turn, seen)
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
def _rank(
    state: EqualState,
    user_type: int,  # noqa: ARG001 - everybody is treated alike
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    exploration, bonus, gap = parameters[0], parameters[1], parameters[2]
    if not explores(state.beliefs.learner, t, exploration, rng, ranking):
        _weigh(state.beliefs, bonus)
        solve_in_loop(state.solver, state.beliefs.instance, t, gap, rng, ranking)


@inlined
def _observe(
    state: EqualState,
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


EQUAL = Kernel(_rank, _observe)
