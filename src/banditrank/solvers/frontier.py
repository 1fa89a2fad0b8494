"""The trade-off between the total value and the worst-off type's value, as the utility moves between them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from banditrank.model.problem import Problem
from banditrank.solvers.equality import EqualityReport, equality_report
from banditrank.solvers.solver import Progress, always_continue
from banditrank.solvers.solution import Solution
from banditrank.solvers.solve import solve
from banditrank.utilities.utility import MAXIMIN, UTILITARIAN, Utility, alpha_fair

DEFAULT_ALPHAS = (0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True, eq=False)
class FrontierPoint:
    """The ranking that one utility chooses, and what it gives.

    Attributes
    ----------
    utility
        What the ranking maximises.
    solution
        The ranking and its certificate.
    equality
        What it gives each user type, beside personalized treatment.
    """

    utility: Utility
    solution: Solution
    equality: EqualityReport

    @property
    def total(self) -> float:
        """Σ_i λ_i u_i: the click rate over all users."""
        return self.equality.total

    @property
    def worst(self) -> float:
        """min_i u_i: the worst-off type's click rate."""
        return self.equality.worst

    @property
    def price_of_equality(self) -> float:
        """The share of the total of personalized treatment that this ranking does not give."""
        return self.equality.price_of_equality

    @property
    def is_certified(self) -> bool:
        """Whether the ranking is proven to be the best for its utility."""
        return self.solution.is_certified

    @property
    def is_arbitrary(self) -> bool:
        """Whether the ranking says nothing of its utility, because its value is −∞.

        That is so if a type gets nothing from any ranking and the utility has a pole there, or if α is so
        large that values are beyond what floating-point numbers can hold.
        """
        return self.solution.value == -np.inf


def frontier(
    problem: Problem,
    *,
    alphas: Sequence[float] = DEFAULT_ALPHAS,
    time_limit: float | None = None,
    on_progress: Callable[[Progress], bool] = always_continue,
) -> list[FrontierPoint]:
    """Return the best rankings of the utilitarian, the α-fair and the maximin utility, in this order.

    The utilitarian ranking has the largest total, the maximin ranking the largest worst-off value. Those
    between balance all types and not only these two figures: another one may have more of both.

    Parameters
    ----------
    problem
        The world.
    alphas
        The α of the utilities between; 1 is Nash. Repetitions and 0, which is utilitarian, change nothing.
    time_limit
        Seconds for each point, after which the best ranking so far is taken; no limit if left out.
    on_progress
        As for `solve`: called every few nodes, and False ends the search for the point in hand.

    Examples
    --------
    >>> from banditrank.model.generators import make_problem
    >>> problem = make_problem("conflict", n_user_types=3, n_items=6, n_positions=3, seed=2)
    >>> for point in frontier(problem, alphas=[1]):
    ...     print(f"{point.utility}: {point.total:.3f} {point.worst:.3f} {point.price_of_equality:.0%}")
    utilitarian: 0.423 0.089 38%
    nash: 0.389 0.282 43%
    maximin: 0.368 0.283 46%
    """
    points: list[FrontierPoint] = []
    for utility in frontier_utilities(alphas):
        start = points[-1].solution.ranking if points else None
        solution = solve(problem, utility, time_limit=time_limit, warm_start=start, on_progress=on_progress)
        points.append(FrontierPoint(utility, solution, equality_report(problem, solution.ranking)))
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
