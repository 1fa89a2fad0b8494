"""Counts of whole visits: a table that visits are added to, row by row, in compiled code.

Most visits have no click. Their displays, and those above the first click of other visits, are counted in a
dense array by group, item and position, which fits into the processor's cache. Displays at and below a first
click also depend on the last click above. They are appended to a list of events, numbers that are sorted and
added up at the end, or when the list is long.
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Codes = NDArray[np.int32]
_Scalar = TypeVar("_Scalar", bound=np.generic)

MAX_GROUPS, MAX_ITEMS = 2**20, 2**28
"""Maximum numbers of groups and items: with position and last click above they are one 60-bit key."""

MAX_DENSE_SIZE = 2**25
"""Maximum size of the dense array; beyond it all displays are events."""

MAX_EVENTS = 2**21
"""Maximum number of events before they are added up; memory that they do not need is not touched."""

MAX_ROWS_OF_VISIT = 63
"""Maximum number of rows of a visit: positions are 0 to 62, each once."""

_GROWTH = 1.5  # of an axis of the dense array
_DIGIT_BITS = 10  # of a key: the counts of a digit fit into the processor's cache
_CLICKED, _EXAMINED, _LAST = 1, 2, 4  # bits of an event below its key


class VisitCells(NamedTuple):
    """Counts of the non-empty cells, shape (C,) each.

    Attributes
    ----------
    group, item, position
        Coordinates.
    above
        0 without a click above, and p + 1 for a last click above at position p.
    displays, clicks, examined, last_clicks
        As those of `CubeCells`.
    """

    group: Indices
    item: Indices
    position: Indices
    above: Indices
    displays: Floats
    clicks: Floats
    examined: Floats
    last_clicks: Floats


def read_only(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return a view that is read-only, as arrays of Arrow are: compiled code has a version for each kind."""
    view = array.view()
    view.flags.writeable = False
    return view


@compiled
def _bit_length(bits: int) -> int:
    """Return the number of the highest bit of a number that is not negative, from 1; 0 for 0."""
    length = 0
    for step in (32, 16, 8, 4, 2, 1):
        if bits >> step:
            length += step
            bits >>= step
    return length + bits


@compiled
def _add_visits(
    starts: Indices,
    groups: Indices,
    items: Codes,
    positions: Codes,
    clicked: Codes,
    dense: NDArray[np.int32],
    n_items: int,
    n_positions: int,
    events: Indices,
    n_events: int,
    by_clicks: Indices,
    masks: Indices,
) -> int:
    """Add visits, and write the bits of their clicks; return the number of events.

    Parameters
    ----------
    starts
        First row of each visit and the end of the last one, shape (V + 1,).
    groups
        Shape (V,).
    items, positions, clicked
        Shape (R,).
    dense
        Displays without a click and above the first one, flattened from (G, M, K); empty if it is not used.
    n_items, n_positions
        M and K.
    events, n_events
        Events, of which so many are there; shape (S,), S ≥ n_events + R, written.
    by_clicks
        Number of visits by group and number of clicks, shape (G, 64).
    masks
        Clicked positions as bits, shape (V,), written.

    Returns
    -------
    int
        −1 if a position is twice in a visit.
    """
    is_dense = dense.size > 0
    for visit in range(groups.size):
        # An unsigned index is not tested for being negative.
        begin, end = np.uint64(starts[visit]), np.uint64(starts[visit + 1])
        mask = shown = repeated = n_clicks = 0
        for row in range(begin, end):
            bit = 1 << positions[row]
            repeated |= shown & bit
            shown |= bit
            mask |= bit * clicked[row]
            n_clicks += clicked[row]
        if repeated:
            return -1
        masks[visit] = mask
        group = groups[visit]
        by_clicks[group, n_clicks] += 1
        first_cell = group * n_items * n_positions
        first, last = MAX_ROWS_OF_VISIT, MAX_ROWS_OF_VISIT
        if mask:
            first, last = _bit_length(mask & -mask) - 1, _bit_length(mask) - 1
        for row in range(begin, end):
            position = positions[row]
            if is_dense and position < first:
                dense[np.uint64(first_cell + items[row] * n_positions + position)] += 1
                continue
            above = _bit_length(mask & ((1 << position) - 1))
            event = (((((group << 28) | items[row]) << 6) | position) << 6 | above) << 3
            if position <= last:
                event |= _EXAMINED
                if clicked[row]:
                    event |= _CLICKED | _LAST if position == last else _CLICKED
            events[n_events] = event
            n_events += 1
    return n_events


