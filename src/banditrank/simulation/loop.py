"""The compiled loop: one round after the other, for any policy and any click model."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined, specialise
from banditrank.model.click_models import ClickModel, CompiledProblem, draw_user_type
from banditrank.policies.base import Kernel
from banditrank.utilities.formulas import CompiledUtility, collective

Floats = NDArray[np.float64]

OPTIMAL_TOLERANCE = 1e-12  # rankings so close to the best, relative to its value, are optimal too


class Objective(NamedTuple):
    """What regret is measured against."""

    equal: bool
    best: Floats  # (N,) best value of each type; under equal treatment (1,) best collective utility
    tolerance: float  # gaps up to this are none
    utility: CompiledUtility
    values: Floats  # (N,) room


class RunTotals(NamedTuple):
    """What a replication has summed up so far."""

    totals: Floats  # (2,) regret, optimal rounds
    checkpoints: NDArray[np.int64]  # (C + 1,) rounds to note the totals at, then 0
    next_checkpoint: NDArray[np.int64]  # (1,)
    curves: Floats  # (2, C) totals at the checkpoints
    last_ranking: NDArray[np.uintp]  # (K,)
    last_gap: Floats  # (1,) what the last ranking lacked


class DelayBuffer(NamedTuple):
    """Rounds whose rewards have not arrived yet, in a ring."""

    user_types: NDArray[np.intp]  # (D,) as the policy sees them; D is the delay
    rankings: NDArray[np.uintp]  # (D, K)
    rewards: Floats  # (D, K)


def init_delay_buffer(delay: int, n_positions: int) -> DelayBuffer:
    """Return room for the rounds of a delay; with none, for one round that is never used."""
    rounds = max(delay, 1)
    return DelayBuffer(
        np.zeros(rounds, dtype=np.intp),
        np.zeros((rounds, n_positions), dtype=np.uintp),
        np.zeros((rounds, n_positions)),
    )


@inlined
def _push_delayed(delay: DelayBuffer, place: int, user_type: int, ranking: NDArray[np.uintp], rewards: Floats) -> None:
    delay.user_types[place] = user_type
    for k in range(ranking.size):
        delay.rankings[place, k] = ranking[k]
        delay.rewards[place, k] = rewards[k]


def init_run_totals(checkpoints: NDArray[np.int64], n_positions: int) -> RunTotals:
    """Return a tally of nothing."""
    return RunTotals(
        np.zeros(2),
        np.append(checkpoints, 0),
        np.zeros(1, dtype=np.int64),
        np.zeros((2, len(checkpoints))),
        np.full(n_positions, np.iinfo(np.uintp).max, dtype=np.uintp),  # equal to no ranking
        np.zeros(1),
    )


def compiled_loop(
    kernel: Kernel, click_model: ClickModel, n_positions: int, *, delayed: bool
) -> Callable[..., None]:
    """Return the loop for a policy's formulas and a click model's.

    Parameters
    ----------
    delayed
        Whether rewards arrive late.
    n_positions
        K to unroll the inner loops for, or 0 for a loop that serves every K. The results are the same to the
        last bit; the unrolled loop is a quarter faster and costs a compilation for each K.
    """
    formulas = (*kernel, click_model.draw, click_model.value)
    return specialise(_build, *formulas, n_positions=n_positions, delayed=int(delayed))


def _build(  # noqa: C901 - the loop in one piece
    rank: Callable[..., None],
    observe: Callable[..., None],
    draw: Callable[..., None],
    value: Callable[..., float],
    n_positions: int,
    delayed: int,
) -> Callable[..., None]:
    def play(
        state: Any,
        world: CompiledProblem,
        objective: Objective,
        run_totals: RunTotals,
        delay: DelayBuffer,
        started: int,
        blind: bool,  # noqa: FBT001 - takes all users for type 0
        first_round: int,
        parameters: Floats,
        arrivals: Floats,
        clicks_rng: np.random.Generator,
        policy_rng: np.random.Generator,
        ranking: NDArray[np.uintp],
        rewards: Floats,
    ) -> None:
        if n_positions > 0 and ranking.size != n_positions:
            return  # never: it tells the compiler that loops over positions have a fixed length
        regret, optimal = run_totals.totals[0], run_totals.totals[1]
        checkpoint = run_totals.next_checkpoint[0]
        for step in range(parameters.shape[0]):
            t = first_round + step
            user_type = draw_user_type(world, arrivals[step])
            seen = 0 if blind else user_type
            rank(state, seen, t, parameters[step], policy_rng, ranking)
            draw(world, user_type, ranking, clicks_rng, rewards)
            if delayed:
                place = t % delay.user_types.size
                if t - started >= delay.user_types.size:
                    observe(state, delay.user_types[place], t, delay.rankings[place], delay.rewards[place])
                _push_delayed(delay, place, seen, ranking, rewards)
            else:
                observe(state, seen, t, ranking, rewards)
            if objective.equal:
                changed = False
                for k in range(ranking.size):
                    changed |= ranking[k] != run_totals.last_ranking[k]
                    run_totals.last_ranking[k] = ranking[k]
                if changed:
                    for i in range(objective.values.size):
                        objective.values[i] = value(world, i, ranking)
                    shown = collective(objective.utility, world.arrival_rates, objective.values)
                    run_totals.last_gap[0] = objective.best[0] - shown
                gap = run_totals.last_gap[0]
            else:
                gap = objective.best[user_type] - value(world, user_type, ranking)
            regret += gap
            optimal += gap <= objective.tolerance
            if t == run_totals.checkpoints[checkpoint]:
                run_totals.curves[0, checkpoint] = regret
                run_totals.curves[1, checkpoint] = optimal
                checkpoint += 1
        run_totals.totals[0], run_totals.totals[1] = regret, optimal
        run_totals.next_checkpoint[0] = checkpoint

    return play
