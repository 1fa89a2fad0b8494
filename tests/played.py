"""Policies played on a state that tests can look into, by the simulator's own loop."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditrank.model.click_models import SINGLE_LOOK
from banditrank.model.problem import Problem
from banditrank.model.rewards import Bernoulli
from banditrank.policies.base import CompiledPolicy
from banditrank.simulation.replication import Experiment, compiled_loop, make_world, start_tally
from banditrank.statistics.counts import Counts


def play(policy: CompiledPolicy, problem: Problem, rounds: int, seed: int = 0, state: Any = None) -> Any:
    """Return the policy's state after so many rounds, from the given one or from nothing."""
    experiment = Experiment(
        policy, problem, Bernoulli(), SINGLE_LOOK, rounds, np.array([rounds]), seed, replications=1
    )
    k = problem.n_positions
    kernel = policy.kernel(n_items=problem.n_items, n_positions=k)
    if state is None:
        state = policy.start(Counts.empty_for(problem), policy.new_scratch())
    arrivals_rng, clicks_rng, policy_rng = experiment.generators(0)
    compiled_loop(kernel, SINGLE_LOOK, 0)(
        *(state, make_world(problem), experiment.objective(), start_tally(np.array([rounds]), k), False, 1),
        *(policy.parameters(np.arange(1, rounds + 1)), arrivals_rng.random(rounds), clicks_rng, policy_rng),
        *(np.zeros(k, dtype=np.uintp), np.zeros(k)),
    )
    return state


class Hand:
    """A policy of one user type, played by hand."""

    def __init__(self, policy: CompiledPolicy, n_items: int, n_positions: int, seed: int = 0) -> None:
        self.counts = Counts.empty(n_user_types=1, n_items=n_items, n_positions=n_positions)
        self.state = policy.start(self.counts, policy.new_scratch())
        self.formulas = policy.kernel(n_items=n_items, n_positions=n_positions)
        self.rng = np.random.default_rng(seed)
        self.ranking = np.zeros(n_positions, dtype=np.uintp)

    def rank(self) -> NDArray[np.uintp]:
        """Return what is shown now."""
        self.formulas.rank(self.state, 0, 1, np.zeros(0), self.rng, self.ranking)
        return self.ranking

    def observe(self, rewards: list[float] | NDArray[np.float64]) -> None:
        """Tell what it earned."""
        self.formulas.observe(self.state, 0, 1, self.ranking, np.asarray(rewards, dtype=np.float64))

    def shown(self, draws: int = 60) -> set[tuple[int, ...]]:
        """Return all rankings that it may show now; one of probability p is missed with (1 − p)^draws."""
        return {tuple(int(item) for item in self.rank()) for _ in range(draws)}
