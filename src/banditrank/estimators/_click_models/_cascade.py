"""The cascade model: a user reads from the top and leaves after the first click.

Displays at or above the first click were examined, others were not, so that appeal is a click rate. The model
has no parameter of positions: position worth is the share of displays that were examined, as logged.
"""

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._click_cube import ClickCube
from banditrank.errors import InvalidInputError
from banditrank.estimators._click_models._estimates_of_model import ModelEstimates, empty_estimates
from banditrank.estimators._click_models._parameters import ModelParameters

Floats = NDArray[np.float64]


def examined_tables(cube: ClickCube) -> tuple[Floats, Floats]:
    """Return the displays without a click above and the clicks on them, both of shape (N, M, K).

    Raises
    ------
    InvalidInputError
        If the log has no visits.
    """
    if not cube.has_visits:
        raise InvalidInputError("log", "must have visits to know the first click", "no visit column")
    is_first = cube.cells.above == 0
    return (
        cube.table(cube.cells.displays * is_first),
        cube.table(cube.cells.clicks * is_first),
    )


def fit_cascade(cube: ClickCube) -> ModelParameters:
    """Return μ of maximum likelihood, from the visits up to their first click."""
    displays, clicks = examined_tables(cube)
    looks, clicked = displays.sum(axis=2), clicks.sum(axis=2)
    appeal = np.divide(clicked, looks, out=np.zeros(looks.shape), where=looks > 0)
    return ModelParameters("cascade", appeal, np.ones((looks.shape[0], cube.n_positions)), looks)


def estimate_cascade(cube: ClickCube, parameters: ModelParameters, level: float) -> ModelEstimates:
    """Return appeal, and the share of displays that were examined, with score intervals."""
    displays, _ = examined_tables(cube)
    shown = cube.table(cube.cells.displays).sum(axis=1)  # (N, K)
    estimates = empty_estimates(cube, parameters)
    looks = parameters.looks
    estimates.item_appeal[:] = np.where(looks > 0, parameters.appeal, np.nan)
    estimates.item_intervals[:] = score_ends(parameters.appeal * looks, looks, level)
    examined = displays.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        estimates.position_worth[:] = examined / shown
    estimates.position_intervals[:] = score_ends(examined, shown, level)
    is_whole = (examined == shown) & (shown > 0)  # the first position, by definition
    estimates.position_intervals[is_whole] = 1.0
    note = "cascade: positions have no parameters; their worth is the share of visits that read so far"
    return estimates._replace(n_parameters=int((looks > 0).sum()), notes=(note,))


def score_ends(clicks: Floats, displays: Floats, level: float) -> Floats:
    """Return the score interval (Wilson, 1927) of rates, with a last axis of 2; NaN without displays.

    Examples
    --------
    >>> score_ends(np.array([10.0]), np.array([100.0]), 0.95).round(3)
    array([[0.055, 0.174]])
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = clicks / displays
        center = (clicks + z * z / 2) / (displays + z * z)
        half = z * np.sqrt(rate * (1 - rate) * displays + z * z / 4) / (displays + z * z)
    ends = np.stack([np.minimum(center - half, rate), np.maximum(center + half, rate)], axis=-1)
    return np.where((displays > 0)[..., None], ends.clip(0.0, 1.0), np.nan)