@compiled
def _sort_by_digit(events: Indices, shift: int, ends: Indices, ordered: Indices) -> bool:
    """Write events in the order of a digit, stably; return False if all have the same and nothing is written.

    Parameters
    ----------
    events
        Shape (n,), n ≥ 1.
    shift
        Number of bits below the digit.
    ends
        Shape (D,), D = 2 ** number of bits of the digit, written.
    ordered
        Shape (n,), written.
    """
    ends[:] = 0
    for event in events:
        ends[(event >> shift) & (ends.size - 1)] += 1
    if ends[(events[0] >> shift) & (ends.size - 1)] == events.size:
        return False
    n_before = 0
    for digit in range(ends.size):
        n_before, ends[digit] = n_before + ends[digit], n_before
    for event in events:
        digit = (event >> shift) & (ends.size - 1)
        ordered[ends[digit]] = event
        ends[digit] += 1
    return True


@compiled
def _renumber(events: Indices, groups: Indices, items: Indices, item_bits: int) -> None:
    """Replace the numbers of groups and items in events.

    Parameters
    ----------
    events
        Shape (n,), written.
    groups, items
        New numbers; those of items stay if there are none.
    item_bits
        Number of bits for the new number of an item.
    """
    for place in range(events.size):
        event = events[place]
        item = (event >> 15) & (MAX_ITEMS - 1)
        if items.size > 0:
            item = items[item]
        events[place] = ((groups[event >> 43] << item_bits | item) << 15) | (event & 0x7FFF)


@compiled
def _list_displays(
    dense: NDArray[np.int32],
    group_order: Indices,
    item_order: Indices,
    groups: Indices,
    items: Indices,
    item_bits: int,
    keys: Indices,
    counts: NDArray[np.int32],
) -> None:
    """Write the keys and counts of displays that were examined and not clicked, sorted by key.

    Parameters
    ----------
    dense
        Displays, shape (G, M, K).
    group_order, item_order
        Groups and items in the order of their new numbers.
    groups, items
        New numbers.
    item_bits
        Number of bits for the new number of an item.
    keys, counts
        Shapes (C,) and (C, 4), written; counts are 0 before.
    """
    place = 0
    for group in group_order:
        for item in item_order:
            for position in range(dense.shape[2]):
                displays = dense[group, item, position]
                if displays:
                    keys[place] = (((groups[group] << item_bits) | items[item]) << 12) | (position << 6)
                    counts[place, 0] = counts[place, 2] = displays
                    place += 1


@compiled
def _split_keys(
    keys: Indices, counts: NDArray[np.int32], item_bits: int, first_position: int, cells: VisitCells
) -> None:
    """Write the cells of keys.

    Parameters
    ----------
    keys, counts
        Shapes (C,) and (C, 4).
    item_bits
        Number of bits for the number of an item.
    first_position
        Number of the first position.
    cells
        Written.
    """
    for place in range(keys.size):
        key = keys[place]
        cells.group[place] = key >> (12 + item_bits)
        cells.item[place] = (key >> 12) & ((1 << item_bits) - 1)
        cells.position[place] = ((key >> 6) & 63) - first_position
        cells.above[place] = max((key & 63) - first_position, 0)
        cells.displays[place] = counts[place, 0]
        cells.clicks[place] = counts[place, 1]
        cells.examined[place] = counts[place, 2]
        cells.last_clicks[place] = counts[place, 3]


