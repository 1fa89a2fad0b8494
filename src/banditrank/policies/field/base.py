"""What the field's policies share: copies for user types, and what they are told of positions."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank.checks import check_number, check_whole
from banditrank.errors import InvalidInputError
from banditrank.policies.base import CompiledPolicy, Treatment, check_treatment
from banditrank.statistics.counts import Counts
from banditrank.utilities.utility import UTILITARIAN, Utility, find_utility

Rows: TypeAlias = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True)
class FieldPolicy(CompiledPolicy):
    """A policy from the literature, which knows one kind of user.

    Under personalized treatment each user type gets a copy of its own, under equal treatment one copy learns
    from all; the criterion is then no concern of the policy's, only of the regret's.

    Parameters
    ----------
    treatment, utility
        What its regret is measured against.
    """

    treatment: Treatment = "personalized"
    utility: Utility = UTILITARIAN

    def __post_init__(self) -> None:
        check_treatment(self.treatment)
        object.__setattr__(self, "utility", find_utility(self.utility))

    @property
    def distinguishes_user_types(self) -> bool:  # type: ignore[override]
        """Whether each user type has a copy of its own."""
        return self.treatment == "personalized"


@dataclass(frozen=True, kw_only=True)
class OrderedFieldPolicy(FieldPolicy):
    """A field policy that takes the order of positions for known.

    Parameters
    ----------
    order
        The positions from the most to the least looked at, a row for each copy, or one for all. Left out:
        as they are numbered, which the plain policy takes for granted.
    """

    order: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order is not None:
            rows = tuple(tuple(int(position) for position in row) for row in self.order)
            for row in rows:
                if sorted(row) != list(range(len(row))):
                    raise InvalidInputError("order", "must hold every position once in each row", row)
            object.__setattr__(self, "order", rows)

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values."""
        return {**super().describe(), "order": None if self.order is None else [list(r) for r in self.order]}

    def positions_in_order(self, counts: Counts) -> NDArray[np.uintp]:
        """Return the positions from the most to the least looked at, shape (copies, K)."""
        n, k = counts.n_user_types, counts.n_positions
        rows = np.arange(k)[None, :] if self.order is None else np.array(self.order)
        return rows_for_copies("order", rows, n, k).astype(np.uintp)


@dataclass(frozen=True, kw_only=True)
class InformedFieldPolicy(FieldPolicy):
    """A field policy that takes it for known how probably each position is looked at.

    Parameters
    ----------
    examination
        κ, a row for each copy, or one for all.
    """

    examination: Rows

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = tuple(
            tuple(check_number("examination", float(value), 0.0, 1.0) for value in row)
            for row in self.examination
        )
        object.__setattr__(self, "examination", rows)

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values."""
        return {**super().describe(), "examination": [list(row) for row in self.examination]}

    def examinations(self, counts: Counts) -> NDArray[np.float64]:
        """Return κ, shape (copies, K)."""
        rows = np.array(self.examination)
        return rows_for_copies("examination", rows, counts.n_user_types, counts.n_positions)


def rows_for_copies(field_name: str, rows: NDArray[Any], n_copies: int, n_positions: int) -> NDArray[Any]:
    """Return a row for each copy, given as many or one for all."""
    if rows.ndim != 2 or rows.shape[1] != n_positions or len(rows) not in (1, n_copies):
        rule = f"must have 1 or {n_copies} rows of {n_positions} positions"
        raise InvalidInputError(field_name, rule, f"shape {rows.shape}")
    return np.ascontiguousarray(np.broadcast_to(rows, (n_copies, n_positions)))


def check_horizon(horizon: int) -> int:
    """Return the horizon, or raise an error if it is none."""
    return check_whole("horizon", horizon, 1, 10**12)
