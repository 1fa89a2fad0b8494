"""Additive statistics of displays with features, by position."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._array_checks import check_float64, check_shape
from banditrank._checks import check_integer
from banditrank.errors import InvalidInputError

Floats = NDArray[np.float64]

_FIELDS = ("moments", "reward_moments", "reward_sums", "squared_norms", "arrivals")


@dataclass(slots=True, eq=False)
class FeatureStatistics:
    """What contextual policies learn from: weighted moments of features and rewards at each position.

    Statistics are additive: those of two periods, processes or files are merged with ``+``. They do not grow
    with the number of items or rounds. A display of features ψ that earned r at position k, to a user of
    type i, adds ω ψψᵀ to the moments and ω r ψ to the reward moments of (i, k); the policy chooses the weight
    ω before it sees the reward. For linear appeal ψ is φ, the joint features of the user and the item. For
    logistic appeal ψ has one more entry: see `banditrank.ContextualThompsonRank`.

    Parameters
    ----------
    moments
        Σ ω ψψᵀ, shape (N, K, D, D), float64.
    reward_moments
        Σ ω r ψ, shape (N, K, D), float64.
    reward_sums
        Σ r, shape (N, K), float64.
    squared_norms
        Σ φᵀφ over all positions, shape (N,), float64.
    arrivals
        Number of rounds of each user type, shape (N,), float64.

    Raises
    ------
    InvalidInputError
        If shapes or types do not match.

    Examples
    --------
    >>> statistics = FeatureStatistics.empty(n_features=3, n_positions=2)
    >>> statistics.moments.shape, (statistics + statistics).rounds
    ((1, 2, 3, 3), 0)
    """

    moments: Floats
    reward_moments: Floats
    reward_sums: Floats
    squared_norms: Floats
    arrivals: Floats

    def __post_init__(self) -> None:
        for field in _FIELDS:
            check_float64(field, getattr(self, field))
        shape = self.moments.shape
        if len(shape) != 4 or shape[2] != shape[3] or min(shape) < 1:
            raise InvalidInputError("moments", "must have shape (N, K, D, D)", shape)
        n, k, size = shape[:3]
        for field, wanted in (
            ("reward_moments", (n, k, size)),
            ("reward_sums", (n, k)),
            ("squared_norms", (n,)),
            ("arrivals", (n,)),
        ):
            check_shape(field, getattr(self, field), wanted)

    @classmethod
    def empty(cls, *, n_features: int, n_positions: int, n_user_types: int = 1) -> "FeatureStatistics":
        """Return statistics of no rounds.

        Parameters
        ----------
        n_features
            D: the number of entries of ψ.
        n_positions, n_user_types
            K and N.

        Raises
        ------
        InvalidInputError
            If a size is not positive.
        """
        size = check_integer("n_features", n_features, 1)
        k, n = check_integer("n_positions", n_positions, 1), check_integer("n_user_types", n_user_types, 1)
        shapes = ((n, k, size, size), (n, k, size), (n, k), (n,), (n,))
        return cls(*(np.zeros(shape) for shape in shapes))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, ArrayLike]) -> "FeatureStatistics":
        """Return the statistics of arrays by field name, which are copied.

        Raises
        ------
        InvalidInputError
            If a field is missing, or shapes do not match.

        Examples
        --------
        >>> statistics = FeatureStatistics.empty(n_features=3, n_positions=2)
        >>> FeatureStatistics.from_arrays(statistics.to_arrays()).n_positions
        2
        """
        for field in _FIELDS:
            if field not in arrays:
                raise InvalidInputError(field, "must be given", None)
        return cls(*(np.array(arrays[field], dtype=np.float64, order="C") for field in _FIELDS))

    def to_arrays(self) -> dict[str, Floats]:
        """Return copies of the arrays by field name."""
        return {field: getattr(self, field).copy() for field in _FIELDS}

    @property
    def n_user_types(self) -> int:
        """N."""
        return int(self.moments.shape[0])

    @property
    def n_positions(self) -> int:
        """K."""
        return int(self.moments.shape[1])

    @property
    def n_features(self) -> int:
        """The number of entries of ψ, D."""
        return int(self.moments.shape[2])

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return round(float(self.arrivals.sum()))

    def copy(self) -> "FeatureStatistics":
        """Return a copy with arrays of its own."""
        return FeatureStatistics(*(getattr(self, field).copy() for field in _FIELDS))

    def __add__(self, other: object) -> "FeatureStatistics":
        if not isinstance(other, FeatureStatistics):
            return NotImplemented
        if other.moments.shape != self.moments.shape:
            raise InvalidInputError(
                "statistics", f"must have shape {self.moments.shape} to be added", other.moments.shape
            )
        return FeatureStatistics(*(getattr(self, field) + getattr(other, field) for field in _FIELDS))

    def __repr__(self) -> str:
        sizes = f"{self.n_features} features, {self.n_positions} positions"
        return f"<FeatureStatistics: {self.rounds:,} rounds, {sizes}>"
