"""The trade-off between the total value and the worst-off type's value, from utilitarian to maximin."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from banditrank._frames import Columns, Tabular
from banditrank.model._problem import Problem
from banditrank.solvers._equality import EqualityReport, equality_report
from banditrank.solvers._lottery.lottery import Lottery
from banditrank.solvers._lottery.solve import solve_lottery
from banditrank.solvers._solution import Solution
from banditrank.solvers._solve import solve
from banditrank.solvers._solver import Progress, always_continue
from banditrank.utilities._utility import MAXIMIN, UTILITARIAN, Utility, alpha_fair

DEFAULT_ALPHAS = (0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True, eq=False)
class FrontierPoint(Tabular):
    """The best ranking and the best lottery for a utility, and their values.

    ``to_frame`` returns one row, with the columns ``utility``, ``total``, ``worst``, ``price_of_equality``,
    ``is_certified``, ``lottery_total``, ``lottery_worst``, and the item at each position: ``position_1``, ….

    Attributes
    ----------
    utility
        The utility that the ranking maximises.
    solution
        The ranking and its certificate.
    equality
        Its values to the user types, compared with personalized treatment.
    lottery
        The best lottery over rankings for the same utility of expected values; None if it was not solved.
    """

    utility: Utility
    solution: Solution
    equality: EqualityReport
    lottery: Lottery | None = None

    @property
    def lottery_total(self) -> float:
        """Σ_i λ_i u_i of the lottery's expected values; NaN without one."""
        if self.lottery is None:
            return float("nan")
        return float(self.equality.arrival_rates @ self.lottery.user_type_values)

    @property
    def lottery_worst(self) -> float:
        """min_i u_i of the lottery's expected values; NaN without one."""
        return float("nan") if self.lottery is None else float(self.lottery.user_type_values.min())

    @property
    def lottery_price(self) -> float:
        """The share of the personalized total that the lottery loses; NaN without one."""
        best = self.equality.personalized_total
        return 1.0 - self.lottery_total / best if best > 0.0 else 0.0

    @property
    def total(self) -> float:
        """Σ_i λ_i u_i: clicks per visit over all users."""
        return self.equality.total

    @property
    def worst(self) -> float:
        """min_i u_i: the worst-off type's clicks per visit."""
        return self.equality.worst

    @property
    def price_of_equality(self) -> float:
        """The share of the personalized total that is lost."""
        return self.equality.price_of_equality

    @property
    def is_certified(self) -> bool:
        """Whether the ranking is proven optimal for its utility, within the target gap."""
        return self.solution.is_certified

    @property
    def is_arbitrary(self) -> bool:
        """Whether the ranking is arbitrary, because its value is −∞.

        The value is −∞ if every ranking has value 0 to a type and the utility has a pole there, or if α is so
        large that the value exceeds double precision.
        """
        return self.solution.value == -np.inf

    def _columns(self) -> Columns:
        return {
            "utility": [str(self.utility)],
            "total": np.array([self.total]),
            "worst": np.array([self.worst]),
            "price_of_equality": np.array([self.price_of_equality]),
            "is_certified": np.array([self.is_certified]),
            "lottery_total": np.array([self.lottery_total]),
            "lottery_worst": np.array([self.lottery_worst]),
            **{f"position_{number}": [item] for number, item in enumerate(self.solution.items, 1)},
        }


def pareto_frontier(
    problem: Problem,
    *,
    alphas: Sequence[float] = DEFAULT_ALPHAS,
    time_limit: float | None = None,
    on_progress: Callable[[Progress], bool] = always_continue,
) -> list[FrontierPoint]:
    """Return the best ranking and lottery for the utilitarian, α-fair and maximin utilities, in this order.

    The utilitarian ranking has the largest total, the maximin ranking the largest worst-off value. The points
    in between balance the values of all types: a ranking off the list may exceed one in both figures.

    Parameters
    ----------
    problem
        The problem.
    alphas
        The α of the α-fair utilities; 1 is Nash. 0, which is utilitarian, and duplicates are ignored.
    time_limit
        Seconds for each point, after which the best ranking so far is taken; unlimited by default.
    on_progress
        Called every few nodes, as by `solve`; returning False ends the search for the current point.

    Raises
    ------
    InvalidInputError
        If an α or the time limit is out of range.

    Examples
    --------
    >>> from banditrank.model._generators import make_problem
    >>> problem = make_problem("conflict", n_user_types=3, n_items=6, n_positions=3, seed=2)
    >>> for point in pareto_frontier(problem, alphas=[1]):
    ...     print(f"{point.utility}: {point.total:.3f} {point.worst:.3f} {point.price_of_equality:.0%}")
    utilitarian: 0.423 0.089 38%
    nash: 0.389 0.282 43%
    maximin: 0.368 0.283 46%
    """
    points: list[FrontierPoint] = []
    for utility in frontier_utilities(alphas):
        start = points[-1].solution.ranking if points else None
        solution = solve(problem, utility, time_limit=time_limit, warm_start=start, on_progress=on_progress)
        report = equality_report(problem, solution.ranking)
        points.append(FrontierPoint(utility, solution, report, solve_lottery(problem, utility)))
    return points


def frontier_utilities(alphas: Sequence[float]) -> list[Utility]:
    """Return the utilities of a frontier, from utilitarian to maximin, each once.

    Examples
    --------
    >>> [str(utility) for utility in frontier_utilities([2, 1, 0])]
    ['utilitarian', 'nash', 'alpha:2', 'maximin']
    """
    fair = {utility.name: utility for utility in map(alpha_fair, sorted(alphas))}
    fair.pop(UTILITARIAN.name, None)
    return [UTILITARIAN, *fair.values(), MAXIMIN]
