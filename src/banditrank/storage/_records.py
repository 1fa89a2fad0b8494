"""Values that stores keep, with ids and indices in place of names.

An impression's key starts with the time at which its attribution window closes, so that keys sort by expiry:
the impressions that expire, or may be pruned, are a range of keys. All times are in milliseconds since the
Unix epoch.
"""

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from numpy.typing import NDArray

REWARD_UNITS = 1 << 20
"""Stored units per unit of reward: rewards are integers, whose sums do not depend on their order."""

_USER_TYPE_BITS = 10
MAX_ARM_CODE = (1 << 16 - _USER_TYPE_BITS) - 1
"""Largest code of an arm: the first two bytes of a ranking hold the user type and the code of the arm."""

KEY_BYTES = 14
_EXPIRY_BYTES = 6
_Coded = TypeVar("_Coded", int, "NDArray[Any]")
_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")


ImpressionId: TypeAlias = tuple[int, bytes]
"""Surface id and key of an impression."""


def is_storable(text: str) -> bool:
    r"""Return whether every store can hold a string: PostgreSQL stores no NUL, UTF-8 no lone surrogate.

    Stores check the names that clients look up, so that one that is not storable is unknown in every store.

    Examples
    --------
    >>> is_storable("home"), is_storable("ho\0me")
    (True, False)
    """
    return _NOT_STORABLE.search(text) is None


