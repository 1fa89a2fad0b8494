"""The click cube: additive counts of a click log, from which all analyses of logs start.

A cube has a cell for each combination that occurs of a period, a fold, a user type, an item, a position and
the last click above. One pass over a log makes it (`banditrank.logs`), and cubes of parts of a log are added
with ``+``. Its size does not depend on the number of rows of the log:

* folds, by a hash of the user, serve cross-fitting and standard errors that are robust to users who return;
* periods show drift;
* the last click above a display is what browsing models condition on. Summed over it, the cube is `Counts`.

Logs with visits (several rows with one visit id, or a row a visit) also have the number of visits by number
of clicks, and the ranking lists themselves as far as they were retained.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._checks import check_integer
from banditrank._frames import Columns, Tabular
from banditrank._text import plural
from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError, UnknownNameError

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

N_FOLDS = 20
"""Number of folds of a cube."""

MAX_POSITIONS = 62
"""Maximum number of positions of a cube: the clicks of a visit are the bits of an integer."""

UNKNOWN = -1
"""``above`` without visits, ``fold`` without users and visits, and an empty position of a list."""

MAX_DENSE_CELLS = 100_000_000
"""Maximum number of cells, empty ones included, of a table with all axes."""

MAX_ANALYSED_CELLS = 5_000_000
"""Maximum number of cells, empty ones included, of a cube that is analysed.

