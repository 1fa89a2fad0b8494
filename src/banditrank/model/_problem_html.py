"""HTML of a problem or its estimates in notebooks."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from banditrank._html import (
    MAX_COLUMNS,
    MAX_ROWS,
    Cell,
    omitted_text,
    panel,
    rate_cells,
    table,
)
from banditrank._text import plural
from banditrank.model._problem import ProblemLike


def problem_html(
    kind: str,
    name: str,
    problem: ProblemLike,
    user_types: Sequence[str],
    items: Sequence[str],
    exposure: NDArray[np.float64] | None = None,
) -> str:
    """Return two tables: arrival rates and position preferences by user type, and item means by item.

    Parameters
    ----------
    kind, name
        Class and name of the object.
    problem
        The problem or its estimates.
    user_types, items
        Names.
    exposure
        Expected number of looks at each item, shape (N, M), for estimates.
    """
    n_items, n_positions = problem.item_means.shape[1], problem.position_preferences.shape[1]
    facts = [plural(len(user_types), "user type"), plural(n_items, "item"), plural(n_positions, "position")]
    types = table(
        "arrival rates and position preferences",
        ["user type", "arrival rate", *(f"position {k + 1}" for k in range(min(n_positions, MAX_COLUMNS)))],
        _type_rows(problem, user_types),
        omitted=omitted_text(
            {"user type": (len(user_types), MAX_ROWS), "position": (n_positions, MAX_COLUMNS)}
        ),
    )
    limit = MAX_COLUMNS if exposure is None else MAX_COLUMNS // 2
    columns = [f"{name}{looks}" for name in user_types[:limit] for looks in _heading_ends(exposure)]
    means = table(
        "item means" if exposure is None else "item means and expected looks",
        ["item", *columns],
        _item_rows(problem, items, exposure, limit),
        omitted=omitted_text({"item": (n_items, MAX_ROWS), "user type": (len(user_types), limit)}),
    )
    return panel(kind, name, facts, types, means)


def _type_rows(problem: ProblemLike, user_types: Sequence[str]) -> list[list[str | Cell]]:
    names = user_types[:MAX_ROWS]
    rates = rate_cells(problem.arrival_rates[:MAX_ROWS, None])
    preferences = rate_cells(problem.position_preferences[:MAX_ROWS, :MAX_COLUMNS])
    return [[name, rate[0].text, *looks] for name, rate, looks in zip(names, rates, preferences, strict=True)]


def _item_rows(
    problem: ProblemLike, items: Sequence[str], exposure: NDArray[np.float64] | None, limit: int
) -> list[list[str | Cell]]:
    rows: list[list[str | Cell]] = []
    cells = rate_cells(problem.item_means[:limit, :MAX_ROWS].T)
    for j, (name, means) in enumerate(zip(items[:MAX_ROWS], cells, strict=True)):
        row: list[str | Cell] = [name]
        for i, mean in enumerate(means):
            row += [mean] if exposure is None else [mean, f"{exposure[i, j]:,.0f}"]
        rows.append(row)
    return rows


def _heading_ends(exposure: NDArray[np.float64] | None) -> tuple[str, ...]:
    return ("",) if exposure is None else ("", ", looks")
