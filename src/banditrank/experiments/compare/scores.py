"""How policies are scored: by median regret, against the best, on average over suites."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from banditrank.experiments.compare.line_up import FOR_SCALE, WINDOWED
from banditrank.experiments.curves import at_round

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

Regrets: TypeAlias = Mapping[str, Mapping[str, Floats]]
"""By suite and by policy, regret at the end, one a replication."""

_NOTHING = 1e-9  # regret below it is none: nothing is divided by less


@dataclass(frozen=True, slots=True)
class Score:
    """How a policy did over all suites.

    Parameters
    ----------
    ratios
        By suite: its median regret over the least of those it is compared with.
    worst_seeds
        By suite: its largest regret over the same.
    """

    policy: str
    ratios: Mapping[str, float]
    worst_seeds: Mapping[str, float]

    @property
    def average(self) -> float:
        """Of the ratios: what policies are ranked by, the less the better."""
        return float(np.mean(list(self.ratios.values())))

    @property
    def average_worst_seed(self) -> float:
        """Of the worst seeds' ratios."""
        return float(np.mean(list(self.worst_seeds.values())))

    @property
    def worst_suite(self) -> str:
        """Where its ratio is largest."""
        return max(self.ratios, key=lambda suite: self.ratios[suite])


def final_regret(frame: "pd.DataFrame") -> Floats:
    """Return regret at the horizon, one a replication."""
    return at_round(frame, int(frame["round"].max()))


def better_of(results: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return what counts for each policy: of what it gives with and without a window, the smaller median.

    Examples
    --------
    >>> better_of({"grab": np.array([5.0]), "grab+window": np.array([3.0]), "random": np.array([9.0])})
    {'grab': array([3.]), 'random': array([9.])}
    """
    counted: dict[str, Floats] = {}
    for label, regrets in results.items():
        name = label.removesuffix(WINDOWED)
        if name not in counted or np.median(regrets) < np.median(counted[name]):
            counted[name] = regrets
    return counted


def scores(regrets: Regrets, among: Collection[str]) -> list[Score]:
    """Return the scores of some policies, compared with each other, the best first.

    The random policy is scored but never the one that others are compared with. Who was left out of a suite
    is scored by the others.

    Examples
    --------
    >>> regrets = {
    ...     "easy": {"a": np.array([1.0, 2.0, 9.0]), "b": np.array([4.0]), "random": np.array([0.5])},
    ...     "hard": {"a": np.array([300.0]), "b": np.array([100.0]), "random": np.array([900.0])},
    ... }
    >>> [(score.policy, score.average, score.worst_suite) for score in scores(regrets, ["a", "b"])]
    [('b', 1.5, 'easy'), ('a', 2.0, 'hard')]
    """
    best = {
        suite: max(min(_medians(by_policy, among), default=1.0), _NOTHING)
        for suite, by_policy in regrets.items()
    }
    found = []
    for name in among:
        own = {suite: by_policy[name] for suite, by_policy in regrets.items() if name in by_policy}
        ratios = {suite: float(np.median(values)) / best[suite] for suite, values in own.items()}
        worst = {suite: float(np.max(values)) / best[suite] for suite, values in own.items()}
        if own:
            found.append(Score(name, ratios, worst))
    return sorted(found, key=lambda score: score.average)


def _medians(by_policy: Mapping[str, Floats], among: Collection[str]) -> list[float]:
    """Return the medians of those who may be the best."""
    return [float(np.median(by_policy[name])) for name in among if name in by_policy and name != FOR_SCALE]
