"""The door to HiGHS, an open-source solver of linear and integer programs: its options, and its clock.

HiGHS is imported when it is first asked for, so that nobody else needs it installed.
"""

import time
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank.errors import UnsolvableError

Floats = NDArray[np.float64]
Cells: TypeAlias = tuple[ArrayLike, ArrayLike, ArrayLike]

TOLERANCE = 1e-10  # the smallest that HiGHS takes; its usual 1e-7 is coarser than the gaps asked for here


def new_model(solver: str) -> tuple[Any, Any]:
    """Return the ``highspy`` module and an empty, silent model that uses one thread; it minimises.

    Parameters
    ----------
    solver
        Who asks, for the message when HiGHS is not installed.
    """
    try:
        highspy: Any = import_module("highspy")  # an optional dependency
    except ImportError:
        raise UnsolvableError(f"solver {solver} needs highspy: pip install banditrank[highs]") from None
    model = highspy.Highs()
    options: dict[str, bool | int | float] = {
        "output_flag": False,
        "threads": 1,
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
        "mip_feasibility_tolerance": 10 * TOLERANCE,  # HiGHS divides it by 10 for the duals of its nodes
        "small_matrix_value": 1e-12,  # smaller coefficients are taken for 0
    }
    for name, value in options.items():
        model.setOptionValue(name, value)
    return highspy, model


def add_rows(model: Any, cells: Cells, lower: ArrayLike, upper: ArrayLike) -> None:
    """Add constraints lower ≤ Σ entry · variable ≤ upper.

    Parameters
    ----------
    model
        What `new_model` returned.
    cells
        The row (counted from 0), the variable and the coefficient of each entry.
    lower, upper
        One number for each new row.
    """
    rows, variables, entries = (np.asarray(part) for part in cells)
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    order = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[order], np.arange(low.size)).astype(np.int32)
    columns = variables[order].astype(np.int32)
    model.addRows(low.size, low, high, order.size, starts, columns, entries[order].astype(np.float64))


def add_variables(model: Any, costs: Floats, lower: Floats, upper: Floats) -> None:
    """Add variables between bounds, before there are rows; the model minimises Σ cost · variable."""
    no_preparation = np.zeros(costs.size, dtype=np.int32)
    model.addCols(costs.size, costs, lower, upper, 0, no_preparation, no_preparation[:0], np.zeros(0))


def run_until(model: Any, deadline: float, *, integer: bool = False) -> None:
    """Solve the model, or stop at a reading of `time.perf_counter`."""
    left = max(0.0, deadline - time.perf_counter())
    # HiGHS counts the time of a model's earlier runs towards the limit of a linear program, and not towards
    # that of an integer one.
    model.setOptionValue("time_limit", left if integer else left + model.getRunTime())
    model.run()
