"""Counts as a list of cells: sparse, additive, and of whole numbers, so that no order of adding matters."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from banditrank.counts.counts import Counts
from banditrank.storage.records import DISCARDED, REWARD_UNITS, Event

CELL = np.dtype(
    [("user_type", "<u2"), ("position", "<u2"), ("item", "<u2"), ("displays", "<i8"), ("rewards", "<i8")]
)
Cells = NDArray[np.void]
_FEW = 256  # cells that take longer to merge than to write


def cells_of(events: Sequence[Event]) -> bytes:
    """Return what the outcomes of a surface's rankings add to its counts; if that is little, not merged.

    Examples
    --------
    >>> from banditrank.storage.records import Outcome, Impression, pack_ranking
    >>> shown = Impression(1, b"", pack_ranking(0, (4, 2)))
    >>> decoded(cells_of([Event(shown, Outcome(1, REWARD_UNITS)), Event(shown, Outcome(-1, 0))])).tolist()
    [(0, 0, 4, 1, 0), (0, 1, 2, 1, 1048576), (0, 0, 4, 1, 0), (0, 1, 2, 1, 0)]
    """
    counting = [event for event in events if event.outcome not in (None, DISCARDED)]
    if not counting:
        return b""
    numbers = np.frombuffer(b"".join(event.shown.ranking for event in counting), dtype="<u2")
    numbers = numbers.reshape(len(counting), -1)  # (rankings, 1 + K)
    n_positions = numbers.shape[1] - 1
    cells = np.zeros((len(counting), n_positions), dtype=CELL)
    cells["user_type"] = numbers[:, :1]
    cells["position"] = np.arange(n_positions)
    cells["item"] = numbers[:, 1:]
    cells["displays"] = 1
    clicked = [
        (place, *event.outcome)
        for place, event in enumerate(counting)
        if event.outcome is not None and event.outcome.position >= 0
    ]
    if clicked:
        places, positions, rewards = zip(*clicked, strict=True)
        cells["rewards"][places, positions] = rewards
    return _merged(cells.reshape(-1)) if cells.size > _FEW else cells.tobytes()


def _merged(cells: Cells) -> bytes:
    """Return the sum of cells, each place once."""
    place = (
        cells["user_type"].astype(np.int64) << 32 | cells["position"].astype(np.int64) << 16 | cells["item"]
    )
    _, first, numbers = np.unique(place, return_index=True, return_inverse=True)
    summed = cells[first]
    for field in ("displays", "rewards"):
        summed[field] = 0
        np.add.at(summed[field], numbers, cells[field])
    return summed.tobytes()


def decoded(cells: bytes) -> Cells:
    """Return cells as a structured array."""
    return np.frombuffer(cells, dtype=CELL)


class Totals:
    """The sum of changes, as arrays.

    Parameters
    ----------
    n_user_types, n_items, n_positions
        The size to begin with; user types and items may be added.
    """

    def __init__(self, *, n_user_types: int, n_items: int, n_positions: int) -> None:
        self._sums = np.zeros((2, n_user_types, n_positions, n_items), dtype=np.int64)

    def add(self, cells: bytes) -> None:
        """Add a change."""
        added = decoded(cells)
        if not len(added):
            return
        self.grow(int(added["user_type"].max()) + 1, int(added["item"].max()) + 1)
        place = (added["user_type"], added["position"], added["item"])
        np.add.at(self._sums[0], place, added["displays"])
        np.add.at(self._sums[1], place, added["rewards"])

    def grow(self, n_user_types: int, n_items: int) -> None:
        """Make room for user types and items that came since."""
        _, types, _, items = self._sums.shape
        missing = (max(0, n_user_types - types), max(0, n_items - items))
        if any(missing):
            self._sums = np.pad(self._sums, ((0, 0), (0, missing[0]), (0, 0), (0, missing[1])))

    @property
    def rounds(self) -> int:
        """How many rankings were counted: whoever comes sees one item at the first position."""
        return int(self._sums[0, :, 0, :].sum())

    def counts(self, items: Sequence[int]) -> Counts:
        """Return the counts of some items; arrivals and rounds are everybody's."""
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
        cells["displays"], cells["rewards"] = (
            displays[types, positions, items],
            rewards[types, positions, items],
        )
        return cells.tobytes()
