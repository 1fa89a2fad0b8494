"""Base classes of baselines: copies for user types, and prior knowledge about positions."""

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer, check_number
from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._base import CompiledPolicy, Treatment, check_treatment, check_utility
from banditrank.policies._kernel import Kernel
from banditrank.utilities._utility import UTILITARIAN, Utility

Rows: TypeAlias = tuple[tuple[float, ...], ...]

RANK_ONE_CLICKS = Assumptions(click_models=("single-look", "position-based"))
"""The click probability of a cell is a factor of the item times a factor of the position, both unknown."""


@dataclass(frozen=True, kw_only=True)
class BaselinePolicy(CompiledPolicy):
    """A policy of another paper, which knows a single user type.

    Under personalized treatment each user type gets a copy of its own; under equal treatment one copy learns
    from all types. The policy does not use the utility; only its regret depends on it.

    Parameters
    ----------
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    UnknownNameError
        If the treatment or the utility is unknown.
    """

    compiled_kernel: ClassVar[Kernel]

    treatment: Treatment = "personalized"
    utility: Utility = UTILITARIAN

    def __post_init__(self) -> None:
        check_treatment(self.treatment)
        object.__setattr__(self, "utility", check_utility(self.utility, self.treatment))

    @property
    def distinguishes_user_types(self) -> bool:  # type: ignore[override]
        """Whether each user type has a copy of its own."""
        return self.treatment == "personalized"

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values."""
        own = [field.name for field in fields(self) if field.name not in ("treatment", "utility")]
        return {**super().describe(), **{name: _plain(getattr(self, name)) for name in own}}

    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:  # noqa: ARG002 - one for all sizes
        """Return the compiled functions."""
        return self.compiled_kernel


@dataclass(frozen=True, kw_only=True)
class OrderedBaselinePolicy(BaselinePolicy):
    """A baseline that assumes to know the order of positions.

    Parameters
    ----------
    order
        Positions by decreasing examination, a row for each copy, or one for all; by default in the order of
        their indices, as the policy assumes.

    Raises
    ------
    InvalidInputError
        If a row is not a permutation of the positions.
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

    def ordered_positions(self, counts: Counts) -> NDArray[np.uintp]:
        """Return the positions by decreasing examination, shape (copies, K).

        Raises
        ------
        InvalidInputError
            If the order does not fit the counts.
        """
        n, k = counts.n_user_types, counts.n_positions
        rows = np.arange(k)[None, :] if self.order is None else np.array(self.order)
        return broadcast_rows("order", rows, n, k).astype(np.uintp)


@dataclass(frozen=True, kw_only=True)
class HorizonBaselinePolicy(OrderedBaselinePolicy):
    """A baseline that assumes to know the order of positions, with a confidence level set by the horizon.

    Parameters
    ----------
    horizon
        T. The policy runs for any number of rounds; its guarantee holds for T rounds.

    Raises
    ------
    InvalidInputError
        If the horizon is not positive.
    """

    assumptions: ClassVar[Assumptions] = Assumptions(
        positions="order", click_models=("single-look", "position-based", "cascade")
    )

    horizon: int = 10**6

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "horizon", check_horizon(self.horizon))


@dataclass(frozen=True, kw_only=True)
class ExaminationBaselinePolicy(BaselinePolicy):
    """A baseline that assumes to know the examination probability of each position.

    Parameters
    ----------
    examination
        κ, a row for each copy, or one for all.

    Raises
    ------
    InvalidInputError
        If a probability is not from 0 to 1.
    """

    assumptions: ClassVar[Assumptions] = replace(RANK_ONE_CLICKS, positions="examination")

    examination: Rows

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = tuple(
            tuple(check_number("examination", float(value), 0.0, 1.0) for value in row)
            for row in self.examination
        )
        object.__setattr__(self, "examination", rows)

    def examination_rows(self, counts: Counts) -> NDArray[np.float64]:
        """Return κ, shape (copies, K).

        Raises
        ------
        InvalidInputError
            If κ does not fit the counts.
        """
        rows = np.array(self.examination)
        return broadcast_rows("examination", rows, counts.n_user_types, counts.n_positions)


def broadcast_rows(field_name: str, rows: NDArray[Any], n_copies: int, n_positions: int) -> NDArray[Any]:
    """Return a row for each copy, shape (copies, K), given as many or one for all.

    Raises
    ------
    InvalidInputError
        If the rows have another shape.
    """
    if rows.ndim != 2 or rows.shape[1] != n_positions or len(rows) not in (1, n_copies):
        rule = f"must have 1 or {n_copies} rows of {n_positions} positions"
        raise InvalidInputError(field_name, rule, f"shape {rows.shape}")
    return np.ascontiguousarray(np.broadcast_to(rows, (n_copies, n_positions)))


def check_horizon(horizon: int) -> int:
    """Return the horizon.

    Raises
    ------
    InvalidInputError
        If it is not an integer from 1 to 10¹².
    """
    return check_integer("horizon", horizon, 1, 10**12)


def _plain(value: Any) -> Any:
    """Return a parameter as a plain value: tuples as lists."""
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
