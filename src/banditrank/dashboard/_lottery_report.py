"""Report of the best lottery over rankings by the estimates: its gain, and the prices of guarantees."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard._estimated_problem import EstimatedSurfaceProblem
from banditrank.dashboard._posterior_samples import PosteriorSamples
from banditrank.dashboard._probability_best import equivalent_values
from banditrank.dashboard._realised_guarantees import realised_exposure, realised_value
from banditrank.engine._counts_replica import SurfaceCounts
from banditrank.engine._guarantees import active_guarantees
from banditrank.engine._surface import Surface
from banditrank.errors import UnsolvableError
from banditrank.model._values import best_personalized_values
from banditrank.policies._base import draws_lotteries, is_equal
from banditrank.solvers._instance import as_instance
from banditrank.solvers._lottery.guarantees import as_rows
from banditrank.solvers._lottery.lottery import GuaranteeReport, Lottery
from banditrank.solvers._lottery.solve import LotteryTreatment, solve_lottery
from banditrank.utilities._utility import MAXIMIN, NASH, UTILITARIAN, Utility

Floats = NDArray[np.float64]

CONFIDENCE_LEVEL = 0.95
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
    user_type: str | None  # that it is for; None for all


@dataclass(frozen=True, slots=True)
class GuaranteeState:
    """A guarantee: what the lottery gives, what it costs, and what was realised.

    Attributes
    ----------
    name
        The guarantee in words: ``exposure of ad-3``, ``value of male``.
    level
        The least exposure, or the least value by the estimates.
    expected
        Exposure or value under the best lottery; None if the guarantees cannot all be kept.
    price
        By how much the collective utility rises for each unit by which the level falls; 0 if the guarantee is
        not binding, None if the guarantees cannot all be kept, or only just.
    realised, low, high
        Exposure or clicks per visit, over the visits since the guarantees took effect for the active items,
        with its interval; None without visits.
    is_kept
        Whether the realised exposure or value reaches the level within its interval; None without visits.
    """

    name: str
    level: float
    expected: float | None
    price: float | None
    realised: float | None
    low: float | None
    high: float | None
    is_kept: bool | None


@dataclass(frozen=True, slots=True)
class FoundLottery:
    """The best lottery, or that without guarantees if they conflict."""

    lottery: Lottery
    conflict: str | None

    @property
    def treatment(self) -> LotteryTreatment:
        """``equal``: one lottery for all user types; ``personalized``: one for each."""
        return "equal" if self.lottery.probabilities.ndim == 1 else "personalized"

    def by_user_type(self, surface: Surface) -> list[tuple[str | None, Floats]]:
        """Return the probabilities of the lottery of each user type; of one for all, None."""
        if self.treatment == "equal":
            return [(None, self.lottery.probabilities)]
        return list(zip(surface.user_types, self.lottery.probabilities, strict=True))


@dataclass(frozen=True, slots=True)
class LotteryReport:
    """The best lottery over rankings by the estimates, with the same odds for all users.

    Under personalized treatment with guarantees, the best lotteries of the user types. Values are estimated
    clicks per visit.

    Attributes
    ----------
    rankings
        The rankings and their probabilities, the most probable first; those of each user type together.
    user_type_values
        Expected value to each user type, in the surface's order.
    total
        Expected value over all users.
    equivalent_value, fixed_equivalent_value
        The value that has the same collective utility if all user types have it, of the lottery and of the
        best fixed ranking: the geometric mean for Nash, the smallest value for maximin.
    gain
        Relative increase from the second to the first; None if the second is 0.
    unguaranteed_value
        The equivalent value of the best lottery without guarantees.
    guarantees
        The surface's guarantees, with their prices and what was realised.
    conflict
        Why the guarantees cannot all be kept by the estimates, and by which common factor they can. The
        report is then of the best lottery without guarantees. None if they can be kept.
    level
        Confidence level of the intervals.
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
    unguaranteed_value: float
    guarantees: list[GuaranteeState]
    conflict: str | None
    level: float
    is_certified: bool
    gap: float | None
    summary: str


