"""Targets that are learned from the log: the best rankings of a fitted model, or the rankings of a policy.

A ranking that was chosen because it did well in a log did well in part by chance, so that the same log
overstates its value. Cross-fitting avoids this: the ranking that is evaluated on a group of folds was learned
from the other groups.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.estimators._estimates import Estimates
from banditrank.evaluation._log_cells import LogCells
from banditrank.evaluation._log_model import EvaluationModel, fit_log_model
from banditrank.evaluation._targets import EvaluationTarget, Mixture, ResolvedTarget, resolve_mixtures
from banditrank.model._rankings import Ranking
from banditrank.policies._base import Policy, Treatment, is_equal
from banditrank.solvers._solve import solve
from banditrank.utilities._utility import Utility

Floats = NDArray[np.float64]

MIN_DISPLAYS = 10
"""Displays from which a learned ranking may show an item at a position."""


class LearnedTarget(EvaluationTarget):
    """Base class of targets that are learned from a log."""

    treatment: Treatment

    def learn(self, log: LogCells, model: EvaluationModel) -> list[Mixture]:
        """Return the mixture of rankings for each user type that a log teaches.

        Parameters
        ----------
        log
            Cells of the log; groups do not matter.
        model
            Click model to assume.
        """
        raise NotImplementedError

    @property
    def is_learned(self) -> bool:
        """True: cross-fitting evaluates the target."""
        return True

    def resolve(self, log: LogCells, model: EvaluationModel) -> ResolvedTarget:
        """Return for each group what is learned from the other groups.

        Raises
        ------
        InvalidInputError
            If the log has fewer items than positions.
        """
        _, n_items, n_positions = log.shape
        if n_items < n_positions:
            rule = f"must not be learned from a log with {n_items} items for {n_positions} positions"
            raise InvalidInputError("target", rule, self.name)
        n_groups = len(log.visits)
        groups = [self.learn(log.without(group), model) for group in range(n_groups)]
        return resolve_mixtures(groups, log.shape)


@dataclass(frozen=True, slots=True, eq=False)
class BestTarget(LearnedTarget):
    """The best rankings of a fitted model: personalized, or one for all that maximises a collective utility.

    Attributes
    ----------
    name
        Name in results.
    treatment
        ``personalized`` or ``equal``.
    utility
        Collective utility that an equal ranking maximises.
    """

    name: str
    treatment: Treatment
    utility: Utility

    def learn(self, log: LogCells, model: EvaluationModel) -> list[Mixture]:
        """Return the best ranking for each user type, of cells that were shown often enough."""
        problem = shrunken_estimates(log, "single-look" if model == "single-look" else "position-based")
        allowed = (log.table(log.displays) >= MIN_DISPLAYS).transpose(0, 2, 1)  # (N, K, M)
        n = log.shape[0]
        if self.treatment == "personalized":
            return [((1.0, _best_for(problem, i, allowed[i])),) for i in range(n)]
        is_present = log.n_visits > 0
        ranking = _solve(problem, self.utility, np.asarray(allowed[is_present].all(axis=0)))
        return [((1.0, ranking),) for _ in range(n)]


@dataclass(frozen=True, slots=True, eq=False)
class PolicyTarget(LearnedTarget):
    """A policy, with the counts of the log.

    Attributes
    ----------
    name
        Name in results.
    policy
        The policy; it learns from counts alone.
    n_samples
        Number of rankings to sample for each user type from a policy that explores at random.
    seed
        Seed of the policy's generator.
    """

    name: str
    policy: Policy
    n_samples: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        if self.policy.own_statistics is not None:
            rule = "must be a policy that learns from counts alone"
            raise InvalidInputError("target", rule, self.policy.name)

    @property
    def treatment(self) -> Treatment:  # type: ignore[override]
        """Treatment of the policy."""
        return self.policy.treatment

    def learn(self, log: LogCells, model: EvaluationModel) -> list[Mixture]:  # noqa: ARG002 - of the policy
        """Return the rankings that the policy shows next, each as often as it was sampled."""
        counts = counts_of(log)
        rng = np.random.default_rng(self.seed)
        n = log.shape[0]
        if is_equal(self.policy.treatment):
            return [self._sample(counts, 0, rng)] * n
        return [self._sample(counts, i, rng) for i in range(n)]

    def _sample(self, counts: Counts, user_type: int, rng: np.random.Generator) -> Mixture:
        drawn = [tuple(self.policy.rank(counts, user_type, rng=rng).tolist()) for _ in range(self.n_samples)]
        distinct = sorted(set(drawn))
        return [(drawn.count(one) / len(drawn), np.array(one, dtype=np.intp)) for one in distinct]


def counts_of(log: LogCells) -> Counts:
    """Return the counts of all groups of a log."""
    displays, clicks = log.table(log.displays), log.table(log.clicks)
    return Counts.from_arrays(displays, clicks, log.n_visits)


def shrunken_estimates(log: LogCells, model: EvaluationModel) -> Estimates:
    """Return the estimates of a model of positions, with item means shrunk to the mean of their user type."""
    fit = fit_log_model(log, model).shrunken()
    gamma = np.nan_to_num(fit.examination)
    looks = np.einsum("ncj,nc->nj", fit.displays, gamma)
    return Estimates(log.arrival_rates, gamma, looks, np.nan_to_num(fit.means))


def _best_for(problem: Estimates, user_type: int, allowed: NDArray[np.bool_]) -> Ranking:
    """Return a type's best ranking: items by mean, positions by examination, where all cells are allowed."""
    gamma, mu = problem.position_preferences[user_type], problem.item_means[user_type]
    ranking = np.empty(gamma.size, dtype=np.intp)
    ranking[np.argsort(-gamma, kind="stable")] = np.argsort(-mu, kind="stable")[: gamma.size]
    if allowed[np.arange(gamma.size), ranking].all() or not allowed.any(axis=1).all():
        return ranking  # also if a position has no allowed item, so that no ranking is allowed
    chosen = slice(user_type, user_type + 1)
    alone = Estimates(np.ones(1), gamma[None], problem.exposure[chosen], mu[None])
    try:
        return solve(alone, "utilitarian", allowed=allowed).ranking
    except InvalidInputError:  # no ranking is allowed
        return ranking


def _solve(problem: Estimates, utility: Utility, allowed: NDArray[np.bool_]) -> Ranking:
    """Return the best ranking of allowed cells; of all cells if they allow none."""
    try:
        return solve(problem, utility, allowed=None if allowed.all() else allowed).ranking
    except InvalidInputError:
        return solve(problem, utility).ranking
