"""A chi-square test of whether a click model fits the cells of a log.

Cells with at least one expected click and one expected miss are compared with their expectation. The
statistic is referred to a scaled chi-square distribution with its own variance, which that of small cells
exceeds.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._click_cube import ClickCube
from banditrank.estimators._click_models._cascade import examined_tables
from banditrank.estimators._click_models._estimates_of_model import cell_tables
from banditrank.estimators._click_models._parameters import ModelParameters
from banditrank.estimators._click_models._user_browsing import browsing_columns, browsing_tables
from banditrank.estimators._distributions import chi_square_survival

Floats = NDArray[np.float64]

MIN_EXPECTED = 1.0
"""Minimum number of expected clicks, and of expected misses, of a cell that is tested."""

MISFIT_P_VALUE = 0.01
"""p-value below which a model is said not to fit."""


@dataclass(frozen=True, slots=True)
class GoodnessOfFit:
    """Result of the test.

    Attributes
    ----------
    statistic
        Sum of squared standardised deviations.
    degrees_of_freedom
        Number of cells less the number of parameters that they determine.
    p_value
        Probability of a larger statistic if the model holds; NaN if too few cells can be tested.
    n_cells
        Number of tested cells.
    """

    statistic: float
    degrees_of_freedom: float
    p_value: float
    n_cells: int

    @property
    def is_misfit(self) -> bool:
        """Whether the p-value is below `MISFIT_P_VALUE`."""
        return self.p_value < MISFIT_P_VALUE


UNTESTED = GoodnessOfFit(float("nan"), 0.0, float("nan"), 0)
"""Result of the test where no cell can be tested."""


def assess_fit(
    parameters: ModelParameters, cube: ClickCube, is_tested: NDArray[np.bool_] | None = None
) -> GoodnessOfFit:
    """Return the result of the test of a model on the log that it was fitted to.

    Parameters
    ----------
    parameters
        Parameters of the model.
    cube
        Counts of the log.
    is_tested
        Which items are tested, shape (N, M), all by default; not for ``dependent-click``.
    """
    if parameters.model == "dependent-click":
        return _test_lists(parameters, cube)
    if parameters.model == "user-browsing":
        displays, clicks = browsing_tables(cube)
        above, position = browsing_columns(cube.n_positions)
        attention = parameters.attention[:, above, position]
    elif parameters.model == "cascade":
        displays, clicks = examined_tables(cube)
        attention = parameters.attention
    else:
        displays, clicks = cell_tables(cube)
        attention = parameters.attention
    if is_tested is not None:
        displays, clicks = displays * is_tested[:, :, None], clicks * is_tested[:, :, None]
    chances = np.minimum(parameters.appeal[:, :, None] * attention[:, None, :], 1.0)
    expected, variance = displays * chances, displays * chances * (1.0 - chances)
    return _chi_square(displays, clicks, expected, variance, has_columns=parameters.model != "cascade")


def _test_lists(parameters: ModelParameters, cube: ClickCube) -> GoodnessOfFit:
    """Return the result for clicks by item and position, whose expectation depends on whole lists."""
    lists = cube.lists
    if not lists.fold.size or not np.isclose(lists.visits.sum(), cube.n_visits):
        return UNTESTED
    shape = (len(cube.type_values), len(cube.items), cube.n_positions)
    expected, variance = np.zeros(int(np.prod(shape))), np.zeros(int(np.prod(shape)))
    for start in range(0, lists.fold.size, 500_000):
        part = slice(start, start + 500_000)
        types, items, visits = lists.user_type[part], lists.items[part], lists.visits[part, None]
        chances = parameters.click_probabilities(types, items)
        rows, positions = np.nonzero(items >= 0)
        cells = np.ravel_multi_index((types[rows], items[rows, positions], positions), shape)
        expected += np.bincount(cells, (visits * chances)[rows, positions], expected.size)
        variance += np.bincount(cells, (visits * chances * (1 - chances))[rows, positions], expected.size)
    displays, clicks = cell_tables(cube)
    # Continuation is fitted to what follows a click, not to the clicks at a position.
    return _chi_square(displays, clicks, expected.reshape(shape), variance.reshape(shape), has_columns=False)


def _chi_square(
    displays: Floats, clicks: Floats, expected: Floats, variance: Floats, *, has_columns: bool
) -> GoodnessOfFit:
    is_tested = (expected >= MIN_EXPECTED) & (displays - expected >= MIN_EXPECTED) & (variance > 0)
    n_cells = int(is_tested.sum())
    information = np.divide(expected**2, variance, out=np.zeros_like(expected), where=variance > 0)
    degrees = n_cells - sum(
        parameters_of_tested_cells(one, tested, has_columns=has_columns)
        for one, tested in zip(information, is_tested, strict=True)
    )
    if degrees < 1:
        return UNTESTED
    deviation = (clicks - expected)[is_tested] ** 2 / variance[is_tested]
    statistic = float(deviation.sum())
    rate = (expected / np.maximum(displays, 1.0))[is_tested]
    p_value = chi_square_p_value(statistic, degrees, rate, variance[is_tested])
    return GoodnessOfFit(statistic, float(degrees), p_value, n_cells)


def parameters_of_tested_cells(
    information: Floats, is_tested: NDArray[np.bool_], *, has_columns: bool = True
) -> float:
    """Return the number of parameters of a table that its tested cells determine: the sum of their leverages.

    If all cells are tested, it is the number of rows and columns less 1. Cells that are too small to be
    tested determine the parameters as well, and take their share of them.

    Parameters
    ----------
    information
        Information of each cell about the logarithm of its rate, shape (M, C).
    is_tested
        Which cells are tested, shape (M, C).
    has_columns
        Whether columns have parameters, too, not only rows.

    Examples
    --------
    >>> table = np.full((2, 3), 5.0)
    >>> round(parameters_of_tested_cells(table, table > 0), 6)
    4.0
    """
    used = np.maximum(information, 0.0)
    leverages = used / np.maximum(used.sum(axis=1, keepdims=True), 1e-300)
    if has_columns:
        leverages = leverages + used / np.maximum(used.sum(axis=0), 1e-300)
        leverages -= used / max(float(used.sum()), 1e-300)
    return float(np.minimum(leverages, 1.0)[is_tested].sum())


def chi_square_p_value(statistic: float, degrees: float, rates: Floats, variances: Floats) -> float:
    """Return the probability of a larger sum of squared standardised deviations of binomial counts.

    The variance of such a square is 2 + (1 − 6 p (1 − p)) / (T p (1 − p)), above 2 in small cells: the
    statistic is referred to a scaled chi-square distribution with its own variance.

    Parameters
    ----------
    statistic, degrees
        Sum of squares, and degrees of freedom.
    rates, variances
        p and T p (1 − p) of the cells; p = 0 and the expectation for Poisson counts.
    """
    spread = np.maximum(2.0 + (1.0 - 6.0 * rates * (1.0 - rates)) / variances, 0.1)
    inflation = float(spread.mean()) / 2.0
    return chi_square_survival(statistic / inflation, degrees / inflation)