At the limit, with 200,000 items, ``evaluate`` takes 4 minutes of processor time and 5.7 GB of memory.
"""


class CubeCells(NamedTuple):
    """Columns of the non-empty cells, each of shape (C,), sorted by the first six.

    Attributes
    ----------
    period, fold, user_type, item, position, above
        Coordinates, from 0; `UNKNOWN` where the log does not tell. ``above`` is 0 without a click above, and
        k for a last click above at position k − 1.
    displays, clicks
        Number of displays, and of clicks on them.
    examined
        Number of displays at or above the last click of their visit; all displays of a visit without a click.
    last_clicks
        Number of clicks that were the last, lowest one of their visit.
    weights, squared_weights, weighted_clicks, squared_weighted_clicks
        Sums of 1/p, 1/p², c/p and c/p², p being the logged probability of the item at the position and c the
        click; 0 for logs without propensities.
    """

    period: Indices
    fold: Indices
    user_type: Indices
    item: Indices
    position: Indices
    above: Indices
    displays: Floats
    clicks: Floats
    examined: Floats
    last_clicks: Floats
    weights: Floats
    squared_weights: Floats
    weighted_clicks: Floats
    squared_weighted_clicks: Floats


class CubeVisits(NamedTuple):
    """Number of visits by period, fold, user type and number of clicks, each column of shape (V,)."""

    period: Indices
    fold: Indices
    user_type: Indices
    n_clicks: Indices
    visits: Floats


class CubeLists(NamedTuple):
    """Distinct ranking lists of a sample of visits with their clicks, and how often each occurred.

    All visits have the same probability to be in the sample, so that each stands for the visits of its user
    type over those in the sample.

    Attributes
    ----------
    fold, user_type
        Shape (L,).
    items
        Item at each position, shape (L, K); `UNKNOWN` where nothing was shown.
    clicks
        Clicked positions as bits, position k as 2ᵏ, shape (L,).
    visits
        Number of visits in the sample, shape (L,).
    """

    fold: Indices
    user_type: Indices
    items: Indices
    clicks: Indices
    visits: Floats


_CELL_KEYS = CubeCells._fields[:6]
_VISIT_KEYS = CubeVisits._fields[:4]
_Table = TypeVar("_Table", CubeCells, CubeVisits)


@dataclass(frozen=True, slots=True, eq=False)
class ClickCube(Tabular):
    """Additive counts of a click log.

    ``to_frame`` returns a row for each cell, with names instead of indices, and positions from 1.

    Attributes
    ----------
    type_columns
        Columns of the log that tell user types apart.
    type_values
        Their values for each user type.
    items, periods
        Names.
    n_positions
        Number of positions.
    cells, visits, lists
        The tables; without visits in the log, ``visits`` and ``lists`` have no rows.
    metadata
        How the cube was made: columns, rows by reason, files. Values are those of JSON.

    Examples
    --------
    >>> cube = ClickCube.from_visits([0, 0], [[0, 1], [1, 0]], [[1, 0], [0, 0]])
    >>> cube.counts().displays[0], cube.n_visits
    (array([[1., 1.],
           [1., 1.]]), 2.0)
    >>> (cube + cube).n_visits
    4.0
    """

    type_columns: tuple[str, ...]
    type_values: tuple[tuple[str, ...], ...]
    items: tuple[str, ...]
    periods: tuple[str, ...]
    n_positions: int
    cells: CubeCells
    visits: CubeVisits
    lists: CubeLists
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_visits(
        cls,
        user_type: ArrayLike,
        items: ArrayLike,
        clicks: ArrayLike,
        *,
        user_types: Sequence[str] | None = None,
        item_names: Sequence[str] | None = None,
        users: ArrayLike | None = None,
        period: ArrayLike | None = None,
        periods: Sequence[str] = ("all",),
        propensities: ArrayLike | None = None,
    ) -> "ClickCube":
        """Return the cube of visits that are in memory.

        Parameters
        ----------
        user_type
            Index of the user type of each visit, shape (n,).
        items
            Item shown at each position, shape (n, K); −1 where nothing was shown.
        clicks
            Whether it was clicked, shape (n, K).
        user_types, item_names
            Names; ``type-1``, … and ``item-1``, … by default.
        users
            Index of the user of each visit, shape (n,), by which visits are assigned to folds; by default
            each visit has a user of its own.
        period
            Index of the period of each visit, shape (n,).
        periods
            Names of the periods.
        propensities
            Probability with which the logging policy showed each item at its position, shape (n, K).

        Raises
        ------
        InvalidInputError
            If shapes do not match, or an index is out of range.
        """
        shown = np.asarray(items, dtype=np.int64)
        if shown.ndim != 2 or not 1 <= shown.shape[1] <= MAX_POSITIONS or shown.shape[0] < 1:
            raise InvalidInputError(
                "items", f"must have shape (n, K) with 1 ≤ K ≤ {MAX_POSITIONS}", shown.shape
            )
        n, n_positions = shown.shape
        is_shown = shown >= 0
        clicked = (np.asarray(clicks) != 0) & is_shown
        types = _column("user_type", user_type, n)
        when = _column("period", np.zeros(n) if period is None else period, n)
        folds = _column("users", np.arange(n) if users is None else users, n) % N_FOLDS
        type_names = _names(user_types, "type", int(types.max()) + 1)
        names = _names(item_names, "item", int(shown.max()) + 1)
        if clicked.shape != shown.shape:
            raise InvalidInputError("clicks", f"must have shape {shown.shape}", clicked.shape)
        for what, indices, limit in (("user_type", types, len(type_names)), ("items", shown, len(names))):
            if indices.max() >= limit:
                raise InvalidInputError(what, f"must be below {limit}", int(indices.max()))
        inverse = np.zeros(shown.shape)
        if propensities is not None:
            with np.errstate(divide="ignore"):
                inverse = np.where(is_shown, 1.0 / np.asarray(propensities, dtype=np.float64), 0.0)
            if not np.isfinite(inverse).all() or (inverse[is_shown] < 1.0).any():
                raise InvalidInputError("propensities", "must be above 0 and at most 1", propensities)
        positions = np.arange(n_positions)
        last_above = np.zeros((n, n_positions), dtype=np.int64)
        for k in range(1, n_positions):
            last_above[:, k] = np.where(clicked[:, k - 1], k, last_above[:, k - 1])
        n_clicks = clicked.sum(axis=1)
        last = np.where(n_clicks > 0, n_positions - 1 - clicked[:, ::-1].argmax(axis=1), n_positions)
        rows, columns = np.nonzero(is_shown)
        click = clicked[rows, columns].astype(np.float64)
        weight = inverse[rows, columns]
        cells = CubeCells(
            period=when[rows],
            fold=folds[rows],
            user_type=types[rows],
            item=shown[rows, columns],
            position=positions[columns].astype(np.int64),
            above=last_above[rows, columns],
            displays=np.ones(rows.size),
            clicks=click,
            examined=(columns <= last[rows]).astype(np.float64),
            last_clicks=(columns == last[rows]).astype(np.float64),
            weights=weight,
            squared_weights=weight**2,
            weighted_clicks=weight * click,
            squared_weighted_clicks=weight**2 * click,
        )
        visits = CubeVisits(when, folds, types, n_clicks.astype(np.int64), np.ones(n))
        bits = (clicked.astype(np.int64) << positions).sum(axis=1)
        return cls(
            ("user_type",),
            tuple((name,) for name in type_names),
            names,
            tuple(periods),
            n_positions,
            _aggregate(cells, _CELL_KEYS),
            _aggregate(visits, _VISIT_KEYS),
            aggregate_lists(CubeLists(folds, types, shown, bits, np.ones(n))),
        )

    @property
    def user_types(self) -> tuple[str, ...]:
        """Names of the user types: the values of their columns, joined by a slash."""
        return tuple("/".join(values) for values in self.type_values)

    @property
    def n_visits(self) -> float:
        """Number of visits; 0 if the log has none."""
        return float(self.visits.visits.sum())

    @property
    def has_visits(self) -> bool:
        """Whether displays belong to visits, so that the last click above is known."""
        return bool(self.visits.visits.size)

    @property
    def has_all_clicks(self) -> bool:
        """Whether the cells have all clicks of the visits: no clicked item or position is left out."""
        return self.has_visits and bool(
            np.isclose(self.visits.visits @ self.visits.n_clicks, self.cells.clicks.sum())
        )

    @property
    def n_analysed_cells(self) -> int:
        """Number of cells, empty ones included, of the tables that click models are fitted to.

        User types x items x positions; with visits also x positions, for the last click above.
        """
        return len(self.type_values) * len(self.items) * self._n_columns

    @property
    def _n_columns(self) -> int:
        """Number of positions, or of pairs of a position and the last click above."""
        return self.n_positions ** (2 if self.has_visits else 1)

    def describe_size(self) -> str:
        """Return the numbers of user types, items and positions in words."""
        return (
            f"{plural(len(self.type_values), 'user type')} x {plural(len(self.items), 'item')} x "
            f"{plural(self.n_positions, 'position')}"
        )

    def check_analysed(
        self, field: str = "cube", how: str = "cube.select(items=cube.most_shown_items({count}))"
    ) -> None:
        """Check that the cube is small enough for analyses, whose tables have all cells.

        Parameters
        ----------
        field
            Name of the cube in the error.
        how
            How to keep the most shown items, with ``{count}`` for their number.

        Raises
        ------
        InvalidInputError
            If it is not; the message says how many items to keep.
        """
        if self.n_analysed_cells <= MAX_ANALYSED_CELLS:
            return
        count = MAX_ANALYSED_CELLS // (len(self.type_values) * self._n_columns)
        most_shown = f"keep the most shown items with {how.format(count=count)} or fewer"
        remedy = most_shown if count else "keep fewer user types"
        rule = f"must have at most {MAX_ANALYSED_CELLS:,} cells, empty ones included, to be analysed"
        above = f" x {plural(self.n_positions, 'last click')}" if self.has_visits else ""
        raise InvalidInputError(field, f"{rule}: {remedy}", self.describe_size() + above)

    @property
    def has_propensities(self) -> bool:
        """Whether the log has the probabilities of the displays."""
        return bool(self.cells.weights.any())

    def counts(self, *, folds: Sequence[int] | None = None, periods: Sequence[int] | None = None) -> Counts:
        """Return the counts of some folds and periods, of all by default.

        Without visits, the arrivals of a user type are the displays at the position with the most.

        Raises
        ------
        InvalidInputError
            If the table would be too large, or there are fewer items than positions.
        """
        if len(self.items) < self.n_positions:
            given = f"{len(self.items)} for {self.n_positions} positions"
            raise InvalidInputError("log", "must have as many items as positions at least", given)
        chosen = self.select(folds=folds, periods=periods)
        displays, clicks = (chosen.table(values) for values in (chosen.cells.displays, chosen.cells.clicks))
        if chosen.has_visits:
            arrivals = np.bincount(chosen.visits.user_type, chosen.visits.visits, len(self.type_values))
        else:
            arrivals = displays.sum(axis=1).max(axis=1)
        return Counts.from_arrays(displays, clicks, arrivals)

    def table(self, values: Floats) -> Floats:
        """Return a column of the cells as an array with axes, shape (N, M, K), summed over all else."""
        shape = (len(self.type_values), len(self.items), self.n_positions)
        return self._dense(values, shape, ("user_type", "item", "position"))

    def table_by_fold(self, values: Floats) -> Floats:
        """Return a column of the cells as an array with axes, shape (F, N, M, K), summed over all else."""
        shape = (N_FOLDS, len(self.type_values), len(self.items), self.n_positions)
        return self._dense(values, shape, ("fold", "user_type", "item", "position"))

    def table_by_last_click(self, values: Floats) -> Floats:
        """Return a column of the cells as an array with axes, shape (N, M, K, K), the last one ``above``.

        Raises
        ------
        InvalidInputError
            If the log has no visits.
        """
        if not self.has_visits:
            raise InvalidInputError("log", "must have visits to know the last click above", "no visit column")
        shape = (len(self.type_values), len(self.items), self.n_positions, self.n_positions)
        return self._dense(values, shape, ("user_type", "item", "position", "above"))

    def select(
        self,
        *,
        folds: Sequence[int] | None = None,
        periods: Sequence[int] | None = None,
        user_types: Sequence[int] | None = None,
        items: Sequence[int] | None = None,
        n_positions: int | None = None,
    ) -> "ClickCube":
        """Return a part of the cube; user types and items are renumbered in the given order.

        Parameters
        ----------
        folds, periods
            Folds and periods to keep; their numbers stay.
        user_types, items
            User types and items to keep.
        n_positions
            Number of positions to keep, the first ones.
        """
        cells, visits, lists = self.cells, self.visits, self.lists
        for name, chosen in (("fold", folds), ("period", periods)):
            if chosen is not None:
                cells = filter_rows(cells, np.isin(getattr(cells, name), chosen))
                visits = filter_rows(visits, np.isin(getattr(visits, name), chosen))
        if folds is not None:
            lists = filter_rows(lists, np.isin(lists.fold, folds))
        elif periods is not None and len(set(periods)) < len(self.periods):
            lists = filter_rows(lists, np.zeros(lists.fold.size, dtype=np.bool_))  # lists have no period
        cube = replace(self, cells=cells, visits=visits, lists=lists)
        if user_types is not None:
            cube = _renumber_types(cube, user_types)
        if items is not None:
            cube = _renumber_items(cube, items)
        if n_positions is not None and n_positions < self.n_positions:
            check_integer("n_positions", n_positions, 1)
            lists = cube.lists
            bits = lists.clicks & ((1 << n_positions) - 1)
            cube = replace(
                cube,
                n_positions=n_positions,
                cells=filter_rows(cube.cells, cube.cells.position < n_positions),
                lists=aggregate_lists(lists._replace(items=lists.items[:, :n_positions], clicks=bits)),
            )
        return cube

    def regroup(self, columns: Sequence[str]) -> "ClickCube":
        """Return the cube with user types of some of its type columns; without any, a single type ``all``.

        Raises
        ------
        UnknownNameError
            If the cube has no such column.

        Examples
        --------
        >>> cube = ClickCube.from_visits([0, 1], [[0, 1], [1, 0]], [[1, 0], [0, 0]])
        >>> cube.regroup([]).counts().displays.shape
        (1, 2, 2)
        """
        for column in columns:
            if column not in self.type_columns:
                raise UnknownNameError("column", column, self.type_columns)
        chosen = [self.type_columns.index(column) for column in columns]
        kept = [tuple(values[i] for i in chosen) or ("all",) for values in self.type_values]
        type_values = tuple(sorted(set(kept)))
        new = np.array([type_values.index(values) for values in kept], dtype=np.int64)
        return replace(
            self,
            type_columns=tuple(columns),
            type_values=type_values,
            cells=_aggregate(self.cells._replace(user_type=new[self.cells.user_type]), _CELL_KEYS),
            visits=_aggregate(self.visits._replace(user_type=new[self.visits.user_type]), _VISIT_KEYS),
            lists=aggregate_lists(self.lists._replace(user_type=new[self.lists.user_type])),
        )

    def most_shown_items(self, count: int) -> list[int]:
        """Return the indices of the items with the most displays, most first."""
        displays = np.bincount(self.cells.item, self.cells.displays, len(self.items))
        return [int(index) for index in np.argsort(-displays, kind="stable")[:count]]

    def split_folds(self, rng: np.random.Generator) -> "ClickCube":
        """Return the cube with the displays of unknown folds distributed over folds at random.

        Rows of a log without users and visits are exchangeable within a cell, so that a random split is as
        good as that of a hash. Other cells keep their fold. Visits of unknown folds count alike in each fold.
        Ranking lists are distributed at random, and in a cube of one period their displays are in their fold.
        """
        unknown = self.cells.fold == UNKNOWN
        if not unknown.any():
            return self
        cells, split = filter_rows(self.cells, unknown), filter_rows(self.cells, ~unknown)
        shares = np.full(N_FOLDS, 1 / N_FOLDS)
        lists = _split_lists(self.lists, rng)
        listed = np.zeros((2, N_FOLDS, cells.fold.size))
        if len(self.periods) == 1 and (self.lists.fold == UNKNOWN).all():
            listed = _count_lists(lists, cells)
        totals = np.stack([cells.clicks, cells.displays - cells.clicks])
        listed *= (listed.sum(axis=1) <= totals)[:, None]  # lists of items that are left out count less
        others = np.rint(totals - listed.sum(axis=1)).astype(np.int64)
        clicks, misses = listed + np.moveaxis(rng.multinomial(others, shares), 2, 1)  # (F, C) each
        displays = clicks + misses
        parts = {name: np.tile(getattr(cells, name), N_FOLDS) for name in _CELL_KEYS}
        parts["fold"] = np.repeat(np.arange(N_FOLDS), cells.fold.size)
        for name in CubeCells._fields[6:]:
            whole, of = getattr(cells, name), "clicks" if "click" in name else "displays"
            part, total = (clicks, cells.clicks) if of == "clicks" else (displays, cells.displays)
            share = np.divide(part, total, out=np.zeros(part.shape), where=total > 0)
            parts[name] = (share * whole).ravel()
        parts["displays"], parts["clicks"] = displays.ravel(), clicks.ravel()
        spread = CubeCells(**parts)
        together = _concatenate([split, filter_rows(spread, spread.displays > 0)])
        return replace(
            self,
            cells=_aggregate(together, _CELL_KEYS),
            visits=_split_visits(self.visits),
            lists=lists,
        )

    def merge_periods(self) -> "ClickCube":
        """Return the cube with all periods as one."""
        if len(self.periods) == 1:
            return self
        cells = self.cells._replace(period=np.zeros_like(self.cells.period))
        visits = self.visits._replace(period=np.zeros_like(self.visits.period))
        return replace(
            self,
            periods=("all",),
            cells=_aggregate(cells, _CELL_KEYS),
            visits=_aggregate(visits, _VISIT_KEYS),
        )

    def save(self, path: str | Path) -> None:
        """Write the cube to a directory, which `load_cube` reads.

        Parameters
        ----------
        path
            Directory to create, or an earlier cube to replace; its parent must exist.

        Raises
        ------
        InvalidInputError
            If the path exists and is not a cube, or cannot be written.
        MissingDependencyError
            If PyArrow is not installed.
        """
        from banditrank.counts._cube_files import save_cube  # noqa: PLC0415 - imports this module

        save_cube(self, path)

    def __add__(self, other: "ClickCube") -> "ClickCube":
        if not isinstance(other, ClickCube):
            return NotImplemented
        if self.type_columns != other.type_columns:
            columns = f"{', '.join(self.type_columns)} and {', '.join(other.type_columns)}"
            raise InvalidInputError("cubes", "must have the same type columns to be merged", columns)
        if self.cells.displays.any() and other.cells.displays.any() and self.has_visits != other.has_visits:
            raise InvalidInputError(
                "cubes", "must both have visits or both have none", "one with and one without"
            )
        type_values = tuple(sorted({*self.type_values, *other.type_values}))
        items = tuple(sorted({*self.items, *other.items}))
        periods = tuple(sorted({*self.periods, *other.periods}))
        parts = [_renumbered(one, type_values, items, periods) for one in (self, other)]
        width = max(self.n_positions, other.n_positions)
        return ClickCube(
            self.type_columns,
            type_values,
            items,
            periods,
            width,
            _aggregate(_concatenate([one.cells for one in parts]), _CELL_KEYS),
            _aggregate(_concatenate([one.visits for one in parts]), _VISIT_KEYS),
            aggregate_lists(_concatenate([_widen(one.lists, width) for one in parts])),
            merge_metadata(self.metadata, other.metadata),
        )

    def _dense(self, values: Floats, shape: tuple[int, ...], axes: Sequence[str]) -> Floats:
        if int(np.prod(shape, dtype=np.float64)) > MAX_DENSE_CELLS:
            rule = (
                f"must have at most {MAX_DENSE_CELLS:,} cells, empty ones included: keep the most shown "
                "items (ClickCube.most_shown_items)"
            )
            raise InvalidInputError("cube", rule, " x ".join(f"{size:,}" for size in shape))
        coordinates = tuple(getattr(self.cells, axis) for axis in axes)
        if any(coordinate.size and coordinate.min() < 0 for coordinate in coordinates):
            raise InvalidInputError("cube", f"must have a known {' and '.join(axes)} in all cells", "unknown")
        flat = np.ravel_multi_index(coordinates, shape)
        return np.bincount(flat, values, int(np.prod(shape))).astype(np.float64, copy=False).reshape(shape)

    def _columns(self) -> Columns:
        cells, types = self.cells, np.array(self.user_types, dtype=object)
        return {
            "period": np.array(self.periods, dtype=object)[cells.period].tolist(),
            "fold": cells.fold,
            "user_type": types[cells.user_type].tolist(),
            "item": np.array(self.items, dtype=object)[cells.item].tolist(),
            "position": cells.position + 1,
            "above": cells.above,
            **{name: getattr(cells, name) for name in CubeCells._fields[6:]},
        }


def merge_metadata(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of merged cubes.

    Numbers of rows by reason are added, lists are joined without repetition, of the busiest users the busier
    one is kept, and of other values those that both have in common.

    Examples
    --------
    >>> merge_metadata({"rows": {"counted": 2}, "files": ["a"]}, {"rows": {"counted": 3}, "files": ["b"]})
    {'rows': {'counted': 5}, 'files': ['a', 'b']}
    """
    if not one or not other:
        return dict(one or other)
    merged: dict[str, Any] = {}
    for name, value in one.items():
        added = other.get(name)
        if name == "rows":
            counts = added or {}
            merged[name] = {
                reason: value.get(reason, 0) + counts.get(reason, 0)
                for reason in dict.fromkeys([*value, *counts])
            }
        elif name == "first_rows":
            merged[name] = {**(added or {}), **value}
        elif name == "busiest_user" and added:
            merged[name] = max(value, added, key=lambda busiest: busiest["rows"])
        elif isinstance(value, list) and isinstance(added, list):
            merged[name] = value + [each for each in added if each not in value]
        elif value == added:
            merged[name] = value
    return merged


