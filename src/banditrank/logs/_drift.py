"""Drift of a log: items and positions whose clicks change from period to period."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._click_cube import ClickCube
from banditrank.estimators._click_models._position_based import fit_position_based
from banditrank.estimators._distributions import chi_square_survival, false_discovery_adjusted

Floats = NDArray[np.float64]

FALSE_DISCOVERY_RATE = 0.05
"""Expected share of items among those found to drift that do not."""

_MIN_EXPECTED = 1.0  # clicks of a period that is compared


@dataclass(frozen=True, slots=True)
class DriftingItem:
    """An item whose appeal to a user type changes from period to period.

    Attributes
    ----------
    user_type, item
        Names.
    p_value
        Adjusted for the false discovery rate.
    """

    user_type: str
    item: str
    p_value: float


@dataclass(frozen=True, slots=True)
class Drift:
    """Result of the tests.

    Attributes
    ----------
    n_periods
        Number of periods with displays.
    n_tested
        Number of items and user types that were tested.
    items
        Those that drift, by increasing p-value.
    """

    n_periods: int
    n_tested: int
    items: tuple[DriftingItem, ...]


def find_drift(cube: ClickCube) -> Drift:
    """Return the items whose clicks in the periods of a log differ from what all periods together predict.

    Clicks of a period are compared with those of the position-based model for the displays of the period, so
    that a change of rankings is no drift.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> items, period = np.argsort(rng.random((9000, 3)), axis=1), np.repeat([0, 1, 2], 3000)
    >>> appeal = np.where(items == 0, 0.1 + 0.1 * period[:, None], 0.2)
    >>> clicks = rng.random((9000, 3)) < appeal
    >>> cube = ClickCube.from_visits(
    ...     np.zeros(9000), items, clicks, period=period, periods=("May", "June", "July")
    ... )
    >>> [item.item for item in find_drift(cube).items]
    ['item-1']
    """
    cells = cube.cells
    periods = np.unique(cells.period)
    if periods.size < 2:
        return Drift(int(periods.size), 0, ())
    parameters = fit_position_based(cube)
    chances = np.minimum(
        parameters.appeal[cells.user_type, cells.item]
        * parameters.attention[cells.user_type, cells.position],
        1.0,
    )
    n_types, n_items = len(cube.type_values), len(cube.items)
    shape = (n_types * n_items, len(cube.periods))
    group = (cells.user_type * n_items + cells.item) * shape[1] + cells.period
    expected, variance, clicks = (
        np.bincount(group, values, shape[0] * shape[1]).reshape(shape)
        for values in (cells.displays * chances, cells.displays * chances * (1 - chances), cells.clicks)
    )
    is_compared = (expected >= _MIN_EXPECTED) & (variance > 0)
    squares = np.where(is_compared, (clicks - expected) ** 2 / np.where(is_compared, variance, 1.0), 0.0)
    degrees = is_compared.sum(axis=1) - 1
    tested = np.flatnonzero(degrees > 0)
    if not tested.size:
        return Drift(int(periods.size), 0, ())
    statistics = squares.sum(axis=1)
    p_values = false_discovery_adjusted(
        [chi_square_survival(float(statistics[index]), float(degrees[index])) for index in tested]
    )
    user_types = cube.user_types  # the property joins all names at each call
    found = [
        DriftingItem(user_types[tested[n] // n_items], cube.items[tested[n] % n_items], float(p_values[n]))
        for n in np.argsort(p_values, kind="stable")
        if p_values[n] < FALSE_DISCOVERY_RATE
    ]
    return Drift(int(periods.size), int(tested.size), tuple(found))
