"""Scores of policies: mean regret relative to the best policy, averaged over suites."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank.experiments._compare.policy_variants import RANDOM_POLICY, WINDOW_SUFFIX
from banditrank.experiments._curves import at_round

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

Regrets: TypeAlias = Mapping[str, Mapping[str, Floats]]
"""Final regrets by suite and policy, shape (R,) each."""

TAIL_QUANTILE = 0.95
"""Quantile of a policy's regrets that is listed beside their mean."""

SLOW_RUN_FACTOR = 3.0
"""A run is slow if its regret exceeds this many times the median of the policy's runs."""

_MIN_REGRET = 1e-9  # in a denominator


@dataclass(frozen=True, slots=True)
class Score:
    """Score of a policy over all suites.

    Parameters
    ----------
    policy
        Name of the policy.
    ratios
        Mean regret over the lowest mean regret of the compared policies, by suite.
    tail_ratios
        95th percentile of regret over the same, by suite.
    slow_shares
        Share of slow runs, by suite.
    """

    policy: str
    ratios: Mapping[str, float]
    tail_ratios: Mapping[str, float]
    slow_shares: Mapping[str, float]

    @property
    def average(self) -> float:
        """Mean of the ratios; policies are ranked by it, lower is better."""
        return float(np.mean(list(self.ratios.values())))

    @property
    def average_tail(self) -> float:
        """Mean of the ratios of the 95th percentiles."""
        return float(np.mean(list(self.tail_ratios.values())))

    @property
    def slow_share(self) -> float:
        """Mean share of slow runs."""
        return float(np.mean(list(self.slow_shares.values())))

    @property
    def worst_suite(self) -> str:
        """Suite with the highest ratio."""
        return max(self.ratios, key=lambda suite: self.ratios[suite])


def final_regret(frame: "pd.DataFrame") -> Floats:
    """Return the regret at the horizon, shape (R,)."""
    return at_round(frame, int(frame["round"].max()))


def slow_share(regrets: Floats) -> float:
    """Return the share of runs whose regret exceeds 3 times the median.

    Examples
    --------
    >>> slow_share(np.array([100.0, 110.0, 120.0, 130.0, 5000.0]))
    0.2
    """
    return float(np.mean(regrets > SLOW_RUN_FACTOR * np.median(regrets)))


def better_variant(results: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the regrets of each policy's better variant: with or without a window, by mean.

    Examples
    --------
    >>> better_variant({"grab": np.array([5.0]), "grab+window": np.array([3.0]), "random": np.array([9.0])})
    {'grab': array([3.]), 'random': array([9.])}
    """
    better: dict[str, Floats] = {}
    for label, regrets in results.items():
        name = label.removesuffix(WINDOW_SUFFIX)
        if name not in better or regrets.mean() < better[name].mean():
            better[name] = regrets
    return better


def scores(regrets: Regrets, among: Collection[str]) -> list[Score]:
    """Return the scores of policies compared with each other, the best first.

    The random policy is scored but is never the best of a suite. A policy that is missing in a suite is
    scored by the others.

    Examples
    --------
    >>> regrets = {
    ...     "easy": {"a": np.array([1.0, 2.0, 3.0]), "b": np.array([4.0]), "random": np.array([0.5])},
    ...     "hard": {"a": np.array([300.0]), "b": np.array([100.0]), "random": np.array([900.0])},
    ... }
    >>> [(score.policy, score.average, score.worst_suite) for score in scores(regrets, ["a", "b"])]
    [('b', 1.5, 'easy'), ('a', 2.0, 'hard')]
    """
    best = {
        suite: max(min(_means(by_policy, among), default=1.0), _MIN_REGRET)
        for suite, by_policy in regrets.items()
    }
    found = []
    for name in among:
        own = {suite: by_policy[name] for suite, by_policy in regrets.items() if name in by_policy}
        ratios = {suite: float(np.mean(values)) / best[suite] for suite, values in own.items()}
        tails = {
            suite: float(np.quantile(values, TAIL_QUANTILE)) / best[suite] for suite, values in own.items()
        }
        if own:
            shares = {suite: slow_share(values) for suite, values in own.items()}
            found.append(Score(name, ratios, tails, shares))
    return sorted(found, key=lambda score: score.average)


def _means(by_policy: Mapping[str, Floats], among: Collection[str]) -> list[float]:
    """Return the means of all policies but the random one."""
    return [float(np.mean(by_policy[name])) for name in among if name in by_policy and name != RANDOM_POLICY]
