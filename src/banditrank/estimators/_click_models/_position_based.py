"""The position-based model: rates of rank one in items and positions, for each user type."""

from dataclasses import replace

import numpy as np

from banditrank.counts._click_cube import ClickCube
from banditrank.estimators._click_models._estimates_of_model import (
    ModelEstimates,
    cell_tables,
    empty_estimates,
    has_single_position,
    with_tail_notes,
)
from banditrank.estimators._click_models._item_position_graph import find_components
from banditrank.estimators._click_models._list_sample import sample_lists
from banditrank.estimators._click_models._parameters import ModelParameters
from banditrank.estimators._click_models._rank_one import (
    RankOneFit,
    fit_rank_one_tables,
    rank_one_intervals,
)
from banditrank.estimators._click_models._visit_activity import estimate_activity

_MAX_LISTS = 20_000  # distinct ones, for the activity of visits


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
    fit = fit_rank_one_tables(displays, clicks, None if start is None else start.attention)
    looks = np.einsum("ijk,ik->ij", displays, fit.gamma)
    return ModelParameters("position-based", fit.means, fit.gamma, looks, fit.unconverged, fit.long_tails)


def with_activity(parameters: ModelParameters, cube: ClickCube) -> ModelParameters:
    """Return the parameters of a log with the distribution of the activity of its visits."""
    lists = sample_lists(cube, _MAX_LISTS)
    chances = parameters.click_probabilities(lists.user_type, lists.items)
    return replace(parameters, activity=estimate_activity(chances, lists))


def estimate_position_based(cube: ClickCube, parameters: ModelParameters, level: float) -> ModelEstimates:
    """Return relative examination of positions, and appeal at the most examined position."""
    displays, clicks = cell_tables(cube)
    estimates = empty_estimates(cube, parameters)
    n_parameters = 0
    is_shrunk = np.zeros(parameters.appeal.shape, dtype=np.bool_)
    is_single = has_single_position(displays)
    for i in range(displays.shape[0]):
        components = find_components(displays[i], clicks[i])
        fit = RankOneFit(parameters.attention[i], parameters.appeal[i], components)
        found = rank_one_intervals(displays[i], clicks[i], fit, level, is_single=is_single)
        estimates.position_worth[i], estimates.position_intervals[i] = found.gamma, found.gamma_ends
        estimates.item_appeal[i], estimates.item_intervals[i] = found.means, found.mean_ends
        is_shrunk[i] = found.is_shrunk
        vertices = (components.of_column >= 0).sum() + (components.of_item >= 0).sum()
        n_parameters += int(vertices) - components.n_components
    estimates = estimates._replace(n_parameters=n_parameters)
    return with_tail_notes(estimates, cube.user_types, is_shrunk)