def find_lottery(surface: Surface, problem: EstimatedSurfaceProblem, utility: Utility) -> FoundLottery | None:
    """Return the best lottery by the estimates; None for utilities by which no lottery can gain.

    These are the linear ones, unless the surface's treatment is by lotteries, and those that are not concave,
    which have no lottery.
    """
    is_served = draws_lotteries(surface.treatment, surface.guarantees)
    if utility.shape not in ("concave", "maximin") and not is_served:
        return None
    treatment: LotteryTreatment = "equal" if is_equal(surface.treatment) else "personalized"
    guarantees = active_guarantees(surface)
    try:
        return FoundLottery(solve_lottery(problem, utility, guarantees=guarantees, treatment=treatment), None)
    except UnsolvableError as error:
        return FoundLottery(solve_lottery(problem, utility, treatment=treatment), str(error))


def report_lottery(
    surface_counts: SurfaceCounts,
    problem: EstimatedSurfaceProblem,
    found: FoundLottery,
    utility: Utility,
    fixed_values: Floats,
) -> LotteryReport:
    """Return the report of a lottery.

    Parameters
    ----------
    surface_counts
        The counts.
    problem
        The estimated problem, with the active items.
    found
        The best lottery for the problem.
    utility
        The utility that it maximises.
    fixed_values
        Values of the best fixed ranking to each user type, shape (N,).
    """
    items, lottery = surface_counts.surface.active_items, found.lottery
    values = [lottery.user_type_values, fixed_values]
    if lottery.guarantees:
        free = solve_lottery(problem, utility, treatment=found.treatment)
        values.append(free.user_type_values)
    rates = np.broadcast_to(problem.arrival_rates, (len(values), problem.n_user_types))
    equivalents = equivalent_values(utility, rates, np.stack(values)).tolist()
    value, fixed = equivalents[:2]
    return LotteryReport(
        rankings=[
            LotteryRanking([items[item] for item in ranking], probability, user_type)
            for user_type, probabilities in found.by_user_type(surface_counts.surface)
            for ranking, probability in _shown_rankings(lottery, probabilities)
        ],
        user_type_values=lottery.user_type_values.tolist(),
        total=float(problem.arrival_rates @ lottery.user_type_values),
        equivalent_value=value,
        fixed_equivalent_value=fixed,
        gain=value / fixed - 1.0 if fixed > _MIN_VALUE else None,
        unguaranteed_value=equivalents[-1] if lottery.guarantees else value,
        guarantees=_guarantee_states(surface_counts, problem, lottery),
        conflict=found.conflict,
        level=CONFIDENCE_LEVEL,
        is_certified=bool(lottery.is_certified),
        gap=float(lottery.gap) if isfinite(lottery.gap) else None,
        summary=_summary(utility, len(lottery.rankings), value, fixed, equivalents[2:])
        if found.treatment == "equal"
        else _cost_summary(value, equivalents[-1] if lottery.guarantees else value),
    )


def _shown_rankings(lottery: Lottery, probabilities: Floats) -> list[tuple[list[int], float]]:
    """Return the rankings that are shown with a probability, the most probable first."""
    order = np.argsort(-probabilities, kind="stable")
    return [(lottery.rankings[s].tolist(), float(probabilities[s])) for s in order if probabilities[s] > 0.0]


