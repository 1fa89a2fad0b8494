"""Solutions: a ranking, its value, and a bound on its distance from the optimum."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank._frames import Columns, Tabular
from banditrank._html import MAX_ROWS, omitted_text, panel, rate_cells, table
from banditrank._text import plural
from banditrank.model._rankings import Ranking
from banditrank.utilities._formulas import LINEAR, MINIMUM, POWER, RAMP, SIGMOID, CompiledUtility


@dataclass(frozen=True, slots=True, eq=False)
class Solution(Tabular):
    """A ranking for all user types, with a certificate.

    ``to_frame`` returns a row for each position, with the columns ``position`` (from 1) and ``item``.

    Attributes
    ----------
    ranking
        The item at each position.
    value
        Γ(σ) plus bonuses, recomputed from the ranking; −∞ if a type's value is 0 and the utility has a pole
        there, or if the value exceeds double precision, as powers with a large α do.
    upper_bound
        An upper bound on the value of any ranking.
    gap
        Upper bound on the distance from the optimum, relative to `gap_unit`.
    is_certified
        Whether the gap is at most the target gap.
    solver
        Name of the solver.
    nodes
        Number of subproblems (or rankings, for the paper's methods) explored.
    seconds
        Elapsed time.
    user_type_values
        u, shape (N,): the ranking's value to each type.
    items
        Name of the item at each position.
    user_types
        Names of the user types.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> from banditrank.solvers._solve import solve
    >>> solution = solve(kdd2012(), "utilitarian")
    >>> solution.ranking, round(solution.value, 6), solution.is_certified
    (array([2, 3]), 0.621296, True)
    >>> solution.items
    ('ad-3', 'ad-4')
    """

    ranking: Ranking
    value: float
    upper_bound: float
    gap: float
    is_certified: bool
    solver: str
    nodes: int
    seconds: float
    user_type_values: NDArray[np.float64]
    items: tuple[str, ...]
    user_types: tuple[str, ...]

    def __repr__(self) -> str:
        proof = "certified" if self.is_certified else f"gap {self.gap:.2g}"
        ranking = ", ".join(self.items[:MAX_ROWS]) + (", …" if len(self.items) > MAX_ROWS else "")
        return f"<Solution {ranking}: value {self.value:.6g}, {proof}, by {self.solver}>"

    def _repr_html_(self) -> str:
        facts = [
            f"value {self.value:.6g}",
            "certified optimal" if self.is_certified else f"not certified: gap {self.gap:.2g}",
            f"{self.solver}, {plural(self.nodes, 'node')}, {self.seconds:.3f} s",
        ]
        ranking = table(
            "ranking",
            ["position", "item"],
            [[f"{position}", item] for position, item in enumerate(self.items[:MAX_ROWS], 1)],
            n_names=2,
            omitted=omitted_text({"position": (len(self.items), MAX_ROWS)}),
        )
        values = rate_cells(self.user_type_values[:MAX_ROWS, None])
        user_types = table(
            "value to each user type",
            ["user type", "value"],
            [[name, *value] for name, value in zip(self.user_types[:MAX_ROWS], values, strict=True)],
            omitted=omitted_text({"user type": (len(self.user_types), MAX_ROWS)}),
        )
        return panel("Solution", "", facts, ranking, user_types)

    def _columns(self) -> Columns:
        return {"position": np.arange(1, len(self.items) + 1), "item": list(self.items)}


@inlined
def gap_unit(utility: CompiledUtility, value: float) -> float:
    """Return the unit of gaps: the absolute value, for utilities that scale with the click rates.

    The logarithm turns ratios into differences, and a function of the user's may have any offset: for those
    the unit is at least 1. For the sigmoid and the ramp, which go from 0 to 1, it is at least 0.1.
    """
    if utility.code in (LINEAR, POWER, MINIMUM):
        return abs(value)
    if utility.code in (SIGMOID, RAMP):
        return max(0.1, abs(value))
    return max(1.0, abs(value))
