"""ContextualThompsonRank: Thompson sampling with features, and unknown position preferences."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_number
from banditrank._compilation import compiled, inlined
from banditrank.counts._feature_statistics import FeatureStatistics
from banditrank.model._click_models import RankOneClickModel, check_rank_one
from banditrank.model._contextual_problem import Appeal, check_appeal
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._contextual.base import (
    Context,
    ContextualEstimates,
    ContextualPolicy,
    new_context,
)
from banditrank.policies._contextual.posterior import (
    FeaturePosterior,
    new_feature_posterior,
    refit,
    sample_feature_posterior,
    update_feature_posterior,
    write_scores,
    write_shares,
)
from banditrank.policies._kernel import Kernel
from banditrank.policies._sorting import assign_in_order, top_k

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

_PRIOR_DEVIATIONS: dict[str, float] = {"linear": 1.0, "logistic": 2.0}
_WARM_UP_REFITS = 20  # from statistics, to converge


class ContextualThompsonState(NamedTuple):
    """The posterior, and a ranking in the making."""

    context: Context
    posterior: FeaturePosterior
    scores: Floats  # (capacity,)
    positions: Indices  # (K,) by decreasing preference
    leaders: Indices  # (K,) items by decreasing score


@inlined
def _rank(
    state: ContextualThompsonState,
    user_type: int,
    t: int,  # noqa: ARG001 - the posterior depends on statistics alone
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    posterior, scores = state.posterior, state.scores[: state.context.n_items[0]]
    sample_feature_posterior(posterior, rng)
    start = posterior.weights.size + user_type * ranking.size
    for k in range(ranking.size):
        posterior.preferences[k] = posterior.logits[user_type, k] + posterior.sample[start + k]
    top_k(posterior.preferences, state.positions)
    write_scores(state.context.features, posterior.weights, posterior.sample, scores)
    top_k(scores, state.leaders)
    assign_in_order(state.leaders, state.positions, ranking)


@inlined
def _observe(
    state: ContextualThompsonState,
    user_type: int,
    t: int,  # noqa: ARG001 - as above
    ranking: Indices,
    rewards: Floats,
) -> None:
    update_feature_posterior(state.posterior, user_type, state.context.features, ranking, rewards)


@compiled
def _warm_up(posterior: FeaturePosterior) -> None:
    for _ in range(_WARM_UP_REFITS):
        refit(posterior)


@compiled
def _write_preferences(posterior: FeaturePosterior, table: Floats) -> None:
    """Write the position preferences at the mode, shape (N, K)."""
    for i in range(table.shape[0]):
        write_shares(posterior.logits[i], posterior.is_position_based, table[i], posterior.shares)


@dataclass(frozen=True, kw_only=True)
class ContextualThompsonRank(ContextualPolicy):
    """ThompsonRank for users and items with features: the best ranking for a posterior sample.

    The mean reward of an item at a position is the product of a position preference ρ_k and the item's
    appeal, a function of wᵀφ; both are learned. The sample of w and ρ is joint. What is learned is in
    additive `FeatureStatistics`, whose size does not depend on the number of items or rounds. With one-hot
    features, one for each user type and item, the model is that of `ThompsonRank`. See
    ``docs/explanation/contextual-ranking.md``.

    Parameters
    ----------
    appeal
        ``linear``: wᵀφ. ``logistic``: 1 / (1 + e^−wᵀφ).
    click_model
        ``single-look``: users look at one position. ``position-based``: they look at each position
        independently of the others, and may click several items.
    max_reward
        Maximum reward at a position; 1 for clicks.
    prior_deviation
        Standard deviation of wᵀφ before anything is learned, for features of average norm; 1 by default if
        appeal is linear, 2 if it is logistic.

    Raises
    ------
    InvalidInputError
        If a parameter is not valid.

    Examples
    --------
    >>> learner = ContextualThompsonRank(appeal="logistic").start(n_features=3, n_positions=2, rng=1)
    >>> features = np.eye(3)  # of three items
    >>> for _ in range(500):
    ...     ranking = learner.rank(features)
    ...     clicks = [0.5 * (item == 2) for item in ranking]  # only the last item is liked
    ...     learner.update(features, ranking, rewards=clicks)
    >>> int(learner.estimates.weights.argmax())
    2
    """

    name: ClassVar[str] = "contextual-thompson-rank"
    assumptions: ClassVar[Assumptions] = Assumptions(
        click_models=("single-look", "position-based"), allows_graded_rewards=True
    )

    appeal: Appeal = "linear"
    click_model: RankOneClickModel = "single-look"
    max_reward: float = 1.0
    prior_deviation: float | None = None

    def __post_init__(self) -> None:
        check_appeal(self.appeal)
        check_rank_one(self.click_model)
        check_number("max_reward", self.max_reward, 1e-6, 1e9)
        if self.prior_deviation is not None:
            check_number("prior_deviation", self.prior_deviation, 1e-6, 1e6)

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values."""
        return {
            **super().describe(),
            "appeal": self.appeal,
            "click_model": self.click_model,
            "max_reward": self.max_reward,
            "prior_deviation": self.prior_deviation,
        }

    def n_statistics(self, n_features: int) -> int:
        """Return D, the size of the statistics for d joint features: d, or d + 1 if appeal is logistic."""
        return n_features + (self.appeal == "logistic")

    def kernel(self) -> Kernel:
        """Return the compiled functions."""
        return Kernel(_rank, _observe)

    def init_state(self, statistics: FeatureStatistics, context: Context) -> ContextualThompsonState:
        """Return the posterior given statistics, and workspaces."""
        deviation = self.prior_deviation
        posterior = new_feature_posterior(
            statistics.moments,
            statistics.reward_moments,
            statistics.reward_sums,
            statistics.squared_norms,
            statistics.arrivals,
            is_logistic=self.appeal == "logistic",
            is_position_based=self.click_model == "position-based",
            max_reward=float(self.max_reward),
            prior_deviation=float(_PRIOR_DEVIATIONS[self.appeal] if deviation is None else deviation),
        )
        _warm_up(posterior)
        k = statistics.n_positions
        positions, leaders = np.zeros(k, dtype=np.uintp), np.zeros(k, dtype=np.uintp)
        return ContextualThompsonState(
            context, posterior, np.zeros(len(context.features)), positions, leaders
        )

    def estimate(self, statistics: FeatureStatistics) -> ContextualEstimates:
        """Return the mode of the posterior.

        Examples
        --------
        >>> policy = ContextualThompsonRank()
        >>> policy.estimate(policy.new_statistics(n_features=2, n_positions=2)).position_preferences
        array([[0.5, 0.5]])
        """
        copied = statistics.copy()
        d = self.n_joint_features(copied.n_features)
        posterior = self.init_state(copied, new_context(copied.n_positions, d)).posterior
        preferences = np.zeros((copied.n_user_types, copied.n_positions))
        _write_preferences(posterior, preferences)
        return ContextualEstimates(posterior.weights.copy(), preferences)
