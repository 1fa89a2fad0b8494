"""One replication: a policy learns a world from nothing, for a number of rounds."""

import time
from collections import deque

import numpy as np
from numpy.typing import NDArray

from banditrank.model.click_models import CompiledProblem, draw_user_type
from banditrank.model.rankings import Ranking, as_ranking
from banditrank.policies.base import CompiledPolicy
from banditrank.simulation.timeline_counts import TimelineCounts, Segment, segments
from banditrank.simulation.loop import Objective, RunTotals, compiled_loop, init_delay_buffer, init_run_totals
from banditrank.simulation.progress import Advance
from banditrank.simulation.replication import Experiment, Replication
from banditrank.counts.counts import Counts

MAX_CHUNK_ROUNDS = 1 << 16  # rounds between two looks at the clock: memory does not grow with the horizon
CHUNK_SECONDS = 0.1  # what a chunk should take: how soon Ctrl-C is noticed and progress shown
MIN_UNROLL_ROUNDS = 2_000_000  # rounds that make up for compiling a loop of its own for K
_NO_ITEM = np.iinfo(np.uintp).max


def precompile(experiment: Experiment) -> None:
    """Compile what replications will run, so that it is not counted in their time."""
    if isinstance(experiment.policy, CompiledPolicy):
        run = _CompiledRun(experiment, experiment.policy, 0)
        for segment in segments(experiment.timeline, None, 0):
            run.enter(segment)
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
    for segment in segments(experiment.timeline, experiment.forget_every, experiment.horizon):
        run.enter(segment)
        first = segment.first
        while first <= segment.last:
            rounds = np.arange(first, min(first + chunk, segment.last + 1))
            start = time.perf_counter()
            run.play(rounds)
            policy.utility.raise_callback_error()
            advance(len(rounds))
            first += len(rounds)
            seconds = time.perf_counter() - start
            if seconds < CHUNK_SECONDS / 4 and len(rounds) == chunk:
                chunk = min(chunk * 4, MAX_CHUNK_ROUNDS)
            elif seconds > CHUNK_SECONDS * 4:
                chunk = max(chunk // 4, 1)
    return _sum_up(experiment, number, run.run_totals, policy.initial_rounds(run.state), run.timeline_counts.counts)


class _CompiledRun:
    """A replication of a compiled policy, stage by stage."""

    def __init__(self, experiment: Experiment, policy: CompiledPolicy, number: int) -> None:
        timeline, k = experiment.timeline, experiment.timeline.n_positions
        self.experiment = experiment
        self.policy = policy
        self.blind = not policy.distinguishes_user_types
        self.timeline_counts = TimelineCounts(timeline, policy.memory, 1 if self.blind else timeline.n_user_types)
        self.scratch = policy.new_scratch()
        self.state = policy.start(self.timeline_counts.counts, self.scratch)
        self.run_totals = init_run_totals(experiment.checkpoints, k)
        self.pending = init_delay_buffer(experiment.delay, k)
        self.pending_since = 1  # the rewards of rounds before this one have all arrived
        self.generators = experiment.generators(number)
        self.ranking = np.zeros(k, dtype=np.uintp)
        self.rewards = np.zeros(k)
        self.unrolled = experiment.horizon * experiment.replications >= MIN_UNROLL_ROUNDS

    def enter(self, segment: Segment) -> None:
        """Go over to a stage."""
        experiment, policy = self.experiment, self.policy
        problem = experiment.timeline.problems[segment.problem]
        if segment.forgets:
            self._forget()
        if self.timeline_counts.changes(problem):
            self._deliver(segment.first)
            kept = self.timeline_counts.enter(problem)
            self.state = policy.update_items(self.state, self.timeline_counts.counts, kept)
        self.kernel = policy.kernel(n_items=problem.n_items, n_positions=self.ranking.size)
        self.loop = compiled_loop(
            self.kernel,
            experiment.click_model,
            self.ranking.size if self.unrolled else 0,
            delayed=experiment.delay > 0,
        )
        self.world, self.objective = experiment.world(segment.problem), experiment.objective(segment.problem)
        self.run_totals.last_ranking[:] = _NO_ITEM  # what it lacked, it may lack no more

    def play(self, rounds: NDArray[np.int64]) -> None:
        """Play the next rounds of the stage."""
        arrivals_rng, clicks_rng, policy_rng = self.generators
        first = int(rounds[0]) if len(rounds) else 1
        self.loop(
            *(self.state, self.world, self.objective, self.run_totals, self.pending, self.pending_since),
            *(self.blind, first, self.policy.parameters(rounds), arrivals_rng.random(len(rounds))),
            *(clicks_rng, policy_rng, self.ranking, self.rewards),
        )
        self.timeline_counts.count_rounds()

    def _forget(self) -> None:
        if self.policy.own_statistics is None:
            self.timeline_counts.forget()
        else:
            self.timeline_counts.forget_everything()
        self.state = self.policy.start(self.timeline_counts.counts, self.scratch)

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
            self.timeline_counts.count_rounds()


def _replicate_interpreted(experiment: Experiment, number: int, advance: Advance) -> Replication:
    timeline, policy, horizon = experiment.timeline, experiment.policy, experiment.horizon
    timeline_counts = TimelineCounts(timeline, policy.memory, timeline.n_user_types)
    scratch = policy.new_scratch()
    run_totals = init_run_totals(experiment.checkpoints, timeline.n_positions)
    arrivals_rng, clicks_rng, policy_rng = experiment.generators(number)
    rewards = np.zeros(timeline.n_positions)
    pending: deque[tuple[int, Ranking, NDArray[np.float64]]] = deque()
    told, told_at = 0, time.perf_counter()
    for segment in segments(timeline, experiment.forget_every, horizon):
        problem = timeline.problems[segment.problem]
        if segment.forgets:
            timeline_counts.forget()
        if timeline_counts.changes(problem):
            _record(timeline_counts.counts, pending, 0)
            timeline_counts.enter(problem)
        world, objective = experiment.world(segment.problem), experiment.objective(segment.problem)
        size = {"n_items": problem.n_items, "n_positions": problem.n_positions}
        for t in range(segment.first, segment.last + 1):
            user_type = int(draw_user_type(world, arrivals_rng.random()))
            chosen = policy.rank(timeline_counts.counts, user_type, rng=policy_rng, scratch=scratch)
            ranking = as_ranking(chosen, **size)
            shown = ranking.astype(np.uintp)
            experiment.click_model.draw(world, user_type, shown, clicks_rng, rewards)
            pending.append((user_type, ranking, rewards.copy()))
            _record(timeline_counts.counts, pending, experiment.delay)
            _record_round(run_totals, objective, t, _gap(experiment, objective, world, user_type, shown))
            if t % 1024 == 0 or t == horizon or time.perf_counter() - told_at > CHUNK_SECONDS:
                advance(t - told)
                told, told_at = t, time.perf_counter()
    return _sum_up(experiment, number, run_totals, 0, timeline_counts.counts)


def _record(
    counts: Counts, pending: deque[tuple[int, Ranking, NDArray[np.float64]]], still_pending: int
) -> None:
    """Let rewards arrive, the earliest first, until so many are left."""
    while len(pending) > still_pending:
        user_type, ranking, earned = pending.popleft()
        counts.record(user_type, ranking, rewards=earned)


def _gap(
    experiment: Experiment, objective: Objective, world: CompiledProblem, user_type: int, shown: NDArray[np.uintp]
) -> float:
    value = experiment.click_model.value
    if not objective.equal:
        return float(objective.best[user_type] - value(world, user_type, shown))
    values = [value(world, i, shown) for i in range(len(world.arrival_rates))]
    return float(objective.best[0] - experiment.policy.utility.collective(world.arrival_rates, values))


def _record_round(run_totals: RunTotals, objective: Objective, t: int, gap: float) -> None:
    run_totals.totals[:] += (gap, gap <= objective.tolerance)
    checkpoint = run_totals.next_checkpoint[0]
    if t == run_totals.checkpoints[checkpoint]:
        run_totals.curves[:, checkpoint] = run_totals.totals
        run_totals.next_checkpoint[0] += 1


def _sum_up(
    experiment: Experiment, number: int, run_totals: RunTotals, initial_rounds: int | None, counts: Counts
) -> Replication:
    rounds = experiment.horizon if initial_rounds is None else initial_rounds
    rates = run_totals.curves[1] / experiment.checkpoints
    kept = counts if experiment.keep_counts else None
    return Replication(number, run_totals.curves[0], rates, rounds, kept)
