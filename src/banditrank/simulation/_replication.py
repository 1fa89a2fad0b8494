"""Experiments and replications: the input and the output of one simulated run."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.model._click_models import ClickModel, CompiledProblem, compile_problem
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.model._problem import Problem
from banditrank.model._rewards import Rewards
from banditrank.model._timeline import Timeline, as_timeline
from banditrank.policies._base import CompiledPolicy, Policy, is_equal
from banditrank.policies._contextual.base import ContextualPolicy
from banditrank.policies._contextual.clustered import ClusteredPolicy
from banditrank.simulation._loop import OPTIMAL_TOLERANCE, Objective
from banditrank.solvers._optimum import best_lottery, best_values


@dataclass(frozen=True, slots=True)
class Replication:
    """Result of one replication."""

    index: int
    regret: NDArray[np.float64]  # (C,) at the checkpoints
    optimal_rate: NDArray[np.float64]  # (C,) share of optimal rounds up to each checkpoint
    initial_rounds: int  # length of the initial phase; the horizon if it did not end
    counts: Counts | None = None  # what the policy had observed at the end, if requested


class Generators(NamedTuple):
    """The generators of a replication."""

    arrivals: np.random.Generator
    clicks: np.random.Generator
    policy: np.random.Generator


def replication_generators(seed: int, index: int) -> Generators:
    """Return the generators of a replication's arrivals, clicks and policy.

    They depend on the seed and the index only. Arrivals have a generator of their own, so that the same users
    arrive for all policies that are compared.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(index,))
    return Generators(*[np.random.default_rng(child) for child in sequence.spawn(3)])


PolicyForContext: TypeAlias = CompiledPolicy | ContextualPolicy | ClusteredPolicy
"""A policy that can be simulated on a contextual problem."""


@dataclass(frozen=True, eq=False)
class ContextualExperiment:
    """Settings that all replications of a simulation on a contextual problem share."""

    policy: PolicyForContext
    problem: ContextualProblem
    rewards: Rewards
    click_model: ClickModel
    horizon: int
    checkpoints: NDArray[np.int64]
    seed: int
    replications: int
    delay: int = 0

    def generators(self, index: int) -> Generators:
        """Return the generators of a replication's arrivals, clicks and policy."""
        return replication_generators(self.seed, index)


@dataclass(frozen=True, eq=False)
class Experiment:
    """Settings that all replications of a simulation share."""

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

    def generators(self, index: int) -> Generators:
        """Return the generators of a replication's arrivals, clicks and policy."""
        return replication_generators(self.seed, index)

    @cached_property
    def timeline(self) -> Timeline:
        """The problem and its changes."""
        return as_timeline(self.problem)

    @cached_property
    def best(self) -> list[NDArray[np.float64]]:
        """Best values in each problem of the timeline: of each user type, or collective."""
        policy, utility = self.policy, self.policy.utility
        if policy.has_lotteries:
            find_lottery = partial(
                best_lottery,
                utility=utility,
                guarantees=policy.guarantees,
                treatment=policy.treatment,
                click_model=self.click_model,
                rewards=self.rewards,
            )
            lotteries = [find_lottery(problem) for problem in self.timeline.problems]
            is_equal_lottery = policy.treatment == "equal-lottery"
            return [np.array([one.value]) if is_equal_lottery else one.user_type_values for one in lotteries]
        find_values = partial(best_values, click_model=self.click_model, rewards=self.rewards)
        equal = policy.treatment == "equal"
        return [find_values(problem, equal=equal, utility=utility) for problem in self.timeline.problems]

    def objective(self, problem: int) -> Objective:
        """Return the objective of a problem of the timeline, with a workspace of its own."""
        best = self.best[problem]
        return Objective(
            is_equal(self.policy.treatment),
            best,
            OPTIMAL_TOLERANCE * max(float(np.abs(best).max()), self.rewards.scale),
            self.policy.utility.compiled(),
            np.zeros(self.timeline.n_user_types),
        )

    def compiled_problem(self, problem: int) -> CompiledProblem:
        """Return a problem of the timeline as arrays, for compiled functions."""
        return compile_problem(self.timeline.problems[problem], self.rewards, self.click_model)


AnyExperiment: TypeAlias = Experiment | ContextualExperiment
