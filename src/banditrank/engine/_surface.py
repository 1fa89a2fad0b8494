"""Definition of a surface: a place where items are ranked."""

import json
import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

from banditrank._checks import check_integer, check_number
from banditrank.engine._served_policies import served_policy
from banditrank.errors import InvalidInputError, StoreError, UnknownNameError, UnsolvableError, one_line
from banditrank.policies._base import CompiledPolicy, Treatment

Unreported: TypeAlias = Literal["not-clicked", "discarded"]
SurfaceClickModel: TypeAlias = Literal["single-look", "position-based"]

MAX_USER_TYPES, MAX_ITEMS, MAX_POSITIONS = 1_000, 10_000, 100
MAX_CELLS = 2_000_000
MAX_NAME_LENGTH = 200
RESERVED_NAMES = (".", "..")
"""Names with another meaning in the path of a URL."""

SURFACE_NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
_DAY = 86_400.0


@dataclass(frozen=True)
class Surface:
    """A place where items are ranked: items, positions, user types, and the policy.

    Parameters
    ----------
    name
        Lower-case letters, digits, dots, dashes and underscores.
    items
        Names of the items. An item's index is its number, so new items are appended.
    n_positions
        Number of items that are shown at once.
    user_types
        Names of the user types; new ones are appended.
    policy
        ``auto``, or the name of another policy that learns from counts alone.
    treatment, utility
        ``personalized``, or ``equal`` with the utility that it maximises.
    coefficient
        Exploration coefficient, for policies that have one.
    retired
        Items that are no longer shown; their counts are kept.
    attribution_seconds
        Length of the attribution window, within which feedback is accepted.
    unreported
        How an impression without feedback is counted when its window closes: ``not-clicked``, or not at all
        (``discarded``).
    refresh_seconds
        Maximum age of the counts behind a ranking; 0 for always the latest.
    keep_seconds
        How long single rankings are kept, so that they can be explained and repeated feedback recognised.
    click_model
        How users look at a ranking: ``single-look``, at one position, so that they click at most once; or
        ``position-based``, at each position independently, so that they may click several items.

    Raises
    ------
    InvalidInputError
        If a setting breaks its rule.
    UnsolvableError
        If the policy cannot rank a surface of this size.

    Attributes
    ----------
    compiled_policy
        The policy, compiled for the treatment, the utility and the coefficient.

    Examples
    --------
    >>> surface = Surface("home", items=["a", "b", "c"], n_positions=2, user_types=["new", "old"])
    >>> surface.active_items
    ('a', 'b', 'c')
    >>> surface.with_retired(["b"]).active_items
    ('a', 'c')
    >>> Surface("home", items=["a"], n_positions=2)
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: n_positions must be a whole number from 1 to 1, got 2
    """

    name: str
    items: tuple[str, ...]
    n_positions: int
    user_types: tuple[str, ...] = ("everybody",)
    policy: str = "auto"
    treatment: Treatment = "personalized"
    utility: str = "utilitarian"
    coefficient: float | None = None
    retired: tuple[str, ...] = ()
    attribution_seconds: float = 1800.0
    unreported: Unreported = "not-clicked"
    refresh_seconds: float = 0.25
    keep_seconds: float = 30 * _DAY
    click_model: SurfaceClickModel = "single-look"
    compiled_policy: CompiledPolicy = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(SURFACE_NAME, self.name):
            rule = "must be up to 64 of a-z, 0-9, dot, dash and underscore, a letter or digit first"
            raise InvalidInputError("name", rule, self.name)
        for names, n_max in (("user_types", MAX_USER_TYPES), ("items", MAX_ITEMS), ("retired", MAX_ITEMS)):
            n_min = 0 if names == "retired" else 1
            object.__setattr__(self, names, _check_names(names, getattr(self, names), n_min, n_max))
        known = set(self.items)
        for name in self.retired:
            if name not in known:
                raise UnknownNameError("retired", name, self.items)
        max_positions = min(len(self.active_items), MAX_POSITIONS)
        if not max_positions:
            raise InvalidInputError("retired", "must leave at least one item", list(self.retired))
        n_positions = check_integer("n_positions", self.n_positions, 1, max_positions)
        object.__setattr__(self, "n_positions", n_positions)
        cells = len(self.user_types) * len(self.items) * self.n_positions
        if cells > MAX_CELLS:
            rule = f"must be at most {MAX_CELLS:,}"
            raise InvalidInputError("user types × items × positions", rule, cells)
        for setting, allowed in (
            ("unreported", get_args(Unreported)),
            ("click_model", get_args(SurfaceClickModel)),
        ):
            if getattr(self, setting) not in allowed:
                raise UnknownNameError(setting, getattr(self, setting), allowed)
        check_number("attribution_seconds", self.attribution_seconds, 1.0, 90 * _DAY)
        check_number("refresh_seconds", self.refresh_seconds, 0.0, 3600.0)
        check_number("keep_seconds", self.keep_seconds, 60.0, 3650 * _DAY)
        policy = served_policy(
            self.policy, treatment=self.treatment, utility=self.utility, coefficient=self.coefficient
        )
        policy.kernel(n_items=len(self.items), n_positions=self.n_positions)  # raises if it is too large
        object.__setattr__(self, "compiled_policy", policy)

    @cached_property
    def active_items(self) -> tuple[str, ...]:
        """The items that are not retired."""
        return tuple(self.items[number] for number in self.active_numbers)

    @cached_property
    def active_numbers(self) -> tuple[int, ...]:
        """The numbers of the items that are not retired."""
        retired = set(self.retired)
        return tuple(number for number, item in enumerate(self.items) if item not in retired)

    def with_items(self, names: Iterable[str]) -> "Surface":
        """Return the surface with items added, or retired ones brought back.

        Raises
        ------
        InvalidInputError
            If an item is active already.
        """
        added = _check_names("items", names, 1, MAX_ITEMS)
        known, retired = set(self.items), set(self.retired)
        for name in added:
            if name in known and name not in retired:
                raise InvalidInputError("items", "must not be active already", name)
        new = tuple(name for name in added if name not in known)
        back = set(added)
        return replace(
            self,
            items=self.items + new,
            retired=tuple(name for name in self.retired if name not in back),
        )

    def with_retired(self, names: Iterable[str]) -> "Surface":
        """Return the surface with items retired; their counts are kept.

        Raises
        ------
        UnknownNameError
            If an item is not active.
        InvalidInputError
            If too few items would be left.
        """
        retired = _check_names("items", names, 1, MAX_ITEMS)
        active = set(self.active_items)
        for name in retired:
            if name not in active:
                raise UnknownNameError("items", name, self.active_items)
        left = len(active) - len(retired)
        if left < self.n_positions:
            rule = f"must leave at least {self.n_positions}, one for each position"
            raise InvalidInputError("items", rule, f"{left} left")
        return replace(self, retired=(*self.retired, *retired))

    def to_dict(self) -> dict[str, Any]:
        """Return all settings as JSON-compatible values."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Surface":
        """Return the surface with settings as from `to_dict`.

        Raises
        ------
        InvalidInputError
            If a setting is unknown, missing, or breaks its rule.
        """
        known = [one.name for one in fields(cls) if one.init]
        for key in values:
            if key not in known:
                raise UnknownNameError("surface", key, known)
        for key in ("name", "items", "n_positions"):
            if key not in values:
                raise InvalidInputError("surface", f"must have {key}", sorted(values))
        return cls(**values)

    @property
    def definition(self) -> str:
        """The surface as JSON, for stores."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_definition(cls, text: str) -> "Surface":
        """Return the surface of a definition from a store.

        Raises
        ------
        StoreError
            If this version cannot read it.
        """
        try:
            return cls.from_dict(json.loads(text))
        except (UnsolvableError, ValueError, TypeError) as error:
            raise StoreError(f"surface in the store cannot be read: {one_line(error)}") from error

    def successor(self, changed: "Surface") -> "Surface":
        """Return the updated surface.

        Raises
        ------
        InvalidInputError
            If the counts do not fit the updated surface.
        """
        if changed.name != self.name:
            raise InvalidInputError("name", f"must stay {self.name}", changed.name)
        if changed.n_positions != self.n_positions:
            raise InvalidInputError("n_positions", f"must stay {self.n_positions}", changed.n_positions)
        for names in ("items", "user_types"):
            before, after = getattr(self, names), getattr(changed, names)
            if after[: len(before)] != before:
                raise InvalidInputError(names, "must start with the present ones, in order", list(after))
        return changed


def _check_names(what: str, given: Iterable[str], n_min: int, n_max: int) -> tuple[str, ...]:
    """Return distinct, printable names."""
    unordered = isinstance(given, Mapping | AbstractSet)
    if isinstance(given, str) or unordered or not isinstance(given, Iterable):
        raise InvalidInputError(what, "must be a list of names", given)
    names = tuple(given)
    if not n_min <= len(names) <= n_max:
        raise InvalidInputError(what, f"must be {n_min} to {n_max:,} names", f"{len(names)}")
    for name in names:
        if not isinstance(name, str) or not name.isprintable() or not 1 <= len(name) <= MAX_NAME_LENGTH:
            raise InvalidInputError(what, f"must be 1 to {MAX_NAME_LENGTH} printable characters each", name)
        if name in RESERVED_NAMES:
            raise InvalidInputError(what, f"must not be {' or '.join(RESERVED_NAMES)}", name)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInputError(what, "must all be different", name)
        seen.add(name)
    return names
