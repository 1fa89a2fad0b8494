"""Solving equal treatment: the best ranking for all user types, by a suitable or a named solver."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from banditrank._checks import check_integer, check_number
from banditrank.errors import InvalidInputError, UnknownNameError, UnsolvableError
from banditrank.model._problem import Problem, ProblemLike
from banditrank.model._rankings import Ranking, as_ranking
from banditrank.model._values import click_scale
from banditrank.solvers import _assignment as assignment
from banditrank.solvers import _enumeration as enumeration
from banditrank.solvers._allowed import as_allowed_cells
from banditrank.solvers._branch_and_bound import search
from banditrank.solvers._enumeration import count_rankings
from banditrank.solvers._highs import outer_approximation, permutation_lp
from banditrank.solvers._instance import Instance, as_instance, smallest_instance, total_value, values_of
from banditrank.solvers._search_status import search_status
from banditrank.solvers._solution import Solution, gap_unit
from banditrank.solvers._solver import Progress, Solver, SolverOptions, SolverResult, always_continue
from banditrank.utilities._utility import UTILITARIAN, Utility, as_utility

SolverName: TypeAlias = Literal[
    "auto",
    "assignment",
    "branch-and-bound",
    "spatial",
    "enumeration",
    "sampling",
    "permutation-lp",
    "outer-approximation",
]

SOLVERS: dict[SolverName, Solver] = {
    "assignment": assignment.SOLVER,
    "branch-and-bound": search.SOLVER,
    "spatial": search.SPATIAL_SOLVER,
    "enumeration": enumeration.SOLVER,
    "sampling": enumeration.SAMPLING_SOLVER,
    "permutation-lp": permutation_lp.SOLVER,
    "outer-approximation": outer_approximation.SOLVER,
}
"""Solvers by the names that `solve` accepts."""

# In the order of preference of ``auto``.
EXACT: tuple[SolverName, ...] = ("assignment", "branch-and-bound", "spatial", "enumeration")
MAX_AUTO_ENUMERATED = 1000  # up to this number of rankings enumeration is the fastest
DEFAULT_GAP = 1e-10
ROUNDING = 1e-9  # by how much an upper bound may be below the value, relative to the gap unit
MIN_TARGET_GAP = 1e-12  # the resolution of double precision


def solve(
    problem: ProblemLike,
    utility: Utility | str = UTILITARIAN,
    *,
    bonuses: ArrayLike | None = None,
    allowed: ArrayLike | None = None,
    solver: SolverName = "auto",
    time_limit: float | None = None,
    target_gap: float = DEFAULT_GAP,
    warm_start: ArrayLike | None = None,
    share: float = 0.5,
    seed: int = 0,
    scale: float | None = None,
    on_progress: Callable[[Progress], bool] = always_continue,
) -> Solution:
    """Find a ranking that maximises the collective utility plus bonuses, with a certificate.

    Parameters
    ----------
    problem
        A `Problem`, `Estimates`, or anything with arrival rates, position preferences and item means.
    utility
        The objective: a `Utility` or its name.
    bonuses
        Added to the value of a ranking for each item in it, shape (M,).
    allowed
        Whether an item may be at a position, shape (K, M), boolean; all may by default. The upper bound is on
        the value of any ranking of allowed cells.
    solver
        The solver; ``auto`` chooses one for the utility's shape.
    time_limit
        Seconds after which the best ranking so far is returned, with its gap; unlimited by default.
        Compilation, by the first search on a machine, is not counted. ``enumeration`` and ``sampling`` ignore
        the limit: they evaluate at most 1,000,000 rankings.
    target_gap
        Relative gap at which the solver may stop.
    warm_start
        A ranking to start from, shape (K,), of allowed cells.
    share, seed
        For ``sampling``: the share of rankings to evaluate, and the seed.
    scale
        The maximum reward: means are multiplied by it (see `banditrank.model._rewards`). By default the click
        scale of a `Problem`, so that values are clicks per visit, and 1 for estimates.
    on_progress
        Called every few nodes of branch and bound. If it returns False, the best ranking so far is returned.
        By default the progress of a long search is shown in a notebook.

    Returns
    -------
    Solution
        The ranking, its value, an upper bound on the value of any ranking, and the gap between them.

    Raises
    ------
    UnsolvableError
        If the solver does not support the utility or the size of the problem, or is not installed.
    InvalidInputError
        If an argument is invalid, no ranking is allowed, or the utility's function fails.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> solution = solve(kdd2012(), "nash")
    >>> solution.ranking, solution.is_certified
    (array([2, 3]), True)
    >>> allowed = np.ones((2, 5), dtype=bool)
    >>> allowed[0, 2] = False
    >>> solve(kdd2012(), "nash", allowed=allowed).ranking
    array([3, 2])
    """
    whole = as_instance(problem, bonuses=bonuses, scale=click_scale(problem) if scale is None else scale)
    start = None if warm_start is None else _ranking(whole, warm_start)
    instance, cells = whole, None
    if allowed is not None:
        cells = as_allowed_cells(allowed, n_items=whole.n_items, n_positions=whole.n_positions)
        instance = whole._replace(
            means=np.ascontiguousarray(whole.means[:, cells.items]), bonuses=whole.bonuses[cells.items]
        )
        start = cells.ranking if start is None else cells.columns_of("warm_start", start)
    chosen = as_utility(utility)
    name = choose_solver(solver, chosen, n_items=instance.n_items, n_positions=instance.n_positions)
    seconds = np.inf if time_limit is None else check_number("time_limit", time_limit, 0.0, 1e9)
    options = SolverOptions(
        target_gap=check_number("target_gap", target_gap, MIN_TARGET_GAP, 1.0),
        deadline=np.inf,
        warm_start=start,
        share=check_number("share", share, 0.0, 1.0),
        seed=check_integer("seed", seed, 0),
        allowed=None if cells is None else cells.cells,
    )
    chosen.compiled()  # after validation, before the time limit starts
    SOLVERS[name].prepare()
    _prepare_evaluation()
    started = time.perf_counter()
    with search_status(name, on_progress) as callback:
        options = replace(options, deadline=started + seconds, on_progress=callback)
        result = SOLVERS[name].run(instance, chosen, options)
    chosen.raise_callback_error()
    if cells is not None:
        if cells.cells is not None and not cells.cells[np.arange(whole.n_positions), result.ranking].all():
            raise AssertionError(f"solver {name}: ranking {result.ranking} has a cell that is not allowed")
        result = result._replace(ranking=cells.items[result.ranking])
    return _solution(problem, whole, chosen, name, result, options.target_gap, started)


def choose_solver(
    solver: SolverName, utility: Utility | str, *, n_items: int, n_positions: int
) -> SolverName:
    """Return the name of the solver to use: for ``auto``, the first one that supports the problem.

    Raises
    ------
    UnknownNameError
        If there is no solver of this name.
    UnsolvableError
        If the solver does not support the utility or the size.

    Examples
    --------
    >>> choose_solver("auto", UTILITARIAN, n_items=1000, n_positions=20)
    'assignment'
    """
    utility = as_utility(utility)
    if solver not in get_args(SolverName):
        raise UnknownNameError("solver", solver, get_args(SolverName))
    if solver != "auto":
        if reason := SOLVERS[solver].unsupported_reason(utility, n_items, n_positions):
            raise UnsolvableError(f"solver {solver} {reason}")
        return solver
    if utility.shape != "linear" and count_rankings(n_items, n_positions) <= MAX_AUTO_ENUMERATED:
        return "enumeration"
    reasons = {name: SOLVERS[name].unsupported_reason(utility, n_items, n_positions) for name in EXACT}
    for name, reason in reasons.items():
        if reason is None:
            return name
    raise UnsolvableError("; ".join(f"solver {name} {reason}" for name, reason in reasons.items()))


def best_equal_ranking(
    problem: ProblemLike, utility: Utility | str = UTILITARIAN, *, scale: float | None = None
) -> Ranking:
    """Return the ranking of `solve`, shape (K,).

    Raises
    ------
    UnsolvableError
        If no solver supports the utility and the size of the problem.
    InvalidInputError
        If an argument is invalid, or the utility's function fails.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> best_equal_ranking(kdd2012())
    array([2, 3])
    """
    return solve(problem, utility, scale=scale).ranking


def equal_value(
    problem: ProblemLike,
    ranking: ArrayLike,
    utility: Utility | str = UTILITARIAN,
    *,
    scale: float | None = None,
) -> float:
    """Return the collective utility Γ(σ) of a ranking.

    Raises
    ------
    InvalidInputError
        If an argument is invalid, or the utility's function fails.
    """
    utility = as_utility(utility)
    instance = as_instance(problem, scale=click_scale(problem) if scale is None else scale)
    value = total_value(instance, utility.compiled(), _ranking(instance, ranking))
    utility.raise_callback_error()
    return value


def _solution(
    problem: ProblemLike,
    instance: Instance,
    utility: Utility,
    name: str,
    result: SolverResult,
    target_gap: float,
    start: float,
) -> Solution:
    """Return the solution of a solver's result; only the bound is taken from the solver."""
    _ranking(instance, result.ranking)
    values = np.zeros(instance.n_user_types)
    values_of(instance, result.ranking.astype(np.uintp), values)
    value = total_value(instance, utility.compiled(), result.ranking)
    utility.raise_callback_error()
    if not value < np.inf:  # infinite or NaN
        raise InvalidInputError(f"utility {utility}", "must be finite or −∞ for every ranking", value)
    unit = gap_unit(
        utility.compiled(), value
    )  # 0 if the value is 0: any better ranking then has an infinite gap
    if result.upper_bound < value - ROUNDING * unit:
        raise AssertionError(f"solver {name}: upper bound {result.upper_bound} is below the value {value}")
    bound = max(value, float(result.upper_bound))
    missing = bound - value if bound > value else 0.0  # 0 for equal infinities
    gap = 0.0 if missing == 0.0 else float(missing / unit) if 0.0 < unit < np.inf else np.inf
    values.flags.writeable = False
    return Solution(
        ranking=result.ranking,
        value=value,
        upper_bound=bound,
        gap=gap,
        is_certified=gap <= target_gap,
        solver=name,
        nodes=result.nodes,
        seconds=time.perf_counter() - start,
        user_type_values=values,
        **_names(problem, result.ranking),
    )


def _names(problem: ProblemLike, ranking: Ranking) -> dict[str, tuple[str, ...]]:
    """Return the names of the ranked items and of the user types; numbers for estimates, which have none."""
    if isinstance(problem, Problem):
        return {"items": tuple(problem.items[item] for item in ranking), "user_types": problem.user_types}
    n_user_types = len(problem.arrival_rates)
    return {
        "items": tuple(f"item-{item + 1}" for item in ranking),
        "user_types": tuple(f"type-{number}" for number in range(1, n_user_types + 1)),
    }


@cache
def _prepare_evaluation() -> None:
    """Compile or load the formulas that evaluate rankings, by evaluating one of the smallest instance."""
    value = total_value(smallest_instance(), UTILITARIAN.compiled(), np.zeros(1, dtype=np.intp))
    gap_unit(UTILITARIAN.compiled(), value)
    UTILITARIAN.evaluate(value)


def _ranking(instance: Instance, ranking: ArrayLike) -> Ranking:
    return as_ranking(np.asarray(ranking), n_items=instance.n_items, n_positions=instance.n_positions)
