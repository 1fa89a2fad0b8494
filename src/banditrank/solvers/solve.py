"""The best equal ranking, by the method that fits the utility or by one that is named."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from banditrank.checks import check_number, check_integer
from banditrank.errors import InvalidInputError, UnknownNameError, UnsolvableError
from banditrank.model.known import ProblemLike
from banditrank.model.rankings import Ranking, as_ranking
from banditrank.solvers import assignment, enumeration
from banditrank.solvers.branch_and_bound import search
from banditrank.solvers.enumeration import count_rankings
from banditrank.solvers.highs import outer_approximation, permutation_lp
from banditrank.solvers.instance import Instance, as_instance, total_value, values_of
from banditrank.solvers.solver import SolverOptions, Solver, SolverResult, Progress, always_continue
from banditrank.solvers.solution import Solution, gap_unit
from banditrank.utilities.utility import UTILITARIAN, Utility, as_utility

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

# In the order in which ``auto`` tries them.
EXACT: tuple[SolverName, ...] = ("assignment", "branch-and-bound", "spatial", "enumeration")
MAX_AUTO_ENUMERATED = 1000  # so few are tried faster than anything cleverer starts
DEFAULT_GAP = 1e-10
ROUNDING = 1e-9  # by how much a bound may lie below a value that it bounds
MIN_TARGET_GAP = 1e-12  # what double precision can tell apart


def solve(
    known: ProblemLike,
    utility: Utility | str = UTILITARIAN,
    *,
    bonuses: ArrayLike | None = None,
    solver: SolverName = "auto",
    time_limit: float | None = None,
    target_gap: float = DEFAULT_GAP,
    warm_start: ArrayLike | None = None,
    share: float = 0.5,
    seed: int = 0,
    scale: float = 1.0,
    on_progress: Callable[[Progress], bool] = always_continue,
) -> Solution:
    """Return a ranking that maximises the collective utility plus bonuses, and a bound on what any can reach.

    Parameters
    ----------
    known
        A `Problem`, `Estimates`, or anything with arrival rates, position preferences and item means.
    utility
        What to maximise: a `Utility` or its name.
    bonuses
        What showing each item earns beside, shape (M,).
    solver
        The method; ``auto`` takes the one that fits the utility's shape.
    time_limit
        Seconds after which the best ranking so far is returned, with an honest gap; no limit if left out.
        Compiling, which the first search on a machine does, does not count.
        ``enumeration`` and ``sampling`` run to their end, at most 1,000,000 rankings, whatever the limit.
    target_gap
        How close to the best is close enough, as a share of the value.
    warm_start
        A ranking to start from.
    share, seed
        For ``sampling``: the share of rankings to try, and the seed of its randomness.
    scale
        What a look at an item with mean 1 earns (see `banditrank.model.rewards`).
    on_progress
        Called every few nodes of branch and bound with how far it has come. If it returns False, the best
        ranking so far is returned, as when time is out.

    Examples
    --------
    >>> from banditrank.model.catalog import kdd2012
    >>> solution = solve(kdd2012(), "nash")
    >>> solution.ranking, solution.is_certified
    (array([2, 3]), True)
    """
    instance = as_instance(known, bonuses=bonuses, scale=scale)
    chosen = as_utility(utility)
    name = choose_solver(solver, chosen, n_items=instance.n_items, n_positions=instance.n_positions)
    seconds = np.inf if time_limit is None else check_number("time_limit", time_limit, 0.0, 1e9)
    options = SolverOptions(
        target_gap=check_number("target_gap", target_gap, MIN_TARGET_GAP, 1.0),
        deadline=np.inf,
        warm_start=None if warm_start is None else _ranking(instance, warm_start),
        share=check_number("share", share, 0.0, 1.0),
        seed=check_integer("seed", seed, 0),
        on_progress=on_progress,
    )
    SOLVERS[name].prepare()  # after all that may be refused, and before the clock starts
    start = time.perf_counter()
    result = SOLVERS[name].run(instance, chosen, replace(options, deadline=start + seconds))
    chosen.raise_callback_error()
    return _solution(instance, chosen, name, result, options.target_gap, start)


def choose_solver(solver: SolverName, utility: Utility, *, n_items: int, n_positions: int) -> SolverName:
    """Return the method to use: the one asked for, or for ``auto`` the first that fits.

    Examples
    --------
    >>> choose_solver("auto", UTILITARIAN, n_items=1000, n_positions=20)
    'assignment'
    """
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


def best_equal_ranking(known: ProblemLike, utility: Utility = UTILITARIAN, *, scale: float = 1.0) -> Ranking:
    """Return a ranking that maximises the collective utility: `solve`, for the ranking alone.

    Examples
    --------
    >>> from banditrank.model.catalog import kdd2012
    >>> best_equal_ranking(kdd2012())
    array([2, 3])
    """
    return solve(known, utility, scale=scale).ranking


def equal_value(
    known: ProblemLike, ranking: ArrayLike, utility: Utility = UTILITARIAN, *, scale: float = 1.0
) -> float:
    """Return Γ(σ) of a ranking."""
    instance = as_instance(known, scale=scale)
    value = total_value(instance, utility.compiled(), _ranking(instance, ranking))
    utility.raise_callback_error()
    return value


def _solution(
    instance: Instance, utility: Utility, name: str, result: SolverResult, target_gap: float, start: float
) -> Solution:
    """Put the answer together; nothing of it but the bound is the method's own figure."""
    _ranking(instance, result.ranking)
    values = np.zeros(instance.n_user_types)
    values_of(instance, result.ranking.astype(np.uintp), values)
    value = total_value(instance, utility.compiled(), result.ranking)
    utility.raise_callback_error()
    if not value < np.inf:  # nor if it is no number
        raise InvalidInputError(f"utility {utility}", "must be a number wherever a ranking may be", value)
    unit = gap_unit(utility.compiled(), value)  # 0 if the value is: then any other is infinitely better
    if result.upper_bound < value - ROUNDING * unit:
        raise AssertionError(f"solver {name} says {result.upper_bound} of a ranking worth {value}")
    bound = max(value, float(result.upper_bound))
    missing = bound - value if bound > value else 0.0  # equal infinities included
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
    )


def _ranking(instance: Instance, ranking: ArrayLike) -> Ranking:
    return as_ranking(np.asarray(ranking), n_items=instance.n_items, n_positions=instance.n_positions)
