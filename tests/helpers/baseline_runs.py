"""Runs baselines in the simulator or round by round, with access to their state."""

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank.counts._counts import Counts
from banditrank.model._click_models import SINGLE_LOOK, ClickModel
from banditrank.model._problem import Problem
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._bound_kernel import BoundKernel
from banditrank.simulation._simulate import simulate

# The synthetic experiment of Lagrée, Vernade and Cappé (2016), κ = (.9, .6, .3) scaled to the single-look
# model, with positions in another order than they are examined.
EXAMINED = Problem([1.0], [[1 / 6, 1 / 2, 1 / 3]], [[0.15, 0.45, 0.05, 0.35, 0.25]])

EASY = Problem([1.0], [[0.2, 0.8]], [[0.05, 0.95, 0.5]])  # large gaps: regret is soon logarithmic


class FinalState(NamedTuple):
    """Final state and counts of a policy."""

    state: Any
    counts: Counts


def play(
    policy: CompiledPolicy,
    problem: Problem,
    rounds: int,
    *,
    click_model: ClickModel = SINGLE_LOOK,
    seed: int = 0,
) -> FinalState:
    """Simulate one replication of a policy and return its final state."""
    observed, made = copy(policy), []

    def init_state(counts: Counts, scratch: Any) -> Any:
        made.append(FinalState(policy.init_state(counts, scratch), counts))
        return made[-1].state

    vars(observed)["init_state"] = init_state
    simulate(observed, problem, rounds, replications=1, workers=1, seed=seed, click_model=click_model)
    return made[-1]


class ManualRun:
    """Policy with one user type that a test runs round by round."""

    def __init__(
        self,
        policy: CompiledPolicy,
        n_items: int,
        n_positions: int,
        *,
        counts: Counts | None = None,
        seed: int = 0,
    ) -> None:
        self.counts = counts or Counts.empty(n_user_types=1, n_items=n_items, n_positions=n_positions)
        self.policy = policy
        self.rng = np.random.default_rng(seed)
        self.ranking = np.zeros(n_positions, dtype=np.uintp)
        self.state = policy.init_state(self.counts, policy.new_scratch())
        self.t = 1

    @property
    def state(self) -> Any:
        """State of the policy."""
        return self.kernel.state

    @state.setter
    def state(self, state: Any) -> None:
        kernel = self.policy.kernel(n_items=self.counts.n_items, n_positions=self.counts.n_positions)
        n_parameters = self.policy.n_parameters
        self.kernel = BoundKernel(kernel, state, self.rng, ranking=self.ranking, n_parameters=n_parameters)

    def rank(self) -> NDArray[np.uintp]:
        """Return the next ranking."""
        parameters = self.policy.parameters(np.array([self.t]))[0]
        return self.kernel.rank(0, self.t, parameters).copy()

    def show(self, ranking: ArrayLike) -> None:
        """Rank until the policy draws this ranking."""
        for _ in range(10_000):
            if np.array_equal(self.rank(), ranking):
                return
        raise AssertionError(f"the policy does not show {ranking}")

    def observe(self, rewards: ArrayLike, ranking: ArrayLike | None = None) -> None:
        """Observe the rewards of the last ranking, or of another one."""
        if ranking is not None:
            self.ranking[:] = ranking
        self.kernel.observe(0, self.t, self.ranking, np.asarray(rewards, dtype=np.float64))
        self.t += 1

    def possible_rankings(self, draws: int = 60) -> set[tuple[int, ...]]:
        """Return the possible rankings; one of probability p is missed with probability (1 − p)^draws."""
        return {tuple(self.rank().tolist()) for _ in range(draws)}