def merge_cubes(cubes: Sequence[ClickCube]) -> ClickCube:
    """Return the sum of cubes of parts of a log.

    Parameters
    ----------
    cubes
        At least one cube. No visit may be in two of them, because its clicks would be counted apart.

    Raises
    ------
    InvalidInputError
        If there is none, or their type columns differ, or only some have visits.

    Examples
    --------
    >>> cube = ClickCube.from_visits([0, 0], [[0, 1], [1, 0]], [[1, 0], [0, 0]])
    >>> merge_cubes([cube, cube, cube]).n_visits
    6.0
    """
    if not cubes:
        raise InvalidInputError("cubes", "must be at least one", 0)
    total = cubes[0]
    for cube in cubes[1:]:
        total = total + cube
    return total


def _renumbered(
    cube: ClickCube, type_values: Sequence[tuple[str, ...]], items: Sequence[str], periods: Sequence[str]
) -> ClickCube:
    """Return the cube with the indices of other, longer lists of names."""
    new_type = _new_indices(cube.type_values, type_values)
    new_item = _new_indices(cube.items, items)
    new_period = _new_indices(cube.periods, periods)
    cells, visits, lists = cube.cells, cube.visits, cube.lists
    return replace(
        cube,
        type_values=tuple(type_values),
        items=tuple(items),
        periods=tuple(periods),
        cells=cells._replace(
            user_type=new_type[cells.user_type],
            item=new_item[cells.item],
            period=new_period[cells.period],
        ),
        visits=visits._replace(user_type=new_type[visits.user_type], period=new_period[visits.period]),
        lists=lists._replace(user_type=new_type[lists.user_type], items=_map_items(new_item, lists.items)),
    )