def _guarantee_states(
    surface_counts: SurfaceCounts, problem: EstimatedSurfaceProblem, lottery: Lottery
) -> list[GuaranteeState]:
    """Return the guarantees in the order of the solver: exposures first, then values."""
    surface, counts = surface_counts.surface, surface_counts.counts
    guarantees = active_guarantees(surface)
    if not guarantees:
        return []
    rows, names = as_rows(guarantees, as_instance(problem), surface.active_items, surface.user_types)
    samples = PosteriorSamples(
        counts.select_items(surface.active_numbers),
        seed=surface_counts.version,
        click_model=surface.click_model,
    )
    owners = np.repeat(np.arange(len(surface.active_items)), np.diff(rows.item_starts))
    numbers = np.asarray(surface.active_numbers, dtype=np.intp)
    n_exposures = len(names) - rows.user_types.size
    realised = [
        realised_exposure(
            surface_counts,
            numbers[owners[rows.item_rows == row]],
            problem.position_preferences,
            samples,
            CONFIDENCE_LEVEL,
        )
        for row in range(n_exposures)
    ] + [
        realised_value(surface_counts, user_type, surface.max_reward, CONFIDENCE_LEVEL)
        for user_type in rows.user_types.tolist()
    ]
    levels = rows.levels.tolist()
    best = best_personalized_values(problem)
    levels[n_exposures:] = (rows.shares * best[rows.user_types]).tolist()
    solved: list[GuaranteeReport | None] = [*lottery.guarantees] or [None] * len(names)
    return [
        GuaranteeState(
            name,
            level,
            expected=None if report is None else report.reached,
            price=None if report is None else report.price,
            realised=None if interval is None else interval.estimate,
            low=None if interval is None else interval.low,
            high=None if interval is None else interval.high,
            is_kept=None if interval is None else interval.high >= level,
        )
        for name, level, report, interval in zip(names, levels, solved, realised, strict=True)
    ]


def _cost_summary(value: float, unguaranteed: float) -> str:
    """Return the cost of the guarantees under personalized treatment in a sentence.

    Examples
    --------
    >>> print(_cost_summary(0.342, 0.36))
    By the estimates, the guarantees cost 5.0% of the clicks: 0.342 per visit instead of 0.360.
    """
    if value >= unguaranteed * (1.0 - _MIN_GAIN):
        return "By the estimates, the guarantees cost nothing."
    return (
        f"By the estimates, the guarantees cost {1.0 - value / unguaranteed:.1%} of the clicks: "
        f"{value:.3f} per visit instead of {unguaranteed:.3f}."
    )


def _summary(
    utility: Utility, n_rankings: int, value: float, fixed: float, unguaranteed: Sequence[float] = ()
) -> str:
    """Return the gain of a lottery, or the cost of its guarantees, in a sentence.

    Parameters
    ----------
    utility
        The utility.
    n_rankings
        Number of rankings of the lottery.
    value, fixed
        Equivalent values of the lottery and of the best fixed ranking.
    unguaranteed
        That of the best lottery without guarantees, if there are guarantees.

    Examples
    --------
    >>> print(_summary(MAXIMIN, 3, 0.346, 0.114))
    By the estimates, a lottery over 3 rankings raises the value of the worst-off user type from 0.114, under
    the best fixed ranking, to 0.346 clicks per visit (+203.5%).
    >>> print(_summary(NASH, 1, 0.2, 0.2))
    By the estimates, a lottery gains nothing over the best fixed ranking.
    >>> print(_summary(MAXIMIN, 3, 0.2, 0.25, [0.3]))
    By the estimates, a lottery over 3 rankings keeps the guarantees, and the value of the worst-off user type
    is 0.200 clicks per visit. It is 0.300 under the best lottery without guarantees, and 0.250 under the best
    fixed ranking.
    """
    words = _EQUIVALENTS.get(utility, "the equivalent value of the user types")
    if any(one > value * (1.0 + _MIN_GAIN) for one in unguaranteed):
        return (
            f"By the estimates, a lottery over {n_rankings} rankings keeps the guarantees, and {words} is "
            f"{value:.3f} clicks per visit. It is {unguaranteed[0]:.3f} under the best lottery without "
            f"guarantees, and {fixed:.3f} under the best fixed ranking."
        )
    if value <= max(fixed * (1.0 + _MIN_GAIN), _MIN_VALUE):
        return "By the estimates, a lottery gains nothing over the best fixed ranking."
    change = f" (+{value / fixed - 1.0:.1%})" if fixed > _MIN_VALUE else ""
    return (
        f"By the estimates, a lottery over {n_rankings} rankings raises {words} from {fixed:.3f}, under the "
        f"best fixed ranking, to {value:.3f} clicks per visit{change}."
    )
