"""Estimates of a click model with intervals, as the modules of the models return them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._text import list_names
from banditrank.counts._click_cube import ClickCube
from banditrank.estimators._click_models._long_tail import MIN_LOOKS
from banditrank.estimators._click_models._parameters import ModelParameters

Floats = NDArray[np.float64]

ALL_CLICKED = 0.999
"""Share of clicked displays from which displays without a click are taken to be missing from the log."""


class ModelEstimates(NamedTuple):
    """Position worth and item appeal with intervals; NaN where the log does not identify them.

    Attributes
    ----------
    parameters
        The parameters of maximum likelihood, without regard to what is identified.
    position_worth, position_intervals
        Shapes (N, K) and (N, K, 2).
    item_appeal, item_intervals
        Shapes (N, M) and (N, M, 2).
    n_parameters
        Number of parameters that the log identifies.
    examination, examination_intervals
        γ of the user-browsing model by last click above and position, shapes (N, K, K) and (N, K, K, 2).
    continuation, continuation_intervals
        λ of the dependent-click model, shapes (N, K) and (N, K, 2).
    notes
        Sentences about assumptions and approximations.
    """

    parameters: ModelParameters
    position_worth: Floats
    position_intervals: Floats
    item_appeal: Floats
    item_intervals: Floats
    n_parameters: int
    examination: Floats | None = None
    examination_intervals: Floats | None = None
    continuation: Floats | None = None
    continuation_intervals: Floats | None = None
    notes: tuple[str, ...] = ()


def cell_tables(cube: ClickCube) -> tuple[Floats, Floats]:
    """Return displays and clicks, both of shape (N, M, K)."""
    return cube.table(cube.cells.displays), cube.table(cube.cells.clicks)


def has_single_position(displays: Floats) -> bool:
    """Return whether all displays, shape (N, M, K), are at one position."""
    return int(displays.any(axis=(0, 1)).sum()) == 1


def lacks_misses(displays: Floats, clicks: Floats) -> bool:
    """Return whether (nearly) every display was clicked: displays without a click are missing, then."""
    return bool(clicks.sum() >= ALL_CLICKED * displays.sum())


def empty_estimates(cube: ClickCube, parameters: ModelParameters) -> ModelEstimates:
    """Return estimates in which nothing is identified, to be filled in."""
    n, m, k = len(cube.type_values), len(cube.items), cube.n_positions
    return ModelEstimates(
        parameters,
        np.full((n, k), np.nan),
        np.full((n, k, 2), np.nan),
        np.full((n, m), np.nan),
        np.full((n, m, 2), np.nan),
        0,
    )


def with_tail_notes(
    estimates: ModelEstimates, user_types: Sequence[str], is_shrunk: NDArray[np.bool_]
) -> ModelEstimates:
    """Return estimates whose notes and parameters say how the long tail was estimated.

    Parameters
    ----------
    estimates
        The estimates.
    user_types
        Names, shape (N,).
    is_shrunk
        Whether the appeal of an item was shrunk, shape (N, M).
    """
    notes, parameters = list(estimates.notes), estimates.parameters
    few = f"items with fewer than {MIN_LOOKS:.0f} looks"
    if parameters.long_tails:
        names = list_names([user_types[i] for i in parameters.long_tails])
        notes.append(
            f"long tail of user types {names}: {few} would bias maximum likelihood, so that their clicks are "
            "compared within each item only"
        )
    if is_shrunk.any():
        notes.append(
            f"the appeal of {int(is_shrunk.sum()):,} {few} is shrunk to their average: some would be 1 by "
            "chance"
        )
        is_known = is_shrunk & ~np.isnan(estimates.item_appeal)
        appeal = np.where(is_known, estimates.item_appeal, parameters.appeal)
        parameters = replace(parameters, appeal=appeal)
    return estimates._replace(notes=tuple(notes), parameters=parameters)
