"""The items that a request allows in a ranking: candidates, and items that are pinned to positions."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer
from banditrank._text import list_names
from banditrank.engine._surface import Surface
from banditrank.errors import InvalidInputError, UnknownNameError

_ALL, _LISTED, _EXCLUDED, _BITMAP = range(4)  # encodings of candidates
_PIN = struct.Struct("<BH")


class AllowedItems(NamedTuple):
    """The items of a surface that a ranking may show, as numbers."""

    candidates: tuple[int, ...] | None = None  # in ascending order; None for all active items
    pinned: tuple[tuple[int, int], ...] = ()  # positions from 0, and items, in order of positions

    @classmethod
    def of(
        cls,
        surface: Surface,
        *,
        candidates: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        pinned: Mapping[int, str] | None = None,
    ) -> "AllowedItems":
        """Return the allowed items of a request.

        Candidates and excluded items that are not active are ignored (see `ignored_items`): callers learn
        of changes later than the surface. A pin is a promise to show an item, so it must be active.

        Parameters
        ----------
        surface
            The surface.
        candidates
            Items that may be shown; all active items by default.
        exclude
            Items that must not be shown.
        pinned
            Items that must be shown, by position: 1 is the first. They need not be candidates.

        Raises
        ------
        UnknownNameError
            If a pinned item is not active.
        InvalidInputError
            If a position does not exist, an item is pinned twice or excluded, or there are too few
            candidates.

        Examples
        --------
        >>> surface = Surface("home", items=["a", "b", "c"], n_positions=1, retired=["a"])
        >>> AllowedItems.of(surface, candidates=["a", "b", "z"], exclude=["z"])
        AllowedItems(candidates=(1,), pinned=())
        """
        excluded = _active_numbers("exclude", exclude, surface)
        pins = _pins({} if pinned is None else pinned, surface)
        for _, item in pins:
            if item in excluded:
                raise InvalidInputError("pinned", "must not be excluded", surface.items[item])
        allowed = None
        if candidates is not None or excluded:
            numbers = surface.active_numbers
            listed = numbers if candidates is None else _active_numbers("candidates", candidates, surface)
            allowed = tuple(sorted(set(listed) - excluded))
        made = cls(allowed, pins)
        made._check_size(surface, candidates, exclude)
        return made

    def _check_size(self, surface: Surface, candidates: Sequence[str] | None, exclude: Sequence[str]) -> None:
        n_free = surface.n_positions - len(self.pinned)
        items = surface.active_numbers if self.candidates is None else self.candidates
        n_left = len(set(items) - {item for _, item in self.pinned})
        if n_left >= n_free:
            return
        field = "exclude" if candidates is None else "candidates"
        ignored = list(map(repr, ignored_items(surface, candidates=candidates, exclude=exclude)))
        without = f" (ignored: {list_names(ignored)})" if ignored else ""
        if not surface.allow_short_rankings:
            n_needed = f"{n_free} item{'' if n_free == 1 else 's'}"
            rule = f"must leave at least {n_needed}, one for each position that is not pinned"
            raise InvalidInputError(field, rule + without, n_left)
        n_shown = n_left + len(self.pinned)
        if n_shown == 0:
            raise InvalidInputError(field, f"must leave at least one item{without}", 0)
        last = max((position for position, _ in self.pinned), default=0)
        if last >= n_shown:
            rule = f"must be a position from 1 to {n_shown}, which candidates and pinned items fill"
            raise InvalidInputError(f"pinned.{last + 1}", rule, last + 1)

    def allows(self, items: Sequence[int]) -> bool:
        """Return whether a ranking shows candidates and pinned items only, the latter at their positions."""
        pinned = dict(self.pinned)
        if any(position >= len(items) or items[position] != item for position, item in self.pinned):
            return False
        allowed = None if self.candidates is None else set(self.candidates)
        return all(k in pinned or allowed is None or item in allowed for k, item in enumerate(items))

    def first_of(self, order: Sequence[int], n_positions: int) -> tuple[int, ...]:
        """Return the first allowed items of an order, with pinned items at their positions.

        Examples
        --------
        >>> AllowedItems((0, 2, 3), ((1, 4),)).first_of([3, 1, 2, 0, 4], 3)
        (3, 4, 2)
        """
        pinned = dict(self.pinned)
        allowed = set(order if self.candidates is None else self.candidates) - set(pinned.values())
        items = [item for item in order if item in allowed]
        for position, item in sorted(pinned.items()):
            items.insert(position, item)
        return tuple(items[:n_positions])

    def columns(self, column_of: Mapping[int, int]) -> "AllowedColumns":
        """Return the columns of counts that are allowed, given the column of each item number."""
        items = None if self.candidates is None else [column_of[number] for number in self.candidates]
        return AllowedColumns(
            None if items is None else np.array(items, dtype=np.intp),
            {position: column_of[number] for position, number in self.pinned},
        )

    def encode(self, n_items: int) -> bytes:
        """Encode the allowed items for a ranking id; empty if all are.

        Examples
        --------
        >>> allowed = AllowedItems((0, 5, 9), ((1, 300),))
        >>> AllowedItems.decode(allowed.encode(400), 400) == allowed
        True
        """
        if self == ALL_ITEMS:
            return b""
        pins = b"".join([_PIN.pack(position, item) for position, item in self.pinned])
        head = bytes([len(self.pinned)]) + pins
        if self.candidates is None:
            return head + bytes([_ALL])
        candidates = np.array(self.candidates, dtype="<u2")
        is_candidate = np.zeros(n_items, dtype=np.bool_)
        is_candidate[candidates] = True
        encodings = [
            bytes([_LISTED]) + candidates.tobytes(),
            bytes([_EXCLUDED]) + np.flatnonzero(~is_candidate).astype("<u2").tobytes(),
            bytes([_BITMAP]) + np.packbits(is_candidate).tobytes(),
        ]
        return head + min(encodings, key=len)

    @classmethod
    def decode(cls, encoded: bytes, n_items: int) -> "AllowedItems":
        """Return the allowed items of a ranking id."""
        if not encoded:
            return cls()
        end = 1 + _PIN.size * encoded[0]
        pinned = tuple((position, item) for position, item in _PIN.iter_unpack(encoded[1:end]))
        kind, content = encoded[end], encoded[end + 1 :]
        if kind == _ALL:
            return cls(None, pinned)
        if kind == _BITMAP:
            bits = np.unpackbits(np.frombuffer(content, dtype=np.uint8), count=n_items)
            return cls(tuple(np.flatnonzero(bits).tolist()), pinned)
        numbers = np.frombuffer(content, dtype="<u2").tolist()
        if kind == _EXCLUDED:
            numbers = sorted(set(range(n_items)) - set(numbers))
        return cls(tuple(numbers), pinned)


ALL_ITEMS = AllowedItems()


class AllowedColumns(NamedTuple):
    """Allowed items as columns of counts."""

    candidates: NDArray[np.intp] | None
    pinned: dict[int, int]  # position to column


def ignored_items(
    surface: Surface, *, candidates: Sequence[str] | None = None, exclude: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the candidates and excluded items of a request that are retired or unknown.

    Examples
    --------
    >>> surface = Surface("home", items=["a", "b", "c"], n_positions=1, retired=["a"])
    >>> ignored_items(surface, candidates=["a", "b", "z"], exclude=["z", "c"])
    ('a', 'z')
    """
    numbers = surface.active_item_numbers
    return tuple(dict.fromkeys(item for item in (*(candidates or ()), *exclude) if item not in numbers))


