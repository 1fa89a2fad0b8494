"""The dependent-click model: a user reads from the top and may leave after each click.

After a click at position k she reads on with probability λ_k. Whether she did after the last click is not
observed: the likelihood is maximised by EM over "left" and "read on", from the ranking lists. Without
retained lists the closed form of Guo et al. (2009) is used, which takes it that she left.
"""

from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._click_cube import ClickCube, CubeLists
from banditrank.errors import InvalidInputError
from banditrank.estimators._click_models._cascade import score_ends
from banditrank.estimators._click_models._estimates_of_model import ModelEstimates, empty_estimates
from banditrank.estimators._click_models._list_sample import sample_lists, take_lists
from banditrank.estimators._click_models._parameters import ModelParameters

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_TOLERANCE = 1e-6  # of probabilities, whose standard errors are thousands of times as large
_MAX_ITERATIONS = 200
_MAX_PROBABILITY = 1 - 1e-12
_MAX_LISTS = 1_000_000  # of the EM
_MAX_INFORMATION_LISTS = 50_000
_MAX_INFORMATION_SIZE = 2_000  # parameters of a user type with all covariances
_CHUNK = 10_000  # lists
_PARAMETER_SAMPLES = 200
_WORTH_LISTS = 300

CLOSED_FORM_NOTE = (
    "dependent-click: the log has no ranking lists, so that the closed form is used, which takes it that "
    "users leave after their last click: appeal and continuation are a few percent off"
)


class _Unread(NamedTuple):
    """Displays below the last click, of visits that have any."""

    visits: Floats  # (U,) of each list
    continuation: Indices  # (U,) index of λ at the last click
    starts: Indices  # (U,) of each list in ``items``
    sizes: Indices  # (U,) number of displays of each list
    items: Indices  # (E,) index of μ


def fit_dependent_click(cube: ClickCube) -> ModelParameters:
    """Return μ and λ of maximum likelihood, or of the closed form without ranking lists.

    Raises
    ------
    InvalidInputError
        If the log has no visits.
    """
    if not cube.has_visits:
        raise InvalidInputError("log", "must have visits to know the last click", "no visit column")
    examined, clicks, last_clicks = (
        cube.table(values) for values in (cube.cells.examined, cube.cells.clicks, cube.cells.last_clicks)
    )
    n_types, n_items, n_positions = clicks.shape
    looks, clicked = examined.sum(axis=2).ravel(), clicks.sum(axis=2).ravel()  # (N M,)
    at_positions, last_at = clicks.sum(axis=1).ravel(), last_clicks.sum(axis=1).ravel()  # (N K,)
    appeal = _ratio(clicked, looks)
    continuation = _ratio(at_positions - last_at, at_positions)
    unread = _unread_displays(cube)
    total_looks = looks
    if unread is not None:
        # A last click without displays below carries no information: λ counts the others only.
        informative = np.bincount(unread.continuation, unread.visits, last_at.size)

        def improve(both: Floats) -> Floats:
            weights = unread.visits * _read_on(unread, both[: looks.size], both[looks.size :])
            more_looks = np.bincount(unread.items, np.repeat(weights, unread.sizes), looks.size)
            went_on = np.bincount(unread.continuation, weights, last_at.size)
            stayed = at_positions - last_at
            return np.concatenate(
                [_ratio(clicked, looks + more_looks), _ratio(stayed + went_on, stayed + informative)]
            )

        both = _accelerate(improve, np.concatenate([appeal, continuation]))
        appeal, continuation = both[: looks.size], both[looks.size :]
        total_looks = np.divide(clicked, appeal, out=looks.copy(), where=appeal > 0)
    return ModelParameters(
        "dependent-click",
        appeal.reshape(n_types, n_items),
        continuation.reshape(n_types, n_positions),
        total_looks.reshape(n_types, n_items),
    )