def _renumber_types(cube: ClickCube, chosen: Sequence[int]) -> ClickCube:
    new = _inverse(chosen, len(cube.type_values))
    cells, visits, lists = cube.cells, cube.visits, cube.lists
    cells = filter_rows(cells._replace(user_type=new[cells.user_type]), new[cells.user_type] >= 0)
    visits = filter_rows(visits._replace(user_type=new[visits.user_type]), new[visits.user_type] >= 0)
    lists = filter_rows(lists._replace(user_type=new[lists.user_type]), new[lists.user_type] >= 0)
    return replace(
        cube,
        type_values=tuple(cube.type_values[i] for i in chosen),
        cells=_aggregate(cells, _CELL_KEYS),
        visits=_aggregate(visits, _VISIT_KEYS),
        lists=lists,
    )


def _renumber_items(cube: ClickCube, chosen: Sequence[int]) -> ClickCube:
    new = _inverse(chosen, len(cube.items))
    cells = filter_rows(cube.cells._replace(item=new[cube.cells.item]), new[cube.cells.item] >= 0)
    kept = _map_items(new, cube.lists.items)
    # A list with a gap where another item was shown would be misread: such lists are dropped.
    is_whole = ((kept >= 0) == (cube.lists.items >= 0)).all(axis=1)
    return replace(
        cube,
        items=tuple(cube.items[j] for j in chosen),
        cells=_aggregate(cells, _CELL_KEYS),
        lists=filter_rows(cube.lists._replace(items=kept), is_whole),
    )


