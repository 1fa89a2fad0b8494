"""Counts as lists of cells: sparse, additive, and integer, so that sums do not depend on the order.

The user type of a cell also has the code of the arm of an experiment, as in `Impression.ranking`. Each visit
of an arm adds one more cell, at the position `SQUARES`, with the square of the visit's reward.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.storage._records import REWARD_UNITS, Event, arm_code_of, user_type_of

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
    counted = [
        event
        for event in events
        if (outcome := event.outcome) is not None and outcome.is_final and not outcome.is_discarded
    ]
    if not counted:
        return b""
    lengths = {len(event.impression.ranking) for event in counted}  # may be less than the number of positions
    if len(lengths) == 1:
        cells = _cells_of(counted)
    else:
        groups = [[one for one in counted if len(one.impression.ranking) == n] for n in sorted(lengths)]
        cells = np.concatenate([_cells_of(group) for group in groups])
    return (_merge(cells) if cells.size > _MAX_UNMERGED_CELLS else cells).tobytes()


def _cells_of(events: Sequence[Event]) -> Cells:
    """Return the cells of events with rankings of the same length."""
    numbers = np.frombuffer(b"".join([event.impression.ranking for event in events]), dtype="<u2")
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
    if arm_code_of(int(numbers[:, 0].max())) == 0:  # nearly always: outside of experiments
        return cells.reshape(-1)
    is_in_arm = arm_code_of(numbers[:, 0]) > 0
    squares = np.zeros(int(is_in_arm.sum()), dtype=CELL)
    squares["user_type"] = numbers[is_in_arm, 0]
    squares["position"] = SQUARES
    squares["displays"] = 1
    units = cells["rewards"][is_in_arm].sum(axis=1)
    squares["rewards"] = (units * units + REWARD_UNITS // 2) // REWARD_UNITS
    return np.concatenate([cells.reshape(-1), squares])


def _merge(cells: Cells) -> Cells:
    """Return the sum of cells, in order: one cell for each user type, position and item."""
    _, first, groups = np.unique(_keys(cells), return_index=True, return_inverse=True)
    merged = cells[first]
    for field in ("displays", "rewards"):
        merged[field] = 0
        np.add.at(merged[field], groups, cells[field])
    return merged


def _keys(cells: Cells) -> NDArray[np.int64]:
    """Return user type, position and item of each cell as one number."""
    user_types, positions = cells["user_type"].astype(np.int64), cells["position"].astype(np.int64)
    return np.asarray(user_types << 32 | positions << 16 | cells["item"])


def _split_keys(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Return the user types, positions and items of keys."""
    return keys >> 32, keys >> 16 & 0xFFFF, keys & 0xFFFF


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


class _ArmTotals:
    """Sum of the cells with one code of an arm.

    Sparse: a surface may have many codes, each of which shows few of its cells. Arrays are in order of keys.
    """

    def __init__(self) -> None:
        self._keys = np.zeros(0, dtype=np.int64)
        self._sums = np.zeros((2, 0), dtype=np.int64)  # displays and rewards

    def add(self, cells: Cells) -> None:
        """Add cells, in any order."""
        added = _merge(cells)
        keys, sums = _keys(added), np.stack([added["displays"], added["rewards"]])
        places = np.searchsorted(self._keys, keys)
        is_new = ~np.isin(keys, self._keys[places[places < self._keys.size]])
        self._sums[:, places[~is_new]] += sums[:, ~is_new]
        if is_new.any():
            self._sums = np.insert(self._sums, places[is_new], sums[:, is_new], axis=1)
            self._keys = np.insert(self._keys, places[is_new], keys[is_new])

    def add_to(self, sums: NDArray[np.int64]) -> None:
        """Add displays and rewards to dense arrays, shape (2, N, K, M)."""
        _, _, n_positions, n_items = sums.shape
        coded_types, positions, items = _split_keys(self._keys)
        indices = (user_type_of(coded_types) * n_positions + positions) * n_items + items
        is_display = positions != SQUARES
        sums.reshape(2, -1)[:, indices[is_display]] += self._sums[:, is_display]

    def cells(self) -> Cells:
        """Return the sum as cells."""
        cells = np.zeros(self._keys.size, dtype=CELL)
        cells["user_type"], cells["position"], cells["item"] = _split_keys(self._keys)
        cells["displays"], cells["rewards"] = self._sums
        return cells


class Totals:
    """Sum of changes, apart for each code of an arm.

    Parameters
    ----------
    n_user_types, n_items, n_positions
        Initial size; it grows with the user types and items of the changes.
    """

    def __init__(self, *, n_user_types: int, n_items: int, n_positions: int) -> None:
        shape = (2, n_user_types, n_positions, n_items)  # displays and rewards
        self._sums = np.zeros(shape, dtype=np.int64)  # of visits without an experiment
        self._arms: dict[int, _ArmTotals] = {}  # by code

    def add(self, cells: bytes) -> None:
        """Add a change."""
        added = decode_cells(cells)
        if not len(added):
            return
        codes = arm_code_of(added["user_type"])
        self.grow(int(user_type_of(added["user_type"]).max()) + 1, int(added["item"].max()) + 1)
        if codes.any():
            for code in np.unique(codes[codes > 0]).tolist():
                self._arms.setdefault(code, _ArmTotals()).add(added[codes == code])
            added = added[codes == 0]
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
        arms = [arm.cells() for arm in self._arms.values()]
        in_arms = sum(int(cells["displays"][cells["position"] == 0].sum()) for cells in arms)
        return int(self._sums[0, :, 0, :].sum()) + in_arms

    def counts(self, items: Sequence[int], codes: Collection[int] | None = None) -> Counts:
        """Return the counts of some items; arrivals and rounds include rankings without these items.

        Parameters
        ----------
        items
            Numbers of the items.
        codes
            Codes of the arms whose visits are included; all by default.
        """
        sums = self._sums if codes is None or 0 in codes else np.zeros_like(self._sums)
        arms = [arm for code, arm in self._arms.items() if codes is None or code in codes]
        if arms:
            sums = sums.copy()
        for arm in arms:
            arm.add_to(sums)
        arrivals = sums[0, :, 0, :].sum(axis=1)
        displays, rewards = sums[:, :, :, np.asarray(items, dtype=np.intp)]
        return Counts(
            np.ascontiguousarray(displays, dtype=np.float64),
            np.ascontiguousarray(rewards) / REWARD_UNITS,
            arrivals.astype(np.float64),
            int(arrivals.sum()),
        )

    def arm_sums(self, code: int) -> ArmSums:
        """Return the sums over the visits with a code above 0."""
        visits, rewards, squares = np.zeros((3, self._sums.shape[1]), dtype=np.int64)
        if code in self._arms:
            cells = self._arms[code].cells()
            user_types, is_square = user_type_of(cells["user_type"]), cells["position"] == SQUARES
            np.add.at(rewards, user_types[~is_square], cells["rewards"][~is_square])
            visits[user_types[is_square]] = cells["displays"][is_square]
            squares[user_types[is_square]] = cells["rewards"][is_square]
        return ArmSums(visits, rewards / REWARD_UNITS, squares / REWARD_UNITS)

    def cells(self) -> bytes:
        """Return the sum as a list of cells."""
        displays, rewards = self._sums
        indices = np.nonzero(displays)
        cells = np.zeros(len(indices[0]), dtype=CELL)
        cells["user_type"], cells["position"], cells["item"] = indices
        cells["displays"], cells["rewards"] = displays[indices], rewards[indices]
        arms = [arm.cells() for _, arm in sorted(self._arms.items())]
        return np.concatenate([cells, *arms]).tobytes()
