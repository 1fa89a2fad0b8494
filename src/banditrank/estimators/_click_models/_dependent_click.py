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

from banditrank._compilation import compiled
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
_MIN_START = 1e-3
_MAX_LISTS = 1_000_000  # of the EM
_MAX_INFORMATION_LISTS = 50_000
_MAX_INFORMATION_SIZE = 2_000  # parameters of a user type with all covariances
_MIN_INFORMATION = 1e-9
_SINGULAR = 1e-15  # eigenvalues below this share of the largest are taken for 0
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
    starts: Indices  # (U + 1,) of each list in ``items``, and the end of the last one
    items: Indices  # (E,) index of μ


def fit_dependent_click(cube: ClickCube, start: ModelParameters | None = None) -> ModelParameters:
    """Return μ and λ of maximum likelihood, or of the closed form without ranking lists.

    Parameters
    ----------
    cube
        The counts of a log.
    start
        Parameters of a similar log, to start from.

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
    total_looks, is_converged = looks, True
    if unread is not None:
        # A last click without displays below carries no information: λ counts the others only.
        informative = np.bincount(unread.continuation, unread.visits, last_at.size)

        def improve(both: Floats) -> Floats:
            more_looks, went_on = np.zeros(looks.size), np.zeros(last_at.size)
            _expect(
                unread.visits,
                unread.continuation,
                unread.starts,
                unread.items,
                both[: looks.size],
                both[looks.size :],
                more_looks,
                went_on,
            )
            stayed = at_positions - last_at
            return np.concatenate(
                [_ratio(clicked, looks + more_looks), _ratio(stayed + went_on, stayed + informative)]
            )

        first = np.concatenate([appeal, continuation])
        if start is not None:
            similar = np.concatenate([start.appeal.ravel(), start.attention.ravel()])
            first = np.where(first > 0, similar.clip(_MIN_START, _MAX_PROBABILITY), 0.0)
        both, is_converged = _accelerate(improve, first)
        appeal, continuation = both[: looks.size], both[looks.size :]
        total_looks = np.divide(clicked, appeal, out=looks.copy(), where=appeal > 0)
    return ModelParameters(
        "dependent-click",
        appeal.reshape(n_types, n_items),
        continuation.reshape(n_types, n_positions),
        total_looks.reshape(n_types, n_items),
        () if is_converged else tuple(range(n_types)),
    )


def _accelerate(improve: Callable[[Floats], Floats], start: Floats) -> tuple[Floats, bool]:
    """Return the fixed point of an EM step, and if it was reached.

    Two steps are extrapolated (Varadhan and Roland, 2008).
    """
    values = start
    for _ in range(_MAX_ITERATIONS):
        first = improve(values)
        second = improve(first)
        change, bend = first - values, second - 2 * first + values
        if np.abs(second - first).max(initial=0.0) <= _TOLERANCE:
            return second, True
        length = max(1.0, float(np.linalg.norm(change)) / max(float(np.linalg.norm(bend)), 1e-300))
        values = improve((values + 2 * length * change + length**2 * bend).clip(0.0, _MAX_PROBABILITY))
    return values, False


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    ratio = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
    return np.asarray(np.minimum(ratio, _MAX_PROBABILITY))


@compiled
def _expect(
    visits: Floats,
    continuations: Indices,
    starts: Indices,
    items: Indices,
    appeal: Floats,
    continuation: Floats,
    more_looks: Floats,
    went_on: Floats,
) -> None:
    """Add the expected looks below the last click, and the visits that were read on after it.

    Parameters
    ----------
    visits, continuations, starts, items
        As those of `_Unread`.
    appeal, continuation
        μ and λ.
    more_looks, went_on
        Sums by the index of μ and of λ, written.
    """
    for number in range(visits.size):
        unclicked = 1.0
        for place in range(starts[number], starts[number + 1]):
            unclicked *= 1.0 - appeal[items[place]]
        going_on = continuation[continuations[number]]
        weight = visits[number] * going_on * unclicked / (1.0 - going_on + going_on * unclicked)
        went_on[continuations[number]] += weight
        for place in range(starts[number], starts[number + 1]):
            more_looks[items[place]] += weight


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
    types = lists.user_type[kept]
    return _Unread(
        (lists.visits * scale[lists.user_type])[kept],
        types * n_positions + last[kept],
        np.concatenate([[0], np.cumsum(n_below)]).astype(np.int64),
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
        variances = covariance.variances
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


@compiled
def _add_squares(indices: Indices, scores: Floats, weights: Floats, matrix: Floats) -> None:
    """Add w s sᵀ of each list to the lower triangle of a matrix.

    Parameters
    ----------
    indices, scores
        Parameters of each list and derivatives by them, shape (L, P).
    weights
        w, shape (L,).
    matrix
        Shape (M + K, M + K), written.
    """
    n_lists, n_entries = indices.shape
    for number in range(n_lists):
        for one in range(n_entries):
            score = weights[number] * scores[number, one]
            if score == 0.0:
                continue
            row = indices[number, one]
            for other in range(n_entries):
                if indices[number, other] <= row:
                    matrix[row, indices[number, other]] += score * scores[number, other]


class _Covariance(NamedTuple):
    """Covariance of μ and λ: the inverse of the information, the sum of squared scores."""

    variances: Floats  # (P,) infinite without information
    root: Floats  # (P, R) with root rootᵀ the covariance; 0 without information


def _covariance(lists: CubeLists, appeal: Floats, continuation: Floats, scale: float) -> _Covariance:
    """Return the covariance of the parameters of one user type."""
    size = appeal.size + continuation.size
    indices, scores = _scores(lists, appeal, continuation)
    weights = lists.visits * scale
    if size > _MAX_INFORMATION_SIZE:
        squares = (scores**2 * weights[:, None]).ravel()
        information = np.asarray(np.bincount(indices.ravel(), squares, size), dtype=np.float64)
        is_known = information > _MIN_INFORMATION
        variances = np.divide(1.0, information, out=np.full(size, np.inf), where=is_known)
        return _Covariance(variances, np.sqrt(np.where(is_known, variances, 0.0))[:, None])
    matrix = np.zeros((size, size))
    _add_squares(indices, scores, weights, matrix)
    kept = np.flatnonzero(np.diag(matrix) > _MIN_INFORMATION)
    block = matrix[np.ix_(kept, kept)]
    values, vectors = np.linalg.eigh(block)  # reads the lower triangle
    is_known = values > _SINGULAR * values.max(initial=0.0)
    variances, root = np.full(size, np.inf), np.zeros((size, kept.size))
    root[kept] = vectors * np.where(is_known, 1.0 / np.sqrt(np.where(is_known, values, 1.0)), 0.0)
    variances[kept] = (root[kept] ** 2).sum(axis=1)
    return _Covariance(variances, root)


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
    covariance: _Covariance,
    level: float,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return the average examination of each position, and the interval of sampled parameters."""
    chosen = rng.choice(lists.fold.size, min(_WORTH_LISTS, lists.fold.size), replace=False)
    items, visits = lists.items[chosen], lists.visits[chosen]
    mu, lam = parameters.appeal[user_type], parameters.attention[user_type]
    if covariance.root.shape[1] == 1:  # of independent parameters
        noise = rng.standard_normal((_PARAMETER_SAMPLES, covariance.root.shape[0])) * covariance.root[:, 0]
    else:
        noise = rng.standard_normal((_PARAMETER_SAMPLES, covariance.root.shape[1])) @ covariance.root.T
    scale = np.sqrt(np.where(np.isfinite(covariance.variances), covariance.variances, 0.0))
    noise = np.clip(noise, -4 * scale, 4 * scale)
    sampled_mu, sampled_lam = (mu + noise[:, : mu.size]).clip(0, 1), (lam + noise[:, mu.size :]).clip(0, 1)
    samples = _average_examination(items, visits, sampled_mu, sampled_lam)
    average = _average_examination(lists.items, lists.visits, mu[None], lam[None])[0]
    # Samples are of some lists: centre them at the average over all.
    samples += average - _average_examination(items, visits, mu[None], lam[None])
    tail = (1 - level) / 2
    low, high = np.quantile(samples, [tail, 1 - tail], axis=0)
    ends = np.stack([np.minimum(low, average), np.maximum(high, average)], axis=1)
    is_shown = np.asarray((lists.items >= 0).any(axis=0))
    return np.where(is_shown, average, np.nan), np.where(is_shown[:, None], ends, np.nan)


def _average_examination(items: Indices, visits: Floats, appeal: Floats, continuation: Floats) -> Floats:
    """Return the averages over lists, shape (S, K), for samples of μ, shape (S, M), and λ, shape (S, K)."""
    mu = np.where(items >= 0, appeal[:, np.maximum(items, 0)], 0.0)  # (S, L, K)
    stays = 1.0 - mu * (1.0 - continuation[:, None, :])
    examined = np.ones_like(stays)
    np.cumprod(stays[:, :, :-1], axis=2, out=examined[:, :, 1:])
    return np.asarray(visits @ examined / visits.sum())
