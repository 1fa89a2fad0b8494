"""Solving equal treatment by a lottery: the best lottery over rankings, with guarantees and a certificate."""

import math
import time
from collections.abc import Iterable
from functools import cache
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._checks import check_number
from banditrank._text import list_names
from banditrank.errors import InvalidInputError, UnknownNameError, UnsolvableError
from banditrank.model._problem import Problem, ProblemLike
from banditrank.model._values import click_scale
from banditrank.solvers._assignment import slope
from banditrank.solvers._instance import Instance, as_instance, smallest_instance
from banditrank.solvers._lottery.column_generation import (
    ASSIGNMENTS,
    BOUND,
    CONSTANT,
    FACTOR,
    GAP,
    MAXIMISE_FACTOR,
    N_RANKINGS,
    OPTIMISE,
    PENALTY,
    VALUE,
    LotteryHandle,
    bind_lottery,
    search_lottery,
)
from banditrank.solvers._lottery.guarantees import Guarantee, NamedRows, as_rows
from banditrank.solvers._lottery.lottery import SLACK, GuaranteeReport, Lottery
from banditrank.solvers._solution import gap_unit
from banditrank.solvers._solve import DEFAULT_GAP, MIN_TARGET_GAP, ROUNDING
from banditrank.utilities._formulas import LINEAR, MINIMUM
from banditrank.utilities._utility import NASH, UTILITARIAN, Utility, as_utility

Floats = NDArray[np.float64]

LotteryTreatment: TypeAlias = Literal["equal", "personalized"]

_GAP_MARGIN = 0.5  # share of the target gap, so that rounding cannot exceed it
_MAX_ASSIGNMENTS = 20_000
_FACTOR_GAP = 1e-7  # precision of the common factor
_MAX_PENALTY = 1e9
_SMALL_VALUE = 1e-6  # below which values are scaled
_USUAL_COST = 50.0  # of all guarantees, relative to the value, up to which prices need no check
_PENALTY_STEP = 10.0
_MAX_NAMED = 3  # conflicting guarantees in a message


def solve_lottery(
    problem: ProblemLike,
    utility: Utility | str = UTILITARIAN,
    *,
    guarantees: Iterable[Guarantee] = (),
    treatment: LotteryTreatment = "equal",
    bonuses: ArrayLike | None = None,
    target_gap: float = DEFAULT_GAP,
    scale: float | None = None,
) -> Lottery:
    """Find a lottery over rankings that maximises the utility of expected values, with a certificate.

    Under equal treatment everybody has the same odds of each ranking. The value is Γ of the *expected* values
    of the types, plus expected bonuses: fairness before the draw. It is never below the value of the best
    fixed ranking, which `solve` finds.

    Parameters
    ----------
    problem
        A `Problem`, `Estimates`, or anything with arrival rates, position preferences and item means.
    utility
        The objective: a linear or concave `Utility` with a derivative, maximin, or the name of one.
    guarantees
        Least exposures of items (`LeastExposure`) and least values of types (`KeptShare`).
    treatment
        ``equal``: one lottery for all types; ``personalized``: one lottery for each type, which matters if
        there are guarantees for items.
    bonuses
        Added to the value of a ranking for each item in it, shape (M,); under equal treatment only.
    target_gap
        Relative gap at which the solver may stop.
    scale
        The maximum reward: means are multiplied by it (see `banditrank.model._rewards`).

    Returns
    -------
    Lottery
        Rankings and probabilities, the value, an upper bound on the value of any lottery, and the prices of
        the guarantees. Under equal treatment there are at most as many rankings as user types and guarantees
        that hold with equality, and one more with bonuses.

    Raises
    ------
    UnsolvableError
        If the utility is not concave or has no derivative, or the guarantees cannot be kept together.
    UnknownNameError
        If the utility, the treatment, or an item or user type of a guarantee is unknown.
    InvalidInputError
        If another argument is invalid, or the utility's function fails.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> from banditrank.solvers._lottery.guarantees import LeastExposure
    >>> lottery = solve_lottery(kdd2012(), "nash", guarantees=[LeastExposure(0.1)])
    >>> lottery.exposures.round(3)
    array([0.1, 0.1, 0.1, 0.6, 0.1])
    """
    instance = as_instance(problem, bonuses=bonuses, scale=click_scale(problem) if scale is None else scale)
    chosen = as_concave(as_utility(utility))
    if treatment not in get_args(LotteryTreatment):
        raise UnknownNameError("treatment", treatment, get_args(LotteryTreatment))
    is_personalized = treatment == "personalized"
    if is_personalized and instance.bonuses.any():
        raise InvalidInputError(
            "bonuses", "must be 0 under personalized treatment", float(instance.bonuses.max())
        )
    items, user_types = _names(problem, instance)
    rows = as_rows(guarantees, instance, items, user_types)
    gap = check_number("target_gap", target_gap, MIN_TARGET_GAP, 1.0)
    chosen.compiled()
    _prepare()
    started = time.perf_counter()
    unit = _power_of_two(instance, chosen)
    scaled = instance._replace(means=instance.means * unit)
    outcome = _search(scaled, chosen, None, gap, is_personalized=is_personalized)
    unguaranteed = None
    if rows.names:
        unguaranteed = _value(instance, chosen, outcome, _expected(instance, outcome)[0])
        outcome = _search(scaled, chosen, rows, gap, is_personalized=is_personalized)
    outcome = _unscaled(outcome, rows, unit)
    names = (items, user_types)
    return _lottery(instance, chosen, outcome, rows, treatment, unguaranteed, gap, names, started)


