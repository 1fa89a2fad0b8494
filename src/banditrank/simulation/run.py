"""One replication: a policy learns a world from nothing, for a number of rounds."""

import time
from collections import deque

import numpy as np
from numpy.typing import NDArray

from banditrank.model.click_models import World, draw_user_type
from banditrank.model.rankings import Ranking, as_ranking
from banditrank.policies.base import CompiledPolicy
from banditrank.simulation.experience import Experience, Stage, stages
from banditrank.simulation.loop import Objective, Tally, compiled_loop, no_rewards_yet, start_tally
from banditrank.simulation.progress import Advance
from banditrank.simulation.replication import Experiment, Replication
from banditrank.statistics.counts import Counts

LARGEST_CHUNK = 1 << 16  # rounds between two looks at the clock: memory does not grow with the horizon
CHUNK_SECONDS = 0.1  # what a chunk should take: how soon Ctrl-C is noticed and progress shown
UNROLL_FROM = 2_000_000  # rounds that make up for compiling a loop of its own for K
_NO_ITEM = np.iinfo(np.uintp).max


def prepare(experiment: Experiment) -> None:
    """Compile what replications will run, so that it is not counted in their time."""
    if isinstance(experiment.policy, CompiledPolicy):
        run = _CompiledRun(experiment, experiment.policy, 0)
        for stage in stages(experiment.timeline, None, 0):
            run.enter(stage)
            run.play(np.arange(1, 1))


def replicate(experiment: Experiment, number: int, advance: Advance) -> Replication:
    """Run one replication.

    Parameters
    ----------
    experiment
        Of what.
    number
        Which; it determines the randomness.
    advance
        Called with the number of rounds just played. It may raise, to stop.
    """
    policy = experiment.policy
    if isinstance(policy, CompiledPolicy):
        return _replicate_compiled(experiment, policy, number, advance)
    return _replicate_interpreted(experiment, number, advance)


