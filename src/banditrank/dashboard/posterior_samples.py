"""Worlds that the counts allow, each as often as it is probable: how sure a value or a choice is.

The posterior is that of ThompsonRank (`banditrank.policies.posterior`), whatever policy serves: preferences
from its normal approximation, and means given these. Unlike ThompsonRank's own draws these are not raised
towards exploring, so that shares of them are probabilities, and quantiles ends of intervals.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.policies.posterior import init_posterior
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_MOST_DRAWS = 400
_FEWEST_DRAWS = 50
_MOST_NUMBERS = 4_000_000  # that are drawn, unless the fewest draws need more
_LARGEST_REWARD = 1.0


class Interval(NamedTuple):
    """An estimate and its interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class TypeDraws:
    """Draws of one user type's world.

    Attributes
    ----------
    preferences
        Shape (D, K).
    means
        Shape (D, M).
    """

    preferences: Floats
    means: Floats

    def values(self, ranking: Places) -> Floats:
        """Return what a ranking is worth in each draw, shape (D,)."""
        return np.asarray(np.einsum("dk,dk->d", self.preferences, self.means[:, ranking]))

    def best_values(self) -> Floats:
        """Return what the best ranking of each draw is worth in it, shape (D,)."""
        n_positions, n_items = self.preferences.shape[1], self.means.shape[1]
        best = np.partition(self.means, n_items - n_positions, axis=1)[:, n_items - n_positions :]
        return np.asarray(np.einsum("dk,dk->d", np.sort(self.preferences, axis=1), np.sort(best, axis=1)))


class PosteriorDraws:
    """Draws of all user types.

    Parameters
    ----------
    counts
        Of the items that can be shown.
    seed
        The same counts with the same seed give the same draws.

    Attributes
    ----------
    shares
        Of arrivals, shape (D, N).

    Examples
    --------
    >>> counts = Counts.from_arrays([[[900], [900]]], [[[450], [90]]], [1800])
    >>> draws = PosteriorDraws(counts, seed=1).of_type(0)
    >>> draws.values(np.array([0])).mean().round(2)
    np.float64(0.5)
    >>> bool((draws.values(np.array([0])) == draws.best_values()).all())
    True
    """

    def __init__(self, counts: Counts, *, seed: int) -> None:
        numbers = counts.n_user_types * counts.n_items
        self.size = int(np.clip(_MOST_NUMBERS // numbers, _FEWEST_DRAWS, _MOST_DRAWS))
        self.n_items = counts.n_items
        self._seed = seed
        self._kept: dict[int, TypeDraws] | None = {} if numbers * self.size <= _MOST_NUMBERS else None
        self._posterior = init_posterior(counts, _LARGEST_REWARD)
        self.shares = np.random.default_rng(seed).dirichlet(counts.arrivals + 1.0, self.size)

    def of_type(self, user_type: int) -> TypeDraws:
        """Return the draws of one type; they are kept unless they are too many."""
        if self._kept is None:
            return self._drawn(user_type)
        if user_type not in self._kept:
            self._kept[user_type] = self._drawn(user_type)
        return self._kept[user_type]

    def _drawn(self, user_type: int) -> TypeDraws:
        i, posterior = user_type, self._posterior
        rng = np.random.default_rng([self._seed, i])
        normals = rng.standard_normal((posterior.logits.shape[1], self.size))
        factor = np.tril(posterior.factors[i])
        logits = posterior.logits[i] + np.linalg.solve(factor.T, normals).T  # (D, K)
        preferences = np.exp(logits - logits.max(axis=1, keepdims=True))
        preferences /= preferences.sum(axis=1, keepdims=True)
        shape = posterior.prior.shape[0]
        looks = shape / posterior.prior.means[i] + preferences @ posterior.weighted_displays[i]  # (D, M)
        means = rng.standard_gamma(shape + posterior.weighted_rewards[i], looks.shape) / looks
        return TypeDraws(preferences, means.clip(0.0, _LARGEST_REWARD))


def interval(draws: Floats, level: float, *, holding: float) -> tuple[float, float]:
    """Return the ends between which a share of the draws lies, wide enough to hold an estimate, too."""
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return min(low, holding), max(high, holding)
