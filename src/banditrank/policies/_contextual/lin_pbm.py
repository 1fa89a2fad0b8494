"""LinUCB and LinTS for the position-based model, which are given the examination probabilities.

Ermis, Ernst, Stein and Zappella (2020), "Learning to rank in the position based model with bandit feedback",
where they are LinUCB-PBMRank and LinTS-PBMRank. The paper also estimates the examination probabilities during
learning: by click rates of positions, probit regression, or expectation maximisation. Here they are given.
A click on an item with features φ at position k has mean κ_k wᵀφ: a linear bandit whose features are κ_k φ.
Hence A = λI + Σ κ_k² φφᵀ and b = Σ κ_k r φ over all displays, and the estimate of w is A⁻¹ b.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._checks import check_number
from banditrank._compilation import inlined, internal
from banditrank.counts._feature_statistics import FeatureStatistics
from banditrank.errors import InvalidInputError
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._cholesky import cholesky_factor, solve_lower, solve_upper
from banditrank.policies._contextual.base import Context, ContextualEstimates, ContextualPolicy
from banditrank.policies._kernel import Kernel
from banditrank.policies._sorting import assign_in_order, top_k

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

_LINEAR_PBM = Assumptions(
    positions="examination", click_models=("single-look", "position-based"), allows_graded_rewards=True
)


class LinState(NamedTuple):
    """The statistics, their sum A and b, and workspaces."""

    context: Context
    moments: Floats  # (N, K, d, d)
    reward_moments: Floats  # (N, K, d)
    reward_sums: Floats  # (N, K)
    squared_norms: Floats  # (N,)
    arrivals: Floats  # (N,)
    examination: Floats  # (N, K)
    position_order: Indices  # (N, K) by decreasing examination
    coefficient: float
    precision: Floats  # (d, d) A
    response: Floats  # (d,) b
    factor: Floats  # (d, d) Cholesky factor of A
    weights: Floats  # (d,) A⁻¹ b
    direction: Floats  # (d,) workspace
    scores: Floats  # (capacity,)
    leaders: Indices  # (K,)


@internal
def _estimate(precision: Floats, response: Floats, factor: Floats, weights: Floats) -> None:
    """Write the Cholesky factor of A, and A⁻¹ b."""
    cholesky_factor(precision, factor)
    for index in range(weights.size):
        weights[index] = response[index]
    solve_lower(factor, weights)
    solve_upper(factor, weights)


@internal
def _score(features: Floats, weights: Floats, scores: Floats) -> None:
    """Write wᵀφ of each item."""
    for j in range(scores.size):
        score = 0.0
        for index in range(weights.size):
            score += features[j, index] * weights[index]
        scores[j] = score


@internal
def _add_bonuses(
    features: Floats, factor: Floats, coefficient: float, direction: Floats, scores: Floats
) -> None:
    """Add c √(φᵀA⁻¹φ) to the score of each item."""
    for j in range(scores.size):
        for index in range(direction.size):
            direction[index] = features[j, index]
        solve_lower(factor, direction)
        square = 0.0
        for index in range(direction.size):
            square += direction[index] * direction[index]
        scores[j] += coefficient * math.sqrt(square)


@inlined
def _rank_ucb(
    state: LinState,
    user_type: int,
    t: int,  # noqa: ARG001 - the coefficient is constant
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,  # noqa: ARG001 - deterministic
    ranking: Indices,
) -> None:
    features, scores = state.context.features, state.scores[: state.context.n_items[0]]
    _estimate(state.precision, state.response, state.factor, state.weights)
    _score(features, state.weights, scores)
    _add_bonuses(features, state.factor, state.coefficient, state.direction, scores)
    top_k(scores, state.leaders)
    assign_in_order(state.leaders, state.position_order[user_type], ranking)


@inlined
def _rank_ts(
    state: LinState,
    user_type: int,
    t: int,  # noqa: ARG001 - as above
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    scores, direction = state.scores[: state.context.n_items[0]], state.direction
    _estimate(state.precision, state.response, state.factor, state.weights)
    for index in range(direction.size):
        direction[index] = state.coefficient * rng.standard_normal()
    solve_upper(state.factor, direction)
    for index in range(direction.size):
        direction[index] += state.weights[index]
    _score(state.context.features, direction, scores)
    top_k(scores, state.leaders)
    assign_in_order(state.leaders, state.position_order[user_type], ranking)


@inlined
def _observe(
    state: LinState,
    user_type: int,
    t: int,  # noqa: ARG001 - as above
    ranking: Indices,
    rewards: Floats,
) -> None:
    i, size = user_type, state.response.size
    state.arrivals[i] += 1.0
    for k in range(ranking.size):
        features, kappa = state.context.features[ranking[k]], state.examination[i, k]
        state.reward_sums[i, k] += rewards[k]
        for row in range(size):
            state.squared_norms[i] += features[row] * features[row]
            state.reward_moments[i, k, row] += rewards[k] * features[row]
            state.response[row] += kappa * rewards[k] * features[row]
            for column in range(size):
                product = features[row] * features[column]
                state.moments[i, k, row, column] += product
                state.precision[row, column] += kappa * kappa * product


@dataclass(frozen=True, kw_only=True)
class _LinPolicy(ContextualPolicy):
    """Parameters and state of LinUCB and LinTS."""

    assumptions: ClassVar[Assumptions] = _LINEAR_PBM

    examination: tuple[tuple[float, ...], ...] | Sequence[float]
    coefficient: float
    regularization: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "examination", _as_examination(self.examination))
        check_number("coefficient", self.coefficient, 0.0, 1e6)
        check_number("regularization", self.regularization, 1e-9, 1e9)

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values."""
        return {
            **super().describe(),
            "coefficient": self.coefficient,
            "regularization": self.regularization,
            "examination": np.asarray(self.examination).tolist(),
        }

    def init_state(self, statistics: FeatureStatistics, context: Context) -> LinState:
        """Return the state for statistics, whose arrays are not copied.

        Raises
        ------
        InvalidInputError
            If the examination probabilities do not fit the statistics.
        """
        examination = self._examination(statistics)
        size, k = statistics.n_features, statistics.n_positions
        precision, response = self._sums(statistics, examination)
        return LinState(
            context,
            statistics.moments,
            statistics.reward_moments,
            statistics.reward_sums,
            statistics.squared_norms,
            statistics.arrivals,
            examination,
            np.argsort(-examination, axis=1, kind="stable").astype(np.uintp),
            float(self.coefficient),
            precision,
            response,
            np.zeros((size, size)),
            np.zeros(size),
            np.zeros(size),
            np.zeros(len(context.features)),
            np.zeros(k, dtype=np.uintp),
        )

    def estimate(self, statistics: FeatureStatistics) -> ContextualEstimates:
        """Return the estimate of the weights, and the given examination probabilities.

        Raises
        ------
        InvalidInputError
            If the examination probabilities do not fit the statistics.
        """
        examination = self._examination(statistics)
        precision, response = self._sums(statistics, examination)
        return ContextualEstimates(
            np.asarray(np.linalg.solve(precision, response), dtype=np.float64), examination
        )

    def _examination(self, statistics: FeatureStatistics) -> Floats:
        table = np.array(self.examination)
        if len(table) == 1:
            table = np.repeat(table, statistics.n_user_types, axis=0)
        wanted = (statistics.n_user_types, statistics.n_positions)
        if table.shape != wanted:
            rule = f"must have shape {wanted}, one row for all user types or one for each"
            raise InvalidInputError("examination", rule, table.shape)
        return table

    def _sums(self, statistics: FeatureStatistics, examination: Floats) -> tuple[Floats, Floats]:
        """Return A and b."""
        precision = np.einsum("nk,nkab->ab", examination**2, statistics.moments)
        precision += self.regularization * np.eye(statistics.n_features)
        return precision, np.einsum("nk,nka->a", examination, statistics.reward_moments)