@compiled
def _merge(
    keys: Indices,
    counts: NDArray[np.int32],
    other_keys: Indices,
    other_counts: NDArray[np.int32],
    merged_keys: Indices,
    merged_counts: NDArray[np.int32],
) -> int:
    """Write the sum of two tables with sorted keys; return its number of keys."""
    one = other = n_keys = 0
    while one < keys.size or other < other_keys.size:
        is_one = other == other_keys.size or (one < keys.size and keys[one] <= other_keys[other])
        is_other = one == keys.size or (other < other_keys.size and other_keys[other] <= keys[one])
        merged_keys[n_keys] = keys[one] if is_one else other_keys[other]
        for column in range(4):
            merged_counts[n_keys, column] = 0
            if is_one:
                merged_counts[n_keys, column] += counts[one, column]
            if is_other:
                merged_counts[n_keys, column] += other_counts[other, column]
        one += is_one
        other += is_other
        n_keys += 1
    return n_keys


@compiled
def _merge_events(
    keys: Indices,
    counts: NDArray[np.int32],
    events: Indices,
    merged_keys: Indices,
    merged_counts: NDArray[np.int32],
) -> int:
    """Write the sum of a table with sorted keys and of sorted events; return its number of keys."""
    place = n_keys = first = 0
    while place < keys.size or first < events.size:
        is_counted = place < keys.size and (first == events.size or keys[place] <= events[first] >> 3)
        key = keys[place] if is_counted else events[first] >> 3
        merged_keys[n_keys] = key
        for column in range(4):
            merged_counts[n_keys, column] = counts[place, column] if is_counted else 0
        place += is_counted
        while first < events.size and events[first] >> 3 == key:
            event = events[first]
            merged_counts[n_keys, 0] += 1
            merged_counts[n_keys, 1] += event & _CLICKED
            merged_counts[n_keys, 2] += (event & _EXAMINED) >> 1
            merged_counts[n_keys, 3] += (event & _LAST) >> 2
            first += 1
        n_keys += 1
    return n_keys


class _KeyCounts(NamedTuple):
    """Counts of displays, clicks, examined displays and last clicks by key, sorted by key."""

    keys: Indices  # (C,)
    counts: NDArray[np.int32]  # (C, 4)

    def renumbered(self, groups: Indices, items: Indices, item_bits: int) -> "_KeyCounts":
        """Return the counts with other numbers of groups and items; see `_renumber`."""
        keys = self.keys << 3
        _renumber(keys, groups, items, item_bits)
        keys >>= 3
        order = np.argsort(keys)
        return _KeyCounts(keys[order], self.counts[order])

    def plus(self, other: "_KeyCounts") -> "_KeyCounts":
        """Return the sum of both."""
        if not self.keys.size or not other.keys.size:
            return self if self.keys.size else other
        size = self.keys.size + other.keys.size
        keys, counts = np.empty(size, dtype=np.int64), np.empty((size, 4), dtype=np.int32)
        n_keys = _merge(*self, *other, keys, counts)
        return _KeyCounts(keys[:n_keys], counts[:n_keys])

    def plus_events(self, events: Indices) -> "_KeyCounts":
        """Return the counts with those of events, whose array is overwritten."""
        ordered, other = events, np.empty(events.size, dtype=np.int64)
        ends = np.empty(1 << _DIGIT_BITS, dtype=np.int64)
        for shift in range(3, int(events.max(initial=0)).bit_length(), _DIGIT_BITS):
            if _sort_by_digit(ordered, shift, ends, other):
                ordered, other = other, ordered
        size = self.keys.size + events.size
        keys, counts = np.empty(size, dtype=np.int64), np.empty((size, 4), dtype=np.int32)
        n_keys = _merge_events(*self, ordered, keys, counts)
        return _KeyCounts(keys[:n_keys], counts[:n_keys])


_NOTHING = _KeyCounts(np.zeros(0, dtype=np.int64), np.zeros((0, 4), dtype=np.int32))


@compiled
def find_visits(sessions: Indices, types: Codes, users: Indices, periods: Indices, starts: Indices) -> int:
    """Find visits; return their number, −1 if one has two types, users or periods.

    Parameters
    ----------
    sessions, types
        Of each row, shape (R,), R ≥ 1.
    users, periods
        Likewise, or empty.
    starts
        First row of each visit and the end of the last one, shape (R + 1,) or more, written.
    """
    starts[0] = 0
    n_visits = 1
    for row in range(1, sessions.size):
        if sessions[row] != sessions[row - 1]:
            starts[n_visits] = row
            n_visits += 1
        elif (
            types[row] != types[row - 1]
            or (users.size > 0 and users[row] != users[row - 1])
            or (periods.size > 0 and periods[row] != periods[row - 1])
        ):
            return -1
    starts[n_visits] = sessions.size
    return n_visits


