"""Simulated experiments that are looked at after every visit."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from banditrank.estimators import RewardSums
from banditrank.estimators._confidence_sequences import (
    _TYPICAL_BET,
    _log_limit,
    _LogWealth,
    _make_bets,
    _ProductWealth,
)

Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]


class Visits(NamedTuple):
    """Visits in order: the arm (1 is the policy), the reward, and its conditional mean."""

    arms: np.ndarray
    rewards: np.ndarray
    means: np.ndarray


@dataclass(frozen=True)
class SimulatedExperiment:
    """A kind of experiment: ``visit`` returns rewards and conditional means for the arms of all visits."""

    name: str
    visit: Callable[[np.random.Generator, np.ndarray], tuple[np.ndarray, np.ndarray]]
    policy_share: float
    horizon: int
    max_reward: float = 1.0
    drawn: Callable[[np.random.Generator, int], np.ndarray] | None = field(default=None)

    def run(self, rng: np.random.Generator, horizon: int) -> Visits:
        arms = rng.random(horizon) < self.policy_share if self.drawn is None else self.drawn(rng, horizon)
        rewards, means = self.visit(rng, arms)
        return Visits(arms, rewards, np.broadcast_to(means, rewards.shape))


class Watched(NamedTuple):
    """An experiment that was looked at after every visit; arrays have one element a visit."""

    policy: RewardSums
    baseline: RewardSums
    policy_means: np.ndarray  # true ones, averages over the visits so far
    baseline_means: np.ndarray
    may_miss_lift: np.ndarray
    misses_mean: np.ndarray  # of either arm


def watch(kind: SimulatedExperiment, rng: np.random.Generator, horizon: int, level: float = 0.95) -> Watched:
    """Return whether the intervals miss the truth, after each visit.

    A lift, absolute or relative, is missed, and a difference is found where there is none, only if the
    product of the wealths against the true means exceeds the limit: `may_miss_lift` is an upper bound.
    """
    visits = kind.run(rng, horizon)
    sums = [_running(visits, arm, kind.max_reward) for arm in (1, 0)]
    truths = [_average(visits, arm) for arm in (1, 0)]
    limit, share = np.exp(_log_limit(level)), kind.policy_share
    may_miss_lift, misses_mean = np.zeros(horizon, dtype=bool), np.zeros(horizon, dtype=bool)
    for sign in (1, -1):
        product = np.ones(horizon)
        for one, truth, part, direction in zip(sums, truths, (1 - share, share), (sign, -sign), strict=True):
            wealth, of_mean = _wealths(one, truth, direction, (part * _TYPICAL_BET, _TYPICAL_BET))
            product *= wealth
            misses_mean |= of_mean > limit
        may_miss_lift |= product > limit
    return Watched(*sums, *truths, may_miss_lift, misses_mean)


def _wealths(
    sums: RewardSums, truth: np.ndarray, sign: int, typical_bets: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the wealth against the true mean after each visit, for two priors over the same bets."""
    kinds = [_make_bets(sign, typical, sums.max_reward, sums.max_weighted_reward) for typical in typical_bets]
    bets = kinds[0]
    is_new = np.diff(sums.visits, prepend=0) > 0
    n, truth = sums.visits[is_new], truth[is_new]
    if np.ptp(truth) < 1e-12 * truth.max():
        logs = np.outer(n, -np.log1p(bets.sizes * truth.mean()))
    else:
        logs = -n[:, None] * np.log1p(np.outer(truth, bets.sizes))
    columns = np.stack([sums.rewards[is_new], sums.squared_rewards[is_new]], axis=1)
    logs += columns @ np.stack([bets.linear, -bets.quadratic])
    np.minimum(logs, 600, out=logs)
    wealths = np.exp(logs, out=logs) @ np.stack([kind.shares for kind in kinds], axis=1)
    after = np.concatenate([np.ones((1, 2)), wealths])[sums.visits.astype(int)]
    return after[:, 0], after[:, 1]


def _running(visits: Visits, arm: int, max_reward: float) -> RewardSums:
    is_arm = visits.arms == arm
    rewards = np.where(is_arm, visits.rewards, 0.0)
    return RewardSums(np.cumsum(is_arm), np.cumsum(rewards), np.cumsum(rewards**2), max_reward=max_reward)


def _average(visits: Visits, arm: int) -> np.ndarray:
    """Return the average of the conditional means of an arm's visits so far; before the first, its mean."""
    is_arm = visits.arms == arm
    total, number = np.cumsum(np.where(is_arm, visits.means, 0.0)), np.cumsum(is_arm)
    first = visits.means[np.argmax(is_arm)]
    return np.where(number > 0, total / np.maximum(number, 1), first)


