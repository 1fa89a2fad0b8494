"""What a surface is: one place where items are ranked."""

import json
import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

from banditrank.checks import check_number, check_integer
from banditrank.engine.served_policies import served_policy
from banditrank.errors import InvalidInputError, StoreError, UnknownNameError, UnsolvableError, one_line
from banditrank.policies.base import CompiledPolicy, Treatment

Unreported: TypeAlias = Literal["not-clicked", "discarded"]

MAX_USER_TYPES, MAX_ITEMS, MAX_POSITIONS = 1_000, 10_000, 100
MAX_CELLS = 2_000_000
MAX_NAME_LENGTH = 200
RESERVED_NAMES = (".", "..")
"""What a name must not be: in the path of an address these stand for other places."""

SURFACE_NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
_DAY = 86_400.0


@dataclass(frozen=True)
class Surface:
    """One ranking problem: items, positions, user types, and how to learn.

    Parameters
    ----------
    name
        Lower-case letters, digits, dots, dashes and underscores.
    items
        Names of the items; those added later come last. Their order is their numbers', for good.
    n_positions
        K, how many items are shown at once.
    user_types
        Names of the kinds of users; those added later come last.
    policy
        ``auto``, or the name of another policy that learns from counts alone.
    treatment, utility
        As for policies: ``personalized``, or ``equal`` and what it maximises.
    coefficient
        c, for policies that take one.
    retired
        Items that are not shown any more. What was learned of them stays.
    attribution_seconds
        For how long feedback is awaited.
    unreported
        What to make of a ranking without feedback when its attribution window closes.
    refresh_seconds
        How old the counts behind a ranking may become; 0 for none but the latest.
    keep_seconds
        For how long single rankings can be explained, and repeated feedback be told from new.

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
    compiled_policy: CompiledPolicy = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(SURFACE_NAME, self.name):
            rule = "must be up to 64 of a-z, 0-9, dot, dash and underscore, a letter or digit first"
            raise InvalidInputError("name", rule, self.name)
        for names, most in (("user_types", MAX_USER_TYPES), ("items", MAX_ITEMS), ("retired", MAX_ITEMS)):
            least = 0 if names == "retired" else 1
            object.__setattr__(self, names, _names(names, getattr(self, names), least, most))
        known = set(self.items)
        for name in self.retired:
            if name not in known:
                raise UnknownNameError("retired", name, self.items)
        most_positions = min(len(self.active_items), MAX_POSITIONS)
        if not most_positions:
            raise InvalidInputError("retired", "must leave at least one item", list(self.retired))
        n_positions = check_integer("n_positions", self.n_positions, 1, most_positions)
        object.__setattr__(self, "n_positions", n_positions)
        cells = len(self.user_types) * len(self.items) * self.n_positions
        if cells > MAX_CELLS:
            rule = f"must be at most {MAX_CELLS:,}"
            raise InvalidInputError("user types × items × positions", rule, cells)
        if self.unreported not in get_args(Unreported):
            raise UnknownNameError("unreported", self.unreported, get_args(Unreported))
        check_number("attribution_seconds", self.attribution_seconds, 1.0, 90 * _DAY)
        check_number("refresh_seconds", self.refresh_seconds, 0.0, 3600.0)
        check_number("keep_seconds", self.keep_seconds, 60.0, 3650 * _DAY)
        made = served_policy(
            self.policy, treatment=self.treatment, utility=self.utility, coefficient=self.coefficient
        )
        made.kernel(n_items=len(self.items), n_positions=self.n_positions)  # refuses what is too large for it
        object.__setattr__(self, "made_policy", made)

    @cached_property
    def active_items(self) -> tuple[str, ...]:
        """The items that are not retired."""
        return tuple(self.items[number] for number in self.active_numbers)

    @cached_property
    def active_numbers(self) -> tuple[int, ...]:
        """The numbers of the items that are not retired."""
        gone = set(self.retired)
        return tuple(number for number, item in enumerate(self.items) if item not in gone)

    def with_items(self, names: Iterable[str]) -> "Surface":
        """Return the surface with more items; retired ones come back."""
        added = _names("items", names, 1, MAX_ITEMS)
        known, retired = set(self.items), set(self.retired)
        for name in added:
            if name in known and name not in retired:
                raise InvalidInputError("items", "must not be shown already", name)
        new = tuple(name for name in added if name not in known)
        back = set(added)
        return replace(
            self,
            items=self.items + new,
            retired=tuple(name for name in self.retired if name not in back),
        )

    def with_retired(self, names: Iterable[str]) -> "Surface":
        """Return the surface without some items; what was learned of them stays."""
        gone = _names("items", names, 1, MAX_ITEMS)
        shown = self.active_items
        known = set(shown)
        for name in gone:
            if name not in known:
                raise UnknownNameError("items", name, shown)
        left = len(shown) - len(gone)
        if left < self.n_positions:
            rule = f"must leave at least {self.n_positions}, one for each position"
            raise InvalidInputError("items", rule, f"{left} left")
        return replace(self, retired=(*self.retired, *gone))

    def to_dict(self) -> dict[str, Any]:
        """Return all settings as plain values."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Surface":
        """Make a surface from plain values."""
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
        """The surface as text, for stores."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_definition(cls, text: str) -> "Surface":
        """Return the surface that a text of a store defines, or raise an error if this version cannot."""
        try:
            return cls.from_dict(json.loads(text))
        except (UnsolvableError, ValueError, TypeError) as error:
            raise StoreError(f"a surface in the store is not of this version: {one_line(error)}") from error

    def successor(self, changed: "Surface") -> "Surface":
        """Return what this surface is to become, or raise an error if what was learned would not fit it."""
        if changed.name != self.name:
            raise InvalidInputError("name", f"must stay {self.name}", changed.name)
        if changed.n_positions != self.n_positions:
            raise InvalidInputError("n_positions", f"must stay {self.n_positions}", changed.n_positions)
        for names in ("items", "user_types"):
            before, after = getattr(self, names), getattr(changed, names)
            if after[: len(before)] != before:
                raise InvalidInputError(names, "must begin with those there are, in their order", list(after))
        return changed


def _names(what: str, given: Iterable[str], least: int, most: int) -> tuple[str, ...]:
    """Return names, or raise an error for a list that is not made of different, printable ones."""
    unordered = isinstance(given, Mapping | AbstractSet)
    if isinstance(given, str) or unordered or not isinstance(given, Iterable):
        raise InvalidInputError(what, "must be a list of names", given)
    names = tuple(given)
    if not least <= len(names) <= most:
        raise InvalidInputError(what, f"must be {least} to {most:,} names", f"{len(names)}")
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
