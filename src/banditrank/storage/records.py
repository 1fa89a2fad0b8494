"""What stores keep: plain values, in numbers instead of names.

A ranking that was shown is three things: the surface's number, a key, and what was shown to whom. Its key
begins with the time at which its attribution window closes, so that keys are stored in the order of time:
what lapses, and what may be thrown away, is a range of keys.
"""

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

REWARD_UNITS = 1 << 20
"""Rewards are kept in whole millionths, about: sums of whole numbers do not depend on their order."""

KEY_BYTES = 14
_TIME_BYTES = 6
_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")


ImpressionId: TypeAlias = tuple[int, bytes]
"""What a ranking is found by: the number of its surface, and its key."""


def is_storable(text: str) -> bool:
    r"""Return whether every store can hold a string: PostgreSQL stores no NUL, and UTF-8 no lone surrogate.

    Look-ups by strings of clients ask this first, so that such a string is not found, whatever the store.

    Examples
    --------
    >>> is_storable("home"), is_storable("ho\0me")
    (True, False)
    """
    return _NOT_STORABLE.search(text) is None


class Impression(NamedTuple):
    """A ranking that was shown to a user."""

    surface_id: int
    key: bytes  # KEY_BYTES: when it lapses, then random
    ranking: bytes  # the user type's number and the items' in order of positions, each two bytes

    @property
    def id(self) -> ImpressionId:
        """What it is found by."""
        return self[:2]

    @property
    def expires_at_ms(self) -> int:
        """When its attribution window closes, in milliseconds since 1970."""
        return expiry_of(self.key)

    @property
    def user_type(self) -> int:
        """The user type's number."""
        return self.numbers[0]

    @property
    def items(self) -> tuple[int, ...]:
        """The items' numbers, in order of positions."""
        return self.numbers[1:]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The user type's number, and the items'."""
        return struct.unpack(f"<{len(self.ranking) // 2}H", self.ranking)


def pack_ranking(user_type: int, items: tuple[int, ...]) -> bytes:
    """Return what `Impression.ranking` holds.

    Examples
    --------
    >>> Impression(1, b"", pack_ranking(2, (7, 300))).items
    (7, 300)
    """
    return struct.pack(f"<{len(items) + 1}H", user_type, *items)


def min_key(milliseconds: int) -> bytes:
    """Return the least key of rankings that lapse at a time or later."""
    return milliseconds.to_bytes(_TIME_BYTES, "big") + bytes(KEY_BYTES - _TIME_BYTES)


def expiry_of(key: bytes) -> int:
    """Return when a ranking lapses, in milliseconds since 1970.

    Examples
    --------
    >>> expiry_of(min_key(1000))
    1000
    """
    return int.from_bytes(key[:_TIME_BYTES], "big")


class Outcome(NamedTuple):
    """What became of a ranking."""

    position: int  # of the click, −1 without one
    reward: int  # in 1 / REWARD_UNITS

    @property
    def code(self) -> int:
        """The outcome as one number, to be stored."""
        return (self.position + 2) * 2 * REWARD_UNITS + self.reward

    @classmethod
    def from_code(cls, code: int) -> "Outcome":
        """Return the outcome that a code stands for.

        Examples
        --------
        >>> Outcome.from_code(Outcome(3, 512).code)
        Outcome(position=3, reward=512)
        """
        position, reward = divmod(code, 2 * REWARD_UNITS)
        return cls(position - 2, reward)


NOT_CLICKED = Outcome(-1, 0)
DISCARDED = Outcome(-2, 0)  # its window closed, and it counts for nothing


class Event(NamedTuple):
    """One line of what a store is told: a ranking that was shown, and what became of it if that is known."""

    impression: Impression
    outcome: Outcome | None


def group_by_surface(events: Iterable[Event]) -> dict[int, list[Event]]:
    """Return entries, those of one surface together, surfaces in the order of their numbers."""
    together: dict[int, list[Event]] = {}
    for event in events:
        together.setdefault(event.impression.surface_id, []).append(event)
    return dict(sorted(together.items()))


class CommitStatus(StrEnum):
    """What a store says to an entry."""

    RECORDED = "noted"  # shown, the outcome is open
    COUNTED = "counted"
    REPEATED = "repeated"  # was counted before, with the same outcome
    CONFLICTING = "contradicted"  # was counted before, with another outcome
    DELETED = "gone"  # the surface was deleted
    PRUNED = "forgotten"  # it lapsed so long ago that nobody knows whether it was counted


class Change(NamedTuple):
    """What was added to the counts of a surface at once."""

    surface_id: int
    version: int  # 1, 2, … without a gap for each surface
    cells: bytes  # see `cells`
    at: int  # when, in milliseconds since 1970; 0 if that is not known: counts that were imported


class Snapshot(NamedTuple):
    """The sum of all changes up to a version."""

    version: int
    cells: bytes
    saved: int  # milliseconds since 1970
    history: bytes = b""  # what else whoever saves it adds up over changes


EMPTY_SNAPSHOT = Snapshot(0, b"", 0)


class Versions(NamedTuple):
    """How far a surface is."""

    revision: int  # of its definition
    version: int  # of its counts


class CommitResult(NamedTuple):
    """What a store did with a group of entries."""

    statuses: list[CommitStatus]  # in the order of the entries
    changes: list[Change]


@dataclass(frozen=True, slots=True)
class SurfaceRecord:
    """A surface: a name, and a definition that the engine reads and stores do not."""

    surface_id: int
    name: str
    definition: str
    revision: int  # 1, 2, … with every change of the definition


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """An API key, of which only a hash is kept."""

    id: str
    name: str
    rights: tuple[str, ...]
    digest: bytes
    created: int  # milliseconds since 1970
    revoked: int | None = None
    expires_at_ms: int | None = None  # None: never
    surfaces: tuple[str, ...] = ()  # the only surfaces that the key may access; empty: all

    def is_valid(self, now_ms: int) -> bool:
        """Return whether the key is neither revoked nor expired.

        Examples
        --------
        >>> KeyRecord("k1", "page", ("rank",), b"", created=5, expires_at_ms=10).is_valid(10)
        False
        """
        return self.revoked is None and (self.expires_at_ms is None or now_ms < self.expires_at_ms)
