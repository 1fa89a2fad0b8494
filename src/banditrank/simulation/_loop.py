"""The compiled loop: one round after another, for any policy and any click model.

There are two versions of it, with the same results to the last bit. The *shared* loop is compiled once, and
calls the functions of the policy and the click model by address. A *fused* loop is compiled for one policy,
one click model and one number of positions, with all functions inlined: it takes tens of seconds to compile,
and less time for each round.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, specialise
from banditrank.model._bound_click_model import ClickHandle, draw_by_handle, value_by_handle
from banditrank.model._click_models import ClickModel, CompiledProblem, draw_user_type
from banditrank.policies._bound_kernel import observe_by_handle, rank_by_handle
from banditrank.policies._drawn_lottery import ALL_TYPES, LotteryBuffer
from banditrank.policies._kernel import Kernel
from banditrank.utilities._formulas import CompiledUtility, collective

Floats = NDArray[np.float64]

OPTIMAL_TOLERANCE = 1e-12  # relative gap up to which a ranking counts as optimal


class Objective(NamedTuple):
    """Best values, against which regret is measured."""

    is_equal: bool
    best: Floats  # (N,) best value of each type; under equal treatment (1,) best collective utility
    tolerance: float  # gap up to which a ranking or a lottery counts as optimal
    utility: CompiledUtility
    values: Floats  # (N,) workspace


class RunTotals(NamedTuple):
    """Running totals of a replication, and their values at the checkpoints."""

    totals: Floats  # (2,) regret, optimal rounds
    checkpoints: NDArray[np.int64]  # (C + 1,) rounds to record the totals at, then 0
    next_checkpoint: NDArray[np.int64]  # (1,)
    curves: Floats  # (2, C) totals at the checkpoints
    last_ranking: NDArray[np.uintp]  # (K,)
    last_gap: Floats  # (1,) gap of the last ranking to the best


class DelayBuffer(NamedTuple):
    """Ring buffer of rounds whose rewards have not arrived yet."""

    user_types: NDArray[np.intp]  # (D,) as the policy distinguishes them; D is the delay
    rankings: NDArray[np.uintp]  # (D, K)
    rewards: Floats  # (D, K)
    notes: NDArray[np.int64]  # (D, L) notes of the rounds
    note: NDArray[np.int64]  # (L,) of the state: see `Kernel`


def init_delay_buffer(delay: int, n_positions: int, note: NDArray[np.int64]) -> DelayBuffer:
    """Return an empty buffer; without a delay, of one round that is never used.

    Parameters
    ----------
    delay
        D, rounds after which rewards are observed.
    n_positions
        K.
    note
        Note of the policy's state, shape (L,), borrowed.
    """
    rounds = max(delay, 1)
    return DelayBuffer(
        np.zeros(rounds, dtype=np.intp),
        np.zeros((rounds, n_positions), dtype=np.uintp),
        np.zeros((rounds, n_positions)),
        np.zeros((rounds, note.size), dtype=np.int64),
        note,
    )


@inlined
def _exchange_notes(delay: DelayBuffer, slot: int) -> None:
    """Keep the note of the ranking just made, and put back that of the round in the slot."""
    for index in range(delay.note.size):
        kept = delay.notes[slot, index]
        delay.notes[slot, index] = delay.note[index]
        delay.note[index] = kept


@inlined
def _push_delayed(
    delay: DelayBuffer, slot: int, user_type: int, ranking: NDArray[np.uintp], rewards: Floats
) -> None:
    delay.user_types[slot] = user_type
    for k in range(ranking.size):
        delay.rankings[slot, k] = ranking[k]
        delay.rewards[slot, k] = rewards[k]


def init_run_totals(checkpoints: NDArray[np.int64], n_positions: int) -> RunTotals:
    """Return totals of zero."""
    return RunTotals(
        np.zeros(2),
        np.append(checkpoints, 0),
        np.zeros(1, dtype=np.int64),
        np.zeros((2, len(checkpoints))),
        np.full(n_positions, np.iinfo(np.uintp).max, dtype=np.uintp),  # differs from every ranking
        np.zeros(1),
    )


def shared_loop(*, is_delayed: bool) -> Callable[..., None]:
    """Return the loop for all policies and click models: it takes their handles.

    Parameters
    ----------
    is_delayed
        Whether rewards arrive late.
    """
    formulas = (rank_by_handle, observe_by_handle, draw_by_handle, value_by_handle)
    return specialise(_build, *formulas, n_positions=0, is_delayed=int(is_delayed))


def fused_loop(
    kernel: Kernel, click_model: ClickModel, n_positions: int, *, is_delayed: bool
) -> Callable[..., None]:
    """Return the loop for one policy, one click model and one number of positions.

    Parameters
    ----------
    kernel
        Compiled functions of the policy.
    click_model
        Click model.
    n_positions
        K, for which the inner loops are unrolled.
    is_delayed
        Whether rewards arrive late.
    """
    formulas = (kernel.rank, kernel.observe, click_model.draw, click_model.value)
    return specialise(_build, *formulas, n_positions=n_positions, is_delayed=int(is_delayed))


def _build(  # noqa: C901 - the loop is one function
    rank: Callable[..., None],
    observe: Callable[..., None],
    draw: Callable[..., None],
    value: Callable[..., float],
    n_positions: int,
    is_delayed: int,
) -> Callable[..., None]:
    def run_rounds(  # noqa: C901, PLR0912 - as above
        state: Any,  # or the handle of a kernel
        problem: CompiledProblem | ClickHandle,
        objective: Objective,
        run_totals: RunTotals,
        delay: DelayBuffer,
        lottery: LotteryBuffer,  # of the state; without room if it has none
        delay_start: int,  # round before which all rewards have arrived
        is_type_blind: bool,  # noqa: FBT001 - the policy does not distinguish user types
        first_round: int,
        parameters: Floats,
        arrivals: Floats,
        clicks_rng: np.random.Generator,
        policy_rng: np.random.Generator,
        ranking: NDArray[np.uintp],
        rewards: Floats,
    ) -> None:
        if n_positions > 0 and ranking.size != n_positions:
            return  # never reached; tells the compiler that loops over positions have a fixed length
        regret, optimal = run_totals.totals[0], run_totals.totals[1]
        checkpoint = run_totals.next_checkpoint[0]
        is_lottery = lottery.probabilities.size > 0
        for step in range(parameters.shape[0]):
            t = first_round + step
            user_type = draw_user_type(problem, arrivals[step])
            seen_type = 0 if is_type_blind else user_type
            if is_lottery:
                lottery.size[0] = 0
            rank(state, seen_type, t, parameters[step], policy_rng, ranking)
            draw(problem, user_type, ranking, clicks_rng, rewards)
            if is_delayed:
                slot = t % delay.user_types.size
                _exchange_notes(delay, slot)
                if t - delay_start >= delay.user_types.size:
                    observe(state, delay.user_types[slot], t, delay.rankings[slot], delay.rewards[slot])
                _push_delayed(delay, slot, seen_type, ranking, rewards)
            else:
                observe(state, seen_type, t, ranking, rewards)
            if is_lottery and lottery.size[0] > 0:
                for i in range(objective.values.size):
                    objective.values[i] = 0.0
                for s in range(lottery.size[0]):
                    for k in range(ranking.size):  # the click model may be bound to this array
                        ranking[k] = lottery.rankings[s, k]
                    for i in range(objective.values.size):
                        if lottery.owners[s] == ALL_TYPES or lottery.owners[s] == i:
                            objective.values[i] += lottery.probabilities[s] * value(problem, i, ranking)
                if objective.is_equal:
                    mixed = collective(objective.utility, problem.arrival_rates, objective.values)
                    gap = objective.best[0] - mixed
                else:  # the mean over types: guarantees bind their lotteries together
                    gap = 0.0
                    for i in range(objective.values.size):
                        gap += problem.arrival_rates[i] * (objective.best[i] - objective.values[i])
            elif objective.is_equal:
                changed = False
                for k in range(ranking.size):
                    changed |= ranking[k] != run_totals.last_ranking[k]
                    run_totals.last_ranking[k] = ranking[k]
                if changed:
                    for i in range(objective.values.size):
                        objective.values[i] = value(problem, i, ranking)
                    shown = collective(objective.utility, problem.arrival_rates, objective.values)
                    run_totals.last_gap[0] = objective.best[0] - shown
                gap = run_totals.last_gap[0]
            else:
                gap = objective.best[user_type] - value(problem, user_type, ranking)
            regret += gap
            optimal += gap <= objective.tolerance
            if t == run_totals.checkpoints[checkpoint]:
                run_totals.curves[0, checkpoint] = regret
                run_totals.curves[1, checkpoint] = optimal
                checkpoint += 1
        run_totals.totals[0], run_totals.totals[1] = regret, optimal
        run_totals.next_checkpoint[0] = checkpoint

    return run_rounds
