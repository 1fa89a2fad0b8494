"""Ranking problems: arrival rates, position preferences and item means."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._array_checks import SUM_TOLERANCE, as_number_array, check_entries, check_probabilities
from banditrank._checks import check_number
from banditrank._frames import Columns, Tabular, cell_columns
from banditrank.errors import InvalidInputError


@dataclass(frozen=True, slots=True, eq=False)
class Problem(Tabular):
    """A ranking problem: N user types, M items and K ≤ M positions. Immutable.

    ``to_frame`` returns a row for each user type, position and item, with the columns ``user_type``,
    ``position`` (from 1), ``item``, ``arrival_rate``, ``position_preference`` and ``item_mean``.

    Parameters
    ----------
    arrival_rates
        λ, shape (N,): the share of each user type among arrivals. Positive, sums to 1.
    position_preferences
        ρ, shape (N, K): the probability that a user of a type examines a position. Rows sum to 1.
    item_means
        μ, shape (N, M): the probability that a user of a type clicks an item she examines.
    user_types, items
        Unique names; ``type-1``, … and ``item-1``, … by default.
    name
        The problem's name in results and files.
    click_scale
        Clicks per visit of a ranking whose value Σ_k ρ_ik μ_i,σ(k) is 1: above 1 for a problem estimated from
        a log whose users look at several positions. Solvers return clicks per visit, the values times this;
        simulations draw at most one click per visit, by the values.

    Raises
    ------
    InvalidInputError
        If the shapes do not match, a number is outside [0, 1], rates or preferences do not sum to 1, names
        are not unique, or the scale is not from 1e-6 to 1e6.

    Examples
    --------
    >>> problem = Problem([0.5, 0.5], [[0.7, 0.3], [0.4, 0.6]], [[0.9, 0.5, 0.1], [0.2, 0.3, 0.8]])
    >>> problem.n_user_types, problem.n_items, problem.n_positions
    (2, 3, 2)
    >>> problem.items
    ('item-1', 'item-2', 'item-3')
    """

    arrival_rates: NDArray[np.float64]
    position_preferences: NDArray[np.float64]
    item_means: NDArray[np.float64]
    user_types: tuple[str, ...]
    items: tuple[str, ...]
    name: str
    click_scale: float

    def __init__(
        self,
        arrival_rates: ArrayLike,
        position_preferences: ArrayLike,
        item_means: ArrayLike,
        *,
        user_types: Sequence[str] | None = None,
        items: Sequence[str] | None = None,
        name: str = "problem",
        click_scale: float = 1.0,
    ) -> None:
        rates = _numbers("arrival_rates", arrival_rates, 1)
        preferences = _numbers("position_preferences", position_preferences, 2)
        means = _numbers("item_means", item_means, 2)
        check_probabilities("arrival_rates", rates)
        for field, table in (("position_preferences", preferences), ("item_means", means)):
            if len(table) != len(rates):
                rule = f"must have {len(rates)} rows, one for each of the arrival_rates"
                raise InvalidInputError(field, rule, len(table))
        if preferences.shape[1] > means.shape[1]:
            rule = f"must have at most {means.shape[1]} positions, one for each of the items"
            raise InvalidInputError("position_preferences", rule, preferences.shape[1])
        for row, total in enumerate(preferences.sum(axis=1)):
            if abs(total - 1) > SUM_TOLERANCE:
                rule = "must sum to 1"
                raise InvalidInputError(f"position_preferences of row {row + 1}", rule, float(total))
        values = {
            "arrival_rates": rates,
            "position_preferences": preferences,
            "item_means": means,
            "user_types": _names("user_types", user_types, "type", len(rates)),
            "items": _names("items", items, "item", means.shape[1]),
            "name": _name(name),
            "click_scale": check_number("click_scale", click_scale, 1e-6, 1e6),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    @property
    def n_user_types(self) -> int:
        """N."""
        return len(self.arrival_rates)

    @property
    def n_items(self) -> int:
        """M."""
        return int(self.item_means.shape[1])

    @property
    def n_positions(self) -> int:
        """K."""
        return int(self.position_preferences.shape[1])

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as a dictionary with the keys of a problem file, without a click scale of 1.

        Examples
        --------
        >>> Problem([1], [[1]], [[0.25]]).to_dict()["item_means"]
        [[0.25]]
        """
        return {
            "name": self.name,
            "user_types": list(self.user_types),
            "items": list(self.items),
            "arrival_rates": self.arrival_rates.tolist(),
            "position_preferences": self.position_preferences.tolist(),
            "item_means": self.item_means.tolist(),
            **({} if self.click_scale == 1.0 else {"click_scale": self.click_scale}),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Problem":
        """Return the problem of a dictionary with the keys of a problem file.

        Raises
        ------
        InvalidInputError
            If the values do not make a problem.
        """
        return cls(**values)

    @classmethod
    def load(cls, path: str | Path) -> "Problem":
        """Load a problem from a TOML file: see `banditrank.model._problem_file`.

        Raises
        ------
        InvalidInputError
            If the file cannot be read, or does not describe a problem.
        """
        from banditrank.model._problem_file import read_problem  # noqa: PLC0415 - circular

        return read_problem(path)

    def save(self, path: str | Path) -> None:
        """Write the problem to a TOML file: see `banditrank.model._problem_file`.

        Raises
        ------
        InvalidInputError
            If the file cannot be written.
        """
        from banditrank.model._problem_file import write_problem  # noqa: PLC0415 - circular

        write_problem(self, path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.user_types, self.items, self.item_means.tobytes()))

    def _repr_html_(self) -> str:
        from banditrank.model._problem_html import problem_html  # noqa: PLC0415 - circular

        return problem_html("Problem", self.name, self, self.user_types, self.items)

    def _columns(self) -> Columns:
        return {
            **cell_columns(self.user_types, self.n_positions, self.items),
            **rate_columns(self),
        }

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


