"""One replication: a policy learns a problem without prior data, for a number of rounds."""

import time
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import check_unchanged, is_own
from banditrank._interrupts import DeferredInterrupts, deferred_interrupts
from banditrank.counts._counts import Counts
from banditrank.model._bound_click_model import BoundClickModel
from banditrank.model._click_models import CompiledProblem, draw_user_type
from banditrank.model._rankings import Ranking, as_ranking
from banditrank.policies._base import CompiledPolicy, Policy
from banditrank.policies._bound_kernel import BoundKernel
from banditrank.policies._copies import copy_policy, unchanged_classes
from banditrank.policies._drawn_lottery import LotteryBuffer, new_lottery_buffer, state_lottery
from banditrank.policies._failures import note_failure
from banditrank.policies._kernel import Kernel, state_note
from banditrank.simulation._contextual_run import precompile_contextual, replicate_contextual
from banditrank.simulation._loop import (
    Objective,
    RunTotals,
    fused_loop,
    init_delay_buffer,
    init_run_totals,
    shared_loop,
)
from banditrank.simulation._progress import Advance
from banditrank.simulation._replication import (
    AnyExperiment,
    ContextualExperiment,
    Experiment,
    Replication,
)
from banditrank.simulation._round_chunks import CHUNK_SECONDS, RoundChunks
from banditrank.simulation._timeline_counts import Segment, TimelineCounts, segments

CALLBACK_CHUNK_ROUNDS = 16  # for a utility that is called back: rounds that may follow its error
MIN_FUSED_ROUNDS = 50_000_000  # from here on a fused loop pays for its compilation
_NO_ITEM = np.iinfo(np.uintp).max


def precompile(experiment: AnyExperiment) -> None:
    """Compile what an experiment needs, so that replications are timed without compilation."""
    if isinstance(experiment, ContextualExperiment):
        precompile_contextual(experiment)
        return
    if isinstance(experiment.policy, CompiledPolicy):
        run = _CompiledRun(experiment, experiment.policy, 0)
        for segment in segments(experiment.timeline, None, 0):
            run.enter(segment)
            with deferred_interrupts():
                run.run_rounds(np.arange(1, 1))
        return
    problem = experiment.compiled_problem(0)
    ranking = np.arange(experiment.timeline.n_positions, dtype=np.uintp)
    user_type = int(draw_user_type(problem, 0.5))
    rng = np.random.default_rng(0)  # not one of the experiment's
    with deferred_interrupts():
        experiment.click_model.draw(problem, user_type, ranking, rng, np.zeros(ranking.size))
    _gap(experiment, experiment.objective(0), problem, user_type, ranking)


def check_formulas(experiment: AnyExperiment) -> None:
    """Check that formulas of users are still those that were compiled.

    Raises
    ------
    InvalidInputError
        If a value or a formula that one of them uses has changed.
    """
    if isinstance(experiment, ContextualExperiment):  # which has none
        return
    policy, model, problem = experiment.policy, experiment.click_model, experiment.timeline.problems[0]
    formulas = [model.draw, model.value]
    if isinstance(policy, CompiledPolicy):
        kernel = policy.kernel(n_items=problem.n_items, n_positions=problem.n_positions)
        formulas += [kernel.rank, kernel.observe]
    for formula in (*formulas, *policy.utility.compiled_functions()):
        check_unchanged(formula)


def replicate(experiment: AnyExperiment, index: int, advance: Advance) -> Replication:
    """Run one replication.

    Parameters
    ----------
    experiment
        What to replicate.
    index
        Index of the replication, which seeds its generators.
    advance
        Progress callback, called with the number of rounds just run. It may raise to stop.

    Raises
    ------
    InvalidInputError
        If the policy cannot be copied, or changes attributes of its classes.
    """
    if isinstance(experiment, ContextualExperiment):
        return replicate_contextual(experiment, index, advance)
    policy = copy_policy(experiment.policy)
    with deferred_interrupts() as interrupts:
        if isinstance(policy, CompiledPolicy):
            return _replicate_compiled(experiment, policy, index, advance, interrupts)
        with unchanged_classes(policy):
            return _replicate_interpreted(experiment, policy, index, advance, interrupts)


def _replicate_compiled(
    experiment: Experiment,
    policy: CompiledPolicy,
    index: int,
    advance: Advance,
    interrupts: DeferredInterrupts,
) -> Replication:
    run = _CompiledRun(experiment, policy, index)
    chunks = RoundChunks(CALLBACK_CHUNK_ROUNDS) if policy.utility.has_callback else RoundChunks()
    for segment in segments(experiment.timeline, policy.forget_every, experiment.horizon):
        run.enter(segment)
        for rounds in chunks.split(segment.first, segment.last):
            run.run_rounds(rounds)
            interrupts.handle()
            policy.utility.raise_callback_error()
            advance(len(rounds))
    return _make_replication(
        experiment, index, run.run_totals, policy.initial_rounds(run.state), run.timeline_counts.counts
    )