@compiled
def look_up(codes: Codes, indices: NDArray[np.uint32], values: Codes) -> None:
    """Write the code of each index.

    Parameters
    ----------
    codes
        By index.
    indices
        Valid indices of codes, shape (n,).
    values
        Shape (n,), written.
    """
    for place in range(values.size):
        values[place] = codes[indices[place]]


@compiled
def hash_numbers(values: Indices, modulus: int, factor: int, hashes: Indices) -> None:
    """Write the hash of whole numbers, (factor · |value| mod modulus + 12345) mod modulus.

    Parameters
    ----------
    values
        Shape (n,).
    modulus, factor
        Below 2³¹.
    hashes
        Shape (n,), written.
    """
    for place in range(values.size):
        value = values[place]
        remainder = value % modulus if value >= 0 else -(value + modulus) % modulus
        hashes[place] = (remainder * factor + 12345) % modulus


@compiled
def hash_texts(ends: Indices, content: NDArray[np.uint8], hashes: Indices) -> None:
    """Write the hash of each text (FNV-1a, 64 bits).

    Parameters
    ----------
    ends
        Start of each text in the content, and the end of the last one, shape (n + 1,).
    content
        Bytes of all texts.
    hashes
        Shape (n,), written.
    """
    for text in range(hashes.size):
        value = -3750763034362895579  # 14695981039346656037 as a signed number
        for place in range(ends[text], ends[text + 1]):
            value = (value ^ content[place]) * 1099511628211
        hashes[text] = value