def _column(name: str, values: ArrayLike, length: int) -> Indices:
    column = np.asarray(values).astype(np.int64)
    if column.shape != (length,) or (column < 0).any():
        raise InvalidInputError(name, f"must be {length} whole numbers of at least 0", values)
    return column


def _names(names: Sequence[str] | None, prefix: str, count: int) -> tuple[str, ...]:
    return (
        tuple(names) if names is not None else tuple(f"{prefix}-{number}" for number in range(1, count + 1))
    )


def aggregate_cells(cells: CubeCells) -> CubeCells:
    """Return one row for each cell, sorted by its coordinates, with values summed."""
    return _aggregate(cells, _CELL_KEYS)


def aggregate_visits(visits: CubeVisits) -> CubeVisits:
    """Return one row for each combination of keys, sorted, with the number of visits summed."""
    return _aggregate(visits, _VISIT_KEYS)


def _aggregate(table: _Table, keys: Sequence[str]) -> _Table:
    """Return a table with one row for each combination of keys, sorted, and values summed."""
    columns = table._asdict()
    lows = [int(columns[key].min()) if columns[key].size else 0 for key in keys]
    sizes = [
        int(columns[key].max()) - low + 1 if columns[key].size else 1
        for key, low in zip(keys, lows, strict=True)
    ]
    if math.prod(sizes) < 2**62:  # a single number is sorted several times as fast as columns
        combined = np.zeros(columns[keys[0]].size, dtype=np.int64)
        for key, low, size in zip(keys, lows, sizes, strict=True):
            combined = combined * size + (columns[key] - low)
        order = np.argsort(combined, kind="stable")
        ordered = combined[order]
        starts = np.ones(order.size, dtype=np.bool_)
        starts[1:] = ordered[1:] != ordered[:-1]
    else:
        order = np.lexsort([columns[key] for key in reversed(keys)])
        starts = np.zeros(order.size, dtype=np.bool_)
        starts[:1] = True
        for key in keys:
            ordered = columns[key][order]
            starts[1:] |= ordered[1:] != ordered[:-1]
    first = np.flatnonzero(starts)
    chosen = order[first]
    merged = {}
    for name, column in columns.items():
        if not column.any():
            merged[name] = np.zeros(first.size, dtype=column.dtype)
        elif name in keys or first.size == order.size:  # nothing to add up
            merged[name] = column[chosen]
        else:
            merged[name] = np.add.reduceat(column[order], first)
    return type(table)(**merged)


