"""Warnings about a counted log: what is probably wrong with it, though no row is bad."""

from collections.abc import Mapping

import numpy as np

from banditrank._text import list_names, shorten
from banditrank.counts._click_cube import ClickCube

MAX_CELLS = 2_000_000
"""Number of cells above which analyses become slow."""

MIN_TYPE_SHARE = 0.01
"""Share of displays below which a user type is too rare to learn from."""

MIN_BOT_ROWS = 1000
"""Number of rows from which on a user may be a bot, if it is also `BOT_RATIO` times the mean."""

BOT_RATIO = 100
MAX_STANDARD_ERRORS = 4.0


def find_warnings(cube: ClickCube, busiest: Mapping[str, float] | None = None) -> list[str]:
    """Return one line for each suspicion.

    Parameters
    ----------
    cube
        The counted log.
    busiest
        ``rows`` of the busiest user, and ``mean_rows`` of all users; None if the log has no users.

    Examples
    --------
    >>> find_warnings(ClickCube.from_visits([0, 0], [[0, 1], [1, 0]], [[1, 1], [1, 1]]))
    ['every display was clicked: displays without a click may be missing from the log']
    """
    cells = cube.cells
    displays, clicks = float(cells.displays.sum()), float(cells.clicks.sum())
    warnings: list[str] = []
    if displays and clicks == displays:
        warnings.append("every display was clicked: displays without a click may be missing from the log")
    if displays and not clicks:
        warnings.append("no display was clicked: nothing can be learned from this log")
    if cells.displays.size > MAX_CELLS:
        warnings.append(
            f"{cells.displays.size:,} cells: fewer user types, longer periods or the most shown items make "
            "analyses faster"
        )
    by_type = np.bincount(cells.user_type, cells.displays, len(cube.type_values))
    rare = [
        name
        for name, count in zip(cube.user_types, by_type, strict=True)
        if count < MIN_TYPE_SHARE * displays
    ]
    if rare:
        warnings.append(f"user types with less than 1% of displays: {list_names(rare)}")
    if busiest is not None and is_suspicious(busiest):
        most, mean = busiest["rows"], busiest["mean_rows"]
        warnings.append(f"a user with {most:,} rows, where users have {mean:,.1f} on average: a bot?")
    wrong = find_wrong_propensities(cube)
    return [*warnings, wrong] if wrong else warnings


def is_suspicious(busiest: Mapping[str, float]) -> bool:
    """Return whether the busiest user has so many rows that it may be a bot.

    Parameters
    ----------
    busiest
        ``rows`` of the busiest user, and ``mean_rows`` of all users.

    Examples
    --------
    >>> is_suspicious({"rows": 5000, "mean_rows": 3.0}), is_suspicious({"rows": 90, "mean_rows": 3.0})
    (True, False)
    """
    return busiest["rows"] >= MIN_BOT_ROWS and busiest["rows"] > BOT_RATIO * busiest["mean_rows"]


def find_wrong_propensities(cube: ClickCube) -> str:
    """Return a line if the mean of 1/p at a position is not the number of items that were shown there.

    For right propensities, each item's sum of 1/p over the displays at a position is the number of displays
    in expectation. Empty if the log has no propensities, or they look right.
    """
    if not cube.has_propensities:
        return ""
    displays, weights, squares = (
        cube.table(values) for values in (cube.cells.displays, cube.cells.weights, cube.cells.squared_weights)
    )
    for k in range(cube.n_positions):
        for i, name in enumerate(cube.user_types):
            count = displays[i, :, k].sum()
            n_items = (displays[i, :, k] > 0).sum()
            if count < 100:
                continue
            mean = weights[i, :, k].sum() / count
            variance = max(squares[i, :, k].sum() / count - mean**2, 0.0)
            error = np.sqrt(variance / count) + 1e-9 * mean
            if abs(mean - n_items) > MAX_STANDARD_ERRORS * error:
                where = f"at position {k + 1} for {shorten(name)}"
                what = f"the mean of 1/propensity is {mean:.3g}, and {n_items} items were shown there"
                return f"propensities look wrong: {where} {what}"
    return ""
