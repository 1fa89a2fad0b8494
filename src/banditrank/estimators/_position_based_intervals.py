"""Confidence intervals of the maximum-likelihood estimates under the position-based model.

A cell with T displays and click probability p = κ_k μ_j contributes T p / (1 − p) to the Fisher information
of log κ_k + log μ_j. The inverse of the information matrix contains the variances of differences of log κ,
which positions are compared by, and the part of the variances of log μ that is due to positions.

* Means have score intervals, those of Wilson (1927) if κ is known: they lie in [0, 1], and contain the
  estimate, with no click and with a click on each display too.
* Which position is the most looked-at one is uncertain as well. The candidates are the positions whose κ may
  be 1: those not significantly below the largest. Every interval is the union of the intervals that each of
  the candidates would give if it were the most looked-at position. A single candidate has the interval
  [1, 1].
* A position that was never rewarded has an upper end at which no reward has a probability of half the error
  rate.
* A quantity that is not identified has the interval [0, 1].

Graded rewards vary less than clicks, so that their intervals are conservative.
"""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled

Floats = NDArray[np.float64]

_SINGULAR = 1e-9  # eigenvalues below this share of the largest are taken for 0
_BISECTIONS = 40


class PositionInformation(NamedTuple):
    """Information about differences of log κ, and how means respond to log κ."""

    covariance: Floats  # (K, K) pseudo-inverse of the information, after eliminating the means
    null_space: Floats  # (K, K) projection on what is not identified
    shares: Floats  # (M, K) of the looks at an item


def position_based_intervals(
    displays: Floats,
    rewards: Floats,
    looks: Floats,
    means: Floats,
    level: float,
    information: PositionInformation | None = None,
) -> tuple[Floats, Floats]:
    """Return the intervals of κ, shape (K, 2), and of μ, shape (M, 2), of one user type.

    Parameters
    ----------
    displays, rewards
        T and S, shape (M, K).
    looks, means
        Estimates of κ and μ, shapes (K,) and (M,).
    level
        Confidence level of each interval.
    information
        That of `eliminate_means`, if it is known already.
    """
    if displays.sum() == 0:
        return np.tile([0.0, 1.0], (looks.size, 1)), np.tile([0.0, 1.0], (means.size, 1))
    information = information or eliminate_means(displays, looks, means)
    ratios = _ratio_ends(information, displays, rewards, looks, means, level)  # (K, K, 2)
    top = int(looks.argmax())
    candidates = np.flatnonzero(ratios[:, top, 1] >= 1.0)  # with `top` itself
    ends = np.minimum(ratios[:, candidates], 1.0)  # (K, C, 2)
    position_ends = np.stack([ends[..., 0].min(axis=1), ends[..., 1].max(axis=1)], axis=1)
    return position_ends, _mean_ends(information, displays, looks, means, candidates, level)


def eliminate_means(
    displays: Floats, looks: Floats, means: Floats, chances: Floats | None = None
) -> PositionInformation:
    """Return the information about log κ with log μ eliminated, whose information is diagonal.

    Parameters
    ----------
    displays
        T, shape (M, K).
    looks, means
        Estimates of κ and μ, shapes (K,) and (M,).
    chances
        p in the information T κ μ / (1 − p) of a cell, shape (M, K); κ μ by default.
    """
    n_looks = displays @ looks  # (M,)
    chances = np.outer(means, looks) if chances is None else chances
    # Without a miss the information would be infinite: half a miss is added.
    chances = np.minimum(chances, 1.0 - 0.5 / (displays + 1.0))  # (M, K)
    per_mean = displays * looks / (1.0 - chances)  # (M, K): the information of log μ, over μ
    weights = per_mean * means[:, None]
    totals = per_mean.sum(axis=1)
    shares = np.divide(per_mean, totals[:, None], out=np.zeros_like(per_mean), where=n_looks[:, None] > 0)
    at_positions = weights.sum(axis=0)
    eigenvalues, directions = np.linalg.eigh(np.diag(at_positions) - weights.T @ shares)
    is_informative = eigenvalues > _SINGULAR * max(at_positions.max(), 1e-300)
    inverses = np.where(is_informative, 1.0 / np.where(is_informative, eigenvalues, 1.0), 0.0)
    null_directions = directions[:, ~is_informative]
    return PositionInformation(
        (directions * inverses) @ directions.T, null_directions @ null_directions.T, shares
    )


