"""The position-based model: rates of rank one in items and positions, for each user type."""

import numpy as np

from banditrank.counts._click_cube import ClickCube
from banditrank.estimators._click_models._estimates_of_model import (
    ModelEstimates,
    cell_tables,
    empty_estimates,
    has_single_position,
)
from banditrank.estimators._click_models._item_position_graph import find_components
from banditrank.estimators._click_models._parameters import ModelParameters
from banditrank.estimators._click_models._rank_one import (
    RankOneFit,
    fit_rank_one_tables,
    rank_one_intervals,
)


def fit_position_based(cube: ClickCube, start: ModelParameters | None = None) -> ModelParameters:
    """Return κ and μ of maximum likelihood.

    Parameters
    ----------
    cube
        The counts of a log.
    start
        Parameters of a similar log, to start from.
    """
    displays, clicks = cell_tables(cube)
    kappa, appeal = fit_rank_one_tables(displays, clicks, None if start is None else start.attention)
    looks = np.einsum("ijk,ik->ij", displays, kappa)
    return ModelParameters("position-based", appeal, kappa, looks)


def estimate_position_based(cube: ClickCube, parameters: ModelParameters, level: float) -> ModelEstimates:
    """Return relative examination of positions, and appeal at the most examined position."""
    displays, clicks = cell_tables(cube)
    estimates = empty_estimates(cube, parameters)
    n_parameters = 0
    is_single = has_single_position(displays)
    for i in range(displays.shape[0]):
        components = find_components(displays[i], clicks[i])
        fit = RankOneFit(parameters.attention[i], parameters.appeal[i], components)
        found = rank_one_intervals(displays[i], clicks[i], fit, level, is_single=is_single)
        estimates.position_worth[i], estimates.position_intervals[i] = found.gamma, found.gamma_ends
        estimates.item_appeal[i], estimates.item_intervals[i] = found.means, found.mean_ends
        vertices = (components.of_column >= 0).sum() + (components.of_item >= 0).sum()
        n_parameters += int(vertices) - components.n_components
    return estimates._replace(n_parameters=n_parameters)
