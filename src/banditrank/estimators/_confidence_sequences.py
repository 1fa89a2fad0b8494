"""Confidence sequences of the mean reward per visit, and of the lift of one arm over another.

A confidence sequence is an interval at each time, such that all of them contain the true value at once with
the stated probability: it may be looked at after every visit, and an experiment may be stopped at any time.

The construction is a test by betting [1]_ that needs only the number of visits n, Σx and Σx² of an arm. For
rewards x in [0, K] and a bet θ > −1/K, the wealth Π (1 + θ x) / (1 + θ m) is a martingale if the conditional
means are m, and exceeds 1/α at any time with probability α at most [2]_.

* log(1 + θ x) ≥ a x − b x² on [0, K], with equality at 0. For θ > 0 the parabola is tangent at 1, for θ < 0
  tangent at 0 and equal at K; the difference has the sign of θ³ x (x − 1)², or of θ³ x² (x − K). So the
  wealth is at least exp(a Σx − b Σx² − n log(1 + θ m)). For clicks (K = 1) it is the likelihood ratio.
* log(1 + θ m) is concave in m: with conditional means that vary, m is their average over the visits so far.
* Positive bets win if the mean is lower than observed, negative ones if it is higher. Wealth is split over a
  geometric grid of bets of each sign, with half-Cauchy weights.
* Two arms: the product of their wealths is a martingale, too, in any order of visits. A lift is excluded if
  the product exceeds the limit for all pairs of means with that lift. Log wealth is convex in the mean, so
  Newton steps find the pair with the smallest product. The relative lift uses the same product, so both lifts
  exclude 0 at the same time.

Nothing is asymptotic: with few visits the interval is the whole range.

References
----------
.. [1] I. Waudby-Smith, A. Ramdas. Estimating means of bounded random variables by betting. JRSS B, 2024.
.. [2] S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon. Time-uniform, nonparametric, nonasymptotic confidence
   sequences. Annals of Statistics, 2021.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._checks import check_number
from banditrank.errors import InvalidInputError
from banditrank.estimators._intervals import MAX_LEVEL, MIN_LEVEL

Floats = NDArray[np.float64]
ValueAndSlope: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]

MAX_TOTAL_REWARD = 1e3
"""Maximum of `RewardSums.max_reward`."""

_TYPICAL_BET = 0.1  # tightest between some 100 and some 10,000 clicks, where lifts of 5 to 30% are found
_BETS = np.append(2.0 * 1.5 ** -np.arange(26.0), 0.0)  # down to 8e-5, and none
_MAX_STAKE = 0.95  # of the wealth, for negative bets: θ K = −1 would lose all of it in a visit
_MAX_STEPS = 80
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class RewardSums:
    """Sums over the visits of an arm, from which confidence sequences are computed.

    All arrays have the same shape; each element is an arm, a user type or a time of its own. Intervals are
    valid if the time at which a visit is added does not depend on its reward.

    Parameters
    ----------
    visits
        Number of visits n.
    rewards
        Sum of the visits' rewards Σx; the reward of a visit is the sum over its positions.
    squared_rewards
        Sum of their squares Σx².
    max_reward
        Upper bound K of the reward of a visit: 1 if there is at most one click, else the number of positions.

    Raises
    ------
    InvalidInputError
        If an array has another shape, or the sums are not those of rewards from 0 to ``max_reward``.

    Attributes
    ----------
    weighted_visits, max_weighted_reward
        Sum of the visits' weights, and the largest weighted reward of a visit; see `merge_periods`.

    Examples
    --------
    >>> RewardSums(visits=1000, rewards=52, squared_rewards=52).means
    array(0.052)
    """

    visits: Floats
    rewards: Floats
    squared_rewards: Floats
    max_reward: float
    weighted_visits: Floats
    max_weighted_reward: float

    def __init__(
        self,
        visits: ArrayLike,
        rewards: ArrayLike,
        squared_rewards: ArrayLike,
        max_reward: float = 1.0,
    ) -> None:
        bound = check_number("max_reward", max_reward, 1e-6, MAX_TOTAL_REWARD)
        n = _as_sums("visits", visits)
        total, squares = _as_sums("rewards", rewards), _as_sums("squared_rewards", squared_rewards)
        for field, sums in (("rewards", total), ("squared_rewards", squares)):
            if sums.shape != n.shape:
                raise InvalidInputError(field, f"must have shape {n.shape}, as visits", sums.shape)
        slack = 1 + 1e-9  # sums of graded rewards are rounded
        _check_all("rewards", f"must be at most {bound:g} per visit", total, total <= n * bound * slack)
        fits = (squares <= total * bound * slack) & (total**2 <= n * squares * slack)
        rule = f"must be the squares of rewards from 0 to {bound:g} with this sum"
        _check_all("squared_rewards", rule, squares, fits)
        self._set(n, total, squares, bound, n, bound)

    def _set(self, *values: Floats | float) -> None:
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def merge_periods(cls, periods: Sequence[Self], shares: Sequence[float]) -> Self:
        """Return the sums over periods in which the arm had different shares of the visits.

        A visit gets the weight 1 / share, relative to the first period with visits. So the arms of an
        experiment have the same mix of periods. Without weights a share that grew while clicks became more
        frequent would look like a better arm.

        Parameters
        ----------
        periods
            The arm's sums in each period; all of one shape and bound.
        shares
            The arm's share of the visits in each period.

        Raises
        ------
        InvalidInputError
            If there is no period, or the shares are not one number in (0, 1] for each period.

        Examples
        --------
        >>> first, second = RewardSums(500, 50, 50), RewardSums(4500, 900, 900)
        >>> RewardSums.merge_periods([first, second], [0.05, 0.45]).means
        array(0.15)
        """
        if not periods or len(shares) != len(periods):
            raise InvalidInputError("shares", f"must be one for each of {len(periods)} periods", list(shares))
        used = [check_number("shares", share, 1e-9, 1.0) for share in shares]
        has_visits = [bool(period.visits.any()) for period in periods]
        first = used[has_visits.index(True)] if any(has_visits) else used[0]
        weights = [first / share if has else 0.0 for share, has in zip(used, has_visits, strict=True)]
        pairs = list(zip(weights, periods, strict=True))
        merged = cls.__new__(cls)
        merged._set(  # noqa: SLF001
            np.asarray(sum(period.visits for period in periods)),
            np.asarray(sum(weight * period.rewards for weight, period in pairs)),
            np.asarray(sum(weight**2 * period.squared_rewards for weight, period in pairs)),
            periods[0].max_reward,
            np.asarray(sum(weight * period.visits for weight, period in pairs)),
            periods[0].max_reward * max(*weights, 1.0),
        )
        return merged

    def select(self, index: int | slice | NDArray[np.intp]) -> Self:
        """Return the sums at an index, or at several, of the first axis.

        Examples
        --------
        >>> RewardSums([10, 20], [1, 4], [1, 4]).select(1).means
        array(0.2)
        """
        selected = type(self).__new__(type(self))
        selected._set(  # noqa: SLF001
            np.asarray(self.visits[index]),
            np.asarray(self.rewards[index]),
            np.asarray(self.squared_rewards[index]),
            self.max_reward,
            np.asarray(self.weighted_visits[index]),
            self.max_weighted_reward,
        )
        return selected

    @property
    def means(self) -> Floats:
        """The rewards per visit; NaN without visits."""
        means: Floats = np.full(self.visits.shape, np.nan)
        return np.divide(self.rewards, self.weighted_visits, out=means, where=self.visits > 0)


@dataclass(frozen=True, slots=True, eq=False)
class ConfidenceSequence:
    """Estimates and their intervals at the present time; shapes are those of the sums.

    Attributes
    ----------
    level
        The probability that all intervals, at all times, contain the true value.
    estimates
        NaN if there is no estimate.
    low, high
        Ends of the intervals.
    """

    level: float
    estimates: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, eq=False)
class LiftConfidenceSequence:
    """Lift of one arm over another.

    Attributes
    ----------
    absolute
        Difference of the rewards per visit.
    relative
        The difference as a share of the baseline's rewards per visit: 0.1 is 10% more. ``high`` is infinite
        as long as the baseline's mean may be 0, and the estimate NaN if the baseline has no rewards.
    """

    absolute: ConfidenceSequence
    relative: ConfidenceSequence


def mean_confidence_sequence(sums: RewardSums, *, level: float = 0.95) -> ConfidenceSequence:
    """Return the mean reward per visit with an interval that is valid at all times simultaneously.

    Parameters
    ----------
    sums
        Sums over visits.
    level
        The probability that the interval contains the mean at all times.

    Raises
    ------
    InvalidInputError
        If the level is out of range.

    Examples
    --------
    >>> sequence = mean_confidence_sequence(RewardSums([0, 100, 10_000], [0, 5, 500], [0, 5, 500]))
    >>> sequence.low.round(3), sequence.high.round(3)
    (array([0.   , 0.   , 0.043]), array([1.   , 0.171, 0.057]))
    """
    limit = _log_limit(level)
    ends = []
    for sign, outer in ((1, 0.0), (-1, sums.max_reward)):
        wealth = _LogWealth(sums, sign, _TYPICAL_BET)
        start = np.full(sums.visits.shape, outer)
        inner = np.where(sums.visits > 0, np.nan_to_num(sums.means), outer)
        ends.append(_crossing(wealth.first_order, start, inner, limit))
    return ConfidenceSequence(level, sums.means, *ends)


def lift_confidence_sequence(
    treatment: RewardSums, baseline: RewardSums, *, treatment_share: float = 0.5, level: float = 0.95
) -> LiftConfidenceSequence:
    """Return the lift in reward per visit with intervals that are valid at all times simultaneously.

    Parameters
    ----------
    treatment, baseline
        Sums over the visits of two arms, of the same shape.
    treatment_share
        The treatment's share of the visits of both arms as planned. The interval is valid for any value that
        is fixed before the first visit, and tightest for the right one.
    level
        The probability that the interval contains the lift at all times.

    Raises
    ------
    InvalidInputError
        If the shapes or bounds of the arms differ, or the share or the level is out of range.

    Examples
    --------
    >>> policy, random = RewardSums(19_000, 1330, 1330), RewardSums(1000, 40, 40)
    >>> lift = lift_confidence_sequence(policy, random, treatment_share=0.95)
    >>> [round(float(each), 3) for each in (lift.absolute.low, lift.absolute.estimates, lift.absolute.high)]
    [0.004, 0.03, 0.051]
    >>> [round(float(each), 2) for each in (lift.relative.low, lift.relative.estimates, lift.relative.high)]
    [0.06, 0.75, 2.23]
    """
    if baseline.visits.shape != treatment.visits.shape:
        shape = treatment.visits.shape
        raise InvalidInputError("baseline", f"must have shape {shape}, as treatment", baseline.visits.shape)
    if baseline.max_reward != treatment.max_reward:
        rule = f"must have max_reward {treatment.max_reward:g}, as treatment"
        raise InvalidInputError("baseline", rule, baseline.max_reward)
    limit, bound = _log_limit(level), treatment.max_reward
    # The arm with fewer visits has most of the variance, and is bet on most.
    share = check_number("treatment_share", treatment_share, 1e-6, 1 - 1e-6)
    bets = (1 - share) * _TYPICAL_BET, share * _TYPICAL_BET
    has_both = (treatment.visits > 0) & (baseline.visits > 0)
    means = np.where(has_both, treatment.means, 0.0), np.where(has_both, baseline.means, 0.0)
    difference = means[0] - means[1]
    angle = np.where(has_both & (means[0] + means[1] > 0), np.arctan2(*means), np.nan)
    differences, angles = [], []
    for sign in (1, -1):
        wealths = _LogWealth(treatment, sign, bets[0]), _LogWealth(baseline, -sign, bets[1])
        product = _ProductWealth(*wealths, bound)
        start = np.full(has_both.shape, -sign * bound)
        inner = np.where(has_both, difference, start)
        differences.append(_crossing(product.at_difference, start, inner, limit))
        product = _ProductWealth(*wealths, bound)
        start = np.full(has_both.shape, 0.0 if sign == 1 else np.pi / 2)
        inner = np.where(np.isnan(angle), start, angle)
        angles.append(_crossing(product.at_angle, start, inner, limit))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(has_both, means[0] / means[1] - 1, np.nan)
    low = np.asarray(np.tan(angles[0]) - 1)
    high = np.where(angles[1] < np.pi / 2, np.tan(angles[1]) - 1, np.inf)
    return LiftConfidenceSequence(
        ConfidenceSequence(level, np.where(has_both, difference, np.nan), *differences),
        ConfidenceSequence(level, np.where(np.isfinite(ratio), ratio, np.nan), low, high),
    )


class _Bets(NamedTuple):
    """Bets θ of one sign, their shares of the wealth, and the parabolas a x − b x² below log(1 + θ x)."""

    sizes: Floats
    shares: Floats
    linear: Floats
    quadratic: Floats


def _make_bets(sign: int, typical_bet: float, max_reward: float, max_weighted_reward: float) -> _Bets:
    bets = sign * _BETS
    shares = 1 / (_BETS / typical_bet + typical_bet / np.maximum(_BETS, 1e-9))
    # Weights that grow later drop bets, and what these won is lost: the rest must not get their share.
    shares /= shares[bets * max_reward > -_MAX_STAKE].sum()
    is_allowed = bets * max_weighted_reward > -_MAX_STAKE
    bets, shares = bets[is_allowed], shares[is_allowed]
    if sign > 0:
        logs, slopes = np.log1p(bets), bets / (1 + bets)
        return _Bets(bets, shares, 2 * logs - slopes, logs - slopes)
    stakes = bets * max_weighted_reward
    return _Bets(bets, shares, bets, (stakes - np.log1p(stakes)) / max_weighted_reward**2)


class _LogWealth:
    """Logarithm of the wealth of the bets of one sign against a mean, with two derivatives in the mean."""

    def __init__(self, sums: RewardSums, sign: int, typical_bet: float) -> None:
        bets = _make_bets(sign, typical_bet, sums.max_reward, sums.max_weighted_reward)
        rewards, squared_rewards = sums.rewards[..., None], sums.squared_rewards[..., None]
        self._gains = np.log(bets.shares) + bets.linear * rewards - bets.quadratic * squared_rewards
        self._visits = sums.visits[..., None]
        per_visit = np.divide(
            sums.weighted_visits, sums.visits, out=np.ones(sums.visits.shape), where=sums.visits > 0
        )
        self._bets = bets.sizes * per_visit[..., None]

    def first_order(self, means: Floats) -> tuple[Floats, Floats]:
        """Return the value and its slope."""
        value, slope, _ = self(means)
        return value, slope

    def __call__(self, means: Floats) -> tuple[Floats, Floats, Floats]:
        growth = 1 + self._bets * means[..., None]
        logs = self._gains - self._visits * np.log(growth)
        peaks = logs.max(axis=-1, keepdims=True)
        shares = np.exp(logs - peaks)
        totals = shares.sum(axis=-1, keepdims=True)
        shares /= totals
        slopes = self._bets / growth
        slope = -(shares * self._visits * slopes).sum(axis=-1)
        second = (shares * self._visits * (self._visits + 1) * slopes**2).sum(axis=-1) - slope**2
        return (peaks + np.log(totals))[..., 0], slope, second


class _ProductWealth:
    """Smallest log wealth against two arms over all pairs of means with a difference, or with a ratio."""

    def __init__(self, treatment: _LogWealth, baseline: _LogWealth, bound: float) -> None:
        self._treatment, self._baseline, self._bound = treatment, baseline, bound
        self._guess: Floats | None = None  # the minimum of the step before is close to that of the next

    def at_difference(self, difference: Floats) -> tuple[Floats, Floats]:
        """Return the value and its slope in the difference of the means."""
        low, high = np.maximum(0, -difference), np.minimum(self._bound, self._bound - difference)
        at, above, _ = self._minimum(
            difference, np.ones_like(difference), np.ones_like(difference), low, high
        )
        return at, above

    def at_angle(self, angle: Floats) -> tuple[Floats, Floats]:
        """Return the value and its slope in the angle whose tangent is the ratio of the means."""
        sine, cosine = np.sin(angle), np.cos(angle)
        high = self._bound / np.maximum(sine, cosine)
        at, _, slope = self._minimum(np.zeros_like(angle), sine, cosine, np.zeros_like(angle), high)
        return at, slope

    def _minimum(
        self, offset: Floats, rise: Floats, run: Floats, low: Floats, high: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Minimise over t in [low, high] for means offset + rise · t and run · t."""

        def derivatives(t: Floats) -> tuple[Floats, Floats]:
            _, slope_1, second_1 = self._treatment(offset + rise * t)
            _, slope_0, second_0 = self._baseline(run * t)
            return -(rise * slope_1 + run * slope_0), -(rise**2 * second_1 + run**2 * second_0)

        t = self._guess = _crossing(derivatives, low, high, 0.0, self._guess)
        value_1, slope_1, _ = self._treatment(offset + rise * t)
        value_0, slope_0, _ = self._baseline(run * t)
        return value_1 + value_0, slope_1, t * (run * slope_1 - rise * slope_0)


