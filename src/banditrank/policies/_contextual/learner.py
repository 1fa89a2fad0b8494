"""Online learning with a contextual policy, one round at a time."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._checks import check_integer
from banditrank.counts._feature_statistics import FeatureStatistics
from banditrank.errors import InvalidInputError
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.model._rankings import Ranking, as_ranking
from banditrank.model._user_population import as_features
from banditrank.policies._bound_kernel import BoundKernel
from banditrank.policies._contextual.base import ContextualEstimates, ContextualPolicy, new_context
from banditrank.policies._learner import as_generator, feedback_rewards, max_reward_of

Floats = NDArray[np.float64]


class ContextualLearner:
    """A contextual policy with its statistics and state, which learns one round at a time.

    `ContextualPolicy.start` creates it. Each request brings the joint features of the user and the items that
    may be shown, so items may differ from request to request. Not thread-safe.

    Parameters
    ----------
    policy
        The policy.
    statistics
        Statistics to start from. They are copied.
    rng
        Generator of the policy.

    Examples
    --------
    >>> from banditrank import ContextualThompsonRank
    >>> learner = ContextualThompsonRank().start(n_features=2, n_positions=1, rng=1)
    >>> features = [[1, 0], [1, 1]]  # of two items
    >>> ranking = learner.rank(features)
    >>> learner.update(features, ranking, position=0)  # the item at the first position was clicked
    >>> learner.rounds
    1
    """

    def __init__(
        self, policy: ContextualPolicy, statistics: FeatureStatistics, *, rng: np.random.Generator
    ) -> None:
        self.policy = policy
        self._rng = rng
        self._statistics = statistics.copy()
        self._n_features = policy.n_joint_features(statistics.n_features)
        self._context = new_context(statistics.n_positions, self._n_features)
        self._kernel = policy.bind(self._statistics, self._context, rng)

    @property
    def statistics(self) -> FeatureStatistics:
        """A copy of the statistics that the policy learns from."""
        return self._statistics.copy()

    @property
    def rounds(self) -> int:
        """Number of rounds so far, including those of the statistics at the start."""
        return self._statistics.rounds

    @property
    def estimates(self) -> ContextualEstimates:
        """Estimates of the weights and position preferences."""
        return self.policy.estimate(self._statistics)

    def rank(self, features: ArrayLike, user_type: int = 0) -> Ranking:
        """Return the ranking to show to a user, shape (K,): rows of the features.

        Parameters
        ----------
        features
            Joint features of the user and each item that may be shown, shape (M, d) with M ≥ K.
        user_type
            User type, which has position preferences of its own, from 0.

        Raises
        ------
        InvalidInputError
            If there is no such user type, or the features do not have this shape.
        """
        self._check_user_type(user_type)
        self._write_features(as_features("features", features))
        ranking = self._kernel.rank(int(user_type), self.rounds + 1, np.zeros(0))
        return ranking.astype(np.intp)

    def update(
        self,
        features: ArrayLike,
        ranking: Sequence[int] | NDArray[np.integer],
        position: int | None = None,
        *,
        reward: float | None = None,
        rewards: ArrayLike | None = None,
        user_type: int = 0,
    ) -> None:
        """Learn from the feedback of a user on a ranking.

        Parameters
        ----------
        features
            Joint features of the user and each item, shape (M, d), as they were passed to `rank`.
        ranking
            Ranking that was shown, shape (K,): rows of the features.
        position
            Position of the item that was clicked, from 0; None if nothing was clicked.
        reward
            Reward at that position; 1 by default. At most the policy's ``max_reward``, if it has one.
        rewards
            Reward at each position, shape (K,), instead of a position and a reward.
        user_type
            User type that saw the ranking, from 0.

        Raises
        ------
        InvalidInputError
            If an argument is not valid, or ``rewards`` is combined with ``position`` or ``reward``. Nothing
            is learned then.
        """
        self._check_user_type(user_type)
        rows = as_features("features", features)
        n_positions = self._statistics.n_positions
        shown = as_ranking(np.asarray(ranking), n_items=len(rows), n_positions=n_positions)
        earned = feedback_rewards(n_positions, position, reward, rewards, max_reward_of(self.policy))
        self._write_features(rows)
        self._kernel.observe(int(user_type), self.rounds + 1, shown.astype(np.uintp), earned)

    def _check_user_type(self, user_type: int) -> None:
        check_integer("user_type", user_type, 0, self._statistics.n_user_types - 1)

    def _write_features(self, features: Floats) -> None:
        n_items, n_features = features.shape
        if n_features != self._n_features:
            rule = f"must have {self._n_features} columns, one for each joint feature"
            raise InvalidInputError("features", rule, n_features)
        if n_items < self._statistics.n_positions:
            rule = f"must have at least {self._statistics.n_positions} rows, one for each position"
            raise InvalidInputError("features", rule, n_items)
        if n_items > len(self._context.features):
            self._grow(n_items)
        self._context.features[:n_items] = features
        self._context.n_items[0] = n_items

    def _grow(self, n_items: int) -> None:
        """Make room for more items than any request had until now; what is learned stays."""
        self._context = new_context(max(n_items, 2 * len(self._context.features)), self._n_features)
        scores = np.zeros(len(self._context.features))
        self._kernel = BoundKernel(
            self.policy.kernel(),
            self._kernel.state._replace(context=self._context, scores=scores),
            self._rng,
            ranking=self._kernel.ranking,
            n_parameters=0,
        )


def start_contextual_learner(
    policy: ContextualPolicy,
    problem: ContextualProblem | None,
    *,
    n_features: int | None,
    n_positions: int | None,
    n_user_types: int | None,
    statistics: FeatureStatistics | None,
    rng: np.random.Generator | int | None,
) -> ContextualLearner:
    """Return a learner for a problem, sizes or statistics: see `ContextualPolicy.start`.

    Raises
    ------
    InvalidInputError
        If the size is missing, ambiguous or not valid, or ``rng`` is not valid.
    """
    sizes = {"n_features": n_features, "n_positions": n_positions, "n_user_types": n_user_types}
    if problem is not None:
        if not isinstance(problem, ContextualProblem):
            raise InvalidInputError("problem", "must be a ContextualProblem", problem)
        for field, value in sizes.items():
            if value is not None:
                raise InvalidInputError(field, "must be left out if a problem is given", value)
        sizes = {
            "n_features": problem.n_features,
            "n_positions": problem.n_positions,
            "n_user_types": problem.n_user_types,
        }
    elif statistics is not None and all(value is None for value in sizes.values()):
        return ContextualLearner(policy, _check_statistics(statistics), rng=as_generator(rng))
    for field in ("n_features", "n_positions"):
        if sizes[field] is None:
            raise InvalidInputError(field, "must be given unless a problem or statistics are", None)
    new = policy.new_statistics(
        n_features=check_integer("n_features", sizes["n_features"] or 0, 1),
        n_positions=check_integer("n_positions", sizes["n_positions"] or 0, 1),
        n_user_types=1 if sizes["n_user_types"] is None else sizes["n_user_types"],
    )
    given = new if statistics is None else _check_statistics(statistics)
    if given.moments.shape != new.moments.shape:
        raise InvalidInputError(
            "statistics", f"must have moments of shape {new.moments.shape}", given.moments.shape
        )
    return ContextualLearner(policy, given, rng=as_generator(rng))


def _check_statistics(statistics: FeatureStatistics) -> FeatureStatistics:
    if not isinstance(statistics, FeatureStatistics):
        raise InvalidInputError("statistics", "must be FeatureStatistics", statistics)
    return statistics
