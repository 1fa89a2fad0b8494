"""One replication on a contextual problem."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditrank._interrupts import DeferredInterrupts, deferred_interrupts
from banditrank.counts._counts import Counts
from banditrank.model._bound_click_model import BoundClickModel
from banditrank.model._click_models import CompiledProblem, compile_problem
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.model._feature_maps import feature_map_code
from banditrank.model._problem import Problem
from banditrank.model._user_clusters import UserClusters
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._bound_kernel import BoundKernel
from banditrank.policies._contextual.base import Context, ContextualPolicy
from banditrank.policies._contextual.clustered import ClusteredPolicy
from banditrank.policies._copies import copy_policy
from banditrank.simulation._contextual_loop import (
    FEATURE_CLUSTERS,
    MEAN_CLUSTERS,
    NO_CLUSTERS,
    ContextualWorkspace,
    init_context_delay_buffer,
    run_contextual_rounds,
)
from banditrank.simulation._loop import init_run_totals
from banditrank.simulation._progress import Advance
from banditrank.simulation._replication import ContextualExperiment, Replication
from banditrank.simulation._round_chunks import RoundChunks


def precompile_contextual(experiment: ContextualExperiment) -> None:
    """Compile what an experiment needs, so that replications are timed without compilation."""
    run = _ContextualRun(experiment, 0)
    with deferred_interrupts():
        run.run_rounds(np.arange(1, 1))


def replicate_contextual(experiment: ContextualExperiment, index: int, advance: Advance) -> Replication:
    """Run one replication.

    Parameters
    ----------
    experiment
        What to replicate.
    index
        Index of the replication, which seeds its generators.
    advance
        Progress callback, called with the number of rounds just run. It may raise to stop.
    """
    with deferred_interrupts() as interrupts:
        return _replicate(experiment, index, advance, interrupts)


def _replicate(
    experiment: ContextualExperiment, index: int, advance: Advance, interrupts: DeferredInterrupts
) -> Replication:
    run = _ContextualRun(experiment, index)
    for rounds in RoundChunks().split(1, experiment.horizon):
        run.run_rounds(rounds)
        interrupts.handle()
        advance(len(rounds))
    curves = run.run_totals.curves
    return Replication(index, curves[0], curves[1] / experiment.checkpoints, run.initial_rounds())


class _ContextualRun:
    """A replication in progress."""

    def __init__(self, experiment: ContextualExperiment, index: int) -> None:
        problem, k = experiment.problem, experiment.problem.n_positions
        clustered = copy_policy(experiment.policy)
        clusters = clustered.clusters if isinstance(clustered, ClusteredPolicy) else None
        self.policy: CompiledPolicy | ContextualPolicy = (
            clustered.policy if isinstance(clustered, ClusteredPolicy) else clustered
        )
        if isinstance(self.policy, CompiledPolicy) and not self.policy.distinguishes_user_types:
            clusters = UserClusters(np.zeros((1, problem.users.n_user_features)))
        self.generators = experiment.generators(index)
        self.run_totals = init_run_totals(experiment.checkpoints, k)
        self.delay_buffer = init_context_delay_buffer(experiment.delay, problem.users.n_user_features, k)
        self.ranking = np.zeros(k, dtype=np.uintp)
        self.rewards = np.zeros(k)
        self.scale = float(experiment.rewards.scale)
        means = np.zeros((problem.n_user_types, problem.n_items))
        self.workspace = _new_workspace(problem, means, clusters)
        self.bound_click_model = BoundClickModel(
            experiment.click_model,
            _compile(experiment, means),
            self.generators.clicks,
            ranking=self.ranking,
            rewards=self.rewards,
        )
        n_user_types = problem.n_user_types if clusters is None else clusters.n_clusters
        self.state = self._init_state(problem, n_user_types)
        self.bound_kernel = BoundKernel(
            self.policy.kernel(n_items=problem.n_items, n_positions=k)
            if isinstance(self.policy, CompiledPolicy)
            else self.policy.kernel(),
            self.state,
            self.generators.policy,
            ranking=self.ranking,
            n_parameters=self.policy.n_parameters if isinstance(self.policy, CompiledPolicy) else 0,
        )

    def _init_state(self, problem: ContextualProblem, n_user_types: int) -> Any:
        if isinstance(self.policy, ContextualPolicy):
            statistics = self.policy.new_statistics(
                n_features=problem.n_features, n_positions=problem.n_positions, n_user_types=n_user_types
            )
            context = Context(self.workspace.features, np.array([problem.n_items]))
            return self.policy.init_state(statistics, context)
        counts = Counts.empty(
            n_user_types=n_user_types, n_items=problem.n_items, n_positions=problem.n_positions
        )
        return self.policy.init_state(counts, self.policy.new_scratch())

    def initial_rounds(self) -> int:
        """Return the length of the initial phase: the horizon if it did not end."""
        if isinstance(self.policy, ContextualPolicy):
            return 0
        rounds = self.policy.initial_rounds(self.state)
        return int(self.run_totals.checkpoints.max()) if rounds is None else rounds

    def run_rounds(self, rounds: NDArray[np.int64]) -> None:
        """Run the next rounds."""
        arrivals, clicks, policy = self.generators
        kernel: Any = self.bound_kernel.handle  # built-in policies have one
        parameters = np.zeros((len(rounds), 0))
        if isinstance(self.policy, CompiledPolicy):
            parameters = self.policy.parameters(rounds)
        run_contextual_rounds(
            kernel,
            self.bound_click_model.handle,
            self.workspace,
            self.run_totals,
            self.delay_buffer,
            self.scale,
            int(rounds[0]) if len(rounds) else 1,
            parameters,
            arrivals,
            clicks,
            policy,
            self.ranking,
            self.rewards,
        )


def _compile(experiment: ContextualExperiment, means: NDArray[np.float64]) -> CompiledProblem:
    """Return the problem of the current user as arrays for the click model, which reads the given means."""
    problem = experiment.problem
    n = problem.n_user_types
    current = Problem(np.full(n, 1.0 / n), problem.position_preferences, means)
    read = means.view()
    read.flags.writeable = False  # as in other problems, so that the click model is not compiled again
    return compile_problem(current, experiment.rewards, experiment.click_model)._replace(item_means=read)


def _new_workspace(
    problem: ContextualProblem, means: NDArray[np.float64], clusters: UserClusters | None
) -> ContextualWorkspace:
    k = problem.n_positions
    spaces = {"features": FEATURE_CLUSTERS, "means": MEAN_CLUSTERS}
    return ContextualWorkspace(
        problem.users.compiled(),
        problem.item_features,
        problem.weights,
        feature_map_code(problem.feature_map),
        problem.appeal == "logistic",
        np.zeros(problem.users.n_user_features),
        np.zeros((problem.n_items, problem.n_features)),
        means,
        np.argsort(-problem.position_preferences, axis=1, kind="stable").astype(np.uintp),
        np.zeros(k, dtype=np.uintp),
        np.zeros(k, dtype=np.uintp),
        NO_CLUSTERS if clusters is None else spaces[clusters.space],
        np.zeros((1, 1)) if clusters is None else np.array(clusters.centroids),
    )
