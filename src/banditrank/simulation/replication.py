"""One replication: a policy learns a world from nothing, for a number of rounds."""

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from banditrank.model.click_models import ClickModel, World, draw_user_type, make_world
from banditrank.model.problem import Problem
from banditrank.model.rankings import as_ranking
from banditrank.model.rewards import Rewards
from banditrank.policies.base import CompiledPolicy, Policy
from banditrank.simulation.loop import (
    OPTIMAL_TOLERANCE,
    Objective,
    Tally,
    compiled_loop,
    start_tally,
)
from banditrank.simulation.progress import Advance
from banditrank.solvers.optimum import best_values
from banditrank.statistics.counts import Counts

LARGEST_CHUNK = 1 << 16  # rounds between two looks at the clock: memory does not grow with the horizon
CHUNK_SECONDS = 0.1  # what a chunk should take: how soon Ctrl-C is noticed and progress shown
UNROLL_FROM = 2_000_000  # rounds that make up for compiling a loop of its own for K


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
    problem: Problem
    rewards: Rewards
    click_model: ClickModel
    horizon: int
    checkpoints: NDArray[np.int64]
    seed: int
    replications: int
    keep_counts: bool = False

    def generators(self, number: int) -> list[np.random.Generator]:
        """Return the randomness of a replication's arrivals, clicks and policy.

        It depends on the seed and the number only, and arrivals have their own: the same users come to all
        policies that are compared.
        """
        sequence = np.random.SeedSequence(self.seed, spawn_key=(number,))
        return [np.random.default_rng(child) for child in sequence.spawn(3)]

    @cached_property
    def best(self) -> NDArray[np.float64]:
        """Return what the best rankings are worth: to each type, or collectively."""
        return best_values(
            self.problem,
            equal=self.policy.treatment == "equal",
            utility=self.policy.utility,
            click_model=self.click_model,
            rewards=self.rewards,
        )

    def objective(self) -> Objective:
        """Return what regret is measured against, with room of its own."""
        return Objective(
            self.policy.treatment == "equal",
            self.best,
            OPTIMAL_TOLERANCE * max(float(np.abs(self.best).max()), self.rewards.scale),
            self.policy.utility.compiled(),
            np.zeros(self.problem.n_user_types),
        )

    def prepare(self) -> None:
        """Compile what replications will run, so that it is not counted in their time."""
        if isinstance(self.policy, CompiledPolicy):
            self._play_compiled(self.policy, 0, horizon=0, advance=lambda _: None)

    def replicate(self, number: int, advance: Advance) -> Replication:
        """Run one replication.

        Parameters
        ----------
        number
            Which; it determines the randomness.
        advance
            Called with the number of rounds just played. It may raise, to stop.
        """
        if isinstance(self.policy, CompiledPolicy):
            return self._play_compiled(self.policy, number, horizon=self.horizon, advance=advance)
        return self._play_interpreted(number, advance)

    def _play_compiled(
        self, policy: CompiledPolicy, number: int, *, horizon: int, advance: Advance
    ) -> Replication:
        problem, k = self.problem, self.problem.n_positions
        blind = not policy.distinguishes_user_types
        kernel = policy.kernel(n_items=problem.n_items, n_positions=k)
        unrolled = self.horizon * self.replications >= UNROLL_FROM
        play = compiled_loop(kernel, self.click_model, k if unrolled else 0)
        counts = Counts.empty(
            n_user_types=1 if blind else problem.n_user_types, n_items=problem.n_items, n_positions=k
        )
        state = policy.start(counts, policy.new_scratch())
        world = make_world(problem, self.rewards)
        objective, tally = self.objective(), start_tally(self.checkpoints, k)
        arrivals_rng, clicks_rng, policy_rng = self.generators(number)
        ranking, rewards = np.zeros(k, dtype=np.uintp), np.zeros(k)
        first, chunk = 1, 256
        while first == 1 or first <= horizon:  # with a horizon of 0 it is only compiled
            rounds = np.arange(first, min(first + chunk, horizon + 1))
            start = time.perf_counter()
            play(
                *(state, world, objective, tally, blind, first, policy.parameters(rounds)),
                *(arrivals_rng.random(len(rounds)), clicks_rng, policy_rng, ranking, rewards),
            )
            policy.utility.raise_failure()
            advance(len(rounds))
            first += chunk
            seconds = time.perf_counter() - start
            if seconds < CHUNK_SECONDS / 4:
                chunk = min(chunk * 4, LARGEST_CHUNK)
            elif seconds > CHUNK_SECONDS * 4:
                chunk = max(chunk // 4, 1)
        counts.rounds = int(counts.arrivals.sum())  # the arrays are the state's own
        return self._sum_up(number, tally, policy.initial_rounds(state), counts)

    def _play_interpreted(self, number: int, advance: Advance) -> Replication:
        problem, policy = self.problem, self.policy
        size = {"n_items": problem.n_items, "n_positions": problem.n_positions}
        counts, scratch = Counts.empty_for(problem), policy.new_scratch()
        world = make_world(problem, self.rewards)
        objective, tally = self.objective(), start_tally(self.checkpoints, problem.n_positions)
        arrivals_rng, clicks_rng, policy_rng = self.generators(number)
        rewards = np.zeros(problem.n_positions)
        for t in range(1, self.horizon + 1):
            user_type = int(draw_user_type(world, arrivals_rng.random()))
            ranking = as_ranking(policy.rank(counts, user_type, rng=policy_rng, scratch=scratch), **size)
            shown = ranking.astype(np.uintp)
            self.click_model.draw(world, user_type, shown, clicks_rng, rewards)
            counts.record(user_type, ranking, rewards=rewards)
            _tally_round(tally, objective, t, self._gap(objective, world, user_type, shown))
            if t % 1024 == 0 or t == self.horizon:
                advance((t - 1) % 1024 + 1)
        return self._sum_up(number, tally, 0, counts)

    def _gap(self, objective: Objective, world: World, user_type: int, shown: NDArray[np.uintp]) -> float:
        value = self.click_model.value
        if not objective.equal:
            return float(objective.best[user_type] - value(world, user_type, shown))
        values = [value(world, i, shown) for i in range(self.problem.n_user_types)]
        return float(objective.best[0] - self.policy.utility.collective(world.arrival_rates, values))

    def _sum_up(self, number: int, tally: Tally, initial_rounds: int | None, counts: Counts) -> Replication:
        rounds = self.horizon if initial_rounds is None else initial_rounds
        rates = tally.curves[1] / self.checkpoints
        return Replication(number, tally.curves[0], rates, rounds, counts if self.keep_counts else None)


def _tally_round(tally: Tally, objective: Objective, t: int, gap: float) -> None:
    tally.totals[:] += (gap, gap <= objective.tolerance)
    checkpoint = tally.next_checkpoint[0]
    if t == tally.checkpoints[checkpoint]:
        tally.curves[:, checkpoint] = tally.totals
        tally.next_checkpoint[0] += 1