def _accelerate(improve: Callable[[Floats], Floats], start: Floats) -> Floats:
    """Return the fixed point of an EM step, extrapolating two steps (Varadhan and Roland, 2008)."""
    values = start
    for _ in range(_MAX_ITERATIONS):
        first = improve(values)
        second = improve(first)
        change, bend = first - values, second - 2 * first + values
        if np.abs(second - first).max(initial=0.0) <= _TOLERANCE:
            return second
        length = max(1.0, float(np.linalg.norm(change)) / max(float(np.linalg.norm(bend)), 1e-300))
        values = improve((values + 2 * length * change + length**2 * bend).clip(0.0, _MAX_PROBABILITY))
    return values


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    ratio = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
    return np.asarray(np.minimum(ratio, _MAX_PROBABILITY))


def _read_on(unread: _Unread, appeal: Floats, continuation: Floats) -> Floats:
    """Return the posterior probability that a visit was read on after its last click, shape (U,)."""
    misses = (1.0 - appeal)[unread.items]
    unclicked = np.multiply.reduceat(misses, unread.starts) if unread.starts.size else np.zeros(0)
    going_on = continuation[unread.continuation]
    return np.asarray(going_on * unclicked / (1.0 - going_on + going_on * unclicked))


def _unread_displays(cube: ClickCube) -> _Unread | None:
    lists = sample_lists(cube, _MAX_LISTS)
    if not lists.fold.size:
        return None
    # Lists may be a sample: each counts for the visits of its user type that it stands for.
    n_types, n_items, n_positions = len(cube.type_values), len(cube.items), cube.n_positions
    in_cube = np.bincount(cube.visits.user_type, cube.visits.visits, n_types)
    in_lists = np.bincount(lists.user_type, lists.visits, n_types)
    scale = np.divide(in_cube, in_lists, out=np.ones(n_types), where=in_lists > 0)
    last = last_clicks_of(lists.clicks)
    is_below = (np.arange(n_positions) > last[:, None]) & (lists.items >= 0) & (last >= 0)[:, None]
    kept = np.flatnonzero(is_below.any(axis=1))
    is_below = is_below[kept]
    owner, positions = np.nonzero(is_below)
    n_below = is_below.sum(axis=1)
    starts = np.concatenate([[0], np.cumsum(n_below)[:-1]]).astype(np.int64) if kept.size else n_below
    types = lists.user_type[kept]
    return _Unread(
        (lists.visits * scale[lists.user_type])[kept],
        types * n_positions + last[kept],
        starts,
        n_below,
        types[owner] * n_items + lists.items[kept][owner, positions],
    )


def last_clicks_of(clicks: Indices) -> Indices:
    """Return the last clicked position of each bit mask; −1 without a click.

    Examples
    --------
    >>> last_clicks_of(np.array([0, 1, 6]))
    array([-1,  0,  2])
    """
    _, exponents = np.frexp(clicks.astype(np.float64))  # positions are below 62: exact up to rounding up
    last = exponents.astype(np.int64) - 1
    is_rounded = (clicks > 0) & ((clicks >> np.maximum(last, 0)) == 0)
    return np.where(clicks > 0, last - is_rounded, -1)


