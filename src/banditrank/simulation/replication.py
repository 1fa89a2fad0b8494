"""What is replicated, and what a replication gives."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from banditrank.model.click_models import ClickModel, CompiledProblem, compile_problem
from banditrank.model.problem import Problem
from banditrank.model.rewards import Rewards
from banditrank.model.timeline import Timeline, as_timeline
from banditrank.policies.base import Policy
from banditrank.simulation.loop import OPTIMAL_TOLERANCE, Objective
from banditrank.solvers.optimum import best_values
from banditrank.counts.counts import Counts


@dataclass(frozen=True, slots=True)
class Replication:
    """What one replication gave."""

    number: int
    regret: NDArray[np.float64]  # (C,) at the checkpoints
    optimal_rate: NDArray[np.float64]  # (C,) share of optimal rounds up to the checkpoints
    initial_rounds: int  # the horizon if the initial phase did not end
    counts: Counts | None = None  # what the policy had seen at the end, if it is wanted


@dataclass(frozen=True, eq=False)
class Experiment:
    """What all replications of a simulation have in common."""

    policy: Policy
    problem: Problem | Timeline
    rewards: Rewards
    click_model: ClickModel
    horizon: int
    checkpoints: NDArray[np.int64]
    seed: int
    replications: int
    keep_counts: bool = False
    delay: int = 0

    def generators(self, number: int) -> list[np.random.Generator]:
        """Return the randomness of a replication's arrivals, clicks and policy.

        It depends on the seed and the number only, and arrivals have their own: the same users come to all
        policies that are compared.
        """
        sequence = np.random.SeedSequence(self.seed, spawn_key=(number,))
        return [np.random.default_rng(child) for child in sequence.spawn(3)]

    @cached_property
    def timeline(self) -> Timeline:
        """The world, which may change."""
        return as_timeline(self.problem)

    @cached_property
    def best(self) -> list[NDArray[np.float64]]:
        """What the best rankings of each problem are worth: to each type, or collectively."""
        return [
            best_values(
                problem,
                equal=self.policy.treatment == "equal",
                utility=self.policy.utility,
                click_model=self.click_model,
                rewards=self.rewards,
            )
            for problem in self.timeline.problems
        ]

    @cached_property
    def forget_every(self) -> int | None:
        """After how many rounds something is forgotten, if anything ever is."""
        memory = self.policy.memory
        if memory is None:
            return None
        return memory.bucket_rounds if self.policy.own_statistics is None else memory.rounds

    def objective(self, problem: int) -> Objective:
        """Return what regret is measured against in a problem of the timeline, with room of its own."""
        best = self.best[problem]
        return Objective(
            self.policy.treatment == "equal",
            best,
            OPTIMAL_TOLERANCE * max(float(np.abs(best).max()), self.rewards.scale),
            self.policy.utility.compiled(),
            np.zeros(self.timeline.n_user_types),
        )

    def world(self, problem: int) -> CompiledProblem:
        """Return a problem of the timeline, laid out for formulas."""
        return compile_problem(self.timeline.problems[problem], self.rewards, self.click_model)
