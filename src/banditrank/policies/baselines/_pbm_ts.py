"""PBM-TS: Thompson sampling of item means with known examination probabilities κ.

With S clicks in total and F_k displays without a click at position k, the posterior density of an item's mean
θ after a uniform prior is ∝ exp h(θ), h(θ) = S ln θ + Σ_k F_k ln(1 − κ_k θ) on [0, 1]. Samples are exact, by
rejection: h is concave, so a constant at the mode and a tangent on either side form an envelope that is easy
to sample from (Devroye 1986, Non-Uniform Random Variate Generation, VII.2). With tangents where the density
has decreased by a factor of e, nine of ten proposals are accepted once there are some data.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, inlined
from banditrank.counts._counts import Counts
from banditrank.policies._kernel import Kernel
from banditrank.policies._sorting import assign_in_order, top_k
from banditrank.policies.baselines._base import ExaminationBaselinePolicy
from banditrank.policies.baselines._components.exposure_counts import (
    ExposureCounts,
    init_exposure_counts,
    update_exposure_counts,
)

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

_TOLERANCE = 1e-8  # of the mode, relative; its height is then accurate to double precision
_MAX_NEWTON_STEPS = 60
_MAX_MODE = 1.0 - 1e-13  # a mode of 1 would exclude any miss at κ = 1


class ItemMeanPosterior(NamedTuple):
    """Exponents of the density of each copy and item, and its envelope: a plateau with exponential tails."""

    clicks: Floats  # (copies, M) S
    misses: Floats  # (copies, M, K) F
    heights: Floats  # (copies, M) h at the mode
    plateaus: Floats  # (copies, M, 2) ends of the plateau, where the tangents reach the height of the mode
    tails: Floats  # (copies, M, 2) 1 / slope of the tangents; 0 if the plateau ends at 0 or 1


def init_item_mean_posterior(n_copies: int, n_items: int, n_positions: int) -> ItemMeanPosterior:
    """Return arrays for the posteriors of a size of problem."""
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
    """Return a posterior sample of θ."""
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
        if 0.0 < theta < 1.0:  # tails extend beyond
            excess = _log_density(posterior, examination, i, j, theta) - height - envelope
            if math.log(rng.random()) <= excess:
                return theta


@compiled
def fit_item_mean(
    posterior: ItemMeanPosterior, statistics: ExposureCounts, user_type: int, item: int
) -> None:
    """Fit the envelope of an item to its counts."""
    i, j, examination = user_type, item, statistics.examination
    posterior.clicks[i, j] = statistics.reward_totals[i, j]
    for k in range(examination.shape[1]):
        posterior.misses[i, j, k] = max(0.0, statistics.displays[i, k, j] - statistics.rewards[i, k, j])
    mode = _mode(posterior, examination, i, j)
    height = _log_density(posterior, examination, i, j, mode)
    slope = 0.0
    if mode <= 0.0 or mode >= _MAX_MODE:
        slope = _slope(posterior, examination, i, j, mode)
    curvature = posterior.clicks[i, j] / (mode * mode) if mode > 0.0 else 0.0
    for k in range(examination.shape[1]):
        if posterior.misses[i, j, k] > 0.0:
            ratio = examination[i, k] / (1.0 - examination[i, k] * mode)
            curvature += posterior.misses[i, j, k] * ratio * ratio
    # Distance from the mode at which |slope| · distance + curvature · distance²/2 = 1.
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
def fit_item_means(posterior: ItemMeanPosterior, statistics: ExposureCounts) -> None:
    """Fit the envelopes of all items."""
    for i in range(posterior.clicks.shape[0]):
        for j in range(posterior.clicks.shape[1]):
            fit_item_mean(posterior, statistics, i, j)


@inlined
def _mode(posterior: ItemMeanPosterior, examination: Floats, i: int, j: int) -> float:
    """Return the mode of h: the solution of θ Σ_k F_k κ_k / (1 − κ_k θ) = S, at most 1.

    The left side is convex and increasing, so that Newton's method converges from any start above the
    solution: here the smallest solution with one position alone, or with all positions at their mean κ
    (Jensen's inequality).
    """
    clicks = posterior.clicks[i, j]
    if clicks <= 0.0:
        return 0.0
    mode, first, second = _MAX_MODE, 0.0, 0.0
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


class PBMTSState(NamedTuple):
    """Counts, and the posterior of each item."""

    statistics: ExposureCounts
    posterior: ItemMeanPosterior
    leaders: Indices  # (K,) workspace
    sample: Floats  # (M,) workspace


@inlined
def _rank(
    state: PBMTSState,
    user_type: int,
    t: int,  # noqa: ARG001 - the posterior depends on counts alone
    parameters: Floats,  # noqa: ARG001 - none
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    i = user_type
    for j in range(state.sample.size):
        state.sample[j] = sample_item_mean(state.posterior, state.statistics.examination, i, j, rng)
    top_k(state.sample, state.leaders)
    assign_in_order(state.leaders, state.statistics.positions[i], ranking)


@inlined
def _observe(
    state: PBMTSState,
    user_type: int,
    t: int,  # noqa: ARG001 - as above
    ranking: Indices,
    rewards: Floats,
) -> None:
    update_exposure_counts(state.statistics, user_type, ranking, rewards)
    for k in range(ranking.size):
        fit_item_mean(state.posterior, state.statistics, user_type, ranking[k])


@dataclass(frozen=True, kw_only=True)
class PBMTS(ExaminationBaselinePolicy):
    """PBM-TS: items by decreasing posterior sample of their means, to positions by decreasing examination.

    The prior is uniform; the posterior, of density ∝ Π_k θ^S_jk (1 − κ_k θ)^(N_jk − S_jk), is sampled
    exactly, by rejection.

    Parameters
    ----------
    examination
        κ, a row for each copy, or one for all.
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    InvalidInputError
        If κ, the treatment or the utility is not valid.

    References
    ----------
    P. Lagrée, C. Vernade and O. Cappé (2016), Multiple-play bandits in the position-based model. Advances in
    Neural Information Processing Systems 29.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[40, 0], [40, 90], [0, 50]]], [[[10, 0], [9, 30], [0, 2]]], [130])
    >>> PBMTS(examination=((0.3, 0.7),)).rank(counts, 0, rng=np.random.default_rng(0))
    array([1, 0])
    """

    name: ClassVar[str] = "pbm-ts"
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    def init_state(self, counts: Counts, scratch: Any) -> PBMTSState:  # noqa: ARG002 - keeps none
        """Return the state for counts."""
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        statistics = init_exposure_counts(counts, self.examination_rows(counts))
        posterior = init_item_mean_posterior(n, m, k)
        fit_item_means(posterior, statistics)
        return PBMTSState(statistics, posterior, np.zeros(k, dtype=np.uintp), np.zeros(m))
