"""The user-browsing model: examination depends on the position and the last click above.

The cells of an item, a position and a last click above are binomial given the clicks above, with rates of
rank one: the fit is that of the position-based model with more columns.
"""

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._click_cube import MAX_DENSE_CELLS, ClickCube
from banditrank.errors import InvalidInputError
from banditrank.estimators._click_models._estimates_of_model import (
    ModelEstimates,
    empty_estimates,
    with_tail_notes,
)
from banditrank.estimators._click_models._item_position_graph import GraphComponents, find_components
from banditrank.estimators._click_models._parameters import ModelParameters
from banditrank.estimators._click_models._rank_one import (
    RankOneFit,
    RankOneIntervals,
    fit_rank_one_tables,
    rank_one_intervals,
)

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def browsing_columns(n_positions: int) -> tuple[Indices, Indices]:
    """Return the last click above and the position of each column, both of shape (K (K + 1) / 2,).

    Examples
    --------
    >>> browsing_columns(2)
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    position, above = np.tril_indices(n_positions)
    return above.astype(np.int64), position.astype(np.int64)


def browsing_tables(cube: ClickCube) -> tuple[Floats, Floats]:
    """Return displays and clicks by last click above and position, both of shape (N, M, K (K + 1) / 2).

    Raises
    ------
    InvalidInputError
        If the log has no visits, or the table would be too large.
    """
    if not cube.has_visits:
        raise InvalidInputError("log", "must have visits to know the last click above", "no visit column")
    cells, n_columns = cube.cells, cube.n_positions * (cube.n_positions + 1) // 2
    shape = (len(cube.type_values), len(cube.items), n_columns)
    if int(np.prod(shape, dtype=np.float64)) > MAX_DENSE_CELLS:
        rule = (
            f"must have at most {MAX_DENSE_CELLS:,} cells, empty ones included: keep the most shown items "
            "(ClickCube.most_shown_items)"
        )
        raise InvalidInputError("cube", rule, " x ".join(f"{size:,}" for size in shape))
    columns = cells.position * (cells.position + 1) // 2 + cells.above
    flat = np.ravel_multi_index((cells.user_type, cells.item, columns), shape)
    displays, clicks = (
        np.asarray(np.bincount(flat, values, int(np.prod(shape))), dtype=np.float64).reshape(shape)
        for values in (cells.displays, cells.clicks)
    )
    return displays, clicks


def fit_user_browsing(cube: ClickCube, start: ModelParameters | None = None) -> ModelParameters:
    """Return γ and μ of maximum likelihood.

    Parameters
    ----------
    cube
        The counts of a log.
    start
        Parameters of a similar log, to start from.
    """
    displays, clicks = browsing_tables(cube)
    above, position = browsing_columns(cube.n_positions)
    gamma = np.ones((displays.shape[0], cube.n_positions, cube.n_positions))
    first = None if start is None else start.attention[:, above, position]
    fit = fit_rank_one_tables(displays, clicks, first)
    gamma[:, above, position] = fit.gamma
    looks = np.einsum("ijc,ic->ij", displays, fit.gamma)
    return ModelParameters("user-browsing", fit.means, gamma, looks, fit.unconverged, fit.long_tails)


def estimate_user_browsing(cube: ClickCube, parameters: ModelParameters, level: float) -> ModelEstimates:
    """Return γ, its average over the displays of each position, and appeal where γ is 1."""
    displays, clicks = browsing_tables(cube)
    above, position = browsing_columns(cube.n_positions)
    estimates = empty_estimates(cube, parameters)
    n_types, n_positions = estimates.position_worth.shape
    examination = np.full((n_types, n_positions, n_positions), np.nan)
    intervals = np.full((n_types, n_positions, n_positions, 2), np.nan)
    n_parameters = 0
    is_shrunk = np.zeros(parameters.appeal.shape, dtype=np.bool_)
    for i in range(n_types):
        components = find_components(displays[i], clicks[i])
        fit = RankOneFit(parameters.attention[i, above, position], parameters.appeal[i], components)
        found = rank_one_intervals(displays[i], clicks[i], fit, level, is_single=cube.n_positions == 1)
        examination[i, above, position], intervals[i, above, position] = found.gamma, found.gamma_ends
        estimates.item_appeal[i], estimates.item_intervals[i] = found.means, found.mean_ends
        is_shrunk[i] = found.is_shrunk
        worth = _worth(displays[i], components, found, position, level)
        estimates.position_worth[i], estimates.position_intervals[i] = worth
        vertices = (components.of_column >= 0).sum() + (components.of_item >= 0).sum()
        n_parameters += int(vertices) - components.n_components
    estimates = estimates._replace(
        n_parameters=n_parameters, examination=examination, examination_intervals=intervals
    )
    return with_tail_notes(estimates, cube.user_types, is_shrunk)


def _worth(
    displays: Floats, components: GraphComponents, found: RankOneIntervals, position: Indices, level: float
) -> tuple[Floats, Floats]:
    """Return the average examination of each position, relative to the largest, and its interval.

    It is identified at positions all of whose columns with displays are identified. The shares of the last
    clicks are those of the log.
    """
    n_positions, gamma = int(position.max()) + 1, found.gamma
    worth, ends = np.full(n_positions, np.nan), np.full((n_positions, 2), np.nan)
    in_columns = displays.sum(axis=0)
    at_positions = np.bincount(position, in_columns, n_positions)
    is_unknown = np.bincount(position, (in_columns > 0) & np.isnan(gamma), n_positions) > 0
    is_known = (at_positions > 0) & ~is_unknown
    if is_known.sum() < 2:
        return worth, ends
    parts = np.nan_to_num(gamma) * in_columns
    sums = np.bincount(position, parts, n_positions)
    worth[is_known] = sums[is_known] / at_positions[is_known]
    if not np.nanmax(worth) > 0:
        return np.full(n_positions, np.nan), ends
    top = int(np.nanargmax(worth))
    gradients = np.zeros((n_positions, gamma.size))  # of the logarithm of the average, by ln γ
    gradients[position, np.arange(gamma.size)] = parts
    gradients /= np.maximum(sums, 1e-300)[:, None]
    contrasts = (gradients - gradients[top])[:, components.of_column == 0]
    variances = ((contrasts @ found.covariance) * contrasts).sum(axis=1)
    half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(np.maximum(variances, 0.0))
    worth = worth / worth[top]
    ends[:, 0], ends[:, 1] = worth * np.exp(-half), np.minimum(worth * np.exp(half), 1.0)
    return worth, ends
