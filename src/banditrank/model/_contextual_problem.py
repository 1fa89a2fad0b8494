"""Contextual problems: item means are functions of user and item features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model._feature_maps import FeatureMap, joint_features, n_joint_features
from banditrank.model._problem import Problem
from banditrank.model._user_population import UserPopulation, as_features

Floats = NDArray[np.float64]

Appeal: TypeAlias = Literal["linear", "logistic"]
"""The mean of an item given its joint features: wᵀφ, limited to [0, 1], or 1 / (1 + e^−wᵀφ)."""

_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class ContextualProblem:
    """A ranking problem in which users and items have features. Immutable.

    In each round a user arrives with features x. Item j with features z_j has joint features φ(x, z_j), and
    the user clicks it, once examined, with its mean: wᵀφ limited to [0, 1] if appeal is linear, or
    1 / (1 + e^−wᵀφ) if it is logistic.

    Parameters
    ----------
    users
        Distribution of user features, or rows of them, shape (C, p), that are equally likely.
    item_features
        Features z of each item, shape (M, q).
    weights
        w, shape (d,); d depends on the feature map.
    position_preferences
        ρ, shape (K,) or, one row for each user type, (N, K). Rows sum to 1; the position-based click model
        scales them to a maximum of 1.
    appeal
        ``linear`` or ``logistic``.
    feature_map
        ``interaction``: all products of a user feature and an item feature. ``concatenation``: user features,
        then item features. ``items``: item features only.
    items
        Unique names; ``item-1``, … by default.
    name
        The problem's name in results and files.

    Raises
    ------
    InvalidInputError
        If shapes do not match, a number is not finite, preferences do not sum to 1, names are not unique, or
        a linear appeal is outside [0, 1] at a row of users without noise.

    Examples
    --------
    >>> users = UserPopulation([[1, 0], [1, 1]], probabilities=[0.7, 0.3])
    >>> items = [[1, 0], [1, 1], [1, -1]]
    >>> problem = ContextualProblem(users, items, [0.5, 0.2, 0, -0.3], [0.7, 0.3])
    >>> problem.n_features, problem.n_items, problem.n_positions
    (4, 3, 2)
    >>> problem.item_means([1, 1]).round(2)
    array([0.5, 0.4, 0.6])
    """

    users: UserPopulation
    item_features: Floats
    weights: Floats
    position_preferences: Floats
    appeal: Appeal
    feature_map: FeatureMap
    items: tuple[str, ...]
    name: str

    def __init__(
        self,
        users: UserPopulation | ArrayLike,
        item_features: ArrayLike,
        weights: ArrayLike,
        position_preferences: ArrayLike,
        *,
        appeal: Appeal = "linear",
        feature_map: FeatureMap = "interaction",
        items: Sequence[str] | None = None,
        name: str = "contextual-problem",
    ) -> None:
        population = users if isinstance(users, UserPopulation) else UserPopulation(users)
        item_rows = as_features("item_features", item_features)
        vector = as_features("weights", weights, 1)
        check_appeal(appeal)
        n_features = n_joint_features(feature_map, population.n_user_features, item_rows.shape[1])
        if len(vector) != n_features:
            rule = f"must hold {n_features} numbers, one for each joint feature"
            raise InvalidInputError("weights", rule, len(vector))
        n = population.n_user_types
        preferences = _rows(position_preferences, n)
        # A `Problem` of the same size checks preferences and names.
        like = Problem(
            np.full(n, 1.0 / n),
            preferences,
            np.zeros((n, len(item_rows))),
            items=items,
            name=name,
        )
        values = {
            "users": population,
            "item_features": item_rows,
            "weights": vector,
            "position_preferences": like.position_preferences,
            "appeal": appeal,
            "feature_map": feature_map,
            "items": like.items,
            "name": like.name,
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)
        self._check_linear_means()

    def _check_linear_means(self) -> None:
        if self.appeal != "linear" or not self.users.is_discrete:
            return
        for row, user in enumerate(self.users.features):
            scores = joint_features(self.feature_map, user, self.item_features) @ self.weights
            for j in np.flatnonzero((scores < -_TOLERANCE) | (scores > 1 + _TOLERANCE)):
                field = f"appeal of {self.items[j]} to user row {row + 1}"
                raise InvalidInputError(field, "must lie in [0, 1]", float(scores[j]))

    @property
    def n_features(self) -> int:
        """The number of joint features, d."""
        return len(self.weights)

    @property
    def n_user_types(self) -> int:
        """The number of user types, which have position preferences of their own, N."""
        return len(self.position_preferences)

    @property
    def n_items(self) -> int:
        """M."""
        return len(self.item_features)

    @property
    def n_positions(self) -> int:
        """K."""
        return int(self.position_preferences.shape[1])

    def joint_features(self, user: ArrayLike) -> Floats:
        """Return the joint features of a user and each item, shape (M, d).

        Parameters
        ----------
        user
            User features, shape (p,).
        """
        return joint_features(self.feature_map, user, self.item_features)

    def item_means(self, user: ArrayLike) -> Floats:
        """Return the mean of each item for a user, shape (M,).

        Parameters
        ----------
        user
            User features, shape (p,).
        """
        scores = self.joint_features(user) @ self.weights
        if self.appeal == "linear":
            return np.clip(scores, 0.0, 1.0)
        return np.asarray(1.0 / (1.0 + np.exp(-scores)))

    @classmethod
    def from_problem(cls, problem: Problem) -> "ContextualProblem":
        """Return a problem as a contextual one with one-hot features: one weight per user type and item.

        Examples
        --------
        >>> from banditrank.model._catalog import kdd2012
        >>> problem = ContextualProblem.from_problem(kdd2012())
        >>> problem.n_features, problem.item_means([0, 1])
        (10, array([0.247, 0.327, 0.491, 0.49 , 0.303]))
        """
        users = UserPopulation(
            np.eye(problem.n_user_types),
            probabilities=problem.arrival_rates,
            user_types=range(problem.n_user_types),
        )
        return cls(
            users,
            np.eye(problem.n_items),
            problem.item_means.ravel(),
            problem.position_preferences,
            items=problem.items,
            name=problem.name,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as a dictionary of lists and strings, with the keys of a problem file."""
        return {
            "name": self.name,
            "appeal": self.appeal,
            "feature_map": self.feature_map,
            "items": list(self.items),
            "position_preferences": self.position_preferences.tolist(),
            "weights": self.weights.tolist(),
            "item_features": self.item_features.tolist(),
            "users": self.users.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ContextualProblem":
        """Return the problem of a dictionary with the keys of a problem file.

        Raises
        ------
        InvalidInputError
            If the values do not make a problem.
        """
        users = values["users"]
        population = UserPopulation.from_dict(users) if isinstance(users, Mapping) else users
        return cls(**{**values, "users": population})

    @classmethod
    def load(cls, path: str | Path) -> "ContextualProblem":
        """Load a problem from a TOML file: see `banditrank.model._contextual_problem_file`.

        Raises
        ------
        InvalidInputError
            If the file cannot be read, or does not describe a contextual problem.
        """
        from banditrank.model._contextual_problem_file import read_contextual_problem  # noqa: PLC0415 - circular

        return read_contextual_problem(path)

    def save(self, path: str | Path) -> None:
        """Write the problem to a TOML file: see `banditrank.model._contextual_problem_file`.

        Raises
        ------
        InvalidInputError
            If the file cannot be written.
        """
        from banditrank.model._contextual_problem_file import write_contextual_problem  # noqa: PLC0415 - circular

        write_contextual_problem(self, path)

    def __repr__(self) -> str:
        sizes = f"{self.n_features} features, {self.n_items} items, {self.n_positions} positions"
        return f"<ContextualProblem {self.name}: {self.appeal} appeal, {sizes}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ContextualProblem) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.items, self.weights.tobytes()))

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        users = UserPopulation.from_dict(state["users"])
        self.__init__(**{**state, "users": users})  # type: ignore[misc]


def _rows(position_preferences: ArrayLike, n_user_types: int) -> ArrayLike:
    """Return position preferences as rows, one for each user type."""
    rule = "must be a list of numbers, or of rows of equal length"
    try:
        table = np.atleast_2d(np.asarray(position_preferences))
    except ValueError:
        raise InvalidInputError("position_preferences", rule, position_preferences) from None
    if np.ndim(position_preferences) == 0:
        raise InvalidInputError("position_preferences", rule, position_preferences)
    if table.size == 0:
        raise InvalidInputError("position_preferences", "must not be empty", position_preferences)
    if len(table) != n_user_types:
        rows = "1 row" if n_user_types == 1 else f"{n_user_types} rows"
        rule = f"must have {rows}, one for each user type"
        raise InvalidInputError("position_preferences", rule, len(table))
    return cast("ArrayLike", table)


def check_appeal(appeal: str) -> Appeal:
    """Return the appeal.

    Raises
    ------
    UnknownNameError
        If it is not an `Appeal`.
    """
    if appeal not in get_args(Appeal):
        raise UnknownNameError("appeal", appeal, get_args(Appeal))
    return cast("Appeal", appeal)