def estimate_dependent_click(cube: ClickCube, parameters: ModelParameters, level: float) -> ModelEstimates:
    """Return appeal, continuation, and the examination of positions as logged."""
    estimates = empty_estimates(cube, parameters)
    n_types, n_positions = estimates.position_worth.shape
    continuation = np.full((n_types, n_positions), np.nan)
    intervals = np.full((n_types, n_positions, 2), np.nan)
    clicks, last_clicks = (
        cube.table(values).sum(axis=1) for values in (cube.cells.clicks, cube.cells.last_clicks)
    )
    lists = sample_lists(cube, _MAX_INFORMATION_LISTS)
    has_lists = bool(lists.fold.size)
    rng = np.random.default_rng(0)  # of the intervals of position worth
    for i in range(n_types):
        mu, looks = parameters.appeal[i], parameters.looks[i]
        # The last position is never read on from: its continuation has no meaning.
        is_known = (clicks[i] > 0) & (np.arange(n_positions) < n_positions - 1)
        continuation[i, is_known] = parameters.attention[i, is_known]
        estimates.item_appeal[i] = np.where(looks > 0, mu, np.nan)
        own = _of_type(lists, i)
        if not has_lists or not own.fold.size:
            estimates.item_intervals[i] = score_ends(mu * looks, looks, level)
            stayed = clicks[i] - last_clicks[i]
            intervals[i, is_known] = score_ends(stayed, clicks[i], level)[is_known]
            continue
        visits = cube.visits.visits[cube.visits.user_type == i].sum()
        covariance = _covariance(own, mu, parameters.attention[i], visits / own.visits.sum())
        variances = np.diag(covariance)
        estimates.item_intervals[i] = _log_odds_ends(mu, variances[: mu.size], looks, level)
        ends = _log_odds_ends(parameters.attention[i], variances[mu.size :], clicks[i], level)
        intervals[i, is_known] = ends[is_known]
        worth, worth_ends = _worth(own, parameters, i, covariance, level, rng)
        estimates.position_worth[i], estimates.position_intervals[i] = worth, worth_ends
    n_parameters = int((parameters.looks > 0).sum() + np.isfinite(continuation).sum())
    return estimates._replace(
        n_parameters=n_parameters,
        continuation=continuation,
        continuation_intervals=intervals,
        notes=() if has_lists else (CLOSED_FORM_NOTE,),
    )


def _of_type(lists: CubeLists, user_type: int) -> CubeLists:
    return take_lists(lists, lists.user_type == user_type)


def _scores(lists: CubeLists, appeal: Floats, continuation: Floats) -> tuple[Indices, Floats]:
    """Return the parameters of each list and the derivatives by them of its log-likelihood, shape (L, 2 K).

    Parameters are numbered from 0 for μ and from M for λ; absent ones have the derivative 0.
    """
    n_positions = lists.items.shape[1]
    positions = np.arange(n_positions)
    last = last_clicks_of(lists.clicks)
    mu = np.where(lists.items >= 0, appeal[np.maximum(lists.items, 0)], 0.0)
    is_clicked = (lists.clicks[:, None] >> positions) & 1 == 1
    is_below = (positions > last[:, None]) & (last >= 0)[:, None]
    unclicked = np.exp(np.where(is_below, np.log1p(-mu), 0.0).sum(axis=1))
    lam = continuation[np.maximum(last, 0)]
    chance = np.maximum(1.0 - lam + lam * unclicked, 1e-300)  # of no click below the last one
    missed = -np.where(is_below, (lam * unclicked / chance)[:, None], 1.0) / (1.0 - mu)
    by_appeal = np.where(is_clicked, 1.0 / np.maximum(mu, 1e-12), missed)
    by_appeal = np.where(lists.items >= 0, by_appeal, 0.0)
    by_continuation = np.where(
        is_clicked & (positions < last[:, None]), 1.0 / np.maximum(continuation, 1e-12), 0.0
    )
    has_below = is_below.any(axis=1, keepdims=True)
    is_last = is_clicked & (positions == last[:, None]) & has_below
    by_continuation = np.where(is_last, ((unclicked - 1.0) / chance)[:, None], by_continuation)
    indices = np.concatenate(
        [np.maximum(lists.items, 0), np.broadcast_to(appeal.size + positions, lists.items.shape)], axis=1
    )
    return indices, np.concatenate([by_appeal, by_continuation], axis=1)


