"""Report of the best lottery over rankings by the estimates, and of its gain over one fixed ranking."""

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard._estimated_problem import EstimatedSurfaceProblem
from banditrank.dashboard._probability_best import equivalent_values
from banditrank.engine._surface import Surface
from banditrank.solvers._lottery.lottery import Lottery
from banditrank.solvers._lottery.solve import solve_lottery
from banditrank.utilities._utility import MAXIMIN, NASH, UTILITARIAN, Utility

_MIN_GAIN = 5e-5  # relative; a smaller one is called none
_MIN_VALUE = 1e-9  # a smaller equivalent value is 0 but for rounding

_EQUIVALENTS = {
    UTILITARIAN: "the mean value over all users",
    NASH: "the geometric mean of the user types' values",
    MAXIMIN: "the value of the worst-off user type",
}
"""Words for `equivalent_values`."""


@dataclass(frozen=True, slots=True)
class LotteryRanking:
    """A ranking of a lottery."""

    ranking: list[str]  # in order of positions
    probability: float


@dataclass(frozen=True, slots=True)
class LotteryReport:
    """The best lottery over rankings by the estimates, with the same odds for all users.

    Values are estimated clicks per visit.

    Attributes
    ----------
    rankings
        The rankings and their probabilities, the most probable first.
    user_type_values
        Expected value to each user type, in the surface's order.
    total
        Expected value over all users.
    equivalent_value, fixed_equivalent_value
        The value that has the same collective utility if all user types have it, of the lottery and of the
        best fixed ranking: the geometric mean for Nash, the smallest value for maximin.
    gain
        Relative increase from the second to the first; None if that is 0.
    is_certified
        Whether the lottery is proven optimal for the estimates.
    gap
        Upper bound of the relative improvement by any other lottery; None if there is none.
    summary
        The gain in a sentence.
    """

    rankings: list[LotteryRanking]
    user_type_values: list[float]
    total: float
    equivalent_value: float
    fixed_equivalent_value: float
    gain: float | None
    is_certified: bool
    gap: float | None
    summary: str


def find_lottery(problem: EstimatedSurfaceProblem, utility: Utility) -> Lottery | None:
    """Return the best lottery by the estimates; None for utilities by which no lottery can gain.

    These are the linear ones, and those that are not concave, which have no lottery.
    """
    return solve_lottery(problem, utility) if utility.shape in ("concave", "maximin") else None


def report_lottery(
    surface: Surface,
    problem: EstimatedSurfaceProblem,
    lottery: Lottery,
    utility: Utility,
    fixed_values: NDArray[np.float64],
) -> LotteryReport:
    """Return the report of a lottery.

    Parameters
    ----------
    surface
        The surface.
    problem
        Its estimated problem, with the active items.
    lottery
        The best lottery for the problem.
    utility
        The utility that it maximises.
    fixed_values
        Values of the best fixed ranking to each user type, shape (N,).
    """
    items = surface.active_items
    both = np.stack([lottery.user_type_values, fixed_values])
    rates = np.broadcast_to(problem.arrival_rates, both.shape)
    value, fixed = equivalent_values(utility, rates, both).tolist()
    gain = max(0.0, value / fixed - 1.0) if fixed > _MIN_VALUE else None
    return LotteryReport(
        rankings=[
            LotteryRanking([items[item] for item in ranking], probability)
            for ranking, probability in zip(lottery.rankings, lottery.probabilities.tolist(), strict=True)
        ],
        user_type_values=lottery.user_type_values.tolist(),
        total=float(problem.arrival_rates @ lottery.user_type_values),
        equivalent_value=value,
        fixed_equivalent_value=fixed,
        gain=gain,
        is_certified=bool(lottery.is_certified),
        gap=float(lottery.gap) if isfinite(lottery.gap) else None,
        summary=_summary(utility, len(lottery.rankings), value, fixed),
    )


def _summary(utility: Utility, n_rankings: int, value: float, fixed: float) -> str:
    """Return the gain of a lottery in a sentence.

    Parameters
    ----------
    utility
        The utility.
    n_rankings
        Number of rankings of the lottery.
    value, fixed
        Equivalent values of the lottery and of the best fixed ranking.

    Examples
    --------
    >>> print(_summary(MAXIMIN, 3, 0.346, 0.114))
    By the estimates, a lottery over 3 rankings raises the value of the worst-off user type from 0.114, under
    the best fixed ranking, to 0.346 clicks per visit (+203.5%).
    >>> print(_summary(NASH, 1, 0.2, 0.2))
    By the estimates, a lottery gains nothing over the best fixed ranking.
    """
    if value <= max(fixed * (1.0 + _MIN_GAIN), _MIN_VALUE):
        return "By the estimates, a lottery gains nothing over the best fixed ranking."
    words = _EQUIVALENTS.get(utility, "the equivalent value of the user types")
    change = f" (+{value / fixed - 1.0:.1%})" if fixed > _MIN_VALUE else ""
    return (
        f"By the estimates, a lottery over {n_rankings} rankings raises {words} from {fixed:.3f}, under the "
        f"best fixed ranking, to {value:.3f} clicks per visit{change}."
    )
