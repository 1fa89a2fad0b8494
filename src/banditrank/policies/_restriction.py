"""Restrictions of a ranking: the candidates, and items that are pinned to positions."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer
from banditrank._compilation import compiled, inlined
from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from banditrank.policies._base import Policy

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

_INDEX = np.dtype(np.intp)
_MAX_ITEM = int(np.iinfo(np.intp).max)

Candidates: TypeAlias = Collection[int] | NDArray[np.integer]
"""Items that a ranking may show, in any order; one that is given twice counts once."""
Pins: TypeAlias = Mapping[int, int]
"""Items that a ranking must show, by position."""

GIVEN, IS_SHORT_ALLOWED, AVAILABLE, LENGTH, STATUS = range(5)  # indices of Restriction.sizes
VALID, UNKNOWN_CANDIDATE, UNKNOWN_PIN, REPEATED_PIN, TOO_FEW, EMPTY, HIDDEN_PIN = range(7)  # values of STATUS
UNAVAILABLE, FREE, PINNED = range(3)  # values of Restriction.roles


class Restriction(NamedTuple):
    """The items and positions that a ranking may use, as compiled functions read them.

    The caller writes the candidates, the pins and two sizes; `load_restriction` writes the rest.
    """

    given: NDArray[np.intp]  # (M + 1,) the candidates, the first sizes[GIVEN]
    pinned: NDArray[np.intp]  # (K,) the item of each position, −1 for none
    sizes: NDArray[np.int64]  # (5,) see above; LENGTH is the number of positions that are shown, 0 if invalid
    roles: NDArray[np.int8]  # (M,) of each item
    items: Indices  # (M,) available candidates that are not pinned, in increasing order: sizes[AVAILABLE]
    positions: Indices  # (K,) workspace: positions that are not pinned, by decreasing preference
    leaders: Indices  # (K,) workspace: items by decreasing value
    values: Floats  # (M,) workspace


def new_restriction(n_items: int, n_positions: int) -> Restriction:
    """Allocate a restriction for the given sizes."""
    m, k = n_items, n_positions
    return Restriction(
        np.zeros(m + 1, dtype=np.intp),
        np.full(k, -1, dtype=np.intp),
        np.zeros(5, dtype=np.int64),
        np.zeros(m, dtype=np.int8),
        np.zeros(m, dtype=np.uintp),
        np.zeros(k, dtype=np.uintp),
        np.zeros(k, dtype=np.uintp),
        np.zeros(m),
    )


def as_candidates(candidates: Candidates | None, *, n_items: int) -> NDArray[np.intp]:
    """Return candidates as an array; all items if None is given.

    It has at most M entries, or M + 1 if an item does not exist.

    Raises
    ------
    InvalidInputError
        If they are not integers.

    Examples
    --------
    >>> as_candidates({4, 1}, n_items=6)
    array([1, 4])
    """
    if isinstance(candidates, np.ndarray) and candidates.dtype is _INDEX and candidates.ndim == 1:
        items = cast("NDArray[np.intp]", candidates)  # checked first, because it is the fastest
        return items if items.size <= n_items else np.unique(items)[: n_items + 1]
    if candidates is None:
        return np.arange(n_items)
    try:
        array = candidates if isinstance(candidates, np.ndarray) else np.array(list(candidates))
    except (TypeError, ValueError):  # not iterable, or rows of different lengths
        array = np.zeros((0, 0))
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size > 0):
        raise InvalidInputError("candidates", "must hold item numbers", candidates)
    return as_candidates(array.astype(_INDEX), n_items=n_items)


def as_pins(pinned: Pins, *, n_positions: int) -> NDArray[np.intp]:
    """Return the pinned item of each position, −1 for none, shape (K,).

    Raises
    ------
    InvalidInputError
        If a position does not exist, or an item is not an integer.

    Examples
    --------
    >>> as_pins({1: 7}, n_positions=3)
    array([-1,  7, -1])
    """
    if not isinstance(pinned, Mapping):
        raise InvalidInputError("pinned", "must be a mapping of positions to items", pinned)
    items = np.empty(n_positions, dtype=np.intp)
    items.fill(-1)
    for position, item in pinned.items():
        if not (
            type(position) is type(item) is int and 0 <= position < n_positions and 0 <= item <= _MAX_ITEM
        ):
            check_integer("position of pinned", position, 0, n_positions - 1)
            check_integer("item of pinned", item, 0, _MAX_ITEM)
        items[position] = item
    return items


@compiled
def load_restriction(restriction: Restriction) -> bool:
    """Write the available items and the length of the ranking; return whether the restriction is valid."""
    given, items, sizes, roles = restriction.given, restriction.items, restriction.sizes, restriction.roles
    sizes[STATUS], sizes[LENGTH] = VALID, 0
    for j in range(roles.size):
        roles[j] = UNAVAILABLE
    for index in range(sizes[GIVEN]):
        if not 0 <= given[index] < roles.size:
            sizes[STATUS] = UNKNOWN_CANDIDATE
            return False
        roles[given[index]] = FREE
    n_pins, last_pin = _load_pins(restriction)
    available = 0
    for j in range(roles.size):  # without a branch, which would be mispredicted
        items[available] = j
        available += roles[j] == FREE
    sizes[AVAILABLE] = available
    length = min(restriction.pinned.size, available + n_pins)
    if length < restriction.pinned.size and sizes[STATUS] == VALID:
        sizes[STATUS] = _status_of_short(sizes[IS_SHORT_ALLOWED] == 1, length, last_pin)
    sizes[LENGTH] = length if sizes[STATUS] == VALID else 0
    return bool(sizes[STATUS] == VALID)


@inlined
def _status_of_short(is_allowed: bool, length: int, last_pin: int) -> int:  # noqa: FBT001 - compiled
    if not is_allowed:
        return int(TOO_FEW)
    if length == 0:
        return int(EMPTY)
    return int(HIDDEN_PIN if last_pin >= length else VALID)


@inlined
def _load_pins(restriction: Restriction) -> tuple[int, int]:
    """Write the roles of pinned items; return their number, and the last of their positions."""
    pinned, roles = restriction.pinned, restriction.roles
    n_pins, last_pin = 0, -1
    for k in range(pinned.size):
        j = pinned[k]
        if j == -1:
            continue
        if not 0 <= j < roles.size:
            restriction.sizes[STATUS] = UNKNOWN_PIN
        elif roles[j] == PINNED:
            restriction.sizes[STATUS] = REPEATED_PIN
        else:
            roles[j] = PINNED
        n_pins, last_pin = n_pins + 1, k
    return n_pins, last_pin


def restriction_unsupported(policy: "Policy", **given: object) -> InvalidInputError:
    """Return the error of a policy that cannot restrict its rankings, for the first given argument."""
    field, value = next((name, value) for name, value in given.items() if value is not None)
    if policy.treatment == "equal-lottery":
        return InvalidInputError(
            field, "must be left out under equal-lottery treatment, which ranks all items", value
        )
    if policy.guarantees:
        rule = "must be left out if there are guarantees, which lotteries over all items keep"
        return InvalidInputError(field, rule, value)
    return InvalidInputError(
        field, f"must be left out for policy {policy.name}, which ranks all items", value
    )


def restriction_error(restriction: Restriction) -> InvalidInputError:
    """Return the error of a restriction that `load_restriction` found invalid."""
    given, pinned, sizes, roles = restriction[:4]
    n_items, status = roles.size, sizes[STATUS]
    if status == UNKNOWN_CANDIDATE:
        items = given[: sizes[GIVEN]]
        unknown = items[(items < 0) | (items >= n_items)]
        return InvalidInputError("candidates", f"must be items from 0 to {n_items - 1}", int(unknown[0]))
    if status == UNKNOWN_PIN:
        unknown = pinned[(pinned < -1) | (pinned >= n_items)]
        return InvalidInputError("pinned", f"must hold items from 0 to {n_items - 1}", int(unknown[0]))
    pins = {int(position): int(pinned[position]) for position in np.flatnonzero(pinned >= 0)}
    if status == REPEATED_PIN:
        return InvalidInputError("pinned", "must not contain an item twice", pins)
    if status == HIDDEN_PIN:
        rule = f"must hold positions below {sizes[AVAILABLE] + len(pins)}, the number of items to show"
        return InvalidInputError("pinned", rule, pins)
    least = 1 if status == EMPTY else pinned.size - len(pins)
    rule = f"must hold at least {least} items that are not pinned, one for each free position"
    return InvalidInputError("candidates", rule, f"{sizes[AVAILABLE]} items")


@inlined
def place_best(restriction: Restriction, values: Floats, preferences: Floats, ranking: Indices) -> None:
    """Write the best available items to the best positions that are not pinned, in order, and the pins.

    Ties go to the lower index, as in `top_k`.

    Parameters
    ----------
    restriction
        The loaded restriction.
    values
        Value of each item, shape (M,); only those of available items are read.
    preferences
        Preference of each position, shape (K,).
    ranking
        The result, the first sizes[LENGTH] of shape (K,).
    """
    positions, leaders = restriction.positions, restriction.leaders
    n_free = 0
    for k in range(restriction.sizes[LENGTH]):
        if restriction.pinned[k] >= 0:
            ranking[k] = restriction.pinned[k]
            continue
        place = n_free
        while place > 0 and preferences[positions[place - 1]] < preferences[k]:
            positions[place] = positions[place - 1]
            place -= 1
        positions[place] = k
        n_free += 1
    kept = 0
    for index in range(restriction.sizes[AVAILABLE] if n_free > 0 else 0):
        j = restriction.items[index]
        if kept == n_free and values[j] <= values[leaders[kept - 1]]:
            continue
        place = min(kept, n_free - 1)
        kept = place + 1
        while place > 0 and values[leaders[place - 1]] < values[j]:
            leaders[place] = leaders[place - 1]
            place -= 1
        leaders[place] = j
    for rank in range(n_free):
        ranking[positions[rank]] = leaders[rank]


@inlined
def place_in_turn(restriction: Restriction, turn: int, ranking: Indices) -> None:
    """Write the round-robin ranking of a turn among the available items, and the pins."""
    available, n_free = restriction.sizes[AVAILABLE], 0
    for k in range(restriction.sizes[LENGTH]):
        if restriction.pinned[k] >= 0:
            ranking[k] = restriction.pinned[k]
        else:
            ranking[k] = restriction.items[(turn + n_free + 1) % available]
            n_free += 1


@inlined
def place_at_random(restriction: Restriction, rng: np.random.Generator, ranking: Indices) -> None:
    """Write a ranking drawn uniformly among the allowed ones; the order of the available items is lost."""
    items, n_free = restriction.items, 0
    for k in range(restriction.sizes[LENGTH]):
        if restriction.pinned[k] >= 0:
            ranking[k] = restriction.pinned[k]
        else:
            other = n_free + int(rng.random() * (restriction.sizes[AVAILABLE] - n_free))
            items[n_free], items[other] = items[other], items[n_free]
            ranking[k] = items[n_free]
            n_free += 1


def check_restricted(
    ranking: NDArray[np.intp], candidates: NDArray[np.intp], pinned: NDArray[np.intp] | None
) -> None:
    """Check the ranking of a policy in plain Python against candidates and pins.

    Raises
    ------
    InvalidInputError
        If the ranking shows another item.
    """
    is_allowed = np.isin(ranking, candidates)
    if pinned is not None:
        pins = pinned[: ranking.size]
        is_allowed = np.where(pins >= 0, ranking == pins, is_allowed & ~np.isin(ranking, pinned))
    if not is_allowed.all() or (pinned is not None and (pinned[ranking.size :] >= 0).any()):
        raise InvalidInputError(
            "ranking", "must hold candidates, and pinned items where they belong", ranking
        )
