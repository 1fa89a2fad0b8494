"""The posterior of an item's mean θ where κ is known, and exact draws from it.

With S clicks in all and F_k displays without a click at position k, the density after a uniform prior is
∝ exp h(θ), h(θ) = S ln θ + Σ_k F_k ln(1 − κ_k θ) on [0, 1]. h is concave, so below a tangent everywhere: a
constant at the mode and a tangent on either side of it make an envelope whose pieces are easy to draw from
(Devroye 1986, Non-Uniform Random Variate Generation, VII.2), and a draw is kept with the ratio's probability.
With tangents where the density has fallen by e, nine draws in ten are kept once there are some data.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, inlined
from banditrank.policies.baselines.components.exposure_counts import ExposureCounts

Floats = NDArray[np.float64]

_TOLERANCE = 1e-8  # of the mode, relatively: its height is then right to the last digits
_MAX_NEWTON_STEPS = 60
_HIGHEST = 1.0 - 1e-13  # a mode no nearer to 1, where κ = 1 would rule out the slightest miss


class ItemMeanPosterior(NamedTuple):
    """For each copy and item the exponents, and an envelope: 1 on a plateau, exponential beyond."""

    clicks: Floats  # (copies, M) S
    misses: Floats  # (copies, M, K) F
    heights: Floats  # (copies, M) h at the mode
    plateaus: Floats  # (copies, M, 2) where the tangents reach the mode's height
    tails: Floats  # (copies, M, 2) 1 / slope of the tangents; 0 where the plateau ends at 0 or 1


def init_item_mean_posterior(n_copies: int, n_items: int, n_positions: int) -> ItemMeanPosterior:
    """Return room for the posteriors of a problem's size."""
    shape = (n_copies, n_items)
    return ItemMeanPosterior(
        np.zeros(shape),
        np.zeros((*shape, n_positions)),
        np.zeros(shape),
        np.zeros((*shape, 2)),
        np.zeros((*shape, 2)),
    )


@compiled
def sample_item_mean(
    posterior: ItemMeanPosterior, examination: Floats, user_type: int, item: int, rng: np.random.Generator
) -> float:
    """Return a draw of θ."""
    i, j = user_type, item
    low, high = posterior.plateaus[i, j, 0], posterior.plateaus[i, j, 1]
    below, above = posterior.tails[i, j, 0], posterior.tails[i, j, 1]
    height = posterior.heights[i, j]
    theta: float
    while True:
        place = rng.random() * (high - low + below + above)
        if place < high - low:
            theta, envelope = low + place, 0.0
        elif place < high - low + below:
            envelope = math.log1p(-(place - (high - low)) / below)
            theta = low + below * envelope
        else:
            envelope = math.log1p(-(place - (high - low) - below) / above)
            theta = high - above * envelope
        if 0.0 < theta < 1.0:  # tails go on beyond
            excess = _log_density(posterior, examination, i, j, theta) - height - envelope
            if math.log(rng.random()) <= excess:
                return theta


@compiled
def fit_item_mean(posterior: ItemMeanPosterior, known: ExposureCounts, user_type: int, item: int) -> None:
    """Take over an item's counts, and find its envelope."""
    i, j, examination = user_type, item, known.examination
    posterior.clicks[i, j] = known.reward_totals[i, j]
    for k in range(examination.shape[1]):
        posterior.misses[i, j, k] = max(0.0, known.displays[i, k, j] - known.rewards[i, k, j])
    mode = _mode(posterior, examination, i, j)
    height = _log_density(posterior, examination, i, j, mode)
    slope = 0.0
    if mode <= 0.0 or mode >= _HIGHEST:
        slope = _slope(posterior, examination, i, j, mode)
    curvature = posterior.clicks[i, j] / (mode * mode) if mode > 0.0 else 0.0
    for k in range(examination.shape[1]):
        if posterior.misses[i, j, k] > 0.0:
            ratio = examination[i, k] / (1.0 - examination[i, k] * mode)
            curvature += posterior.misses[i, j, k] * ratio * ratio
    # The distance from the mode at which |slope| · distance + curvature · distance²/2 = 1.
    distance = 2.0 / (abs(slope) + math.sqrt(slope * slope + 2.0 * curvature))
    for side in range(2):
        sign = 2.0 * side - 1.0
        touch = mode + sign * distance
        posterior.plateaus[i, j, side], posterior.tails[i, j, side] = float(side), 0.0
        if 0.0 < touch < 1.0:
            steepness = -sign * _slope(posterior, examination, i, j, touch)
            fall = height - _log_density(posterior, examination, i, j, touch)
            posterior.plateaus[i, j, side] = touch - sign * fall / steepness
            posterior.tails[i, j, side] = 1.0 / steepness
    posterior.heights[i, j] = height


@compiled
def fit_item_means(posterior: ItemMeanPosterior, known: ExposureCounts) -> None:
    """Take over the counts of all items."""
    for i in range(posterior.clicks.shape[0]):
        for j in range(posterior.clicks.shape[1]):
            fit_item_mean(posterior, known, i, j)


@inlined
def _mode(posterior: ItemMeanPosterior, examination: Floats, i: int, j: int) -> float:
    """Return where h is highest: the solution of θ Σ_k F_k κ_k / (1 − κ_k θ) = S, or 1 beyond it.

    The left side is convex and increases, so Newton's method falls towards the solution from any start above:
    here the least of its solutions with one position alone, or with all at their mean κ (Jensen's).
    """
    clicks = posterior.clicks[i, j]
    if clicks <= 0.0:
        return 0.0
    mode, first, second = _HIGHEST, 0.0, 0.0
    for k in range(examination.shape[1]):
        misses, kappa = posterior.misses[i, j, k], examination[i, k]
        first += misses * kappa
        second += misses * kappa * kappa
        if misses > 0.0:
            mode = min(mode, clicks / (kappa * (misses + clicks)))
    if first > 0.0:
        mode = min(mode, clicks / (first + clicks * second / first))
    for _ in range(_MAX_NEWTON_STEPS):
        value, derivative = -clicks, 0.0
        for k in range(examination.shape[1]):
            misses, kappa = posterior.misses[i, j, k], examination[i, k]
            if misses > 0.0:
                share = 1.0 / (1.0 - kappa * mode)
                value += misses * kappa * share * mode
                derivative += misses * kappa * share * share
        if value <= 0.0:
            break
        step = value / derivative
        mode -= step
        if step <= _TOLERANCE * mode:
            break
    return mode


@inlined
def _log_density(posterior: ItemMeanPosterior, examination: Floats, i: int, j: int, theta: float) -> float:
    """Return h(θ)."""
    clicks = posterior.clicks[i, j]
    total = clicks * math.log(theta) if clicks > 0.0 else 0.0
    for k in range(examination.shape[1]):
        if posterior.misses[i, j, k] > 0.0:
            total += posterior.misses[i, j, k] * math.log(1.0 - examination[i, k] * theta)
    return total


@inlined
def _slope(posterior: ItemMeanPosterior, examination: Floats, i: int, j: int, theta: float) -> float:
    """Return h'(θ)."""
    clicks = posterior.clicks[i, j]
    total = clicks / theta if clicks > 0.0 else 0.0
    for k in range(examination.shape[1]):
        if posterior.misses[i, j, k] > 0.0:
            kappa = examination[i, k]
            total -= posterior.misses[i, j, k] * kappa / (1.0 - kappa * theta)
    return total