class _Outcome(NamedTuple):
    """A lottery as arrays, and the bound and the prices of a search."""

    rankings: NDArray[np.intp]  # (S, K)
    probabilities: Floats  # (1 or N, S)
    upper_bound: float
    prices: Floats  # (guarantees,) NaN if they are not determined
    assignments: int


def _search(
    instance: Instance, utility: Utility, rows: NamedRows | None, gap: float, *, is_personalized: bool
) -> _Outcome:
    """Search for the best lottery that keeps the guarantees, or raise if there is none."""
    n, m, k = instance.n_user_types, instance.n_items, instance.n_positions
    handle = bind_lottery(
        *(n, m, k, utility.compiled()),
        guarantees=None if rows is None else rows.rows,
        is_personalized=is_personalized,
    )
    for own, given in zip(handle.instance, instance, strict=True):
        own[...] = given
    constant = _constant(instance, utility)
    handle.numbers[GAP] = _GAP_MARGIN * gap
    handle.numbers[CONSTANT] = constant if np.isfinite(constant) else 0.0
    search_lottery(handle, _MAX_ASSIGNMENTS, OPTIMISE)
    assignments = int(handle.counts[ASSIGNMENTS])
    while rows is not None and handle.numbers[FACTOR] < 1.0 - SLACK:
        utility.raise_callback_error()
        penalty = handle.numbers[PENALTY]
        handle.numbers[GAP] = _FACTOR_GAP
        search_lottery(handle, _MAX_ASSIGNMENTS, MAXIMISE_FACTOR)
        if handle.numbers[FACTOR] < 1.0 - _FACTOR_GAP or penalty >= _MAX_PENALTY:
            raise _infeasible(handle, rows, utility)
        handle.numbers[GAP], handle.numbers[PENALTY] = _GAP_MARGIN * gap, 1e3 * penalty
        search_lottery(handle, _MAX_ASSIGNMENTS, OPTIMISE)
        assignments += int(handle.counts[ASSIGNMENTS])
    utility.raise_callback_error()
    outcome = _read(handle, rows, constant, assignments, is_personalized=is_personalized)
    if rows is not None and _is_at_limit(handle, rows, utility):
        outcome = outcome._replace(prices=np.where(outcome.prices > 0.0, np.nan, outcome.prices))
    return outcome._replace(upper_bound=min(outcome.upper_bound, _ceiling(instance, utility, constant)))


def _power_of_two(instance: Instance, utility: Utility) -> float:
    """Return what to multiply means by: 1, unless all values are so small that the master takes them for 0.

    The optimum scales with the means for a linear utility and maximin only, and exactly for a power of 2.
    """
    largest = float(instance.means.max() * instance.preferences.sum(axis=1).max())
    is_homogeneous = utility.code in (LINEAR, MINIMUM) and not instance.bonuses.any()
    return 2.0 ** -math.frexp(largest)[1] if is_homogeneous and 1e-250 < largest < _SMALL_VALUE else 1.0


def _unscaled(outcome: _Outcome, rows: NamedRows, unit: float) -> _Outcome:
    """Return the outcome for means that were multiplied by a unit, and divide the levels of values by it."""
    if unit == 1.0:
        return outcome
    n_exposures = outcome.prices.size - rows.rows.user_types.size
    rows.rows.levels[n_exposures:] /= unit
    prices = outcome.prices.copy()
    prices[:n_exposures] /= unit  # those of values are ratios of values
    return outcome._replace(upper_bound=outcome.upper_bound / unit, prices=prices)


