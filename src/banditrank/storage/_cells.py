"""Counts as lists of cells: sparse, additive, and integer, so that sums do not depend on the order.

The user type of a cell also has the code of the arm of an experiment, as in `Impression.ranking`. Each visit
of an arm adds one more cell, at the position `SQUARES`, with the square of the visit's reward.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.storage._records import REWARD_UNITS, Event, arm_code_of, coded, user_type_of

CELL = np.dtype(
    [("user_type", "<u2"), ("position", "<u2"), ("item", "<u2"), ("displays", "<i8"), ("rewards", "<i8")]
)
Cells = NDArray[np.void]
SQUARES = 0xFFFF
"""Position of the cells with squared rewards of visits."""

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
    is_in_arm = arm_code_of(numbers[:, 0]) > 0
    if not is_in_arm.any():
        return cells.reshape(-1)
    squares = np.zeros(int(is_in_arm.sum()), dtype=CELL)
    squares["user_type"] = numbers[is_in_arm, 0]
    squares["position"] = SQUARES
    squares["displays"] = 1
    units = cells["rewards"][is_in_arm].sum(axis=1)
    squares["rewards"] = (units * units + REWARD_UNITS // 2) // REWARD_UNITS
    return np.concatenate([cells.reshape(-1), squares])


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


def visit_cells(cells: Cells) -> tuple[Cells, NDArray[np.bool_]]:
    """Return cells of user types without the codes of arms, and which of the given cells they are.

    Cells with squared rewards are left out.

    Examples
    --------
    >>> from banditrank.storage._records import Impression, Outcome, pack_ranking
    >>> impression = Impression(1, b"", pack_ranking(0, (4, 2), arm_code=3))
    >>> cells = decode_cells(encode_cells([Event(impression, Outcome())]))
    >>> visit_cells(cells)[0].tolist()
    [(0, 0, 4, 1, 0), (0, 1, 2, 1, 0)]
    """
    is_display = cells["position"] != SQUARES
    kept = cells[is_display]
    kept["user_type"] = user_type_of(kept["user_type"])
    return kept, is_display


class ArmSums(NamedTuple):
    """Sums over the visits with a code, by user type."""

    visits: NDArray[np.int64]
    rewards: NDArray[np.float64]
    squared_rewards: NDArray[np.float64]


class Totals:
    """Sum of changes as dense arrays, apart for each code of an arm.

    Parameters
    ----------
    n_user_types, n_items, n_positions
        Initial size; it grows with the user types and items of the changes.
    """

    def __init__(self, *, n_user_types: int, n_items: int, n_positions: int) -> None:
        self._shape = (2, n_user_types, n_positions, n_items)  # displays and rewards
        self._sums: dict[int, NDArray[np.int64]] = {0: np.zeros(self._shape, dtype=np.int64)}  # by code
        self._squares: dict[int, NDArray[np.int64]] = {}  # by code: visits and squares, shape (2, types)

    def add(self, cells: bytes) -> None:
        """Add a change."""
        added = decode_cells(cells)
        if not len(added):
            return
        user_types, codes = user_type_of(added["user_type"]), arm_code_of(added["user_type"])
        self.grow(int(user_types.max()) + 1, int(added["item"].max()) + 1)
        if not codes.any():
            self._add(self._sums[0], added, user_types)
            return
        for code in np.unique(codes).tolist():
            is_display = (codes == code) & (added["position"] != SQUARES)
            self._add(self._of_code(code), added[is_display], user_types[is_display])
            if code:
                is_square = (codes == code) & (added["position"] == SQUARES)
                squares = self._squares.setdefault(code, np.zeros((2, self._shape[1]), dtype=np.int64))
                np.add.at(squares[0], user_types[is_square], added["displays"][is_square])
                np.add.at(squares[1], user_types[is_square], added["rewards"][is_square])

    @staticmethod
    def _add(sums: NDArray[np.int64], cells: Cells, user_types: NDArray[np.uint16]) -> None:
        indices = (user_types, cells["position"], cells["item"])
        np.add.at(sums[0], indices, cells["displays"])
        np.add.at(sums[1], indices, cells["rewards"])

    def _of_code(self, code: int) -> NDArray[np.int64]:
        if code not in self._sums:
            self._sums[code] = np.zeros(self._shape, dtype=np.int64)
        return self._sums[code]

    def grow(self, n_user_types: int, n_items: int) -> None:
        """Enlarge the arrays to at least a number of user types and items."""
        _, types, n_positions, items = self._shape
        missing = (max(0, n_user_types - types), max(0, n_items - items))
        if any(missing):
            self._shape = (2, types + missing[0], n_positions, items + missing[1])
            padding = ((0, 0), (0, missing[0]), (0, 0), (0, missing[1]))
            self._sums = {code: np.pad(sums, padding) for code, sums in self._sums.items()}
            self._squares = {code: np.pad(sums, padding[:2]) for code, sums in self._squares.items()}

    @property
    def rounds(self) -> int:
        """Number of counted rankings: each shows one item at the first position."""
        return sum(int(sums[0, :, 0, :].sum()) for sums in self._sums.values())

    def counts(self, items: Sequence[int], codes: Collection[int] | None = None) -> Counts:
        """Return the counts of some items; arrivals and rounds include rankings without these items.

        Parameters
        ----------
        items
            Numbers of the items.
        codes
            Codes of the arms whose visits are included; all by default.
        """
        included = [sums for code, sums in sorted(self._sums.items()) if codes is None or code in codes]
        chosen = np.asarray(items, dtype=np.intp)
        _, n_user_types, n_positions, _ = self._shape
        arrivals = np.zeros(n_user_types, dtype=np.int64)
        totals = np.zeros((2, n_user_types, n_positions, len(chosen)), dtype=np.int64)
        for number, sums in enumerate(included):
            arrivals += sums[0, :, 0, :].sum(axis=1)
            totals = totals + sums[:, :, :, chosen] if number else sums[:, :, :, chosen]
        return Counts(
            np.ascontiguousarray(totals[0], dtype=np.float64),
            np.ascontiguousarray(totals[1]) / REWARD_UNITS,
            arrivals.astype(np.float64),
            int(arrivals.sum()),
        )

    def arm_sums(self, code: int) -> ArmSums:
        """Return the sums over the visits with a code above 0."""
        n_user_types = self._shape[1]
        visits, squares = self._squares.get(code, np.zeros((2, n_user_types), dtype=np.int64))
        rewards = self._sums[code][1].sum(axis=(1, 2)) if code in self._sums else np.zeros(n_user_types)
        return ArmSums(visits.copy(), rewards / REWARD_UNITS, squares / REWARD_UNITS)

    def cells(self) -> bytes:
        """Return the sum as a list of cells."""
        return b"".join([self._cells_of_code(code) for code in sorted(self._sums)])

    def _cells_of_code(self, code: int) -> bytes:
        displays, rewards = self._sums[code]
        types, positions, items = np.nonzero(displays)
        cells = np.zeros(len(types), dtype=CELL)
        cells["user_type"], cells["position"], cells["item"] = coded(types, code), positions, items
        cells["displays"] = displays[types, positions, items]
        cells["rewards"] = rewards[types, positions, items]
        if code not in self._squares:
            return cells.tobytes()
        visits, squared = self._squares[code]
        (types,) = np.nonzero(visits)
        squares = np.zeros(len(types), dtype=CELL)
        squares["user_type"], squares["position"] = coded(types, code), SQUARES
        squares["displays"], squares["rewards"] = visits[types], squared[types]
        return cells.tobytes() + squares.tobytes()
