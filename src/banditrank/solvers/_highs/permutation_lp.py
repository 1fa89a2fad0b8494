"""The linear program with one variable for each ranking: the paper's section 4.2, case 2.

The variables are not negative and sum to 1, so the vertices of the feasible region are the rankings and no
integrality is needed. The paper proposes it for linear utilities. It is correct for all utilities, because
the value of each ranking is a constant of the program; as all these constants are computed beforehand, it
cannot be faster than enumeration. It serves as a baseline.
"""

import time
from functools import cache
from itertools import chain, permutations

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled
from banditrank.solvers._enumeration import count_rankings, describe_excess
from banditrank.solvers._highs.model import add_rows, add_variables, new_model, run_until
from banditrank.solvers._instance import Instance, smallest_instance
from banditrank.solvers._solution import gap_unit
from banditrank.solvers._solver import Solver, SolverOptions, SolverResult
from banditrank.utilities._formulas import CompiledUtility, collective
from banditrank.utilities._utility import UTILITARIAN, Utility

Floats = NDArray[np.float64]

MAX_LP_RANKINGS = 200_000
_MAX_LOSS = 1e6  # in units of the best value; HiGHS does not support larger costs


def _unsupported_reason(_: Utility, n_items: int, n_positions: int) -> str | None:
    excess = describe_excess(MAX_LP_RANKINGS, n_items, n_positions)
    return excess and f"supports at most {excess}"


def _run(instance: Instance, utility: Utility, options: SolverOptions) -> SolverResult:
    rankings = _all_rankings(instance.n_items, instance.n_positions)
    if options.allowed is not None:
        rankings = rankings[options.allowed[np.arange(instance.n_positions), rankings].all(axis=1)]
    totals = _totals(instance, utility, rankings)
    rankings, totals, tried = rankings[totals > -np.inf], totals[totals > -np.inf], len(rankings)
    if not totals.size:
        first = np.arange(instance.n_positions) if options.warm_start is None else options.warm_start
        return SolverResult(first, -np.inf, tried)
    best = int(totals.argmax())
    highspy, model = new_model("permutation-lp")
    if time.perf_counter() >= options.deadline:
        return SolverResult(rankings[best], np.inf, tried)
    # Costs are losses relative to the best value, because the tolerances of HiGHS are absolute.
    unit = gap_unit(utility.compiled(), totals[best]) or 1.0
    losses = np.minimum((totals[best] - totals) / unit, _MAX_LOSS)
    add_variables(model, losses, np.zeros(losses.size), np.full(losses.size, np.inf))
    everything = np.arange(losses.size)
    add_rows(model, (np.zeros_like(everything), everything, np.ones(losses.size)), [1.0], [1.0])
    run_until(model, options.deadline)
    if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return SolverResult(rankings[best], np.inf, tried)
    corner = int(np.argmax(model.getSolution().col_value))
    optimum = totals[best] - unit * model.getInfo().objective_function_value
    # Within its tolerance, HiGHS may return a ranking slightly worse than the best.
    return SolverResult(rankings[corner], max(optimum, float(totals[best])), tried)


def _all_rankings(n_items: int, n_positions: int) -> NDArray[np.intp]:
    """Return all rankings, shape (P(M, K), K)."""
    items = chain.from_iterable(permutations(range(n_items), n_positions))
    count = count_rankings(n_items, n_positions)
    return np.fromiter(items, np.intp, count * n_positions).reshape(count, n_positions)


def _totals(instance: Instance, utility: Utility, rankings: NDArray[np.intp]) -> Floats:
    """Return the value of each ranking, shape (R,)."""
    values = np.zeros((len(rankings), instance.n_user_types))
    for k in range(instance.n_positions):
        values += instance.preferences[:, k] * instance.means.T[rankings[:, k]]  # (R, N)
    totals = np.zeros(len(rankings))
    _collect(utility.compiled(), instance.weights, values, totals)
    utility.raise_callback_error()
    totals += instance.bonuses[rankings].sum(axis=1)
    return totals


@compiled
def _collect(utility: CompiledUtility, weights: Floats, values: Floats, totals: Floats) -> None:
    for ranking in range(totals.size):
        totals[ranking] = collective(utility, weights, values[ranking])


@cache
def _prepare() -> None:
    """Compile or load the formula by evaluating the smallest instance."""
    _totals(smallest_instance(), UTILITARIAN, _all_rankings(1, 1))


SOLVER = Solver(_unsupported_reason, _run, _prepare)