class _CompiledRun:
    """A replication of a compiled policy, segment by segment."""

    def __init__(self, experiment: Experiment, policy: CompiledPolicy, index: int) -> None:
        timeline, k = experiment.timeline, experiment.timeline.n_positions
        self.experiment = experiment
        self.policy = policy
        self.is_type_blind = not policy.distinguishes_user_types
        self.timeline_counts = TimelineCounts(
            timeline, policy.memory, 1 if self.is_type_blind else timeline.n_user_types
        )
        self.scratch = policy.new_scratch()
        self.state = policy.init_state(self.timeline_counts.counts, self.scratch)
        self.run_totals = init_run_totals(experiment.checkpoints, k)
        self.delay_buffer = init_delay_buffer(experiment.delay, k, state_note(self.state))
        self.lottery = _lottery_of(self.state)
        self.delay_start = 1  # rewards of earlier rounds have all arrived
        self.generators = experiment.generators(index)
        self.ranking = np.zeros(k, dtype=np.uintp)
        self.rewards = np.zeros(k)
        is_long = experiment.horizon * experiment.replications >= MIN_FUSED_ROUNDS
        kernel, model = self._kernel(), experiment.click_model
        formulas = (kernel.rank, kernel.observe, model.draw, model.value)
        self.is_fused = is_long or not all(map(is_own, formulas))

    def enter(self, segment: Segment) -> None:
        """Switch to a segment."""
        experiment, policy = self.experiment, self.policy
        problem = experiment.timeline.problems[segment.problem]
        if segment.forgets:
            self._forget()
        if self.timeline_counts.has_other_items(problem):
            self._deliver(segment.first)
            previous = self.timeline_counts.switch_to(problem)
            self._replace_state(policy.update_items(self.state, self.timeline_counts.counts, previous))
        self.compiled_problem = experiment.compiled_problem(segment.problem)
        self.objective = experiment.objective(segment.problem)
        self.run_totals.last_ranking[:] = _NO_ITEM  # its gap may have changed
        self._prepare_loop()

    def _prepare_loop(self) -> None:
        model, is_delayed = self.experiment.click_model, self.experiment.delay > 0
        if self.is_fused:
            self.loop = fused_loop(self._kernel(), model, self.ranking.size, is_delayed=is_delayed)
            return
        self.loop = shared_loop(is_delayed=is_delayed)
        self.bound_kernel = self._bind_kernel()
        self.bound_click_model = BoundClickModel(
            model,
            self.compiled_problem,
            self.generators.clicks,
            ranking=self.ranking,
            rewards=self.rewards,
        )

    def _kernel(self) -> Kernel:
        return self.policy.kernel(n_items=self.timeline_counts.counts.n_items, n_positions=self.ranking.size)

    def _bind_kernel(self) -> BoundKernel:
        return BoundKernel(
            self._kernel(),
            self.state,
            self.generators.policy,
            ranking=self.ranking,
            n_parameters=self.policy.n_parameters,
        )

    def run_rounds(self, rounds: NDArray[np.int64]) -> None:
        """Run the next rounds of the segment."""
        arrivals, clicks, policy = self.generators
        first = int(rounds[0]) if len(rounds) else 1
        self.loop(
            self.state if self.is_fused else self.bound_kernel.handle,
            self.compiled_problem if self.is_fused else self.bound_click_model.handle,
            *(self.objective, self.run_totals, self.delay_buffer, self.lottery),
            *(self.delay_start, self.is_type_blind, first),
            *(self.policy.parameters(rounds), arrivals.random(len(rounds))),
            *(clicks, policy, self.ranking, self.rewards),
        )
        self.timeline_counts.update_rounds()

    def _forget(self) -> None:
        if self.policy.own_statistics is None:
            self.timeline_counts.forget()
        else:
            self.timeline_counts.reset()
        self._replace_state(self.policy.init_state(self.timeline_counts.counts, self.scratch))

    def _replace_state(self, state: Any) -> None:
        """Replace the state; the notes of delayed rounds are kept unless items changed."""
        self.state = state
        self.lottery = _lottery_of(state)
        note = state_note(state)
        if note.size == self.delay_buffer.note.size:
            self.delay_buffer = self.delay_buffer._replace(note=note)
        else:  # all delayed rewards have been observed
            self.delay_buffer = init_delay_buffer(self.experiment.delay, self.ranking.size, note)

    def _deliver(self, t: int) -> None:
        """Observe all delayed rewards before item indices change."""
        if self.experiment.delay > 0:
            kernel = self._bind_kernel()
            for earlier in range(max(t - self.experiment.delay, self.delay_start), t):
                slot = earlier % self.experiment.delay
                self.delay_buffer.note[:] = self.delay_buffer.notes[slot]
                kernel.observe(
                    int(self.delay_buffer.user_types[slot]),
                    t,
                    self.delay_buffer.rankings[slot],
                    self.delay_buffer.rewards[slot],
                )
            self.delay_start = t
            self.timeline_counts.update_rounds()


