"""Models of HiGHS, an open-source solver of linear and integer programs.

HiGHS is an optional dependency, imported on first use.
"""

import time
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._extras import requires

Floats = NDArray[np.float64]
Cells: TypeAlias = tuple[ArrayLike, ArrayLike, ArrayLike]

TOLERANCE = 1e-10  # the minimum of HiGHS; its default of 1e-7 is coarser than target gaps


def new_model(solver: str) -> tuple[Any, Any]:
    """Return the ``highspy`` module and an empty minimisation model, silent and single-threaded.

    Parameters
    ----------
    solver
        Name of the solver, for the message.

    Raises
    ------
    MissingDependencyError
        If HiGHS is not installed.
    """
    with requires("highs", f"solver {solver}"):
        highspy: Any = import_module("highspy")
    model = highspy.Highs()
    options: dict[str, bool | int | float] = {
        "output_flag": False,
        "threads": 1,
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
        "mip_feasibility_tolerance": 10 * TOLERANCE,  # HiGHS divides it by 10 for the duals of nodes
        "small_matrix_value": 1e-12,  # smaller coefficients are rounded to 0
    }
    for name, value in options.items():
        model.setOptionValue(name, value)
    return highspy, model


def add_rows(model: Any, cells: Cells, lower: ArrayLike, upper: ArrayLike) -> None:
    """Add constraints lower ≤ Σ entry · variable ≤ upper.

    Parameters
    ----------
    model
        The model of `new_model`.
    cells
        The row (from 0), the variable and the coefficient of each entry.
    lower, upper
        One bound for each new row.
    """
    rows, variables, entries = (np.asarray(part) for part in cells)
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    order = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[order], np.arange(low.size)).astype(np.int32)
    columns = variables[order].astype(np.int32)
    model.addRows(low.size, low, high, order.size, starts, columns, entries[order].astype(np.float64))


def add_variables(model: Any, costs: Floats, lower: Floats, upper: Floats) -> None:
    """Add variables with costs and bounds; the model must not have rows yet."""
    zeros = np.zeros(costs.size, dtype=np.int32)
    model.addCols(costs.size, costs, lower, upper, 0, zeros, zeros[:0], np.zeros(0))


def run_until(model: Any, deadline: float, *, integer: bool = False) -> None:
    """Solve the model; stop at the deadline, a reading of `time.perf_counter`."""
    left = max(0.0, deadline - time.perf_counter())
    # HiGHS counts a model's earlier runs towards the limit of a linear program, but not of an integer one.
    model.setOptionValue("time_limit", left if integer else left + model.getRunTime())
    model.run()
