"""Samples from the posterior of a surface's problem, and intervals of them.

The posterior is that of `ThompsonRank` (`banditrank.policies._posterior`), whichever policy ranks: a normal
approximation for the logits of position preferences, and gamma distributions of item means given these, or
beta distributions if clicks are position-based.
Unlike the samples of `ThompsonRank`, they are not inflated for exploration: their shares estimate
probabilities, and their quantiles bound credible intervals.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.model._click_models import RankOneClickModel
from banditrank.policies._bound_posterior import bind_posterior
from banditrank.policies._posterior import fit_position_based_means

Floats = NDArray[np.float64]

MIN_SAMPLES = 50
"""Minimum number of samples that a probability is estimated from."""

MAX_ELEMENTS = 4_000_000
"""Maximum size of arrays of samples, unless `MIN_SAMPLES` need more."""

_MAX_SAMPLES = 400
_MAX_REWARD = 1.0


class Interval(NamedTuple):
    """An estimate and the ends of its interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class UserTypeSamples:
    """Posterior samples of one user type.

    Attributes
    ----------
    position_preferences
        Shape (S, K).
    item_means
        Shape (S, M).
    """

    position_preferences: Floats
    item_means: Floats

    def values(self, ranking: NDArray[np.intp]) -> Floats:
        """Return the value of a ranking in each sample, shape (S,)."""
        return np.asarray(np.einsum("sk,sk->s", self.position_preferences, self.item_means[:, ranking]))

    def optimal_values(self) -> Floats:
        """Return the value of each sample's own best ranking, shape (S,)."""
        n_positions, n_items = self.position_preferences.shape[1], self.item_means.shape[1]
        best = np.partition(self.item_means, n_items - n_positions, axis=1)[:, n_items - n_positions :]
        preferences = np.sort(self.position_preferences, axis=1)
        return np.asarray(np.einsum("sk,sk->s", preferences, np.sort(best, axis=1)))


class PosteriorSamples:
    """Posterior samples of all user types, drawn on demand.

    Parameters
    ----------
    counts
        Counts of the active items.
    seed
        Seed of the samples.
    click_model
        How users look at positions.

    Attributes
    ----------
    n_samples, n_items
        Numbers S of samples and M of items.
    arrival_rates
        Sampled arrival rates, shape (S, N).

    Examples
    --------
    >>> counts = Counts.from_arrays([[[900], [900]]], [[[450], [90]]], [1800])
    >>> samples = PosteriorSamples(counts, seed=1).of_user_type(0)
    >>> samples.values(np.array([0])).mean().round(2)
    np.float64(0.5)
    >>> bool((samples.values(np.array([0])) == samples.optimal_values()).all())
    True
    """

    def __init__(self, counts: Counts, *, seed: int, click_model: RankOneClickModel = "single-look") -> None:
        n_means = counts.n_user_types * counts.n_items
        self.n_samples = int(np.clip(MAX_ELEMENTS // n_means, MIN_SAMPLES, _MAX_SAMPLES))
        self.n_items = counts.n_items
        self._seed = seed
        self._cache: dict[int, UserTypeSamples] | None = {}
        if n_means * self.n_samples > MAX_ELEMENTS:
            self._cache = None
        # Not pooled: what is reported of a type follows from its own clicks.
        handle = bind_posterior(
            counts, _MAX_REWARD, is_position_based=click_model == "position-based", is_pooled=False
        )
        self._posterior = handle.posterior()
        self.arrival_rates = np.random.default_rng(seed).dirichlet(counts.arrivals + 1.0, self.n_samples)

    def of_user_type(self, user_type: int) -> UserTypeSamples:
        """Return the samples of one user type; they are cached unless all together are too large."""
        if self._cache is None:
            return self._sample(user_type)
        if user_type not in self._cache:
            self._cache[user_type] = self._sample(user_type)
        return self._cache[user_type]

    def _sample(self, user_type: int) -> UserTypeSamples:
        i, posterior = user_type, self._posterior
        rng = np.random.default_rng([self._seed, i])
        normals = rng.standard_normal((posterior.logits.shape[1], self.n_samples))
        factor = np.tril(posterior.factors[i])
        logits = posterior.logits[i] + np.linalg.solve(factor.T, normals).T  # (S, K)
        preferences = np.exp(logits - logits.max(axis=1, keepdims=True))
        if posterior.is_position_based:
            return UserTypeSamples(preferences, self._sample_position_based_means(i, preferences, rng))
        preferences /= preferences.sum(axis=1, keepdims=True)
        prior = posterior.prior
        exposure = prior.looks[i] + preferences @ posterior.weighted_displays[i]  # (S, M)
        means = rng.standard_gamma(prior.shapes[i] + posterior.weighted_rewards[i], exposure.shape) / exposure
        return UserTypeSamples(preferences, means.clip(0.0, _MAX_REWARD))

    def _sample_position_based_means(
        self, user_type: int, preferences: Floats, rng: np.random.Generator
    ) -> Floats:
        shape = (len(preferences), self.n_items)
        kappas, clicks, misses = np.empty(shape), np.empty(shape), np.empty(shape)
        fit_position_based_means(self._posterior, user_type, preferences, kappas, clicks, misses)
        means = rng.beta(clicks, misses) / kappas
        return np.minimum(means, 1.0 / np.maximum(means, 1.0))  # reflected at 1


def quantile_interval(samples: Floats, level: float, *, including: float) -> tuple[float, float]:
    """Return the central interval that contains a share of the samples, extended to include a value.

    Examples
    --------
    >>> quantile_interval(np.linspace(0.0, 1.0, 101), 0.5, including=0.8)
    (0.25, 0.8)
    """
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return min(low, including), max(high, including)