def clicks(policy: float, baseline: float) -> Draw:
    """Return visits with at most one click, at different rates for the two arms."""

    def visit(rng: np.random.Generator, arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        means = np.where(arms, policy, baseline)
        return (rng.random(arms.size) < means).astype(float), means

    return visit


def user_types(rng: np.random.Generator, arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return clicks of three types: the policy is better for the second one, and as good for the others."""
    types = rng.choice(3, p=[0.6, 0.3, 0.1], size=arms.size)
    rates = np.array([[0.02, 0.05, 0.3], [0.02, 0.08, 0.3]])
    mean = np.array([0.6, 0.3, 0.1]) @ rates.T
    return (rng.random(arms.size) < rates[arms.astype(int), types]).astype(float), mean[arms.astype(int)]


def several_clicks(rng: np.random.Generator, arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return up to five clicks of visitors of whom some click often."""
    rates = np.where(rng.random(arms.size) < 0.1, 0.3, 0.01)
    return rng.binomial(5, rates).astype(float), np.full(arms.size, 5 * (0.1 * 0.3 + 0.9 * 0.01))


def all_or_nothing(rng: np.random.Generator, arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return single clicks, and one visit in a thousand that clicks all of 20 positions."""
    is_robot = rng.random(arms.size) < 0.001
    rewards = np.where(is_robot, 20.0, (rng.random(arms.size) < 0.05).astype(float))
    return rewards, np.full(arms.size, 0.02 + 0.999 * 0.05)


def graded(rng: np.random.Generator, arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return graded rewards that are mostly small."""
    rewards = np.where(rng.random(arms.size) < 0.05, rng.beta(0.3, 2.0, arms.size), 0.0)
    return rewards, np.full(arms.size, 0.05 * 0.3 / 2.3)


def purchases(rng: np.random.Generator, arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a tenth for a click and 1 for a purchase; the policy sells more."""
    sells = np.where(arms, 0.05, 0.03)
    clicked = rng.random(arms.size) < 0.05
    rewards = np.where(clicked, np.where(rng.random(arms.size) < sells, 1.0, 0.1), 0.0)
    return rewards, 0.05 * (sells + (1 - sells) * 0.1)


def learning(rng: np.random.Generator, arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return clicks for a policy that learns from the baseline's rate on."""
    progress = 1 - np.exp(-np.arange(arms.size) / 5000)
    means = np.where(arms, 0.05 + 0.05 * progress, 0.05)
    return (rng.random(arms.size) < means).astype(float), means


def growing_share(rng: np.random.Generator, horizon: int) -> np.ndarray:
    """Return arms whose baseline grows from 5% of the visits to half."""
    shares = np.where(np.arange(horizon) < horizon // 3, 0.95, 0.5)
    return rng.random(horizon) < shares


KINDS = (
    SimulatedExperiment("0.5%, hold-out 5%", clicks(0.005, 0.005), 0.95, 100_000),
    SimulatedExperiment("0.5%, equal shares", clicks(0.005, 0.005), 0.5, 100_000),
    SimulatedExperiment("5%, hold-out 5%", clicks(0.05, 0.05), 0.95, 100_000),
    SimulatedExperiment("5%, equal shares", clicks(0.05, 0.05), 0.5, 50_000),
    SimulatedExperiment("50%, hold-out 5%", clicks(0.5, 0.5), 0.95, 50_000),
    SimulatedExperiment("50%, equal shares", clicks(0.5, 0.5), 0.5, 20_000),
    SimulatedExperiment("99.9%, hold-out 5%", clicks(0.999, 0.999), 0.95, 20_000),
    SimulatedExperiment("5% and 6%", clicks(0.06, 0.05), 0.95, 100_000),
    SimulatedExperiment("three user types", user_types, 0.95, 100_000),
    SimulatedExperiment("several clicks", several_clicks, 0.95, 50_000, max_reward=5),
    SimulatedExperiment("all 20 clicked at times", all_or_nothing, 0.5, 50_000, max_reward=20),
    SimulatedExperiment("graded rewards", graded, 0.95, 50_000),
    SimulatedExperiment("clicks and purchases", purchases, 0.95, 100_000),
    SimulatedExperiment("policy that learns", learning, 0.95, 50_000),
    SimulatedExperiment("share grows", clicks(0.05, 0.05), 0.95, 50_000, drawn=growing_share),
)


def detection_visits(
    rng: np.random.Generator, policy: float, baseline: float, policy_share: float, replications: int
) -> np.ndarray:
    """Return the visits until a difference in click rates is found, at looks 2% apart; else infinity."""
    looks = np.unique(np.geomspace(1000, 4e6, 418).astype(int))
    found = np.full(replications, np.inf)
    for run in range(replications):
        steps = np.diff(looks, prepend=0)
        policy_steps = rng.binomial(steps, policy_share)
        clicked = rng.binomial(policy_steps, policy), rng.binomial(steps - policy_steps, baseline)
        arms = [
            RewardSums(np.cumsum(n), np.cumsum(x), np.cumsum(x))
            for n, x in zip((policy_steps, steps - policy_steps), clicked, strict=True)
        ]
        is_found = np.zeros(looks.size, dtype=bool)
        for sign in (1, -1):
            bets = (1 - policy_share) * _TYPICAL_BET, policy_share * _TYPICAL_BET
            wealths = _LogWealth(arms[0], sign, bets[0]), _LogWealth(arms[1], -sign, bets[1])
            smallest, _ = _ProductWealth(*wealths, 1.0).at_difference(np.zeros(looks.size))
            is_found |= smallest > _log_limit(0.95)
        if is_found.any():
            found[run] = looks[np.argmax(is_found)]
    return found