def _ratio_ends(
    information: PositionInformation,
    displays: Floats,
    rewards: Floats,
    looks: Floats,
    means: Floats,
    level: float,
) -> Floats:
    """Return the ends of κ_k / κ_l for all pairs of positions, shape (K, K, 2)."""
    n_positions = looks.size
    variances = _squares(information.covariance)
    variances[_squares(information.null_space) > _SINGULAR] = np.inf
    half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(variances)
    ends = np.empty((n_positions, n_positions, 2))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # unrewarded positions have κ = 0
        logs = np.log(looks)[:, None] - np.log(looks)  # (K, K)
        is_known = np.isfinite(logs) & np.isfinite(half)
        ends[..., 0] = np.exp(np.where(is_known, logs - half, -np.inf))
        ends[..., 1] = np.exp(np.where(is_known, logs + half, np.inf))
    is_unrewarded = rewards.sum(axis=0) <= 0
    expected = np.maximum(np.outer(displays.T @ means, looks), 1e-300)  # (K, K): rewards if κ_k were κ_l
    ends[is_unrewarded, :, 1] = (-np.log((1 - level) / 2) / expected)[is_unrewarded]
    diagonal = np.arange(n_positions)
    ends[diagonal, diagonal] = 1.0
    return ends


def _squares(matrix: Floats) -> Floats:
    """Return (e_k − e_l)ᵀ A (e_k − e_l) for all k and l."""
    diagonal = np.diag(matrix)
    return np.asarray((diagonal[:, None] + diagonal - 2 * matrix).clip(0.0))


def _mean_ends(
    information: PositionInformation,
    displays: Floats,
    looks: Floats,
    means: Floats,
    candidates: NDArray[np.intp],
    level: float,
) -> Floats:
    """Return the ends of μ, shape (M, 2): of the union over candidates for the most looked-at position.

    With x = μ / κ_c for candidate c, they solve (μ̂ − x)² = z² x (μ̂ v_c + 1 / Σ_k T_k κ_k / (1 − κ_k x)), v_c
    being the variance of log x that is due to positions. Its first part alone is symmetric in log x, the
    second alone is Wilson's. It is solved by bisection for the estimated position, and in closed form for the
    others, with the sum at that solution.
    """
    variances = _variances_by_candidate(information, candidates)  # (C, M)
    is_open = (~np.isfinite(variances)).any(axis=0) | (displays @ looks <= 0) | (looks[candidates] <= 0).any()
    variances = np.where(is_open, 0.0, variances)
    z_squared = NormalDist().inv_cdf((1 + level) / 2) ** 2
    own = variances[candidates == looks.argmax()][0]

    # (M, K), contiguous for every K: K = 1 would be another array type, and compiled again.
    examined = np.ascontiguousarray(displays * looks)

    def own_variances(x: Floats) -> Floats:
        sums = np.empty(x.size)
        _sum_information(examined, looks, x, sums)
        return np.asarray(1.0 / np.maximum(sums, 1e-100))

    def is_inside(x: Floats) -> NDArray[np.bool_]:
        return np.asarray((means - x) ** 2 <= z_squared * x * (means * own + own_variances(x)))

    ends = np.empty((means.size, 2))
    for side, limit in enumerate((0.0, 1.0)):
        inner, outer = means.copy(), np.full(means.size, limit)
        for _ in range(_BISECTIONS):
            middle = (inner + outer) / 2
            inside = is_inside(middle)
            inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
        outer = np.where(is_inside(np.full(means.size, limit)), limit, outer)
        spread = z_squared * (means * variances + own_variances(outer)) / 2  # (C, M)
        root = np.sqrt(spread * (spread + 2 * means))
        solutions = looks[candidates, None] * (means + spread + (root if side else -root))
        best = solutions.max(axis=0) if side else solutions.min(axis=0)
        ends[:, side] = np.maximum(outer, best) if side else np.minimum(outer, best)
    ends[is_open] = [0.0, 1.0]
    return ends.clip(0.0, 1.0)


@compiled
def _sum_information(examined: Floats, looks: Floats, x: Floats, sums: Floats) -> None:
    """Write Σ_k T_jk κ_k / (1 − κ_k x_j) of each item.

    Parameters
    ----------
    examined
        T κ, shape (M, K).
    looks, x
        κ and x, shapes (K,) and (M,).
    sums
        Shape (M,), written.
    """
    for j in range(x.size):
        total = 0.0
        for k in range(looks.size):
            total += examined[j, k] / max(1.0 - looks[k] * x[j], 1e-300)
        sums[j] = total


def _variances_by_candidate(information: PositionInformation, candidates: NDArray[np.intp]) -> Floats:
    """Return the variances of log κ_c + log μ due to positions, shape (C, M); infinite if not identified."""
    shares = information.shares
    variances, unidentified = (
        np.diag(matrix)[candidates, None]
        - 2 * (shares @ matrix[:, candidates]).T
        + ((shares @ matrix) * shares).sum(axis=1)
        for matrix in (information.covariance, information.null_space)
    )
    return np.where(unidentified > _SINGULAR, np.inf, variances.clip(0.0))