class VisitTable:
    """Counts that visits are added to.

    Examples
    --------
    >>> table = VisitTable()
    >>> starts, groups = np.array([0, 2, 4]), np.array([0, 0])
    >>> items, positions = np.array([5, 7, 7, 5], np.int32), np.array([1, 2, 1, 2], np.int32)
    >>> masks = table.add(starts, groups, items, positions, np.array([1, 0, 0, 0], np.int32))
    >>> masks  # the click at position 1
    array([2, 0])
    >>> cells = table.cells()
    >>> list(zip(cells.item.tolist(), cells.position.tolist(), cells.above.tolist(), strict=True))
    [(5, 1, 0), (5, 2, 0), (7, 1, 0), (7, 2, 2)]
    """

    def __init__(self) -> None:
        self._shape = (0, 0, 0)
        self._dense = np.zeros(0, dtype=np.int32)
        self._is_sparse = False
        self._events = np.zeros(0, dtype=np.int64)
        self._n_events = 0
        self._counted = _NOTHING  # events that are added up
        self._by_clicks = np.zeros((0, 64), dtype=np.int64)

    def add(
        self,
        starts: Indices,
        groups: Indices,
        items: Codes,
        positions: Codes,
        clicked: Codes,
    ) -> Indices | None:
        """Add visits; return their clicked positions as bits, or None if a position is twice in a visit.

        Parameters
        ----------
        starts
            First row of each visit and the end of the last one, shape (V + 1,).
        groups
            Group of each visit, from 0, shape (V,).
        items, positions, clicked
            Item and position, from 0 (up to 62), and whether it was clicked, of each row, shape (R,).
        """
        masks = np.empty(groups.size, dtype=np.int64)
        if not groups.size:
            return masks
        self._reserve(int(groups.max()) + 1, int(items.max()) + 1, int(positions.max()) + 1, items.size)
        n_events = _add_visits(
            starts,
            groups,
            read_only(items),
            read_only(positions),
            read_only(clicked),
            self._dense,
            *self._shape[1:],
            self._events,
            self._n_events,
            self._by_clicks,
            masks,
        )
        if n_events < 0:
            return None
        self._n_events = n_events
        return masks

    def cells(
        self,
        group_rank: Indices | None = None,
        item_rank: Indices | None = None,
        first_position: int = 0,
    ) -> VisitCells:
        """Return the counts, sorted by group, item, position and last click above; the table is empty then.

        Parameters
        ----------
        group_rank, item_rank
            Numbers that replace those of the groups and items, each another one; by default they stay.
        first_position
            Number of the first position, which is 0 in the cells.
        """
        groups = np.arange(len(self._by_clicks)) if group_rank is None else group_rank
        items = np.zeros(0, dtype=np.int64) if item_rank is None else item_rank
        item_bits = (items.size - 1 if items.size else MAX_ITEMS - 1).bit_length()
        counted = self._dense_counts(groups, items, item_bits)
        if self._counted.keys.size:
            counted = counted.plus(self._counted.renumbered(groups, items, item_bits))
        events = self._events[: self._n_events]
        _renumber(events, groups, items, item_bits)
        keys, counts = counted.plus_events(events)
        del counted, events
        self._events, self._n_events, self._counted = np.zeros(0, dtype=np.int64), 0, _NOTHING
        self._dense = np.zeros(0, dtype=np.int32)
        group, item, position, above = (np.empty(keys.size, dtype=np.int64) for _ in range(4))
        cells = VisitCells(group, item, position, above, *(np.empty(keys.size) for _ in range(4)))
        _split_keys(keys, counts, item_bits, first_position, cells)
        return cells

    def visits(self) -> tuple[Indices, Indices, Floats]:
        """Return group and number of clicks, and how many visits have them, shape (V,) each."""
        group, n_clicks = np.nonzero(self._by_clicks)
        return (
            group.astype(np.int64),
            n_clicks.astype(np.int64),
            self._by_clicks[group, n_clicks].astype(np.float64),
        )

    def _reserve(self, n_groups: int, n_items: int, n_positions: int, n_rows: int) -> None:
        """Make room for groups, items and positions, and for as many events as there are rows."""
        if self._n_events + n_rows > self._events.size:
            self._count_events()
            if n_rows > self._events.size:
                self._events = np.empty(max(n_rows, MAX_EVENTS), dtype=np.int64)
        if n_groups > len(self._by_clicks):
            more = n_groups - len(self._by_clicks)
            self._by_clicks = np.pad(self._by_clicks, ((0, more), (0, 0)))
        wanted = (n_groups, n_items, n_positions)
        if self._is_sparse or all(new <= old for new, old in zip(wanted, self._shape, strict=True)):
            return
        groups, items, positions = (
            old if new <= old else max(new, int(_GROWTH * old))
            for new, old in zip(wanted, self._shape, strict=True)
        )
        shape = (groups, items, min(positions, MAX_ROWS_OF_VISIT))
        if np.prod(shape, dtype=np.float64) > MAX_DENSE_SIZE:
            self._counted = self._counted.plus(self._dense_counts())
            self._dense, self._is_sparse = np.zeros(0, dtype=np.int32), True
            return
        grown = np.zeros(shape, dtype=np.int32)
        if self._dense.size:
            grown[tuple(slice(old) for old in self._shape)] = self._dense.reshape(self._shape)
        self._dense, self._shape = grown.ravel(), shape

    def _count_events(self) -> None:
        """Add up the events."""
        self._counted = self._counted.plus_events(self._events[: self._n_events])
        self._n_events = 0

    def _dense_counts(
        self, groups: Indices | None = None, items: Indices | None = None, item_bits: int = 28
    ) -> _KeyCounts:
        """Return the counts of the dense array; see `_renumber` for the arguments."""
        if not self._dense.size:
            return _NOTHING
        n_groups, n_items, _ = self._shape
        groups = np.arange(n_groups) if groups is None else groups[:n_groups]
        items = np.arange(n_items) if items is None or not items.size else items[:n_items]
        n_cells = np.count_nonzero(self._dense)
        keys, counts = np.empty(n_cells, dtype=np.int64), np.zeros((n_cells, 4), dtype=np.int32)
        dense = self._dense.reshape(self._shape)
        _list_displays(dense, np.argsort(groups), np.argsort(items), groups, items, item_bits, keys, counts)
        return _KeyCounts(keys, counts)