def _lottery_of(state: Any) -> LotteryBuffer:
    """Return the lottery of a state; one without room if it has none."""
    lottery = state_lottery(state)
    return new_lottery_buffer(0, 0) if lottery is None else lottery


def _replicate_interpreted(
    experiment: Experiment, policy: Policy, index: int, advance: Advance, interrupts: DeferredInterrupts
) -> Replication:
    timeline, horizon = experiment.timeline, experiment.horizon
    timeline_counts = TimelineCounts(timeline, policy.memory, timeline.n_user_types)
    scratch = policy.new_scratch()
    run_totals = init_run_totals(experiment.checkpoints, timeline.n_positions)
    arrivals_rng, clicks_rng, policy_rng = experiment.generators(index)
    rewards = np.zeros(timeline.n_positions)
    pending: deque[tuple[int, Ranking, NDArray[np.float64]]] = deque()
    reported, reported_at = 0, time.perf_counter()
    for segment in segments(timeline, policy.forget_every, horizon):
        problem = timeline.problems[segment.problem]
        if segment.forgets:
            timeline_counts.forget()
        if timeline_counts.has_other_items(problem):
            _observe(timeline_counts.counts, pending, 0)
            timeline_counts.switch_to(problem)
        compiled_problem, objective = (
            experiment.compiled_problem(segment.problem),
            experiment.objective(segment.problem),
        )
        for t in range(segment.first, segment.last + 1):
            user_type = int(draw_user_type(compiled_problem, arrivals_rng.random()))
            try:
                chosen = policy.rank(timeline_counts.counts, user_type, rng=policy_rng, scratch=scratch)
            except Exception as error:
                note_failure(policy, error)
                raise
            ranking = as_ranking(chosen, n_items=problem.n_items, n_positions=problem.n_positions)
            shown = ranking.astype(np.uintp)
            experiment.click_model.draw(compiled_problem, user_type, shown, clicks_rng, rewards)
            interrupts.handle()
            pending.append((user_type, ranking, rewards.copy()))
            _observe(timeline_counts.counts, pending, experiment.delay)
            _record_round(
                run_totals, objective, t, _gap(experiment, objective, compiled_problem, user_type, shown)
            )
            if t % 1024 == 0 or t == horizon or time.perf_counter() - reported_at > CHUNK_SECONDS:
                advance(t - reported)
                reported, reported_at = t, time.perf_counter()
    return _make_replication(experiment, index, run_totals, 0, timeline_counts.counts)


def _observe(
    counts: Counts, pending: deque[tuple[int, Ranking, NDArray[np.float64]]], n_pending: int
) -> None:
    """Record delayed rewards, the earliest first, until ``n_pending`` are left."""
    while len(pending) > n_pending:
        user_type, ranking, rewards = pending.popleft()
        counts.record(user_type, ranking, rewards=rewards)


def _gap(
    experiment: Experiment,
    objective: Objective,
    compiled_problem: CompiledProblem,
    user_type: int,
    shown: NDArray[np.uintp],
) -> float:
    value = experiment.click_model.value
    if not objective.is_equal:
        return float(objective.best[user_type] - value(compiled_problem, user_type, shown))
    values = [value(compiled_problem, i, shown) for i in range(len(compiled_problem.arrival_rates))]
    return float(
        objective.best[0] - experiment.policy.utility.collective(compiled_problem.arrival_rates, values)
    )


def _record_round(run_totals: RunTotals, objective: Objective, t: int, gap: float) -> None:
    run_totals.totals[:] += (gap, gap <= objective.tolerance)
    checkpoint = run_totals.next_checkpoint[0]
    if t == run_totals.checkpoints[checkpoint]:
        run_totals.curves[:, checkpoint] = run_totals.totals
        run_totals.next_checkpoint[0] += 1


def _make_replication(
    experiment: Experiment, index: int, run_totals: RunTotals, initial_rounds: int | None, counts: Counts
) -> Replication:
    rounds = experiment.horizon if initial_rounds is None else initial_rounds
    rates = run_totals.curves[1] / experiment.checkpoints
    kept = counts if experiment.keep_counts else None
    return Replication(index, run_totals.curves[0], rates, rounds, kept)
