"""Counts as lists of cells: sparse, additive, and integer, so that sums do not depend on the order."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.storage._records import REWARD_UNITS, Event

CELL = np.dtype(
    [("user_type", "<u2"), ("position", "<u2"), ("item", "<u2"), ("displays", "<i8"), ("rewards", "<i8")]
)
Cells = NDArray[np.void]
_MAX_UNMERGED_CELLS = 256  # merging fewer takes longer than writing them


def encode_cells(events: Sequence[Event]) -> bytes:
    """Return the cells that the outcomes of a surface's events add to its counts.

    Cells of the same user type, position and item are merged if there are many.

    Parameters
    ----------
    events
        Events of one surface; those without a final outcome, and discarded ones, add nothing.

    Raises
    ------
    IndexError
        If a click is below the last position.

    Examples
    --------
    >>> from banditrank.storage._records import Impression, Outcome, pack_ranking
    >>> impression = Impression(1, b"", pack_ranking(0, (4, 2)))
    >>> events = [Event(impression, Outcome.of(1, REWARD_UNITS)), Event(impression, Outcome())]
    >>> decode_cells(encode_cells(events)).tolist()
    [(0, 0, 4, 1, 0), (0, 1, 2, 1, 1048576), (0, 0, 4, 1, 0), (0, 1, 2, 1, 0)]
    """
    by_length: dict[int, list[Event]] = {}  # rankings may be shorter than the number of positions
    for event in events:
        if event.outcome is not None and event.outcome.is_final and not event.outcome.is_discarded:
            by_length.setdefault(len(event.impression.ranking), []).append(event)
    if not by_length:
        return b""
    cells = np.concatenate([_cells_of(group) for group in by_length.values()])
    return _merge(cells) if cells.size > _MAX_UNMERGED_CELLS else cells.tobytes()


def _cells_of(events: Sequence[Event]) -> Cells:
    """Return the cells of events with rankings of the same length."""
    numbers = np.frombuffer(b"".join(event.impression.ranking for event in events), dtype="<u2")
    numbers = numbers.reshape(len(events), -1)  # (events, 1 + K)
    n_positions = numbers.shape[1] - 1
    cells = np.zeros((len(events), n_positions), dtype=CELL)
    cells["user_type"] = numbers[:, :1]
    cells["position"] = np.arange(n_positions)
    cells["item"] = numbers[:, 1:]
    cells["displays"] = 1
    clicks = [
        (row, *click)
        for row, event in enumerate(events)
        if event.outcome is not None
        for click in event.outcome.clicks
    ]
    if clicks:
        rows, positions, rewards = zip(*clicks, strict=True)
        cells["rewards"][rows, positions] = rewards
    return cells.reshape(-1)


def _merge(cells: Cells) -> bytes:
    """Return the sum of cells, with one cell for each user type, position and item."""
    keys = (
        cells["user_type"].astype(np.int64) << 32 | cells["position"].astype(np.int64) << 16 | cells["item"]
    )
    _, first, groups = np.unique(keys, return_index=True, return_inverse=True)
    merged = cells[first]
    for field in ("displays", "rewards"):
        merged[field] = 0
        np.add.at(merged[field], groups, cells[field])
    return merged.tobytes()


def decode_cells(cells: bytes) -> Cells:
    """Return cells as a structured array with dtype `CELL`."""
    return np.frombuffer(cells, dtype=CELL)


class Totals:
    """Sum of changes as dense arrays.

    Parameters
    ----------
    n_user_types, n_items, n_positions
        Initial size; it grows with the user types and items of the changes.
    """

    def __init__(self, *, n_user_types: int, n_items: int, n_positions: int) -> None:
        self._sums = np.zeros((2, n_user_types, n_positions, n_items), dtype=np.int64)  # displays, rewards

    def add(self, cells: bytes) -> None:
        """Add a change."""
        added = decode_cells(cells)
        if not len(added):
            return
        self.grow(int(added["user_type"].max()) + 1, int(added["item"].max()) + 1)
        indices = (added["user_type"], added["position"], added["item"])
        np.add.at(self._sums[0], indices, added["displays"])
        np.add.at(self._sums[1], indices, added["rewards"])

    def grow(self, n_user_types: int, n_items: int) -> None:
        """Enlarge the arrays to at least a number of user types and items."""
        _, types, _, items = self._sums.shape
        missing = (max(0, n_user_types - types), max(0, n_items - items))
        if any(missing):
            self._sums = np.pad(self._sums, ((0, 0), (0, missing[0]), (0, 0), (0, missing[1])))

    @property
    def rounds(self) -> int:
        """Number of counted rankings: each shows one item at the first position."""
        return int(self._sums[0, :, 0, :].sum())

    def counts(self, items: Sequence[int]) -> Counts:
        """Return the counts of some items; arrivals and rounds include rankings without these items."""
        displays, rewards = self._sums
        arrivals = displays[:, 0, :].sum(axis=1)
        chosen = np.asarray(items, dtype=np.intp)
        return Counts(
            np.ascontiguousarray(displays[:, :, chosen], dtype=np.float64),
            np.ascontiguousarray(rewards[:, :, chosen]) / REWARD_UNITS,
            arrivals.astype(np.float64),
            self.rounds,
        )

    def cells(self) -> bytes:
        """Return the sum as a list of cells."""
        displays, rewards = self._sums
        types, positions, items = np.nonzero(displays)
        cells = np.zeros(len(types), dtype=CELL)
        cells["user_type"], cells["position"], cells["item"] = types, positions, items
        cells["displays"] = displays[types, positions, items]
        cells["rewards"] = rewards[types, positions, items]
        return cells.tobytes()
