"""Additive counts of displays, rewards and arrivals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._array_checks import check_entries, check_float64, check_shape
from banditrank._checks import check_integer, check_number
from banditrank._frames import Columns, NamedTabular, cell_columns, names_or_default
from banditrank.errors import InvalidInputError
from banditrank.model._problem import Problem
from banditrank.model._rankings import as_ranking

_FLOAT = np.dtype(np.float64)


@dataclass(slots=True, eq=False)
class Counts(NamedTabular):
    """Displays T, rewards S, arrivals and rounds of N user types, M items and K positions.

    Counts are additive: those of two periods, replicas or log files are merged with ``+``. The arrays are
    stored position-major, (N, K, M), because formulas iterate over items; `displays` and `rewards` are views
    with the paper's axes, (N, M, K).

    ``to_frame`` returns a row for each user type, position and item, with the columns ``user_type``,
    ``position`` (from 1), ``item``, ``displays`` and ``rewards``.

    Parameters
    ----------
    displays_by_position, rewards_by_position
        T and S, shape (N, K, M), float64.
    arrivals
        Number of arrivals of each type, shape (N,), float64.
    rounds
        Number of rounds, t.

    Raises
    ------
    InvalidInputError
        If shapes or types do not match.

    Examples
    --------
    >>> counts = Counts.empty(n_user_types=2, n_items=3, n_positions=2)
    >>> counts.record(0, [2, 0], rewards=[0, 1])
    >>> counts.displays[0, 2, 0], counts.rewards[0, 0, 1], counts.rounds
    (np.float64(1.0), np.float64(1.0), 1)
    >>> (counts + counts).rounds
    2
    """

    displays_by_position: NDArray[np.float64]  # (N, K, M)
    rewards_by_position: NDArray[np.float64]  # (N, K, M)
    arrivals: NDArray[np.float64]  # (N,)
    rounds: int

    def __post_init__(self) -> None:
        # Compiled formulas do not check shapes, and counts are created often: the valid case is checked fast.
        displays, rewards, arrivals = self.displays_by_position, self.rewards_by_position, self.arrivals
        try:
            n, k, m = displays.shape
            is_valid = (
                n > 0
                and 0 < k <= m
                and rewards.shape == (n, k, m)
                and arrivals.shape == (n,)
                and displays.dtype == rewards.dtype == arrivals.dtype == _FLOAT
                and type(self.rounds) is int
                and self.rounds >= 0
            )
        except (AttributeError, ValueError):  # not an array of three axes
            is_valid = False
        if not is_valid:
            self._convert_or_raise()

    def _convert_or_raise(self) -> None:
        """Convert the number of rounds to an int, and raise the error for invalid arrays."""
        tables = {
            "displays_by_position": self.displays_by_position,
            "rewards_by_position": self.rewards_by_position,
            "arrivals": self.arrivals,
        }
        for field, table in tables.items():
            check_float64(field, table)
        shape = self.displays_by_position.shape
        if len(shape) != 3 or not 1 <= shape[1] <= shape[2] or shape[0] < 1:
            rule = "must have shape (N, K, M) with 1 ≤ K ≤ M"
            raise InvalidInputError("displays_by_position", rule, shape)
        for field, wanted in (("rewards_by_position", shape), ("arrivals", shape[:1])):
            check_shape(field, tables[field], wanted)
        self.rounds = check_integer("rounds", self.rounds, 0)

    @classmethod
    def empty(cls, *, n_user_types: int, n_items: int, n_positions: int) -> "Counts":
        """Return counts of 0 for the given sizes.

        Raises
        ------
        InvalidInputError
            If a size is not positive, or there are more positions than items.
        """
        if not 1 <= n_positions <= n_items or n_user_types < 1:
            rule = "must have at least one user type and 1 ≤ positions ≤ items"
            raise InvalidInputError("counts", rule, (n_user_types, n_items, n_positions))
        shape = (n_user_types, n_positions, n_items)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(n_user_types), 0)

    @classmethod
    def empty_for(cls, problem: Problem) -> "Counts":
        """Return counts of 0 with the sizes of a problem."""
        return cls.empty(
            n_user_types=problem.n_user_types, n_items=problem.n_items, n_positions=problem.n_positions
        )

    @classmethod
    def from_arrays(
        cls,
        displays: ArrayLike,
        rewards: ArrayLike,
        arrivals: ArrayLike,
        rounds: int | None = None,
        *,
        max_reward: float = 1.0,
    ) -> "Counts":
        """Return counts of arrays with the paper's axes.

        Parameters
        ----------
        displays, rewards
            T and S, shape (N, M, K).
        arrivals
            Number of arrivals of each type, shape (N,).
        rounds
            t; the sum of the arrivals by default.
        max_reward
            Maximum reward of a display: the scale of graded rewards.

        Raises
        ------
        InvalidInputError
            If shapes do not match, a value is negative or infinite, or rewards exceed ``max_reward`` times
            the displays.

        Examples
        --------
        >>> Counts.from_arrays(displays=[[[20]]], rewards=[[[100]]], arrivals=[100])
        Traceback (most recent call last):
        banditrank.errors.InvalidInputError: rewards[0][0][0] must be at most the displays, 20, got 100.0
        """
        tables = {"displays": _counts("displays", displays, 3), "rewards": _counts("rewards", rewards, 3)}
        if tables["displays"].shape != tables["rewards"].shape:
            shapes = f"{tables['displays'].shape} and {tables['rewards'].shape}"
            raise InvalidInputError("displays and rewards", "must have the same shape", shapes)
        n, m, k = tables["displays"].shape
        if min(n, m, k) < 1 or k > m:
            raise InvalidInputError("displays", "must have shape (N, M, K) with 1 ≤ K ≤ M", (n, m, k))
        arrived = _counts("arrivals", arrivals, 1)
        if arrived.shape != (n,):
            raise InvalidInputError("arrivals", f"must have one entry for each of {n} user types", arrivals)
        _check_displayed(tables["displays"], tables["rewards"])
        _check_limit(tables["displays"], tables["rewards"], check_number("max_reward", max_reward, 0, np.inf))
        by_position = [np.ascontiguousarray(table.transpose(0, 2, 1)) for table in tables.values()]
        total = round(float(arrived.sum())) if rounds is None else rounds
        return cls(by_position[0], by_position[1], arrived, check_integer("rounds", total, 0, 10**15))

    @property
    def displays(self) -> NDArray[np.float64]:
        """T, shape (N, M, K): number of displays of each item to each type at each position."""
        return self.displays_by_position.transpose(0, 2, 1)

    @property
    def rewards(self) -> NDArray[np.float64]:
        """S, shape (N, M, K): sum of the rewards (clicks) of these displays."""
        return self.rewards_by_position.transpose(0, 2, 1)

    @property
    def n_user_types(self) -> int:
        """N."""
        return int(self.displays_by_position.shape[0])

    @property
    def n_items(self) -> int:
        """M."""
        return int(self.displays_by_position.shape[2])

    @property
    def n_positions(self) -> int:
        """K."""
        return int(self.displays_by_position.shape[1])

    def record(
        self,
        user_type: int,
        ranking: Sequence[int] | NDArray[np.integer],
        *,
        rewards: ArrayLike,
        allow_short: bool = False,
    ) -> None:
        """Add one round.

        Parameters
        ----------
        user_type
            Index of the user type that arrived.
        ranking
            The ranking shown, shape (K,).
        rewards
            The reward at each position, shape (K,); 0 where nothing was clicked.
        allow_short
            Whether the ranking and the rewards may be shorter, of the first positions.

        Raises
        ------
        InvalidInputError
            If an argument is invalid; the counts are unchanged.
        """
        self.check_user_type(user_type)
        shown = as_ranking(
            ranking, n_items=self.n_items, n_positions=self.n_positions, allow_short=allow_short
        )
        earned = as_reward_array(rewards, shown.size)
        positions = np.arange(shown.size)
        self.displays_by_position[user_type, positions, shown] += 1
        self.rewards_by_position[user_type, positions, shown] += earned
        self.arrivals[user_type] += 1
        self.rounds += 1

    def check_user_type(self, user_type: int) -> None:
        """Check that a user type exists.

        Raises
        ------
        InvalidInputError
            If it does not.
        """
        check_integer("user_type", user_type, 0, self.n_user_types - 1)

    def check_values(self) -> None:
        """Check that all counts are finite and not negative, and that rewards have displays.

        `from_arrays` and `record` guarantee this; the constructor, for speed, does not.

        Raises
        ------
        InvalidInputError
            If a value is invalid.
        """
        for field, table in (
            ("displays", self.displays),
            ("rewards", self.rewards),
            ("arrivals", self.arrivals),
        ):
            _check_numbers(field, table)
        _check_displayed(self.displays, self.rewards)

    def pooled(self) -> "Counts":
        """Return the counts summed over user types, as of a single type."""
        return Counts(
            self.displays_by_position.sum(axis=0, keepdims=True),
            self.rewards_by_position.sum(axis=0, keepdims=True),
            self.arrivals.sum(keepdims=True),
            self.rounds,
        )

    def select_items(self, items: Sequence[int] | NDArray[np.integer]) -> "Counts":
        """Return the counts of the given items, in their order; arrivals and rounds are unchanged."""
        chosen = np.asarray(items, dtype=np.intp)
        return Counts(
            np.ascontiguousarray(self.displays_by_position[:, :, chosen]),
            np.ascontiguousarray(self.rewards_by_position[:, :, chosen]),
            self.arrivals.copy(),
            self.rounds,
        )

    def scaled(self, weight: float) -> "Counts":
        """Return the counts multiplied by a weight; rounds are rounded."""
        return Counts(
            self.displays_by_position * weight,
            self.rewards_by_position * weight,
            self.arrivals * weight,
            round(self.rounds * weight),
        )

    def copy(self) -> "Counts":
        """Return a copy."""
        return Counts(
            self.displays_by_position.copy(),
            self.rewards_by_position.copy(),
            self.arrivals.copy(),
            self.rounds,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as nested lists with the paper's axes."""
        return {
            "displays": self.displays.tolist(),
            "rewards": self.rewards.tolist(),
            "arrivals": self.arrivals.tolist(),
            "rounds": self.rounds,
        }

    def _repr_html_(self) -> str:
        from banditrank.counts._counts_html import counts_html  # noqa: PLC0415 - circular

        return counts_html(self)

    def _columns(
        self, user_types: Sequence[str] | None = None, items: Sequence[str] | None = None
    ) -> Columns:
        return {
            **cell_columns(
                names_or_default("user_types", user_types, "type", self.n_user_types),
                self.n_positions,
                names_or_default("items", items, "item", self.n_items),
            ),
            "displays": self.displays_by_position.flatten(),
            "rewards": self.rewards_by_position.flatten(),
        }

    def __add__(self, other: "Counts") -> "Counts":
        if not isinstance(other, Counts):
            return NotImplemented
        if self.displays.shape != other.displays.shape:
            shapes = f"{self.displays.shape} and {other.displays.shape}"
            raise InvalidInputError("counts", "must have the same shape to be merged", shapes)
        return Counts(
            self.displays_by_position + other.displays_by_position,
            self.rewards_by_position + other.rewards_by_position,
            self.arrivals + other.arrivals,
            self.rounds + other.rounds,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counts) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]