def aggregate_lists(lists: CubeLists) -> CubeLists:
    """Return each list once, with its number of visits."""
    if not lists.fold.size:
        return lists
    keys = np.column_stack([lists.fold, lists.user_type, lists.clicks, lists.items])
    order = np.lexsort(keys.T[::-1])  # faster than np.unique, which compares whole rows
    keys = keys[order]
    is_first = np.ones(order.size, dtype=np.bool_)
    is_first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    distinct = keys[is_first]
    visits = np.bincount(np.cumsum(is_first) - 1, lists.visits[order]).astype(np.float64, copy=False)
    return CubeLists(
        distinct[:, 0], distinct[:, 1], np.ascontiguousarray(distinct[:, 3:]), distinct[:, 2], visits
    )


_AnyTable = TypeVar("_AnyTable", CubeCells, CubeVisits, CubeLists)


def filter_rows(table: _AnyTable, is_kept: NDArray[np.bool_]) -> _AnyTable:
    """Return some rows of a table."""
    columns: dict[str, Any] = {name: column[is_kept] for name, column in table._asdict().items()}
    return type(table)(**columns)


def _concatenate(tables: Sequence[_AnyTable]) -> _AnyTable:
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(table, name) for table in tables]) for name in tables[0]._fields
    }
    return type(tables[0])(**columns)


