"""The cells of a cube as estimators of values read them: by group of folds, summed over periods."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._click_cube import ClickCube

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class LogCells(NamedTuple):
    """Non-empty cells by group of folds, user type, item, position and last click above, shape (C,) each.

    Attributes
    ----------
    group, user_type, item, position, above
        Coordinates. ``above`` is that of the cube, or 0 if the log has no visits.
    displays, clicks
        Sums.
    weights, squared_weights, weighted_clicks, squared_weighted_clicks
        Sums of 1/p, 1/p², c/p and c/p², with logged propensities p, or with those estimated from displays.
    visits
        Number of visits of each group and type, shape (G, N).
    shape
        Number of user types, items and positions.
    has_logged_propensities
        Whether the propensities are those of the log.
    """

    group: Indices
    user_type: Indices
    item: Indices
    position: Indices
    above: Indices
    displays: Floats
    clicks: Floats
    weights: Floats
    squared_weights: Floats
    weighted_clicks: Floats
    squared_weighted_clicks: Floats
    visits: Floats
    shape: tuple[int, int, int]
    has_logged_propensities: bool

    @property
    def n_visits(self) -> Floats:
        """Number of visits of each type, shape (N,)."""
        return np.asarray(self.visits.sum(axis=0), dtype=np.float64)

    @property
    def arrival_rates(self) -> Floats:
        """Share of each type in the visits, shape (N,)."""
        return np.asarray(self.n_visits / max(float(self.visits.sum()), 1e-300), dtype=np.float64)

    @property
    def group_shares(self) -> Floats:
        """Share of each group in the visits of a type, shape (G, N)."""
        total = self.n_visits
        even = np.full(self.visits.shape, 1 / len(self.visits))
        return np.asarray(np.divide(self.visits, total, out=even, where=total > 0), dtype=np.float64)

    @property
    def cell(self) -> Indices:
        """Index of (user type, item, position) in a flattened table, shape (C,)."""
        return np.asarray(np.ravel_multi_index((self.user_type, self.item, self.position), self.shape))

    def table(self, values: Floats) -> Floats:
        """Return sums of values as a table, shape (N, M, K)."""
        size = int(np.prod(self.shape))
        return sum_by(self.cell, values, size).reshape(self.shape)

    def without(self, group: int) -> "LogCells":
        """Return the cells of the other groups; numbers of groups stay."""
        return self._keep(self.group != group, np.arange(len(self.visits)) != group)

    def only(self, group: int) -> "LogCells":
        """Return the cells of a group; its number stays."""
        return self._keep(self.group == group, np.arange(len(self.visits)) == group)

    def _keep(self, is_kept: NDArray[np.bool_], has_visits: NDArray[np.bool_]) -> "LogCells":
        columns = {name: getattr(self, name)[is_kept] for name in self._fields[:11]}
        return self._replace(**columns, visits=np.where(has_visits[:, None], self.visits, 0.0))

    def without_above(self) -> "LogCells":
        """Return the cells summed over the last click above, which is 0: far fewer of them."""
        axes = (len(self.visits), *self.shape)
        flat = np.ravel_multi_index((self.group, self.user_type, self.item, self.position), axes)
        is_used = np.bincount(flat, minlength=int(np.prod(axes))) > 0
        keys = np.flatnonzero(is_used)
        place = np.cumsum(is_used) - 1
        columns: dict[str, Any] = {
            name: sum_by(place[flat], getattr(self, name), keys.size) for name in self._fields[5:11]
        }
        columns |= dict(zip(self._fields[:4], np.unravel_index(keys, axes), strict=True))
        return self._replace(**columns, above=np.zeros(keys.size, dtype=np.int64))

    def merged(self) -> "LogCells":
        """Return the cells with all folds in one group."""
        return self._replace(group=np.zeros_like(self.group), visits=self.visits.sum(axis=0, keepdims=True))


def sum_by(index: Indices, values: Floats, size: int) -> Floats:
    """Return the sum of the values with each index, shape (size,)."""
    return np.asarray(np.bincount(index, values, size), dtype=np.float64)


def log_cells(cube: ClickCube, *, n_groups: int = 1, seed: int = 0) -> LogCells:
    """Return the cells of a cube, its folds in groups.

    Propensities that the log does not have are estimated by the share of a type's visits in which an item was
    shown at a position.

    Parameters
    ----------
    cube
        The cube.
    n_groups
        Number of groups of folds.
    seed
        Seed of the split of displays whose fold is unknown.
    """
    if n_groups > 1:
        cube = cube.split_folds(np.random.default_rng(seed))
    cells = cube.cells
    shape = (len(cube.type_values), len(cube.items), cube.n_positions)
    group = np.where(cells.fold < 0, 0, cells.fold) % n_groups
    above = np.maximum(cells.above, 0)
    axes = (n_groups, *shape, cube.n_positions)
    flat = np.ravel_multi_index((group, cells.user_type, cells.item, cells.position, above), axes)
    keys, inverse = np.unique(flat, return_inverse=True)

    def sums(values: Floats) -> Floats:
        return sum_by(inverse, values, keys.size)

    coordinates = [np.asarray(axis, dtype=np.int64) for axis in np.unravel_index(keys, axes)]
    displays = sums(cells.displays)
    log = LogCells(
        group=coordinates[0],
        user_type=coordinates[1],
        item=coordinates[2],
        position=coordinates[3],
        above=coordinates[4],
        displays=displays,
        clicks=sums(cells.clicks),
        weights=sums(cells.weights),
        squared_weights=sums(cells.squared_weights),
        weighted_clicks=sums(cells.weighted_clicks),
        squared_weighted_clicks=sums(cells.squared_weighted_clicks),
        visits=_visits(cube, n_groups, shape, coordinates, displays),
        shape=shape,
        has_logged_propensities=cube.has_propensities,
    )
    return log if cube.has_propensities else _with_estimated_propensities(log)


def _visits(
    cube: ClickCube, n_groups: int, shape: tuple[int, int, int], coordinates: list[Indices], displays: Floats
) -> Floats:
    """Return the visits by group and type; without visits, the displays at the busiest position.

    These are split among groups as all displays are: a sum of the groups' own maxima would be too large.
    """
    size = n_groups * shape[0]
    if cube.has_visits:
        fold = cube.visits.fold
        if (fold < 0).any():  # visits without a fold belong to all groups alike
            by_type = sum_by(cube.visits.user_type, cube.visits.visits, shape[0])
            return np.tile(by_type / n_groups, (n_groups, 1))
        index = (fold % n_groups) * shape[0] + cube.visits.user_type
        return sum_by(index, cube.visits.visits, size).reshape(n_groups, shape[0])
    group, user_type, _, position, _ = coordinates
    index = (group * shape[0] + user_type) * shape[2] + position
    by_position = sum_by(index, displays, size * shape[2]).reshape(n_groups, shape[0], shape[2])
    by_group = by_position.sum(axis=2)  # (G, N)
    shares = by_group / np.maximum(by_group.sum(axis=0), 1e-300)
    return np.asarray(shares * by_position.sum(axis=0).max(axis=1), dtype=np.float64)


def _with_estimated_propensities(log: LogCells) -> LogCells:
    shown = log.table(log.displays).ravel()[log.cell]
    weight = log.n_visits[log.user_type] / np.maximum(shown, 1e-300)
    return log._replace(
        weights=log.displays * weight,
        squared_weights=log.displays * weight**2,
        weighted_clicks=log.clicks * weight,
        squared_weighted_clicks=log.clicks * weight**2,
    )