def _counts(field: str, value: ArrayLike, dimensions: int) -> NDArray[np.float64]:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError(field, "must hold numbers only", value) from None
    if array.ndim != dimensions:
        raise InvalidInputError(field, f"must have {dimensions} axes", f"{array.ndim}")
    _check_numbers(field, array)
    return array


def as_reward_array(rewards: ArrayLike, n_positions: int) -> NDArray[np.float64]:
    """Return the reward at each position, shape (K,).

    Raises
    ------
    InvalidInputError
        If there are more or fewer, or one is negative or infinite.

    Examples
    --------
    >>> as_reward_array([0, 1], 2)
    array([0., 1.])
    """
    earned = _counts("rewards", rewards, 1)
    if earned.shape != (n_positions,):
        raise InvalidInputError("rewards", f"must have {n_positions} entries", rewards)
    return earned


def _check_numbers(field: str, array: NDArray[np.float64]) -> None:
    is_valid = (array >= 0) & (array < np.inf)
    if not is_valid.all():
        raise InvalidInputError(field, "must be finite and not negative", float(array[~is_valid][0]))


def _check_displayed(displays: NDArray[np.float64], rewards: NDArray[np.float64]) -> None:
    """Raise an error for a reward without a display. Shapes are (N, M, K)."""
    is_valid = (displays != 0) | (rewards <= 0)
    check_entries("rewards", rewards, is_valid, "must be 0 where nothing was displayed")


def _check_limit(displays: NDArray[np.float64], rewards: NDArray[np.float64], max_reward: float) -> None:
    """Raise an error for rewards above the maximum, such as swapped arrays. Shapes are (N, M, K)."""
    above = rewards > displays * max_reward * (1 + 1e-9)  # sums of graded rewards are rounded
    if above.any():
        index = tuple(np.argwhere(above)[0])
        entry = "rewards" + "".join(f"[{axis}]" for axis in index)
        limit = "the displays" if max_reward == 1 else f"{max_reward:g} times the displays"
        raise InvalidInputError(entry, f"must be at most {limit}, {displays[index]:g}", float(rewards[index]))


def check_counts(counts: Counts) -> None:
    """Check that a value is a `Counts` with valid values.

    Raises
    ------
    InvalidInputError
        If it is not.

    Examples
    --------
    >>> check_counts([[1, 2]])
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: counts must be a Counts, got [[1, 2]]
    """
    if not isinstance(counts, Counts):
        raise InvalidInputError("counts", "must be a Counts", counts)
    counts.check_values()
