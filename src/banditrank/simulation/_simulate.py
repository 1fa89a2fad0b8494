"""Simulation of a policy on a problem, in parallel replications."""

from collections.abc import Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer
from banditrank._compilation import is_own
from banditrank.errors import InvalidInputError
from banditrank.model._click_models import CLICK_MODEL_NAMES, SINGLE_LOOK, ClickModel, as_click_model
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.model._problem import Problem
from banditrank.model._rewards import BernoulliRewards, Rewards, as_rewards
from banditrank.model._timeline import Timeline, as_timeline
from banditrank.policies._base import CompiledPolicy, Policy, check_treatment, check_utility, is_equal
from banditrank.policies._catalog import make_policy
from banditrank.policies._contextual.base import ContextualPolicy, new_context
from banditrank.policies._contextual.catalog import make_contextual_policy
from banditrank.policies._contextual.clustered import ClusteredPolicy
from banditrank.simulation._backends.base import Backend
from banditrank.simulation._backends.catalog import BackendName, open_backend
from banditrank.simulation._progress import Advance, progress_bar
from banditrank.simulation._replication import (
    AnyExperiment,
    ContextualExperiment,
    Experiment,
    PolicyForContext,
)
from banditrank.simulation._result import SimulationResult
from banditrank.simulation._result_store import ResultStore
from banditrank.simulation._run import check_formulas, precompile
from banditrank.utilities._utility import Utility

MAX_HORIZON = 10**12
MAX_REPLICATIONS = 10**6
MAX_DELAY = 10**7

AnyPolicy: TypeAlias = Policy | ContextualPolicy | ClusteredPolicy
"""A policy that can be simulated on some kind of problem."""


