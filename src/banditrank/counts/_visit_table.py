"""Counts of whole visits: a table that visits are added to, row by row, in compiled code.

Most visits have no click. Their displays are counted in a dense array by group, item and position, which fits
into the processor's cache; displays of other visits also depend on the last click above, and are counted in a
hash table with open addressing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

MAX_GROUPS, MAX_ITEMS = 2**20, 2**28
"""Maximum numbers of groups and items: with position and last click above they are one 60-bit key."""

MAX_DENSE_SIZE = 2**25
"""Maximum size of the dense array; beyond it all visits are counted in the hash table."""

_N_BITS = 63  # of the positions of a visit: 0 to 62
_MULTIPLIER = -7046029254386353131  # 2⁶⁴ over the golden ratio, as a signed number (Knuth, 1973)
_EMPTY = -1
_MAX_LOAD = 0.7
_MIN_SLOTS = 2**19
_GROWTH = 1.5  # of an axis of the dense array


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


@compiled
def _add_visits(  # noqa: C901, PLR0912 - one loop: calls would pass all of its state
    starts: Indices,
    groups: Indices,
    items: Indices,
    positions: Indices,
    clicked: NDArray[np.uint8],
    dense: NDArray[np.int32],
    n_items: int,
    n_positions: int,
    keys: Indices,
    counts: NDArray[np.int32],
    by_clicks: Indices,
    masks: Indices,
) -> int:
    """Add visits, and write the bits of their clicks; return the number of new keys.

    Parameters
    ----------
    starts
        First row of each visit and the end of the last one, shape (V + 1,).
    groups
        Shape (V,).
    items, positions, clicked
        Shape (R,).
    dense
        Displays of visits without a click, flattened from (G, M, K); empty if it is not used.
    n_items, n_positions
        M and K.
    keys, counts
        Hash table, shapes (S,) and (S, 4), S being a power of 2.
    by_clicks
        Number of visits by group and number of clicks, shape (G, 64).
    masks
        Clicked positions as bits, shape (V,), written.

    Returns
    -------
    int
        −1 if a position is twice in a visit.
    """
    n_new = 0
    last_slot = keys.size - 1
    for visit in range(groups.size):
        group, mask, shown = groups[visit], 0, 0
        for row in range(starts[visit], starts[visit + 1]):
            bit = 1 << positions[row]
            if shown & bit:
                return -1
            shown |= bit
            if clicked[row]:
                mask |= bit
        masks[visit] = mask
        if mask == 0 and dense.size > 0:
            by_clicks[group, 0] += 1
            for row in range(starts[visit], starts[visit + 1]):
                dense[(group * n_items + items[row]) * n_positions + positions[row]] += 1
            continue
        n_clicks, last, rest = 0, -1, mask
        while rest:
            n_clicks += rest & 1
            last += 1
            rest >>= 1
        by_clicks[group, n_clicks] += 1
        for row in range(starts[visit], starts[visit + 1]):
            position = positions[row]
            above, rest = 0, mask & ((1 << position) - 1)
            while rest:
                above += 1
                rest >>= 1
            key = (((group << 28) | items[row]) << 12) | (position << 6) | above
            slot = ((key * _MULTIPLIER) >> 20) & last_slot
            while keys[slot] != key:
                if keys[slot] == _EMPTY:
                    keys[slot] = key
                    n_new += 1
                    break
                slot = (slot + 1) & last_slot
            counts[slot, 0] += 1
            if clicked[row]:
                counts[slot, 1] += 1
                if position == last:
                    counts[slot, 3] += 1
            if mask == 0 or position <= last:
                counts[slot, 2] += 1
    return n_new


@compiled
def _rehash(
    keys: Indices, counts: NDArray[np.int32], new_keys: Indices, new_counts: NDArray[np.int32]
) -> None:
    """Copy a hash table to a larger one."""
    last_slot = new_keys.size - 1
    for old in range(keys.size):
        key = keys[old]
        if key == _EMPTY:
            continue
        slot = ((key * _MULTIPLIER) >> 20) & last_slot
        while new_keys[slot] != _EMPTY:
            slot = (slot + 1) & last_slot
        new_keys[slot] = key
        for column in range(4):
            new_counts[slot, column] = counts[old, column]


@compiled
def hash_texts(ends: Indices, content: NDArray[np.uint8], hashes: Indices) -> None:
    """Write the hash of each text (FNV-1a, 64 bits).

    Parameters
    ----------
    ends
        Begin of each text in the content, and the end of the last one, shape (n + 1,).
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
    >>> items, positions = np.array([5, 7, 7, 5]), np.array([1, 2, 1, 2])
    >>> masks = table.add(starts, groups, items, positions, np.array([1, 0, 0, 0], dtype=np.uint8))
    >>> masks  # the click at position 1
    array([2, 0])
    >>> cells = table.cells()
    >>> list(zip(cells.item.tolist(), cells.position.tolist(), cells.above.tolist(), strict=True))
    [(5, 1, 0), (5, 2, 0), (7, 1, 0), (7, 2, 2)]
    """

    def __init__(self) -> None:
        self._shape = (0, 0, 0)
        self._dense = np.zeros(0, dtype=np.int32)
        self._retired: tuple[Indices, ...] = (np.zeros(0, dtype=np.int64),) * 4
        self._keys = np.full(_MIN_SLOTS, _EMPTY, dtype=np.int64)
        self._counts = np.zeros((_MIN_SLOTS, 4), dtype=np.int32)
        self._n_keys = 0
        self._is_sparse = False
        self._by_clicks = np.zeros((0, 64), dtype=np.int64)

    def add(
        self,
        starts: Indices,
        groups: Indices,
        items: Indices,
        positions: Indices,
        clicked: NDArray[np.uint8],
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
        masks = np.zeros(groups.size, dtype=np.int64)
        if not groups.size:
            return masks
        self._reserve(int(groups.max()) + 1, int(items.max()) + 1, int(positions.max()) + 1, items.size)
        n_new = _add_visits(
            starts,
            groups,
            items,
            positions,
            clicked,
            self._dense,
            *self._shape[1:],
            self._keys,
            self._counts,
            self._by_clicks,
            masks,
        )
        if n_new < 0:
            return None
        self._n_keys += n_new
        return masks

    def cells(self, group_rank: Indices | None = None, item_rank: Indices | None = None) -> VisitCells:
        """Return the counts, sorted by group, item, position and last click above; the table is empty then.

        Parameters
        ----------
        group_rank, item_rank
            Numbers that replace those of the groups and items; by default they stay.
        """
        used = np.flatnonzero(self._keys != _EMPTY)
        keys, counts = self._keys[used], self._counts[used]
        self._keys, self._counts = self._keys[:0], self._counts[:0]
        group, item, position, plain = self._retired if self._is_sparse else self._dense_cells()
        group, item = (
            np.concatenate(pair) for pair in ((keys >> 40, group), ((keys >> 12) & (MAX_ITEMS - 1), item))
        )
        group = group if group_rank is None else group_rank[group]
        item = item if item_rank is None else item_rank[item]
        n_items = int(item.max(initial=0)) + 1
        combined = (group * n_items + item) << 12
        combined |= np.concatenate([keys & 0xFFF, position << 6])
        del group, item, keys
        order = np.argsort(combined, kind="stable")
        combined = combined[order]
        first = np.flatnonzero(np.diff(combined, prepend=-1))
        combined = combined[first]

        def add_up(column: int, others: Indices) -> Floats:
            values = np.concatenate([counts[:, column], others])[order]
            return np.add.reduceat(values, first, dtype=np.float64) if first.size else np.zeros(0)

        nothing = np.zeros(plain.size, dtype=np.int64)
        return VisitCells(
            (combined >> 12) // n_items,
            (combined >> 12) % n_items,
            (combined >> 6) & 63,
            combined & 63,
            add_up(0, plain),
            add_up(1, nothing),
            add_up(2, plain),
            add_up(3, nothing),
        )

    def visits(self) -> tuple[Indices, Indices, Floats]:
        """Return group and number of clicks, and how many visits have them, shape (V,) each."""
        group, n_clicks = np.nonzero(self._by_clicks)
        return (
            group.astype(np.int64),
            n_clicks.astype(np.int64),
            self._by_clicks[group, n_clicks].astype(np.float64),
        )

    def _reserve(self, n_groups: int, n_items: int, n_positions: int, n_rows: int) -> None:
        """Make room for groups, items and positions, and for as many new keys as there are rows."""
        size = self._keys.size
        while self._n_keys + n_rows > _MAX_LOAD * size:
            size *= 2
        if size > self._keys.size:
            keys, counts = np.full(size, _EMPTY, dtype=np.int64), np.zeros((size, 4), dtype=np.int32)
            _rehash(self._keys, self._counts, keys, counts)
            self._keys, self._counts = keys, counts
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
        shape = (groups, items, min(positions, _N_BITS))
        if np.prod(shape, dtype=np.float64) > MAX_DENSE_SIZE:
            self._retired, self._is_sparse = self._dense_cells(), True
            self._dense = np.zeros(0, dtype=np.int32)
            return
        grown = np.zeros(shape, dtype=np.int32)
        if self._dense.size:
            grown[tuple(slice(old) for old in self._shape)] = self._dense.reshape(self._shape)
        self._dense, self._shape = grown.ravel(), shape

    def _dense_cells(self) -> tuple[Indices, ...]:
        """Return group, item, position and displays of the non-empty cells of the dense array."""
        used = np.flatnonzero(self._dense)
        if not used.size:
            return (np.zeros(0, dtype=np.int64),) * 4
        return (*np.unravel_index(used, self._shape), self._dense[used].astype(np.int64))