class ProblemLike(Protocol):
    """Anything with arrival rates, position preferences and item means: a `Problem` or `Estimates`."""

    @property
    def arrival_rates(self) -> NDArray[np.float64]:
        """λ, shape (N,)."""

    @property
    def position_preferences(self) -> NDArray[np.float64]:
        """ρ, shape (N, K)."""

    @property
    def item_means(self) -> NDArray[np.float64]:
        """μ, shape (N, M)."""


def rate_columns(problem: ProblemLike) -> Columns:
    """Return the columns arrival_rate, position_preference and item_mean of the cells of `cell_columns`."""
    n, k = problem.position_preferences.shape
    m = problem.item_means.shape[1]
    return {
        "arrival_rate": np.repeat(problem.arrival_rates, k * m),
        "position_preference": np.repeat(problem.position_preferences.ravel(), m),
        "item_mean": np.broadcast_to(problem.item_means[:, None, :], (n, k, m)).flatten(),
    }


def _numbers(field: str, value: ArrayLike, dimensions: int) -> NDArray[np.float64]:
    """Return a read-only array of finite numbers in [0, 1]."""
    if any(isinstance(entry, bool | str) for entry in _flatten(value)):
        raise InvalidInputError(field, "must hold numbers only", value)
    array = as_number_array(field, value, dimensions)
    check_entries(field, array, (array >= 0) & (array <= 1), "must lie in [0, 1]")
    return array


def _flatten(value: object) -> Iterator[object]:
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _flatten(entry)
    else:
        yield value


def _name(name: object) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InvalidInputError("name", "must be a non-empty printable string", name)
    return name


def _names(field: str, names: Sequence[str] | None, prefix: str, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"{prefix}-{number}" for number in range(1, count + 1))
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidInputError(field, "must be a list of names", names)
    for index, name in enumerate(names):
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InvalidInputError(f"{field}[{index}]", "must be a non-empty printable string", name)
        if name in names[:index]:
            raise InvalidInputError(f"{field}[{index}]", "must differ from the names before it", name)
    if len(names) != count:
        raise InvalidInputError(field, f"must hold {count} names", len(names))
    return tuple(names)