def simulate(
    policy: AnyPolicy | str,
    problem: Problem | Timeline | ContextualProblem,
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
    """Simulate a policy that learns a problem without prior data, in several replications.

    The result depends on the seed, but not on the backend or the number of workers. Ctrl-C ends the
    simulation early and returns the finished replications; with ``save_to`` the same call resumes it.

    Parameters
    ----------
    policy, problem
        A policy or its name (``auto`` for the default), and the problem it learns. A `Timeline` is a problem
        that changes. In a `ContextualProblem` users and items have features; policies that do not use them
        take users as the problem's user types, or as clusters (`ClusteredPolicy`).
    horizon
        Rounds of a replication.
    replications
        Number of replications, each with generators of its own.
    seed
        Seed. The same users arrive for policies that are simulated with the same seed.
    rewards, click_model
        Rewards and click model, or their names; clicks and single looks by default.
    checkpoints
        Rounds at which to record the regret; about a hundred by default, denser at the start. The horizon is
        always included.
    workers
        Maximum number of concurrent replications, up to 1,024; the number of processors by default.
    progress
        Whether to show a progress bar; by default in a terminal and in a notebook. Or a callback, called with
        the number of rounds just run.
    save_to
        Directory to save finished replications to. Those of the same simulation that it holds are not run
        again.
    keep_counts
        Whether to return what the policy had observed at the end of each replication. Not with ``save_to``,
        and not with contextual problems.
    delay
        Rounds after which the policy observes the rewards of a ranking. When items change, it observes all
        rewards so far. Policies with statistics of their own attribute the rewards to what the ranking was
        made from, such as a partition of the items, and not to what they would show now.
    backend
        Where replications run: ``joblib`` for this machine, ``ray`` for a Ray cluster (needs
        ``banditrank[ray]``), or a `Backend`.
    address
        Address of the Ray cluster, ``host:port``. By default the cluster that this process is connected to,
        or ``RAY_ADDRESS``; if there is neither, Ray is started on this machine for this call.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range, the policy does not fit the problem or the delay, ``save_to`` holds
        another simulation or is not writable, a policy to be saved has an attribute that cannot be compared,
        a policy cannot be copied, or the utility is not finite on the problem.
    UnsolvableError
        If the policy's solver cannot solve problems of this size.
    MissingDependencyError
        If ``save_to`` is given and pandas or PyArrow is not installed.
    KeyboardInterrupt
        If Ctrl-C is pressed before a replication is finished.
    BanditRankError
        If the backend is not installed, or loses a replication.

    Examples
    --------
    >>> from banditrank import UCBRank, kdd2012, simulate
    >>> result = simulate(UCBRank(coefficient=0.25), kdd2012(), horizon=2000, replications=3, seed=7)
    >>> result.final_regret.shape
    (3,)
    """
    experiment = make_experiment(
        policy,
        problem,
        horizon,
        replications,
        seed,
        rewards=rewards,
        click_model=click_model,
        checkpoints=checkpoints,
        keep_counts=keep_counts,
        delay=delay,
    )
    if keep_counts and save_to is not None:
        raise InvalidInputError("keep_counts", "must be left out where replications are saved", keep_counts)
    with open_backend(backend, workers=workers, address=address) as opened:  # before anything is written
        check_formulas(experiment)
        store = ResultStore(experiment, save_to)
        precompile(experiment)
        steps = len(store.missing) * horizon
        name = experiment.policy.name
        bar = nullcontext(progress) if callable(progress) else progress_bar(name, steps, shown=progress)
        with bar as advance, store.timed():
            _run_missing(opened, experiment, store, advance)
    store.save()
    return store.result()


def make_experiment(
    policy: AnyPolicy | str,
    problem: Problem | Timeline | ContextualProblem,
    horizon: int,
    replications: int = 20,
    seed: int = 0,
    *,
    rewards: Rewards | str | None = None,
    click_model: ClickModel | str = SINGLE_LOOK,
    checkpoints: Sequence[int] | NDArray[np.integer] | None = None,
    keep_counts: bool = False,
    delay: int = 0,
) -> AnyExperiment:
    """Return the experiment that `simulate` runs with these parameters, after checking them.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range, or the policy does not fit the problem or the delay.
    UnsolvableError
        If the policy's solver cannot solve problems of this size.
    """
    problem_rewards = BernoulliRewards() if rewards is None else as_rewards(rewards)
    click_model = as_click_model(click_model)
    horizon = check_integer("horizon", horizon, 1, MAX_HORIZON)
    replications = check_integer("replications", replications, 1, MAX_REPLICATIONS)
    seed = check_integer("seed", seed, 0)
    delay = check_integer("delay", delay, 0, MAX_DELAY)
    rounds = _checkpoints(checkpoints, horizon)
    if isinstance(problem, ContextualProblem):
        if keep_counts:
            raise InvalidInputError("keep_counts", "must be left out for a contextual problem", keep_counts)
        if isinstance(policy, str):
            policy = make_contextual_policy(policy, problem, rewards=problem_rewards, click_model=click_model)
        return ContextualExperiment(
            check_contextual_simulation(policy, problem, problem_rewards, click_model),
            *(problem, problem_rewards, click_model, horizon, rounds, seed, replications, delay),
        )
    if isinstance(policy, str):
        policy = make_policy(
            policy, problem, rewards=problem_rewards, click_model=click_model, horizon=horizon
        )
    if isinstance(policy, ContextualPolicy | ClusteredPolicy):
        rule = "must be one that knows user types: features need a ContextualProblem"
        raise InvalidInputError("policy", rule, policy.name)
    check_simulation(policy, problem, problem_rewards, click_model)
    if delay > 0 and not policy.supports_delay:
        rule = f"must be 0 for policy {policy.name}, which must observe a ranking before it makes the next"
        raise InvalidInputError("delay", rule, delay)
    return Experiment(
        policy,
        problem,
        problem_rewards,
        click_model,
        horizon,
        rounds,
        seed,
        replications,
        keep_counts,
        delay,
    )


def _run_missing(backend: Backend, experiment: AnyExperiment, store: ResultStore, advance: Advance) -> None:
    """Run the missing replications; re-raise Ctrl-C only if none is finished."""
    with closing(backend.run(experiment, store.missing, advance)) as finished:
        try:
            for replication in finished:
                store.add(replication)
        except KeyboardInterrupt:
            if store.is_empty:
                raise


def default_checkpoints(horizon: int) -> NDArray[np.int64]:
    """Return about a hundred rounds: half of them evenly spaced, half geometrically, shape (C,).

    Examples
    --------
    >>> default_checkpoints(300_000)[[0, -1]]
    array([     1, 300000])
    """
    spaced = np.concatenate([np.geomspace(1, horizon, 50), np.linspace(horizon / 50, horizon, 50), [horizon]])
    return np.unique(np.maximum(spaced.astype(np.int64), 1))


def check_simulation(
    policy: AnyPolicy, problem: Problem | Timeline, rewards: Rewards, click_model: ClickModel
) -> None:
    """Check that a policy can be simulated on a problem, before anything is compiled or run.

    Raises
    ------
    InvalidInputError
        If the policy, its treatment or its utility is not valid, or rewards do not fit the click model.
    UnsolvableError
        If the policy's solver cannot solve problems of this size.
    """
    if not isinstance(policy, Policy):
        raise InvalidInputError("policy", "must be an instance of Policy, or the name of one", policy)
    timeline = as_timeline(problem)
    if rewards.concentration > 0 and not click_model.has_graded_rewards:
        rule = f"must not be graded under click model {click_model}: a click earns the whole reward"
        raise InvalidInputError("rewards", rule, str(rewards))
    check_treatment(policy.treatment)
    if not isinstance(policy.utility, Utility):
        raise InvalidInputError(
            "policy's utility", "must be a Utility (as_utility returns one by name)", policy.utility
        )
    check_utility(policy.utility, policy.treatment)
    for each in timeline.problems:
        if isinstance(policy, CompiledPolicy):
            policy.kernel(n_items=each.n_items, n_positions=each.n_positions)  # raises if too large
        if is_equal(policy.treatment):
            _check_regret_is_finite(policy.utility, each, rewards.scale, click_model)


def check_contextual_simulation(
    policy: object, problem: ContextualProblem, rewards: Rewards, click_model: ClickModel
) -> PolicyForContext:
    """Return the policy if it can be simulated on a contextual problem.

    Raises
    ------
    InvalidInputError
        If the policy or the click model cannot be used with a contextual problem, or rewards do not fit the
        click model.
    UnsolvableError
        If the policy's solver cannot solve problems of this size.
    """
    if not isinstance(policy, CompiledPolicy | ContextualPolicy | ClusteredPolicy):
        rule = "must be a contextual policy, a compiled one or a ClusteredPolicy for a contextual problem"
        raise InvalidInputError("policy", rule, policy)
    if rewards.concentration > 0 and not click_model.has_graded_rewards:
        rule = f"must not be graded under click model {click_model}: a click earns the whole reward"
        raise InvalidInputError("rewards", rule, str(rewards))
    if click_model.depends_on == "ranking" or not is_own(click_model.draw):
        rule = f"must be one of {', '.join(CLICK_MODEL_NAMES)} for a contextual problem"
        raise InvalidInputError("click model", rule, click_model)
    if isinstance(policy, ContextualPolicy):
        sizes = {"n_features": 1, "n_positions": problem.n_positions, "n_user_types": problem.n_user_types}
        policy.init_state(policy.new_statistics(**sizes), new_context(1, 1))  # raises if it does not fit
        return policy
    compiled = policy.policy if isinstance(policy, ClusteredPolicy) else policy
    kernel = compiled.kernel(n_items=problem.n_items, n_positions=problem.n_positions)
    if compiled.treatment != "personalized" or compiled.memory is not None or not is_own(kernel.rank):
        rule = "must be built in, with personalized treatment and without a memory for a contextual problem"
        raise InvalidInputError("policy", rule, compiled.name)
    return policy


def _check_regret_is_finite(
    utility: Utility, problem: Problem, scale: float, click_model: ClickModel
) -> None:
    # The worst ranking of a type: its worst items, the worst of them where it looks most.
    worst_items = np.sort(problem.item_means, axis=1)[:, : problem.n_positions]  # (N, K)
    best_positions = -np.sort(-click_model.position_weights(problem), axis=1)
    # Preferences sum to 1 but for rounding; under other click models a round may have several clicks.
    most = scale * max(1.0, round(float(best_positions.sum(axis=1).max()), 5))
    for name, value in zip(problem.user_types, (worst_items * best_positions).sum(axis=1), strict=True):
        for extreme in (scale * float(value), most):
            worth = float(utility.evaluate(extreme))
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
