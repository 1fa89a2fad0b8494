"""Simulate a policy on a problem, many times, in parallel."""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from banditrank.checks import check_whole, check_workers
from banditrank.errors import InvalidInputError
from banditrank.model.click_models import SINGLE_LOOK, ClickModel
from banditrank.model.problem import Problem
from banditrank.model.rewards import Bernoulli, Rewards
from banditrank.policies.base import CompiledPolicy, Policy, check_treatment
from banditrank.simulation.ledger import Ledger
from banditrank.simulation.progress import Advance, progress_bar
from banditrank.simulation.replication import Experiment, Replication
from banditrank.simulation.result import SimulationResult
from banditrank.utilities.utility import Utility

LONGEST_HORIZON = 10**12
MOST_REPLICATIONS = 10**6


def simulate(
    policy: Policy,
    problem: Problem,
    horizon: int,
    replications: int = 20,
    seed: int = 0,
    *,
    rewards: Rewards | None = None,
    click_model: ClickModel = SINGLE_LOOK,
    checkpoints: Sequence[int] | NDArray[np.integer] | None = None,
    workers: int | None = None,
    progress: bool | Advance | None = None,
    save_to: str | Path | None = None,
    keep_counts: bool = False,
) -> SimulationResult:
    """Let a policy learn a problem from nothing, several times.

    The result depends on the seed and not on the number of workers. Ctrl-C ends the simulation early; what
    was finished is returned (if nothing was, the interruption is raised), and with ``save_to`` the same call
    goes on from there.

    Parameters
    ----------
    policy, problem
        Who learns what.
    horizon
        Rounds in a replication.
    replications
        How many times; each with randomness of its own.
    seed
        The same users come to policies that are simulated with the same seed.
    rewards, click_model
        Clicks and single looks unless said otherwise.
    checkpoints
        Rounds to note the regret at; about a hundred, denser at the start, when left out. The horizon is
        always one.
    workers
        Threads, up to 1,024; as many as there are processors when left out.
    progress
        Whether to show a progress bar; when left out, if standard error is a terminal. Or a function of your
        own, called with the number of rounds just played.
    save_to
        A directory where finished replications are kept. Those already there, of the same simulation, are
        not run again.
    keep_counts
        Whether to keep what the policy had seen at the end of each replication. Not with ``save_to``.

    Examples
    --------
    >>> from banditrank import UCBRank, kdd2012, simulate
    >>> result = simulate(UCBRank(0.25), kdd2012(), horizon=2000, replications=3, seed=7)
    >>> result.final_regret.shape
    (3,)
    """
    world_rewards = rewards or Bernoulli()
    horizon = check_whole("horizon", horizon, 1, LONGEST_HORIZON)
    replications = check_whole("replications", replications, 1, MOST_REPLICATIONS)
    seed = check_whole("seed", seed, 0)
    count = check_workers("workers", workers) or processors()
    check_simulation(policy, problem, world_rewards)
    if keep_counts and save_to is not None:
        raise InvalidInputError("keep_counts", "must be left out where replications are saved", keep_counts)
    experiment = Experiment(
        policy,
        problem,
        world_rewards,
        click_model,
        horizon,
        _checkpoints(checkpoints, horizon),
        seed,
        replications,
        keep_counts,
    )
    ledger = Ledger(experiment, save_to)
    experiment.prepare()
    steps = len(ledger.missing) * horizon
    bar = nullcontext(progress) if callable(progress) else progress_bar(policy.name, steps, shown=progress)
    with bar as advance, ledger.clock():
        _replicate(experiment, ledger, min(count, len(ledger.missing)), advance)
    ledger.save()
    return ledger.result()


class _Stopped(Exception):  # noqa: N818 - not an error: somebody pressed Ctrl-C
    """A replication was told to stop before its end."""


def _replicate(experiment: Experiment, ledger: Ledger, workers: int, advance: Advance) -> None:
    """Run what is missing. Compiled loops release the interpreter's lock, so threads run side by side."""
    stop = threading.Event()

    def play(number: int) -> Replication:
        def advance_or_stop(rounds: int) -> None:
            if stop.is_set():
                raise _Stopped
            advance(rounds)

        return experiment.replicate(number, advance_or_stop)

    with ThreadPoolExecutor(max(1, workers)) as pool:
        futures = [pool.submit(play, number) for number in ledger.missing]
        try:
            for future in as_completed(futures):
                ledger.add(future.result())
        except KeyboardInterrupt:
            if ledger.is_empty:
                raise
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


def default_checkpoints(horizon: int) -> NDArray[np.int64]:
    """Return about a hundred rounds, half of them evenly spaced and half denser at the start.

    Examples
    --------
    >>> default_checkpoints(300_000)[[0, -1]]
    array([     1, 300000])
    """
    spaced = np.concatenate([np.geomspace(1, horizon, 50), np.linspace(horizon / 50, horizon, 50), [horizon]])
    return np.unique(np.maximum(spaced.astype(np.int64), 1))


def check_simulation(policy: Policy, problem: Problem, rewards: Rewards) -> None:
    """Raise an error if the policy cannot be simulated on the problem, before anything is done."""
    if not isinstance(policy, Policy):
        raise InvalidInputError("policy", "must be an instance of Policy", policy)
    if not isinstance(problem, Problem):
        raise InvalidInputError("problem", "must be a Problem (find_problem makes one from a name)", problem)
    check_treatment(policy.treatment)
    if not isinstance(policy.utility, Utility):
        raise InvalidInputError(
            "policy's utility", "must be a Utility (find_utility makes one)", policy.utility
        )
    if isinstance(policy, CompiledPolicy):
        policy.kernel(n_items=problem.n_items, n_positions=problem.n_positions)  # refuses what is too large
    if policy.treatment == "equal":
        _check_regret_is_finite(policy.utility, problem, rewards.scale)


def _check_regret_is_finite(utility: Utility, problem: Problem, scale: float) -> None:
    # The worst ranking of a type: its least liked items, the best of them where it looks least.
    worst_items = np.sort(problem.item_means, axis=1)[:, : problem.n_positions]  # (N, K)
    best_positions = -np.sort(-problem.position_preferences, axis=1)
    for name, value in zip(problem.user_types, (worst_items * best_positions).sum(axis=1), strict=True):
        for extreme in (scale * float(value), scale):
            worth = float(utility.of(extreme))
            if not np.isfinite(worth):
                rule = "must be finite for every ranking, or regret is not"
                where = f"{worth} for user type {name} at value {extreme:g}"
                raise InvalidInputError(f"utility {utility}", rule, where)


def _checkpoints(checkpoints: Sequence[int] | NDArray[np.integer] | None, horizon: int) -> NDArray[np.int64]:
    if checkpoints is None:
        return default_checkpoints(horizon)
    rounds = np.asarray(checkpoints)
    if rounds.ndim != 1 or rounds.dtype.kind not in "iu" or not ((rounds >= 1) & (rounds <= horizon)).all():
        raise InvalidInputError("checkpoints", f"must be rounds from 1 to {horizon}", checkpoints)
    return np.unique(np.append(rounds, horizon)).astype(np.int64)


def processors() -> int:
    """Return how many processors this program may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