def _split_visits(visits: CubeVisits) -> CubeVisits:
    """Return the visits with equal parts of those of unknown folds in each fold."""
    unknown = visits.fold == UNKNOWN
    parts, known = filter_rows(visits, unknown), filter_rows(visits, ~unknown)
    columns = {name: np.tile(column, N_FOLDS) for name, column in parts._asdict().items()}
    columns["fold"] = np.repeat(np.arange(N_FOLDS), parts.fold.size)
    columns["visits"] = columns["visits"] / N_FOLDS
    return _aggregate(_concatenate([known, CubeVisits(**columns)]), _VISIT_KEYS)


def _split_lists(lists: CubeLists, rng: np.random.Generator) -> CubeLists:
    """Return the lists with those of unknown folds distributed over folds at random."""
    unknown = lists.fold == UNKNOWN
    parts, known = filter_rows(lists, unknown), filter_rows(lists, ~unknown)
    counts = rng.multinomial(np.rint(parts.visits).astype(np.int64), np.full(N_FOLDS, 1 / N_FOLDS))  # (L, F)
    index, fold = np.nonzero(counts)
    spread = CubeLists(
        fold,
        parts.user_type[index],
        parts.items[index],
        parts.clicks[index],
        counts[index, fold].astype(float),
    )
    return aggregate_lists(_concatenate([known, spread]))


