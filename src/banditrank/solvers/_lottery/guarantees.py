"""Guarantees of a lottery: least exposure of items, and least values of user types."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple

import numpy as np

from banditrank._checks import check_number
from banditrank._text import list_names
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.solvers._instance import Instance
from banditrank.solvers._lottery.pricing import GuaranteeRows

Names = Sequence[str | int]


@dataclass(frozen=True, slots=True)
class LeastExposure:
    """A least exposure of items: the share of users who look at the position in which an item is shown.

    The exposure of item j under a lottery that shows it at position k with probability X_jk is
    Σ_i λ_i Σ_k ρ_ik X_jk. The exposures of all items sum to 1 if every user looks at one position.

    Parameters
    ----------
    level
        The least exposure, from 0 to 1.
    items
        Names or indices of the items; all by default.
    is_group
        Whether the level is that of all these items together, as for a supplier or a category, instead of
        each one's.

    Raises
    ------
    InvalidInputError
        If the level is out of range, there are no items, or an item is given twice.

    Examples
    --------
    >>> LeastExposure(0.02)
    LeastExposure(level=0.02, items=None, is_group=False)
    >>> LeastExposure(1.5)
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: least exposure must be a number from 0 to 1, got 1.5
    """

    level: float
    items: Names | None = None
    is_group: bool = False

    def __post_init__(self) -> None:
        check_number("least exposure", self.level, 0.0, 1.0)
        if self.items is not None:
            object.__setattr__(self, "items", _as_names("items", self.items))


@dataclass(frozen=True, slots=True)
class KeptShare:
    """A least value of user types, as a share of their values under personalized treatment.

    Parameters
    ----------
    share
        The share, from 0 to 1.
    user_types
        Names or indices of the types; all by default.

    Raises
    ------
    InvalidInputError
        If the share is out of range, there are no types, or a type is given twice.

    Examples
    --------
    >>> KeptShare(0.9, user_types=["male"])
    KeptShare(share=0.9, user_types=('male',))
    >>> KeptShare(1.1)
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: kept share must be a number from 0 to 1, got 1.1
    """

    share: float
    user_types: Names | None = None

    def __post_init__(self) -> None:
        check_number("kept share", self.share, 0.0, 1.0)
        if self.user_types is not None:
            object.__setattr__(self, "user_types", _as_names("user_types", self.user_types))


Guarantee = LeastExposure | KeptShare

MAX_ROWS = 2_000  # the memory of a search grows with their square: 300 MB


class NamedRows(NamedTuple):
    """Guarantees as rows of the master, and the name of each."""

    rows: GuaranteeRows
    names: tuple[str, ...]


def as_rows(
    guarantees: Iterable[Guarantee], instance: Instance, items: Sequence[str], user_types: Sequence[str]
) -> NamedRows:
    """Return guarantees as rows of the master; those of level 0, which always hold, are left out.

    Of guarantees for the same items or the same type the largest counts. Rows are those of items, in order,
    then of groups, then of user types.

    Raises
    ------
    UnknownNameError
        If an item or a type is unknown.
    InvalidInputError
        If an index is out of range, an item is given twice, least exposures sum to more than there is, or
        there are too many.
    """
    least = np.zeros(len(items))
    shares = np.zeros(len(user_types))
    groups: dict[tuple[int, ...], float] = {}
    group_names: dict[tuple[int, ...], str] = {}
    item_numbers = {name: j for j, name in enumerate(items)}
    type_numbers = {name: i for i, name in enumerate(user_types)}
    if not isinstance(guarantees, Iterable):
        raise InvalidInputError("guarantees", "must be a list of LeastExposure and KeptShare", guarantees)
    for guarantee in guarantees:
        if isinstance(guarantee, LeastExposure):
            members = _numbers("item", guarantee.items, item_numbers)
            if len(set(members)) < len(members):  # by its name and by its number
                raise InvalidInputError("items", "must be different items", list(guarantee.items or ()))
            if guarantee.is_group and len(members) > 1:
                group = tuple(sorted(members))
                groups[group] = max(guarantee.level, groups.get(group, 0.0))
                members_named = list_names([items[j] for j in members])
                group_name = "all items" if guarantee.items is None else members_named
                group_names.setdefault(group, group_name)
            else:
                least[members] = np.maximum(least[members], guarantee.level)
        elif isinstance(guarantee, KeptShare):
            kept = _numbers("user_type", guarantee.user_types, type_numbers)
            shares[kept] = np.maximum(shares[kept], guarantee.share)
        else:
            raise InvalidInputError("guarantees", "must be a list of LeastExposure and KeptShare", guarantee)
    single = np.flatnonzero(least).tolist()
    together = [group for group, level in groups.items() if level > 0.0]
    kept_types = np.flatnonzero(shares)
    n_rows = len(single) + len(together) + kept_types.size
    if n_rows > MAX_ROWS:
        rule = f"must be of at most {MAX_ROWS:,} items, groups and user types in all"
        raise InvalidInputError("guarantees", rule, n_rows)
    levels = [*least[single].tolist(), *(groups[group] for group in together)]
    _check_total(max([float(least.sum()), *levels]), instance)
    rows_of: list[list[int]] = [[] for _ in items]
    for row, members_of_row in enumerate([*((j,) for j in single), *together]):
        for item in members_of_row:
            rows_of[item].append(row)
    names = [
        *(f"exposure of {items[j]}" for j in single),
        *(f"exposure of {group_names[group]}" for group in together),
        *(f"value of {user_types[i]}" for i in kept_types.tolist()),
    ]
    starts = np.cumsum([0, *(len(rows) for rows in rows_of)])
    rows = GuaranteeRows(
        np.array([*levels, *np.zeros(kept_types.size)], dtype=np.float64),
        starts.astype(np.int64),
        np.array([row for rows in rows_of for row in rows], dtype=np.int64),
        kept_types.astype(np.int64),
        shares[kept_types],
    )
    return NamedRows(rows, tuple(names))


def _check_total(needed: float, instance: Instance) -> None:
    """Check that levels of different items do not sum to more than all positions have."""
    available = float(instance.weights @ instance.preferences.sum(axis=1))
    if needed > available * (1.0 + 1e-9):
        rule = f"must have least exposures that sum to at most {available:.6g}, the exposure of all positions"
        raise InvalidInputError("guarantees", rule, round(needed, 9))


def _as_names(field: str, names: Names) -> tuple[str | int, ...]:
    rule = "must be different names or numbers, at least one"
    try:
        given = (names,) if isinstance(names, str) else tuple(names)
        is_valid = 0 < len(set(given)) == len(given)
    except TypeError:  # not a sequence, or of lists
        raise InvalidInputError(field, rule, names) from None
    if not is_valid:
        raise InvalidInputError(field, rule, list(given))
    return given


def _numbers(field: str, names: Names | None, known: dict[str, int]) -> list[int]:
    """Return the numbers of items or user types; of all if no names are given."""
    if names is None:
        return list(range(len(known)))
    return [_number(field, name, known) for name in names]


def _number(field: str, name: str | int, known: dict[str, int]) -> int:
    if isinstance(name, Integral) and not isinstance(name, bool):
        if not 0 <= name < len(known):
            raise InvalidInputError(field, f"must be a name, or a number from 0 to {len(known) - 1}", name)
        return int(name)
    if name not in known:
        raise UnknownNameError(field, name, tuple(known))
    return known[str(name)]