def _covariance(lists: CubeLists, appeal: Floats, continuation: Floats, scale: float) -> Floats:
    """Return the inverse of the information, the sum of squared scores; infinite variances without."""
    size = appeal.size + continuation.size
    matrix: Floats
    indices, scores = _scores(lists, appeal, continuation)
    if size > _MAX_INFORMATION_SIZE:
        squares = (scores**2 * (lists.visits * scale)[:, None]).ravel()
        matrix = np.diag(np.asarray(np.bincount(indices.ravel(), squares, size), dtype=np.float64))
    else:
        matrix = np.zeros((size, size))
        for start in range(0, lists.fold.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            dense = np.zeros((indices[part].shape[0], size))
            np.add.at(dense, (np.arange(dense.shape[0])[:, None], indices[part]), scores[part])
            matrix += dense.T @ (dense * (lists.visits[part] * scale)[:, None])
    diagonal = np.diag(matrix)
    kept = np.flatnonzero(diagonal > 1e-9)
    covariance = np.diag(np.where(diagonal > 1e-9, 0.0, np.inf))
    covariance[np.ix_(kept, kept)] = np.linalg.pinv(matrix[np.ix_(kept, kept)], hermitian=True)
    return np.asarray(covariance)


def _log_odds_ends(estimates: Floats, variances: Floats, looks: Floats, level: float) -> Floats:
    """Return intervals on the scale of log-odds; at 0 and 1, the exact ends for the number of looks."""
    half = NormalDist().inv_cdf((1 + level) / 2)
    inside = (estimates > 0) & (estimates < _MAX_PROBABILITY) & np.isfinite(variances)
    chance = np.where(inside, estimates, 0.5)
    spread = half * np.sqrt(np.where(inside, variances, 0.0)) / (chance * (1 - chance))
    log_odds = np.log(chance / (1 - chance))
    ends = 0.5 * (1 + np.tanh(np.stack([log_odds - spread, log_odds + spread], axis=-1) / 2))
    limit = 1.0 - ((1 - level) / 2) ** (1.0 / np.maximum(looks, 1.0))
    ends[~inside & (estimates <= 0)] = np.stack([np.zeros_like(limit), limit], -1)[~inside & (estimates <= 0)]
    at_one = ~inside & (estimates > 0)
    ends[at_one] = np.stack([1 - limit, np.ones_like(limit)], -1)[at_one]
    return np.where((looks > 0)[:, None], ends, np.nan)


def _worth(
    lists: CubeLists,
    parameters: ModelParameters,
    user_type: int,
    covariance: Floats,
    level: float,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return the average examination of each position, and the interval of sampled parameters."""
    chosen = rng.choice(lists.fold.size, min(_WORTH_LISTS, lists.fold.size), replace=False)
    items, visits = lists.items[chosen], lists.visits[chosen]
    mu, lam = parameters.appeal[user_type], parameters.attention[user_type]
    scale = np.sqrt(np.where(np.isfinite(np.diag(covariance)), np.diag(covariance).clip(0.0), 0.0))
    values, vectors = np.linalg.eigh(np.where(np.isfinite(covariance), covariance, 0.0))
    noise = rng.standard_normal((_PARAMETER_SAMPLES, values.size)) * np.sqrt(values.clip(0.0)) @ vectors.T
    noise = np.clip(noise, -4 * scale, 4 * scale)
    average = _average_examination(items, visits, mu, lam)
    samples = np.stack(
        [
            _average_examination(
                items, visits, (mu + step[: mu.size]).clip(0, 1), (lam + step[mu.size :]).clip(0, 1)
            )
            for step in noise
        ]
    )
    tail = (1 - level) / 2
    low, high = np.quantile(samples, [tail, 1 - tail], axis=0)
    ends = np.stack([np.minimum(low, average), np.maximum(high, average)], axis=1)
    is_shown = np.asarray((items >= 0).any(axis=0))
    return np.where(is_shown, average, np.nan), np.where(is_shown[:, None], ends, np.nan)


def _average_examination(items: Indices, visits: Floats, appeal: Floats, continuation: Floats) -> Floats:
    mu = np.where(items >= 0, appeal[np.maximum(items, 0)], 0.0)
    stays = 1.0 - mu * (1.0 - continuation)
    examined = np.concatenate([np.ones((items.shape[0], 1)), np.cumprod(stays, axis=1)[:, :-1]], axis=1)
    return np.asarray(visits @ examined / visits.sum())