class _ListDisplays(NamedTuple):
    """Displays of ranking lists, each column of shape (D,)."""

    number: Indices  # of the list
    user_type: Indices
    item: Indices
    position: Indices
    above: Indices
    is_clicked: NDArray[np.bool_]

    @classmethod
    def of(cls, lists: CubeLists) -> "_ListDisplays":
        """Return the displays of lists, with the last click above each."""
        positions = np.arange(lists.items.shape[1])
        is_clicked = (lists.clicks[:, None] >> positions & 1).astype(np.bool_)  # (L, K)
        last = np.maximum.accumulate(np.where(is_clicked, positions + 1, 0), axis=1)
        above = np.pad(last[:, :-1], ((0, 0), (1, 0)))
        index, position = np.nonzero(lists.items >= 0)
        return cls(
            index,
            lists.user_type[index],
            lists.items[index, position],
            position,
            above[index, position],
            is_clicked[index, position],
        )

    def find_cells(self, cells: CubeCells) -> tuple[Indices, NDArray[np.bool_]]:
        """Return the cell of each display, and whether there is one; its number means nothing if not."""
        keys = (self.user_type, self.item, self.position, self.above)
        of_cells = (cells.user_type, cells.item, cells.position, cells.above)
        sizes = [int(max(a.max(), b.max())) + 1 for a, b in zip(keys, of_cells, strict=True)]
        flat, flat_cells = (np.ravel_multi_index(one, sizes) for one in (keys, of_cells))
        order = np.argsort(flat_cells)
        found = order[np.minimum(np.searchsorted(flat_cells, flat, sorter=order), flat_cells.size - 1)]
        return found, flat_cells[found] == flat


def _count_lists(lists: CubeLists, cells: CubeCells) -> Floats:
    """Return the clicks and misses of lists by fold and cell, shape (2, F, C)."""
    n_cells = cells.fold.size
    if not lists.fold.size or not n_cells:
        return np.zeros((2, N_FOLDS, n_cells))
    displays = _ListDisplays.of(lists)
    cell, is_found = displays.find_cells(cells)
    fold_and_cell = lists.fold[displays.number] * n_cells + cell
    visits = lists.visits[displays.number] * is_found
    counts = [
        np.bincount(fold_and_cell, visits * is_counted, N_FOLDS * n_cells)
        for is_counted in (displays.is_clicked, ~displays.is_clicked)
    ]
    return np.stack(counts).astype(np.float64, copy=False).reshape(2, N_FOLDS, n_cells)


def _widen(lists: CubeLists, n_positions: int) -> CubeLists:
    missing = n_positions - lists.items.shape[1]
    return lists._replace(items=np.pad(lists.items, ((0, 0), (0, missing)), constant_values=UNKNOWN))


def _new_indices(old: Sequence[Any], new: Sequence[Any]) -> Indices:
    index = {name: number for number, name in enumerate(new)}
    return np.array([index[name] for name in old], dtype=np.int64)


def _inverse(chosen: Sequence[int], count: int) -> Indices:
    new = np.full(count, -1, dtype=np.int64)
    for number, index in enumerate(chosen):
        new[check_integer("index", index, 0, count - 1)] = number
    return new


def _map_items(new: Indices, items: Indices) -> Indices:
    return np.where(items >= 0, new[np.maximum(items, 0)] if new.size else UNKNOWN, UNKNOWN)
