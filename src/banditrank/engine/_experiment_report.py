"""Report of an experiment: the rewards per visit of each arm, and the lift of the policy over it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank.engine._experiment import SurfaceExperiment
from banditrank.errors import InvalidInputError
from banditrank.estimators._confidence_sequences import (
    ConfidenceSequence,
    LiftConfidenceSequence,
    RewardSums,
    lift_confidence_sequence,
    mean_confidence_sequence,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """An estimate with its interval; None for an unknown estimate, and for an end that is not bounded."""

    estimate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Lift:
    """Lift of the policy over an arm.

    Attributes
    ----------
    absolute
        Difference of the rewards per visit.
    relative
        The difference as a share of the arm's rewards per visit: 0.1 is 10% more.
    is_established
        Whether the intervals exclude 0.
    sentence
        The result in a sentence.
    """

    absolute: IntervalEstimate
    relative: IntervalEstimate
    is_established: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class UserTypeLift:
    """Lift of the policy over an arm among the users of a type."""

    user_type: str
    visits: int  # of the arm
    reward_per_visit: float | None  # of the arm
    policy_visits: int
    policy_reward_per_visit: float | None
    lift: Lift


@dataclass(frozen=True, slots=True)
class ArmReport:
    """Results of an arm.

    Attributes
    ----------
    name
        Name of the arm; the first is ``policy``, the surface's own.
    share
        Present share of the visits.
    visits
        Number of counted visits.
    reward_per_visit
        Mean reward of a visit. If shares changed, periods are weighted so that all arms have the same mix.
    lift, user_types
        Lift of the policy over the arm, in total and for each user type; None and empty for the policy.
    """

    name: str
    share: float
    visits: int
    reward_per_visit: IntervalEstimate
    lift: Lift | None
    user_types: list[UserTypeLift]


@dataclass(frozen=True, slots=True)
class ExperimentReport:
    """Results of an experiment so far.

    Attributes
    ----------
    experiment
        Name of the experiment.
    level
        Probability with which all rewards per visit, all lifts in total, and all lifts of user types are
        within their intervals at all times, each of these three families for itself.
    visits
        Number of visits of all arms.
    arms
        Results of the arms, the surface's policy first.
    """

    experiment: str
    level: float
    visits: int
    arms: list[ArmReport]


def report_experiment(
    experiment: SurfaceExperiment,
    user_types: Sequence[str],
    visits: ArrayLike,
    rewards: ArrayLike,
    squared_rewards: ArrayLike,
    *,
    max_reward: float = 1.0,
    period_shares: ArrayLike | None = None,
) -> ExperimentReport:
    """Return the results of an experiment.

    The intervals are confidence sequences: they are valid however often the report is read. The error rate is
    divided by the number of intervals in each family (Bonferroni), so that an experiment without any
    difference establishes none with the probability ``experiment.level``.

    Parameters
    ----------
    experiment
        The arms, and the confidence level.
    user_types
        Names of the N user types.
    visits, rewards, squared_rewards
        Number of visits, Σx and Σx² over the rewards of the visits, shape (A, N) for A arms, the surface's
        policy first; or (P, A, N) for P periods with different shares.
    max_reward
        Upper bound of the reward of a visit: 1 if there is at most one click, else the number of positions.
    period_shares
        Shares of the arms in each period, shape (P, A); the present shares in the only period by default.

    Raises
    ------
    InvalidInputError
        If an array has the wrong shape, or the sums are not those of rewards from 0 to ``max_reward``.

    Examples
    --------
    >>> from banditrank.engine._experiment import Arm
    >>> experiment = SurfaceExperiment("autumn", [Arm("hold-out", share=0.05)])
    >>> clicks = [[700, 630], [25, 15]]
    >>> report = report_experiment(experiment, ["new", "old"], [[9500, 9500], [500, 500]], clicks, clicks)
    >>> report.arms[1].lift.sentence
    'policy gets 0.03 more reward per visit than hold-out (between 0.00384 and 0.0508 more; 6% to 223%)'
    >>> report.arms[1].user_types[1].lift.is_established
    False
    """
    n_arms, n_types = len(experiment.arm_names), len(user_types)
    shares = _period_shares(experiment, period_shares)
    arrays = [
        _with_periods(name, values, (shares.shape[0], n_arms, n_types))
        for name, values in (
            ("visits", visits),
            ("rewards", rewards),
            ("squared_rewards", squared_rewards),
        )
    ]
    # A column for all types together.
    columns = [np.concatenate([array, array.sum(axis=2, keepdims=True)], axis=2) for array in arrays]
    total, types = slice(n_types, n_types + 1), slice(0, n_types)
    error = 1 - experiment.level
    arms = []
    for arm, name in enumerate(experiment.arm_names):
        periods = np.flatnonzero(shares[:, arm] > 0)
        sums = _merge(columns, arm, periods, shares, max_reward)
        mean = mean_confidence_sequence(sums.select(total), level=1 - error / n_arms)
        lift, type_lifts = None, []
        if arm > 0:
            # The policy's visits in periods without the arm are from another mix of times.
            policy = _merge(columns, 0, periods, shares, max_reward)
            planned = _policy_share(shares, arm, periods)
            lifts = [
                lift_confidence_sequence(
                    policy.select(part), sums.select(part), treatment_share=planned, level=1 - error / n_lifts
                )
                for part, n_lifts in ((total, n_arms - 1), (types, (n_arms - 1) * n_types))
            ]
            lift = _lift(lifts[0], 0, name)
            type_lifts = [
                UserTypeLift(
                    user_type,
                    int(sums.visits[i]),
                    _finite(sums.means[i]),
                    int(policy.visits[i]),
                    _finite(policy.means[i]),
                    _lift(lifts[1], i, name),
                )
                for i, user_type in enumerate(user_types)
            ]
        n_visits = int(sums.visits[n_types])
        arms.append(ArmReport(name, experiment.shares[arm], n_visits, _estimate(mean, 0), lift, type_lifts))
    return ExperimentReport(experiment.name, experiment.level, sum(arm.visits for arm in arms), arms)


def _period_shares(experiment: SurfaceExperiment, period_shares: ArrayLike | None) -> Floats:
    if period_shares is None:
        return np.array([experiment.shares])
    shares = np.asarray(period_shares, dtype=np.float64)
    if shares.ndim != 2 or shares.shape[0] == 0 or shares.shape[1] != len(experiment.arm_names):
        rule = f"must have shape (periods, {len(experiment.arm_names)})"
        raise InvalidInputError("period_shares", rule, shares.shape)
    if not ((shares >= 0) & (shares <= 1)).all() or not (shares[:, 0] > 0).all():
        rule = "must be from 0 to 1, and above 0 for the policy"
        raise InvalidInputError("period_shares", rule, shares.tolist())
    return shares


def _with_periods(field: str, values: ArrayLike, shape: tuple[int, int, int]) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 2 and shape[0] == 1:
        array = array[None]
    if array.shape != shape:
        raise InvalidInputError(field, f"must have shape {shape}", array.shape)
    return array


def _merge(
    columns: Sequence[Floats], arm: int, periods: NDArray[np.intp], shares: Floats, max_reward: float
) -> RewardSums:
    """Return the sums of an arm over periods, shape (N + 1,)."""
    if not periods.size:
        nothing = np.zeros(columns[0].shape[2])
        return RewardSums(nothing, nothing, nothing, max_reward)
    visits, rewards, squares = columns
    return RewardSums.merge_periods(
        [RewardSums(visits[p, arm], rewards[p, arm], squares[p, arm], max_reward) for p in periods],
        [float(share) for share in shares[periods, arm]],
    )


def _policy_share(shares: Floats, arm: int, periods: NDArray[np.intp]) -> float:
    """Return the policy's share of the visits of both arms as first planned."""
    first = periods[0] if periods.size else 0
    policy, other = float(shares[first, 0]), float(shares[first, arm])
    return min(max(policy / (policy + other), 0.001), 0.999)