def _crossing(
    function: ValueAndSlope, start: Floats, end: Floats, limit: float, guess: Floats | None = None
) -> Floats:
    """Return where a function that falls from start to end crosses the limit.

    It is the start if the function is below the limit there, and the end if it is above the limit
    everywhere. Newton steps inside a bracket, which is halved if they do not shrink it.
    """
    width = np.maximum(np.abs(start), np.abs(end)) * _TOLERANCE
    is_done = function(start)[0] <= limit
    above, below = start, np.where(is_done, start, end)
    at = (
        (above + below) / 2
        if guess is None
        else np.clip(guess, np.minimum(above, below), np.maximum(above, below))
    )
    before = np.abs(below - above)
    for step in range(_MAX_STEPS):
        value, slope = function(at)
        above, below = np.where(value > limit, at, above), np.where(value > limit, below, at)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = at - (value - limit) / slope
        is_inside = (newton - above) * (newton - below) < 0
        has_converged = (is_inside & (np.abs(newton - at) <= width)) | (np.abs(below - above) <= width)
        if step % 4 == 3:
            is_slow = np.abs(below - above) > before / 2
            before = np.abs(below - above)
        else:
            is_slow = np.zeros_like(is_done)
        moved = np.where(is_inside & (has_converged | ~is_slow), newton, (above + below) / 2)
        at = np.where(is_done, at, moved)
        is_done |= has_converged
        if is_done.all():
            break
    return at


def _log_limit(level: float) -> float:
    """Return the log wealth that excludes a value; half of the error rate for each end."""
    return float(np.log(2 / (1 - check_number("level", level, MIN_LEVEL, MAX_LEVEL))))


def _as_sums(field: str, values: ArrayLike) -> Floats:
    try:
        sums = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(field, "must be numbers", values) from None
    _check_all(field, "must be finite and at least 0", sums, np.isfinite(sums) & (sums >= 0))
    return sums


def _check_all(field: str, rule: str, values: Floats, are_valid: NDArray[np.bool_]) -> None:
    if not are_valid.all():
        raise InvalidInputError(field, rule, float(values[~are_valid].flat[0]))