def _as_examination(value: ArrayLike) -> tuple[tuple[float, ...], ...]:
    rule = "must be rows of numbers from 0 to 1, of which one is positive in each row"
    try:
        table = np.atleast_2d(np.array(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise InvalidInputError("examination", rule, value) from None
    is_valid = table.ndim == 2 and table.size > 0 and bool(((table >= 0) & (table <= 1)).all())
    if not is_valid or not (table.max(axis=1) > 0).all():
        raise InvalidInputError("examination", rule, value)
    return tuple(map(tuple, table.tolist()))


@dataclass(frozen=True, kw_only=True)
class LinUCB(_LinPolicy):
    """LinUCB for the position-based model: the items with the highest upper confidence bounds.

    The bound is ŵᵀφ + c √(φᵀA⁻¹φ). The item with the highest bound is shown at the position that is examined
    most, and so on.

    Parameters
    ----------
    examination
        Examination probability of each position, shape (K,), or (N, K) for each user type.
    coefficient
        c.
    regularization
        λ, the precision of the prior of each weight.

    Raises
    ------
    InvalidInputError
        If a parameter is not valid.

    References
    ----------
    Ermis, Ernst, Stein, Zappella (2020), "Learning to rank in the position based model with bandit feedback",
    CIKM.

    Examples
    --------
    >>> learner = LinUCB(examination=[1.0, 0.4]).start(n_features=2, n_positions=2)
    >>> learner.rank([[1, 0], [1, 1], [1, 3]])  # nothing is known: the largest features first
    array([2, 1])
    """

    name: ClassVar[str] = "lin-ucb"

    coefficient: float = 1.0

    def kernel(self) -> Kernel:
        """Return the compiled functions."""
        return Kernel(_rank_ucb, _observe)


@dataclass(frozen=True, kw_only=True)
class LinTS(_LinPolicy):
    """LinTS for the position-based model: the best items for weights sampled from N(ŵ, c² A⁻¹).

    The best item is shown at the position that is examined most, and so on.

    Parameters
    ----------
    examination
        Examination probability of each position, shape (K,), or (N, K) for each user type.
    coefficient
        c; the standard deviation of a reward, of which 0.5 is the maximum for clicks.
    regularization
        λ, the precision of the prior of each weight, relative to that of a reward.

    Raises
    ------
    InvalidInputError
        If a parameter is not valid.

    References
    ----------
    Ermis, Ernst, Stein, Zappella (2020), "Learning to rank in the position based model with bandit feedback",
    CIKM.

    Examples
    --------
    >>> learner = LinTS(examination=[1.0, 0.4]).start(n_features=2, n_positions=2, rng=1)
    >>> sorted(learner.rank([[1, 0], [1, 1]]).tolist())
    [0, 1]
    """

    name: ClassVar[str] = "lin-ts"

    coefficient: float = 0.5

    def kernel(self) -> Kernel:
        """Return the compiled functions."""
        return Kernel(_rank_ts, _observe)