def _is_at_limit(handle: LotteryHandle, rows: NamedRows, utility: Utility) -> bool:
    """Return whether the prices are those of the penalty: no larger guarantees are feasible.

    The penalty then bounds what all guarantees cost together, and a larger one raises the prices as much.
    """
    first = handle.prices.size - len(rows.names)
    cost = float(handle.prices[first:] @ handle.guarantees.levels)
    if cost <= _USUAL_COST * gap_unit(utility.compiled(), float(handle.numbers[VALUE])):
        return False
    handle.numbers[PENALTY] *= _PENALTY_STEP
    search_lottery(handle, _MAX_ASSIGNMENTS, OPTIMISE)
    utility.raise_callback_error()
    return float(handle.prices[first:] @ handle.guarantees.levels) > 0.5 * _PENALTY_STEP * cost


def _infeasible(handle: LotteryHandle, rows: NamedRows, utility: Utility) -> UnsolvableError:
    """Return the error for guarantees that cannot be kept together, which names the scarce ones."""
    prices = handle.prices[handle.prices.size - len(rows.names) :]
    weights = prices * handle.guarantees.levels
    order = np.argsort(-weights, kind="stable")
    scarce = [rows.names[c] for c in order if weights[c] > 1e-6 * weights.sum()]
    if not scarce:  # they can be kept, but no penalty in double precision makes the master keep them
        return UnsolvableError(
            f"guarantees cannot be kept with {utility}, which is too steep for double precision: use maximin"
        )
    named = list_names(scarce, _MAX_NAMED)
    factor = np.floor(1e5 * (handle.numbers[FACTOR] - 2e-6)) / 1e5  # a perturbation below: feasible
    return UnsolvableError(
        f"guarantees cannot all be kept: the largest common factor is {factor:.5g} "
        f"(multiply all levels by it, or lower those that conflict: {named})"
    )


def _read(
    handle: LotteryHandle, rows: NamedRows | None, constant: float, assignments: int, *, is_personalized: bool
) -> _Outcome:
    """Return the lottery of a handle: equal rankings merged, the most probable first."""
    count, n_lotteries = int(handle.counts[N_RANKINGS]), handle.values.size if is_personalized else 1
    support = handle.support[:count]
    rankings, place = np.unique(handle.rankings[support].astype(np.intp), axis=0, return_inverse=True)
    shares = np.zeros((n_lotteries, len(rankings)))
    np.add.at(shares, (handle.owners[support], place.ravel()), handle.probabilities[:count])
    order = np.argsort(-shares.sum(axis=0), kind="stable")
    probabilities = np.ascontiguousarray(shares[:, order])
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    n_guarantees = 0 if rows is None else len(rows.names)
    prices = handle.prices[handle.prices.size - n_guarantees :].copy()
    bound = float(handle.numbers[BOUND]) + constant
    return _Outcome(rankings[order], probabilities, bound, prices, assignments)


def _lottery(
    instance: Instance,
    utility: Utility,
    outcome: _Outcome,
    rows: NamedRows,
    treatment: LotteryTreatment,
    unguaranteed: float | None,
    target_gap: float,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    started: float,
) -> Lottery:
    """Return the lottery of an outcome; only the bound and the prices are taken from the search."""
    values, exposures = _expected(instance, outcome)
    value = _value(instance, utility, outcome, values)
    if not value < np.inf:  # infinite or NaN
        raise InvalidInputError(f"utility {utility}", "must be finite or −∞ for every lottery", value)
    unit = gap_unit(utility.compiled(), value)
    is_above = outcome.upper_bound < value - ROUNDING * unit
    if is_above and not rows.names:
        raise AssertionError(f"lottery: upper bound {outcome.upper_bound} is below the value {value}")
    # At the limit of what is feasible, guarantees that are kept up to rounding allow more than exact ones.
    bound = max(value, outcome.upper_bound)
    missing = value - outcome.upper_bound if is_above else bound - value if bound > value else 0.0
    gap = 0.0 if missing == 0.0 else float(missing / unit) if 0.0 < unit < np.inf else np.inf
    reports = _reports(rows, outcome, values, exposures)
    for array in (values, exposures, outcome.rankings, outcome.probabilities):
        array.flags.writeable = False
    return Lottery(
        treatment=treatment,
        utility=str(utility),
        rankings=outcome.rankings,
        probabilities=outcome.probabilities[0] if treatment == "equal" else outcome.probabilities,
        user_type_values=values,
        exposures=exposures,
        value=value,
        upper_bound=bound,
        gap=gap,
        is_certified=not is_above and gap <= target_gap and all(report.is_kept for report in reports),
        guarantees=reports,
        unguaranteed_value=value if unguaranteed is None else unguaranteed,
        assignments=outcome.assignments,
        seconds=time.perf_counter() - started,
        items=names[0],
        user_types=names[1],
    )


