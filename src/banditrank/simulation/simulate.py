"""Simulate a policy on a problem, many times, in parallel."""

from collections.abc import Sequence
from contextlib import closing, nullcontext
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from banditrank.checks import check_integer
from banditrank.errors import InvalidInputError
from banditrank.model.click_model_catalog import as_click_model
from banditrank.model.click_models import SINGLE_LOOK, ClickModel
from banditrank.model.problem import Problem
from banditrank.model.rewards import BernoulliRewards, Rewards, as_rewards
from banditrank.model.timeline import Timeline, as_timeline
from banditrank.policies.base import CompiledPolicy, Policy, check_treatment
from banditrank.policies.catalog import make_policy
from banditrank.simulation.backends.base import Backend
from banditrank.simulation.backends.catalog import BackendName, open_backend
from banditrank.simulation.result_store import ResultStore
from banditrank.simulation.progress import Advance, progress_bar
from banditrank.simulation.replication import Experiment
from banditrank.simulation.result import SimulationResult
from banditrank.simulation.run import precompile
from banditrank.utilities.utility import Utility

MAX_HORIZON = 10**12
MAX_REPLICATIONS = 10**6
MAX_DELAY = 10**7


def simulate(
    policy: Policy | str,
    problem: Problem | Timeline,
    horizon: int,
    replications: int = 20,
    seed: int = 0,
    *,
    rewards: Rewards | str | None = None,
    click_model: ClickModel | str = SINGLE_LOOK,
    checkpoints: Sequence[int] | NDArray[np.integer] | None = None,
    workers: int | None = None,
    progress: bool | Advance | None = None,
    save_to: str | Path | None = None,
    keep_counts: bool = False,
    delay: int = 0,
    backend: BackendName | Backend = "joblib",
    address: str | None = None,
) -> SimulationResult:
    """Let a policy learn a problem from nothing, several times.

    The result depends on the seed, and neither on the backend nor on the number of workers. Ctrl-C ends the
    simulation early; what was finished is returned (if nothing was, the interruption is raised), and with
    ``save_to`` the same call goes on from there.

    Parameters
    ----------
    policy, problem
        Who learns what: a policy or its name, ``auto`` if you have no reason for another. A `Timeline` is a
        problem that changes.
    horizon
        Rounds in a replication.
    replications
        How many times; each with randomness of its own.
    seed
        The same users come to policies that are simulated with the same seed.
    rewards, click_model
        Clicks and single looks unless said otherwise: values, or their names.
    checkpoints
        Rounds to note the regret at; about a hundred, denser at the start, when left out. The horizon is
        always one.
    workers
        How many replications run at once, up to 1,024; as many as there are processors when left out.
    progress
        Whether to show a progress bar; when left out, if standard error is a terminal. Or a function of your
        own, called with the number of rounds just played.
    save_to
        A directory where finished replications are kept. Those already there, of the same simulation, are
        not run again.
    keep_counts
        Whether to keep what the policy had seen at the end of each replication. Not with ``save_to``.
    delay
        After how many rounds the policy learns what a ranking earned; at once when 0. When items come or go,
        everything that is known by then is told first.
    backend
        Where replications run: ``joblib`` for this machine, ``ray`` for a Ray cluster (needs
        ``banditrank[ray]``), or a `Backend`.
    address
        Of the Ray cluster, ``host:port``. When left out, the cluster that this program is connected to, or
        that ``RAY_ADDRESS`` names; where there is none, Ray is started on this machine, for this call.

    Examples
    --------
    >>> from banditrank import UCBRank, kdd2012, simulate
    >>> result = simulate(UCBRank(0.25), kdd2012(), horizon=2000, replications=3, seed=7)
    >>> result.final_regret.shape
    (3,)
    """
    world_rewards = BernoulliRewards() if rewards is None else as_rewards(rewards)
    click_model = as_click_model(click_model)
    horizon = check_integer("horizon", horizon, 1, MAX_HORIZON)
    replications = check_integer("replications", replications, 1, MAX_REPLICATIONS)
    seed = check_integer("seed", seed, 0)
    delay = check_integer("delay", delay, 0, MAX_DELAY)
    if isinstance(policy, str):
        policy = make_policy(policy, problem, rewards=world_rewards, click_model=click_model, horizon=horizon)
    check_simulation(policy, problem, world_rewards, click_model)
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
        delay,
    )
    with open_backend(backend, workers=workers, address=address) as place:  # before anything is written
        ledger = ResultStore(experiment, save_to)
        precompile(experiment)
        steps = len(ledger.missing) * horizon
        bar = (
            nullcontext(progress) if callable(progress) else progress_bar(policy.name, steps, shown=progress)
        )
        with bar as advance, ledger.clock():
            _replicate(place, experiment, ledger, advance)
    ledger.save()
    return ledger.result()


def _replicate(backend: Backend, experiment: Experiment, ledger: ResultStore, advance: Advance) -> None:
    """Run what is missing; Ctrl-C ends it with what is finished, if anything is."""
    with closing(backend.run(experiment, ledger.missing, advance)) as finished:
        try:
            for replication in finished:
                ledger.add(replication)
        except KeyboardInterrupt:
            if ledger.is_empty:
                raise


def default_checkpoints(horizon: int) -> NDArray[np.int64]:
    """Return about a hundred rounds, half of them evenly spaced and half denser at the start.

    Examples
    --------
    >>> default_checkpoints(300_000)[[0, -1]]
    array([     1, 300000])
    """
    spaced = np.concatenate([np.geomspace(1, horizon, 50), np.linspace(horizon / 50, horizon, 50), [horizon]])
    return np.unique(np.maximum(spaced.astype(np.int64), 1))


def check_simulation(
    policy: Policy, problem: Problem | Timeline, rewards: Rewards, click_model: ClickModel
) -> None:
    """Raise an error if the policy cannot be simulated on the problem, before anything is done."""
    if not isinstance(policy, Policy):
        raise InvalidInputError("policy", "must be an instance of Policy, or the name of one", policy)
    timeline = as_timeline(problem)
    if rewards.concentration > 0 and not click_model.has_graded_rewards:
        rule = f"must not be graded under click model {click_model}: a click earns the whole reward"
        raise InvalidInputError("rewards", rule, str(rewards))
    check_treatment(policy.treatment)
    if not isinstance(policy.utility, Utility):
        raise InvalidInputError(
            "policy's utility", "must be a Utility (find_utility makes one)", policy.utility
        )
    for world in timeline.problems:
        if isinstance(policy, CompiledPolicy):
            policy.kernel(n_items=world.n_items, n_positions=world.n_positions)  # refuses what is too large
        if policy.treatment == "equal":
            _check_regret_is_finite(policy.utility, world, rewards.scale)


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