class Impression(NamedTuple):
    """A ranking that was shown to a user."""

    surface_id: int
    key: bytes  # KEY_BYTES long: time of expiry, then random bytes
    ranking: bytes  # see `pack_ranking`

    @property
    def id(self) -> ImpressionId:
        """Surface id and key."""
        return self[:2]

    @property
    def expires_at_ms(self) -> int:
        """Time at which the attribution window closes."""
        return expiry_of(self.key)

    @property
    def user_type(self) -> int:
        """Index of the user type."""
        return user_type_of(self.coded_numbers[0])

    @property
    def arm_code(self) -> int:
        """Code of the arm of an experiment; 0 without an experiment."""
        return arm_code_of(self.coded_numbers[0])

    @property
    def coded_numbers(self) -> tuple[int, ...]:
        """Index of the user type with the code of the arm, followed by the indices of the items."""
        return struct.unpack_from(f"<{len(self.ranking) // 2}H", self.ranking)

    @property
    def items(self) -> tuple[int, ...]:
        """Indices of the items, in the order of positions."""
        return self.coded_numbers[1:]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Index of the user type, followed by those of the items."""
        return (self.user_type, *self.items)


def pack_ranking(user_type: int, items: tuple[int, ...], arm_code: int = 0) -> bytes:
    """Encode a user type, its ranking and the arm for `Impression.ranking`, in two bytes per index.

    Examples
    --------
    >>> impression = Impression(1, b"", pack_ranking(2, (7, 300), arm_code=63))
    >>> impression.user_type, impression.items, impression.arm_code
    (2, (7, 300), 63)
    """
    return struct.pack(f"<{len(items) + 1}H", coded(user_type, arm_code), *items)


def coded(user_type: _Coded, arm_code: int) -> _Coded:
    """Return a user type, or an array of user types, with the code of an arm."""
    return user_type | arm_code << _USER_TYPE_BITS


def user_type_of(coded: _Coded) -> _Coded:
    """Return the user type of a value, or an array of values, that also has the code of an arm."""
    return coded & ((1 << _USER_TYPE_BITS) - 1)


def arm_code_of(coded: _Coded) -> _Coded:
    """Return the code of the arm of a value, or an array of values, that also has a user type."""
    return coded >> _USER_TYPE_BITS


def min_key(expires_at_ms: int) -> bytes:
    """Return the smallest key of impressions that expire at a time or later."""
    return expires_at_ms.to_bytes(_EXPIRY_BYTES, "big") + bytes(KEY_BYTES - _EXPIRY_BYTES)


def expiry_of(key: bytes) -> int:
    """Return the time at which the impression with a key expires.

    Examples
    --------
    >>> expiry_of(min_key(1000))
    1000
    """
    return int.from_bytes(key[:_EXPIRY_BYTES], "big")


class Click(NamedTuple):
    """A click on the item at a position, or a later reward for it."""

    position: int
    reward: int  # in 1 / REWARD_UNITS

    @property
    def code(self) -> int:
        """The click as one integer."""
        return (self.position + 2) * 2 * REWARD_UNITS + self.reward

    @classmethod
    def from_code(cls, code: int) -> "Click":
        """Return the click with a code.

        Examples
        --------
        >>> Click.from_code(Click(3, 512).code)
        Click(position=3, reward=512)
        """
        position, reward = divmod(code, 2 * REWARD_UNITS)
        return cls(position - 2, reward)


_DISCARDED_CODE, _NOT_CLICKED_CODE = Click(-2, 0).code, Click(-1, 0).code
_OPEN, _OPEN_SINGLE, _MERGED, _SEPARATOR = "+", "*", ".", ","  # sort before digits
_MAX_CACHED_CODES = 1024  # most outcomes are one of a few


class Outcome(NamedTuple):
    """Clicks on an impression, at most one for each position.

    Outcomes of the same impression are merged: the largest reward of each position stays. The result does not
    depend on their order, or on repetitions. Where at most one click is possible, the first position stays.

    Examples
    --------
    >>> click, purchase = Outcome.of(0, 1000, is_final=False), Outcome.of(0, 5000)
    >>> both = click.merge(purchase)
    >>> both == purchase.merge(click), both.clicks == purchase.clicks
    (True, True)
    >>> both.covers(click), click.covers(both)
    (True, False)
    """

    clicks: tuple[Click, ...] = ()  # in order of positions
    is_final: bool = True  # whether it is counted, and no click can follow
    is_discarded: bool = False  # expired without feedback, and excluded from the counts
    is_single: bool = False  # whether at most one click is possible; False if it is final
    is_merged: bool = False  # whether it is final, and of several events

    @classmethod
    def of(cls, position: int, reward: int, *, is_final: bool = True) -> "Outcome":
        """Return the outcome of one click."""
        return cls((Click(position, reward),), is_final)

    def contradicts(self, other: "Outcome") -> bool:
        """Return whether another outcome has a click at another position, where one is possible at most."""
        is_other = self.clicks and other.clicks and self.clicks[0].position != other.clicks[0].position
        return self.is_single and bool(is_other)

    def merge(self, other: "Outcome") -> "Outcome":
        """Return the outcome of both; this one if they contradict each other."""
        if self.contradicts(other):
            return self
        rewards = dict(self.clicks)
        for position, reward in other.clicks:
            rewards[position] = max(reward, rewards.get(position, 0))
        clicks = tuple(Click(position, rewards[position]) for position in sorted(rewards))
        is_final = self.is_final or other.is_final
        return Outcome(
            clicks,
            is_final,
            is_discarded=not clicks and (self.is_discarded or other.is_discarded),
            is_single=not is_final and (self.is_single or other.is_single),
            is_merged=is_final,
        )

    def covers(self, other: "Outcome") -> bool:
        """Return whether another outcome is the same, or an event that this one may be merged of."""
        if self.is_final and other.is_final and not self.is_merged:
            return self == other
        adds_nothing = self.merge(other).clicks == self.clicks and self.is_discarded <= other.is_discarded
        return adds_nothing and not self.contradicts(other)

    @property
    def code(self) -> str:
        """The outcome as text: digits, separated by commas, with a mark unless it is one final event."""
        return _outcome_code(self)

    @classmethod
    def from_code(cls, code: str) -> "Outcome":
        """Return the outcome with a code.

        Examples
        --------
        >>> outcome = Outcome((Click(0, 512), Click(3, 1)), is_final=False)
        >>> Outcome.from_code(outcome.code) == outcome
        True
        """
        mark, codes = code[0], code.lstrip(_OPEN + _OPEN_SINGLE + _MERGED).split(_SEPARATOR)
        clicks = tuple(Click.from_code(int(one)) for one in codes)
        is_discarded = clicks[0].code == _DISCARDED_CODE
        if clicks[0].position < 0:
            clicks = ()
        is_final = mark not in (_OPEN, _OPEN_SINGLE)
        return cls(clicks, is_final, is_discarded, is_single=mark == _OPEN_SINGLE, is_merged=mark == _MERGED)


@lru_cache(maxsize=_MAX_CACHED_CODES)
def _outcome_code(outcome: Outcome) -> str:
    if outcome.clicks:
        codes = [click.code for click in outcome.clicks]
    else:
        codes = [_DISCARDED_CODE if outcome.is_discarded else _NOT_CLICKED_CODE]
    if outcome.is_final:
        mark = _MERGED if outcome.is_merged else ""
    else:
        mark = _OPEN_SINGLE if outcome.is_single else _OPEN
    return mark + _SEPARATOR.join(map(str, codes))


NOT_CLICKED = Outcome()
DISCARDED = Outcome(is_discarded=True)


class Event(NamedTuple):
    """An impression, and its outcome if that is known: the unit that a store commits."""

    impression: Impression
    outcome: Outcome | None


def group_by_surface(events: Iterable[Event]) -> dict[int, list[Event]]:
    """Return the events of each surface, in ascending order of surface ids."""
    groups: dict[int, list[Event]] = {}
    for event in events:
        surface_id = event.impression.surface_id
        if surface_id in groups:
            groups[surface_id].append(event)
        else:
            groups[surface_id] = [event]
    return dict(sorted(groups.items()))


class CommitStatus(StrEnum):
    """Result of committing an event."""

    RECORDED = "recorded"  # an impression without an outcome, or clicks that are counted later
    COUNTED = "counted"
    REPEATED = "repeated"  # adds nothing to what was recorded or counted before
    CONFLICTING = "conflicting"  # would change what was counted before
    DELETED = "deleted"  # the surface does not exist
    PRUNED = "pruned"  # expired so long ago that the store no longer knows whether it was counted


class Change(NamedTuple):
    """Counts that one commit added to a surface."""

    surface_id: int
    version: int  # 1, 2, 3, … within a surface
    cells: bytes  # see `encode_cells`
    committed_at_ms: int  # 0 if unknown: imported counts


class Snapshot(NamedTuple):
    """Sum of all changes up to a version."""

    version: int
    cells: bytes
    saved_at_ms: int


EMPTY_SNAPSHOT = Snapshot(0, b"", 0)


class SavedTimeSeries(NamedTuple):
    """Time series of a surface, encoded by the dashboard; stores do not read the data."""

    version: int  # of the counts that it covers
    data: bytes


class Versions(NamedTuple):
    """Current versions of a surface."""

    revision: int  # of its definition
    version: int  # of its counts


class CommitResult(NamedTuple):
    """Result of committing a group of events."""

    statuses: list[CommitStatus]  # in the order of the events
    changes: list[Change]


@dataclass(frozen=True, slots=True)
class SurfaceRecord:
    """A surface with its definition, which the engine encodes and stores do not read."""

    surface_id: int
    name: str
    definition: str
    revision: int  # 1, 2, 3, … with every new definition


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """An API key, of which only the hash is stored."""

    id: str
    name: str
    rights: tuple[str, ...]
    digest: bytes
    created_at_ms: int
    revoked_at_ms: int | None = None
    expires_at_ms: int | None = None  # None: never
    surfaces: tuple[str, ...] = ()  # the only surfaces that the key may access; empty: all

    def is_valid(self, now_ms: int) -> bool:
        """Return whether the key is neither revoked nor expired.

        Examples
        --------
        >>> KeyRecord("k1", "page", ("rank",), b"", created_at_ms=5, expires_at_ms=10).is_valid(10)
        False
        """
        return self.revoked_at_ms is None and (self.expires_at_ms is None or now_ms < self.expires_at_ms)