def _expected(instance: Instance, outcome: _Outcome) -> tuple[Floats, Floats]:
    """Return the expected value of each type, shape (N,), and the exposure of each item, shape (M,)."""
    n, n_items = instance.n_user_types, instance.n_items
    probabilities = np.broadcast_to(outcome.probabilities, (n, len(outcome.rankings)))
    shown = instance.means[:, outcome.rankings]  # (N, S, K)
    values = np.einsum("is,ik,isk->i", probabilities, instance.preferences, shown)
    exposures = np.zeros(n_items)
    looks = np.einsum("i,is,ik->sk", instance.weights, probabilities, instance.preferences)
    np.add.at(exposures, outcome.rankings, looks)
    return values, exposures


def _value(instance: Instance, utility: Utility, outcome: _Outcome, values: Floats) -> float:
    """Return Γ of expected values plus expected bonuses."""
    bonus = float(outcome.probabilities[0] @ instance.bonuses[outcome.rankings].sum(axis=1))
    return utility.collective(instance.weights, values) + bonus


def _reports(
    rows: NamedRows, outcome: _Outcome, values: Floats, exposures: Floats
) -> tuple[GuaranteeReport, ...]:
    reached = np.zeros(len(rows.names))
    owners = np.repeat(np.arange(exposures.size), np.diff(rows.rows.item_starts))
    np.add.at(reached, rows.rows.item_rows, exposures[owners])
    if rows.rows.user_types.size:
        reached[-rows.rows.user_types.size :] = values[rows.rows.user_types]
    return tuple(
        GuaranteeReport(name, float(level), float(got), _price(level, got, price))
        for name, level, got, price in zip(rows.names, rows.rows.levels, reached, outcome.prices, strict=True)
    )


def _price(level: float, reached: float, price: float) -> float | None:
    """Return the price of a guarantee: 0 if it is not binding, None if it is not determined."""
    if reached > level * (1.0 + 1e-7):
        return 0.0
    return None if np.isnan(price) else float(price)


def as_concave(utility: Utility) -> Utility:
    """Return a utility with a derivative, unless it is maximin.

    Raises
    ------
    UnsolvableError
        If it is not concave, or has no derivative.
    """
    if utility.shape == "non-concave":
        raise UnsolvableError(
            f"a lottery needs a concave utility or maximin, got {utility} (non-concave): "
            f"use a fixed ranking, from solve"
        )
    if utility.function is not None and utility.derivative is None:
        if utility.shape != "linear":
            raise UnsolvableError(
                f"a lottery needs the derivative of a concave function, got none for {utility}"
            )
        rate = slope(utility)
        return Utility.from_function(
            utility.function, derivative=lambda _: rate, shape="concave", name=utility.name
        )
    return utility


def _constant(instance: Instance, utility: Utility) -> float:
    """Return the utility of types whose value is 0 under every lottery; 0 for maximin, which has them."""
    if utility.code == MINIMUM:
        return 0.0
    idle = instance.weights[_is_idle(instance)]
    return float(idle @ utility.evaluate(np.zeros(idle.size))) if idle.size else 0.0


def _ceiling(instance: Instance, utility: Utility, constant: float) -> float:
    """Return the value of every lottery if types whose value is always 0 determine it, else ∞."""
    if instance.bonuses.any():
        return np.inf
    is_idle = _is_idle(instance)
    if utility.code == MINIMUM:
        return 0.0 if is_idle.any() else np.inf
    return constant if is_idle[instance.weights > 0].all() else np.inf


def _is_idle(instance: Instance) -> NDArray[np.bool_]:
    """Return which types count, but have value 0 under every lottery."""
    is_served = (instance.preferences.max(axis=1) > 0) & (instance.means.max(axis=1) > 0)
    is_idle: NDArray[np.bool_] = (instance.weights > 0) & ~is_served
    return is_idle


def _names(problem: ProblemLike, instance: Instance) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of items and of user types; numbers for estimates, which have none."""
    if isinstance(problem, Problem):
        return problem.items, problem.user_types
    return (
        tuple(f"item-{number}" for number in range(1, instance.n_items + 1)),
        tuple(f"type-{number}" for number in range(1, instance.n_user_types + 1)),
    )


@cache
def _prepare() -> None:
    """Compile or load all formulas by solving the smallest instance."""
    _search(smallest_instance(), NASH, None, DEFAULT_GAP, is_personalized=False)
    gap_unit(NASH.compiled(), 1.0)