def _lift(lift: LiftConfidenceSequence, index: int, arm: str) -> Lift:
    absolute, relative = _estimate(lift.absolute, index), _estimate(lift.relative, index)
    low, high = float(lift.absolute.low[index]), float(lift.absolute.high[index])
    is_established = low > 0 or high < 0
    return Lift(absolute, relative, is_established, _sentence(absolute, relative, arm, low, high))


def _sentence(
    absolute: IntervalEstimate, relative: IntervalEstimate, arm: str, low: float, high: float
) -> str:
    if absolute.estimate is None:
        return f"policy and {arm} do not both have visits yet"
    if low <= 0 <= high:
        ends = f"between {low:.3g} and {high:.3g}"
        return f"no difference between policy and {arm} is established (lift per visit {ends})"
    is_more = low > 0
    word = "more" if is_more else "less"
    near, far = sorted((abs(low), abs(high)))
    shares = [relative.low, relative.high] if is_more else [relative.high, relative.low]
    percent = " to ".join("more" if share is None else f"{abs(share):.0%}" for share in shares)
    return (
        f"policy gets {abs(absolute.estimate):.3g} {word} reward per visit than {arm} "
        f"(between {near:.3g} and {far:.3g} {word}; {percent})"
    )


def _estimate(sequence: ConfidenceSequence, index: int) -> IntervalEstimate:
    values = (sequence.estimates[index], sequence.low[index], sequence.high[index])
    return IntervalEstimate(*map(_finite, values))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
