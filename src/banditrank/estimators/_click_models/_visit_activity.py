"""Activity of visits: some users of a type click more than others, on all items and at all positions.

The activity a of a visit, with mean 1, multiplies its position-based click probabilities p. Click rates of
items and positions stay p whatever the distribution of a, but the clicks of a visit are correlated:
E[c_k c_l] = E[a²] p_k p_l. Browsing models would take that for an effect of the clicks above.

The distribution of a is estimated on a grid of levels, by EM (Laird 1978).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled
from banditrank.counts._click_cube import CubeLists

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_LEVELS = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.6, 2.0, 2.6, 3.5, 5.0])
_MAX_STEPS = 100
_MIN_GAIN = 0.02  # of log-likelihood, in a step
_MIN_EXCESS = 2.0  # standard errors, without which the gain is too small
_MAX_PROBABILITY = 0.999  # of a click in a visit that is more active than others


class VisitActivity(NamedTuple):
    """Distribution of the activity of visits.

    Attributes
    ----------
    levels, shares
        Possible values, whose mean is 1, and the share of the visits with each, shape (Q,).
    """

    levels: Floats
    shares: Floats

    @property
    def variance(self) -> float:
        """Variance of the activity."""
        return float(self.shares @ (self.levels - 1.0) ** 2)

    def given_clicks_above(self, chances: Floats, clicks: Indices) -> Floats:
        """Return the click probability at each position given the clicks above, shape (L, K).

        Parameters
        ----------
        chances
            p of a visit of activity 1, shape (L, K).
        clicks
            Clicked positions as bits, shape (L,).
        """
        result = np.empty_like(chances)
        _predict(chances, clicks, self.levels, self.shares, np.empty_like(self.shares), result)
        return result


ALIKE = VisitActivity(np.ones(1), np.ones(1))
"""Activity of visits that do not differ."""


def estimate_activity(chances: Floats, lists: CubeLists) -> VisitActivity:
    """Return the distribution of the activity of visits; `ALIKE` if it is not clearly better.

    Parameters
    ----------
    chances
        Position-based click probability at each position of the lists, shape (L, K).
    lists
        Ranking lists with their clicks.
    """
    n_visits = float(lists.visits.sum())
    if not n_visits or _excess_of_pairs(chances, lists) < _MIN_EXCESS:
        return ALIKE
    shares = np.full(_LEVELS.size, 1.0 / _LEVELS.size)
    likelihoods = np.empty((lists.visits.size, _LEVELS.size))
    gain = _climb(chances, lists.clicks, lists.visits, _LEVELS, likelihoods, shares, np.empty_like(shares))
    if gain < np.log(n_visits):  # two parameters by Schwarz's criterion: a variance and a shape
        return ALIKE
    return VisitActivity(_LEVELS / float(shares @ _LEVELS), shares)


def _excess_of_pairs(chances: Floats, lists: CubeLists) -> float:
    """Return by how many standard errors pairs of clicks are more than those of independent positions."""
    n_clicks = np.zeros(lists.visits.size)
    for k in range(chances.shape[1]):
        n_clicks += (lists.clicks >> k) & 1
    excess = n_clicks * (n_clicks - 1) - chances.sum(axis=1) ** 2 + (chances**2).sum(axis=1)
    return float(lists.visits @ excess) / math.sqrt(max(float(lists.visits @ excess**2), 1e-300))


@compiled
def _likelihood(chances: Floats, clicks: int, level: float) -> float:
    likelihood = 1.0
    for k in range(chances.size):
        chance = min(level * chances[k], max(chances[k], _MAX_PROBABILITY))
        likelihood *= chance if (clicks >> k) & 1 else 1.0 - chance
    return likelihood


@compiled
def _climb(
    chances: Floats,
    clicks: Indices,
    visits: Floats,
    levels: Floats,
    likelihoods: Floats,
    shares: Floats,
    posterior: Floats,
) -> float:
    """Write the shares of maximum likelihood, by EM; return the gain of log-likelihood over activity 1.

    The arrays of shapes (L, Q) and (Q,) are workspaces. Likelihoods are relative to that of activity 1.
    """
    n_visits = 0.0
    for row in range(visits.size):
        n_visits += visits[row]
        alike = _likelihood(chances[row], clicks[row], 1.0)
        for level in range(levels.size):
            active = _likelihood(chances[row], clicks[row], levels[level])
            likelihoods[row, level] = active / alike if alike > 0.0 else 1.0
    gain = -np.inf
    for _ in range(_MAX_STEPS):
        for level in range(levels.size):
            posterior[level] = 0.0
        last, gain = gain, 0.0
        for row in range(visits.size):
            total = 0.0
            for level in range(levels.size):
                total += shares[level] * likelihoods[row, level]
            gain += visits[row] * math.log(total)
            for level in range(levels.size):
                posterior[level] += visits[row] * shares[level] * likelihoods[row, level] / total
        if gain - last < _MIN_GAIN:
            break
        for level in range(levels.size):
            shares[level] = posterior[level] / max(n_visits, 1e-300)
    return gain


@compiled
def _predict(
    chances: Floats, clicks: Indices, levels: Floats, shares: Floats, posterior: Floats, result: Floats
) -> None:
    """Write the click probability at each position given the clicks above; ``posterior`` is a workspace."""
    for row in range(clicks.size):
        for level in range(levels.size):
            posterior[level] = shares[level]
        for k in range(chances.shape[1]):
            total, clicked = 0.0, 0.0
            for level in range(levels.size):
                chance = min(levels[level] * chances[row, k], max(chances[row, k], _MAX_PROBABILITY))
                total += posterior[level]
                clicked += posterior[level] * chance
                posterior[level] *= chance if (clicks[row] >> k) & 1 else 1.0 - chance
            result[row, k] = clicked / total if total > 0.0 else chances[row, k]