def _replicate_compiled(
    experiment: Experiment, policy: CompiledPolicy, number: int, advance: Advance
) -> Replication:
    run, chunk = _CompiledRun(experiment, policy, number), 256
    for stage in stages(experiment.timeline, experiment.forget_every, experiment.horizon):
        run.enter(stage)
        first = stage.first
        while first <= stage.last:
            rounds = np.arange(first, min(first + chunk, stage.last + 1))
            start = time.perf_counter()
            run.play(rounds)
            policy.utility.raise_failure()
            advance(len(rounds))
            first += len(rounds)
            seconds = time.perf_counter() - start
            if seconds < CHUNK_SECONDS / 4 and len(rounds) == chunk:
                chunk = min(chunk * 4, LARGEST_CHUNK)
            elif seconds > CHUNK_SECONDS * 4:
                chunk = max(chunk // 4, 1)
    return _sum_up(experiment, number, run.tally, policy.initial_rounds(run.state), run.experience.counts)


class _CompiledRun:
    """A replication of a compiled policy, stage by stage."""

    def __init__(self, experiment: Experiment, policy: CompiledPolicy, number: int) -> None:
        timeline, k = experiment.timeline, experiment.timeline.n_positions
        self.experiment = experiment
        self.policy = policy
        self.blind = not policy.distinguishes_user_types
        self.experience = Experience(timeline, policy.memory, 1 if self.blind else timeline.n_user_types)
        self.scratch = policy.new_scratch()
        self.state = policy.init_state(self.experience.counts, self.scratch)
        self.tally = start_tally(experiment.checkpoints, k)
        self.pending = no_rewards_yet(experiment.delay, k)
        self.pending_since = 1  # the rewards of rounds before this one have all arrived
        self.generators = experiment.generators(number)
        self.ranking = np.zeros(k, dtype=np.uintp)
        self.rewards = np.zeros(k)
        self.unrolled = experiment.horizon * experiment.replications >= UNROLL_FROM

    def enter(self, stage: Stage) -> None:
        """Go over to a stage."""
        experiment, policy = self.experiment, self.policy
        problem = experiment.timeline.problems[stage.problem]
        if stage.forgets:
            self._forget()
        if self.experience.changes(problem):
            self._deliver(stage.first)
            kept = self.experience.enter(problem)
            self.state = policy.update_items(self.state, self.experience.counts, kept)
        self.kernel = policy.kernel(n_items=problem.n_items, n_positions=self.ranking.size)
        self.loop = compiled_loop(
            self.kernel,
            experiment.click_model,
            self.ranking.size if self.unrolled else 0,
            delayed=experiment.delay > 0,
        )
        self.world, self.objective = experiment.world(stage.problem), experiment.objective(stage.problem)
        self.tally.last_ranking[:] = _NO_ITEM  # what it lacked, it may lack no more

    def play(self, rounds: NDArray[np.int64]) -> None:
        """Play the next rounds of the stage."""
        arrivals_rng, clicks_rng, policy_rng = self.generators
        first = int(rounds[0]) if len(rounds) else 1
        self.loop(
            *(self.state, self.world, self.objective, self.tally, self.pending, self.pending_since),
            *(self.blind, first, self.policy.parameters(rounds), arrivals_rng.random(len(rounds))),
            *(clicks_rng, policy_rng, self.ranking, self.rewards),
        )
        self.experience.count_rounds()

    def _forget(self) -> None:
        if self.policy.own_statistics is None:
            self.experience.forget()
        else:
            self.experience.forget_everything()
        self.state = self.policy.init_state(self.experience.counts, self.scratch)

    def _deliver(self, t: int) -> None:
        """Let all rewards arrive before items change their numbers."""
        if self.experiment.delay > 0:
            for earlier in range(max(t - self.experiment.delay, self.pending_since), t):
                place = earlier % self.experiment.delay
                self.kernel.observe(
                    self.state,
                    int(self.pending.user_types[place]),
                    t,
                    self.pending.rankings[place],
                    self.pending.rewards[place],
                )
            self.pending_since = t
            self.experience.count_rounds()


def _replicate_interpreted(experiment: Experiment, number: int, advance: Advance) -> Replication:
    timeline, policy, horizon = experiment.timeline, experiment.policy, experiment.horizon
    experience = Experience(timeline, policy.memory, timeline.n_user_types)
    scratch = policy.new_scratch()
    tally = start_tally(experiment.checkpoints, timeline.n_positions)
    arrivals_rng, clicks_rng, policy_rng = experiment.generators(number)
    rewards = np.zeros(timeline.n_positions)
    pending: deque[tuple[int, Ranking, NDArray[np.float64]]] = deque()
    told, told_at = 0, time.perf_counter()
    for stage in stages(timeline, experiment.forget_every, horizon):
        problem = timeline.problems[stage.problem]
        if stage.forgets:
            experience.forget()
        if experience.changes(problem):
            _record(experience.counts, pending, 0)
            experience.enter(problem)
        world, objective = experiment.world(stage.problem), experiment.objective(stage.problem)
        size = {"n_items": problem.n_items, "n_positions": problem.n_positions}
        for t in range(stage.first, stage.last + 1):
            user_type = int(draw_user_type(world, arrivals_rng.random()))
            chosen = policy.rank(experience.counts, user_type, rng=policy_rng, scratch=scratch)
            ranking = as_ranking(chosen, **size)
            shown = ranking.astype(np.uintp)
            experiment.click_model.draw(world, user_type, shown, clicks_rng, rewards)
            pending.append((user_type, ranking, rewards.copy()))
            _record(experience.counts, pending, experiment.delay)
            _tally_round(tally, objective, t, _gap(experiment, objective, world, user_type, shown))
            if t % 1024 == 0 or t == horizon or time.perf_counter() - told_at > CHUNK_SECONDS:
                advance(t - told)
                told, told_at = t, time.perf_counter()
    return _sum_up(experiment, number, tally, 0, experience.counts)


def _record(
    counts: Counts, pending: deque[tuple[int, Ranking, NDArray[np.float64]]], still_pending: int
) -> None:
    """Let rewards arrive, the earliest first, until so many are left."""
    while len(pending) > still_pending:
        user_type, ranking, earned = pending.popleft()
        counts.record(user_type, ranking, rewards=earned)


def _gap(
    experiment: Experiment, objective: Objective, world: World, user_type: int, shown: NDArray[np.uintp]
) -> float:
    value = experiment.click_model.value
    if not objective.equal:
        return float(objective.best[user_type] - value(world, user_type, shown))
    values = [value(world, i, shown) for i in range(len(world.arrival_rates))]
    return float(objective.best[0] - experiment.policy.utility.collective(world.arrival_rates, values))


def _tally_round(tally: Tally, objective: Objective, t: int, gap: float) -> None:
    tally.totals[:] += (gap, gap <= objective.tolerance)
    checkpoint = tally.next_checkpoint[0]
    if t == tally.checkpoints[checkpoint]:
        tally.curves[:, checkpoint] = tally.totals
        tally.next_checkpoint[0] += 1


def _sum_up(
    experiment: Experiment, number: int, tally: Tally, initial_rounds: int | None, counts: Counts
) -> Replication:
    rounds = experiment.horizon if initial_rounds is None else initial_rounds
    rates = tally.curves[1] / experiment.checkpoints
    kept = counts if experiment.keep_counts else None
    return Replication(number, tally.curves[0], rates, rounds, kept)