def _active_numbers(field: str, given: Iterable[str], surface: Surface) -> set[int]:
    """Return the numbers of the named items that are active."""
    numbers = surface.active_item_numbers
    return {numbers[item] for item in _names(field, given) if item in numbers}


def _names(field: str, given: Iterable[str]) -> Iterable[str]:
    if isinstance(given, str) or not isinstance(given, Sequence | frozenset | set):
        raise InvalidInputError(field, "must be a list of names", given)
    for item in given:
        if not isinstance(item, str):
            raise InvalidInputError(field, "must be a list of names", item)
    return given


def _pins(pinned: Mapping[int, str], surface: Surface) -> tuple[tuple[int, int], ...]:
    if not isinstance(pinned, Mapping):
        raise InvalidInputError("pinned", "must map positions to items", pinned)
    pins: dict[int, int] = {}
    for position, item in pinned.items():
        k = check_integer(f"pinned.{position}", position, 1, surface.n_positions) - 1
        if not isinstance(item, str) or item not in surface.active_item_numbers:
            raise UnknownNameError("pinned", item, surface.active_item_numbers)
        number = surface.active_item_numbers[item]
        if number in pins.values():
            raise InvalidInputError("pinned", "must have each item once", item)
        pins[k] = number
    return tuple(sorted(pins.items()))
