"""Base class of contextual policies: statistics of features in, ranking out."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._feature_statistics import FeatureStatistics
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._base import Treatment
from banditrank.policies._bound_kernel import BoundKernel
from banditrank.policies._kernel import Kernel

if TYPE_CHECKING:
    from banditrank.policies._contextual.learner import ContextualLearner

Floats = NDArray[np.float64]


class Context(NamedTuple):
    """Joint features of the user and the items of a round, which the caller of the kernel writes."""

    features: Floats  # (capacity, d), of which the first M rows are used
    n_items: NDArray[np.intp]  # (1,) M


def new_context(n_items: int, n_features: int) -> Context:
    """Return a context of zeros."""
    return Context(np.zeros((n_items, n_features)), np.array([n_items]))


@dataclass(frozen=True, slots=True, eq=False)
class ContextualEstimates:
    """Estimates of a contextual problem.

    Only products of a position preference and an appeal are observed. If appeal is linear, the scale of the
    weights is therefore not identifiable: it is the one at which preferences sum to 1, or with position-based
    clicks have a maximum of 1.

    Attributes
    ----------
    weights
        w, shape (d,).
    position_preferences
        ρ, shape (N, K).
    """

    weights: Floats
    position_preferences: Floats


class ContextualPolicy(ABC):
    """Chooses a ranking from statistics of features.

    A policy is a value: it holds its parameters, and nothing that it has learned. `start` returns a
    `ContextualLearner`, which holds statistics and state. All that a policy learns is in its
    `FeatureStatistics`; its state follows from them.
    """

    name: ClassVar[str]
    assumptions: ClassVar[Assumptions]
    treatment: ClassVar[Treatment] = "personalized"

    @abstractmethod
    def kernel(self) -> Kernel:
        """Return the compiled functions, whose state has the fields ``context`` and ``scores``."""

    @abstractmethod
    def init_state(self, statistics: FeatureStatistics, context: Context) -> Any:
        """Return the state of the compiled functions for statistics.

        The state shares the arrays of the statistics, and ``observe`` of the kernel adds to them.
        """

    @abstractmethod
    def estimate(self, statistics: FeatureStatistics) -> ContextualEstimates:
        """Return estimates of the weights and position preferences."""

    def n_statistics(self, n_features: int) -> int:
        """Return D, the size of the statistics for d joint features; d for most policies."""
        return n_features

    def n_joint_features(self, n_statistics: int) -> int:
        """Return d, the number of joint features for statistics of size D."""
        return n_statistics - (self.n_statistics(1) - 1)

    def new_statistics(
        self, *, n_features: int, n_positions: int, n_user_types: int = 1
    ) -> FeatureStatistics:
        """Return statistics of no rounds.

        Parameters
        ----------
        n_features, n_positions, n_user_types
            d, K and N.

        Raises
        ------
        InvalidInputError
            If a size is not positive.
        """
        return FeatureStatistics.empty(
            n_features=self.n_statistics(n_features), n_positions=n_positions, n_user_types=n_user_types
        )

    def bind(self, statistics: FeatureStatistics, context: Context, rng: np.random.Generator) -> BoundKernel:
        """Return the compiled functions with the state for statistics, a context and a generator."""
        return BoundKernel(
            self.kernel(),
            self.init_state(statistics, context),
            rng,
            ranking=np.zeros(statistics.n_positions, dtype=np.uintp),
            n_parameters=0,
        )

    def start(
        self,
        problem: ContextualProblem | None = None,
        *,
        n_features: int | None = None,
        n_positions: int | None = None,
        n_user_types: int | None = None,
        statistics: FeatureStatistics | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> "ContextualLearner":
        """Start learning one round at a time.

        The size is that of the problem, of the statistics, or the given numbers.

        Parameters
        ----------
        problem
            Problem whose size to use. The policy learns nothing else from it.
        n_features, n_positions, n_user_types
            Numbers of joint features, positions and user types (1 by default), instead of a problem.
        statistics
            Statistics to start from. They are copied.
        rng
            Generator of the policy, or its seed; seeded by the operating system by default.

        Raises
        ------
        InvalidInputError
            If the size is missing, ambiguous or not valid, or ``rng`` is not valid.
        """
        from banditrank.policies._contextual.learner import start_contextual_learner  # noqa: PLC0415 - circular

        return start_contextual_learner(
            self,
            problem,
            n_features=n_features,
            n_positions=n_positions,
            n_user_types=n_user_types,
            statistics=statistics,
            rng=rng,
        )

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values."""
        return {"policy": self.name, "treatment": self.treatment, "utility": None, "coefficient": None}

    def fingerprint(self) -> dict[str, Any]:
        """Return plain values that distinguish this policy from others of the same description."""
        return self.describe()
