"""User features of a contextual problem: the distribution that users are drawn from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._array_checks import as_number_array, check_entries, check_probabilities
from banditrank._compilation import inlined
from banditrank.errors import InvalidInputError

Floats = NDArray[np.float64]


class CompiledUsers(NamedTuple):
    """A user population, as compiled formulas read it."""

    limits: Floats  # (C,) cumulative probabilities
    features: Floats  # (C, p)
    deviations: Floats  # (C, p)
    user_types: NDArray[np.intp]  # (C,)
    is_normal: bool  # whether a deviation is positive


@dataclass(frozen=True, slots=True, eq=False)
class UserPopulation:
    """A distribution of user features: rows with probabilities, or a normal mixture. Immutable.

    A user is drawn in each round: a row, plus normal noise with the row's standard deviations. Without
    standard deviations users are copies of the rows.

    Parameters
    ----------
    features
        Rows of user features, shape (C, p): users, or the means of the components of a mixture.
    probabilities
        Probability of each row, shape (C,); equal by default.
    standard_deviations
        Standard deviation of each feature within each row, shape (C, p), or a number for all; 0 by default.
    user_types
        User type of each row, from 0, shape (C,); 0 by default. Position preferences are those of the type.

    Raises
    ------
    InvalidInputError
        If shapes do not match, a number is not finite, or probabilities do not sum to 1.

    Examples
    --------
    >>> users = UserPopulation([[1, 0], [1, 1]], probabilities=[0.75, 0.25])
    >>> users.n_user_features, users.n_user_types
    (2, 1)
    >>> features, user_types = users.draw(10_000, rng=np.random.default_rng(1))
    >>> features.mean(axis=0).round(1)
    array([1. , 0.3])
    """

    features: Floats
    probabilities: Floats
    standard_deviations: Floats
    user_types: tuple[int, ...]

    def __init__(
        self,
        features: ArrayLike,
        *,
        probabilities: ArrayLike | None = None,
        standard_deviations: ArrayLike = 0.0,
        user_types: Sequence[int] | NDArray[np.integer] | None = None,
    ) -> None:
        rows = as_features("user features", features)
        count = len(rows)
        given = np.full(count, 1.0 / count) if probabilities is None else probabilities
        values = {
            "features": rows,
            "probabilities": _probabilities(given, count),
            "standard_deviations": _deviations(standard_deviations, rows.shape),
            "user_types": _types(user_types, count),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    @property
    def n_user_features(self) -> int:
        """The number of user features, p."""
        return int(self.features.shape[1])

    @property
    def n_user_types(self) -> int:
        """N."""
        return max(self.user_types) + 1

    @property
    def is_discrete(self) -> bool:
        """Whether users are copies of the rows."""
        return not self.standard_deviations.any()

    def draw(self, n_users: int, *, rng: np.random.Generator) -> tuple[Floats, NDArray[np.intp]]:
        """Return the features of random users, shape (n, p), and their user types, shape (n,)."""
        rows = rng.choice(len(self.features), size=n_users, p=self.probabilities / self.probabilities.sum())
        noise = rng.standard_normal((n_users, self.n_user_features))
        drawn = self.features[rows] + noise * self.standard_deviations[rows]
        return drawn, np.array(self.user_types, dtype=np.intp)[rows]

    def compiled(self) -> CompiledUsers:
        """Return the population as arrays, for compiled functions."""
        return CompiledUsers(
            np.cumsum(self.probabilities),
            self.features,
            self.standard_deviations,
            np.array(self.user_types, dtype=np.intp),
            not self.is_discrete,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the population as a dictionary of lists."""
        return {
            "features": self.features.tolist(),
            "probabilities": self.probabilities.tolist(),
            "standard_deviations": self.standard_deviations.tolist(),
            "user_types": list(self.user_types),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "UserPopulation":
        """Return the population of a dictionary that `to_dict` returned.

        Raises
        ------
        InvalidInputError
            If the values do not make a population.
        """
        return cls(**values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UserPopulation) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.features.tobytes(), self.user_types))

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


@inlined
def draw_user(users: CompiledUsers, rng: np.random.Generator, features: Floats) -> int:
    """Write the features of a random user, shape (p,), and return the user type."""
    uniform = rng.random()
    low, high = 0, users.limits.size - 1
    while low < high:
        middle = (low + high) // 2
        if uniform < users.limits[middle]:
            high = middle
        else:
            low = middle + 1
    for index in range(features.size):
        features[index] = users.features[low, index]
        if users.is_normal:
            features[index] += users.deviations[low, index] * rng.standard_normal()
    return int(users.user_types[low])


def as_features(field: str, value: ArrayLike, dimensions: int = 2) -> Floats:
    """Return a read-only array of finite numbers.

    Raises
    ------
    InvalidInputError
        If the value has another shape, is empty, or holds anything else.

    Examples
    --------
    >>> as_features("features", [[1, 2]])
    array([[1., 2.]])
    """
    array = as_number_array(field, value, dimensions)
    check_entries(field, array, np.isfinite(array), "must be finite")
    return array


def _probabilities(value: ArrayLike, count: int) -> Floats:
    probabilities = as_features("user probabilities", value, 1)
    if len(probabilities) != count:
        raise InvalidInputError(
            "user probabilities", f"must hold {count} numbers, one for each row", len(probabilities)
        )
    check_probabilities("user probabilities", probabilities)
    return probabilities


def _deviations(value: ArrayLike, shape: tuple[int, ...]) -> Floats:
    field = "standard_deviations"
    table = np.full(shape, value) if np.ndim(value) == 0 and not isinstance(value, str) else value
    deviations = as_features(field, table)
    if deviations.shape != shape:
        raise InvalidInputError(field, f"must have shape {shape}, that of the features", deviations.shape)
    if (deviations < 0).any():
        raise InvalidInputError(field, "must not be negative", float(deviations.min()))
    return deviations


def _types(value: Sequence[int] | NDArray[np.integer] | None, count: int) -> tuple[int, ...]:
    types = np.zeros(count, dtype=np.intp) if value is None else np.asarray(value)
    if types.shape != (count,) or types.dtype.kind not in "iu" or types.min() < 0:
        rule = f"must hold {count} whole numbers from 0, one for each row"
        raise InvalidInputError("user_types", rule, value)
    missing = sorted(set(range(int(types.max()) + 1)) - set(types.tolist()))
    if missing:
        raise InvalidInputError("user_types", f"must include {missing[0]}", value)
    return tuple(types.tolist())
