"""Values by inverse propensities of items at positions (Li et al. 2018), plain and self-normalised.

With the probability p with which the logging policy showed an item at a position, and q of the target:

* ``ips``: Σ q c / p over all displays, divided by the number of visits. Unbiased if the propensities are
  right.
* ``snips``: at each position Σ q c / p divided by Σ q / p, summed over positions (Swaminathan and Joachims
  2015).

Where the propensities are estimated from the log, both equal the value by cells.

Clipping replaces importance weights q / p above a limit by the limit: less variance for some bias. A cube has
sums of weights for each cell, so that clipping is exact where the propensity is constant within a cell.
"""

import numpy as np
from numpy.typing import NDArray

from banditrank.evaluation._cells import unsupported_cells
from banditrank.evaluation._log_cells import LogCells, sum_by
from banditrank.evaluation._type_values import TypeValues
from banditrank.evaluation._visit_clusters import VisitSample

Floats = NDArray[np.float64]

_MIN_VISITS = 1e-100  # of a type without visits, whose values are 0; its square is not
_UNSUPPORTED = "the target has cells that were not shown"


def value_by_ips(
    log: LogCells, shares: Floats, clip: float = np.inf, visits: VisitSample | None = None
) -> TypeValues:
    """Return the values of a target by inverse propensities.

    Parameters
    ----------
    log
        Cells of the log, in G groups.
    shares
        Probability with which the target shows each item at each position, shape (G, N, M, K).
    clip
        Maximum importance weight.
    visits
        Visits of the log, for variances with correlated clicks of a visit; by default clicks are independent.
    """
    q, weight = _clipped(log, shares, clip)
    n, n_visits = log.shape[0], np.maximum(log.n_visits, _MIN_VISITS)
    values = sum_by(log.user_type, q * log.weighted_clicks, n) / n_visits
    variances = sum_by(log.user_type, q**2 * log.squared_weighted_clicks, n) / n_visits**2
    largest = _maximum(log.user_type, weight, n) / n_visits
    if visits is not None:
        per_visit = np.divide(1.0, n_visits[:, None, None])
        by_click = _by_column(log, weight) * per_visit
        by_position = log.table(q * log.weighted_clicks).sum(axis=1)[:, :, None] * per_visit  # (N, K, 1)
        variances += visits.covariance(by_click, np.broadcast_to(by_position * per_visit, by_click.shape))
    return _supported(log, shares, values, variances, largest)


def value_by_snips(
    log: LogCells, shares: Floats, clip: float = np.inf, visits: VisitSample | None = None
) -> TypeValues:
    """Return the values of a target by self-normalised inverse propensities.

    Parameters
    ----------
    log, shares, clip, visits
        As for `value_by_ips`.
    """
    q, weight = _clipped(log, shares, clip)
    n, _, n_positions = log.shape
    row = log.user_type * n_positions + log.position
    size = n * n_positions

    def sums(column: Floats) -> Floats:
        return sum_by(row, column, size)

    total = sums(q * log.weights)
    safe = np.where(total > 0, total, 1.0)
    rates = sums(q * log.weighted_clicks) / safe
    squares = (
        sums(q**2 * log.squared_weighted_clicks) * (1 - 2 * rates)
        + sums(q**2 * log.squared_weights) * rates**2
    )
    filled = np.einsum("gn,gnjk->nk", log.group_shares, shares).ravel()  # 1 at each position that is filled
    by_type = (n, n_positions)
    values = (filled * rates).reshape(by_type).sum(axis=1)
    variances = (filled**2 * np.maximum(squares, 0.0) / safe**2).reshape(by_type).sum(axis=1)
    if visits is not None:
        per_weight = (filled / safe).reshape(n, n_positions, 1)
        by_click = _by_column(log, weight) * per_weight
        variances += visits.covariance(by_click, by_click * rates.reshape(n, n_positions, 1))
    largest = (filled * _maximum(row, weight, size) / safe).reshape(by_type).max(axis=1)
    return _supported(log, shares, values, variances, largest)


def clipped_share(log: LogCells, shares: Floats, clip: float) -> float:
    """Return the share of the target's displays in the log whose importance weight is clipped."""
    q = shares[log.group, log.user_type, log.item, log.position]
    used = log.displays * (q > 0)
    return float(used[q * _mean_weight(log) > clip].sum() / max(used.sum(), 1e-300))


def _mean_weight(log: LogCells) -> Floats:
    """Return 1/p of each cell, a mean that gives the inverse of a constant propensity exactly."""
    weights = log.weights
    return np.divide(log.squared_weights, weights, out=np.zeros_like(weights), where=weights > 0)


def _clipped(log: LogCells, shares: Floats, clip: float) -> tuple[Floats, Floats]:
    """Return q times the factor of clipping, and the importance weight after clipping, of each cell."""
    q = shares[log.group, log.user_type, log.item, log.position]
    weight = q * _mean_weight(log)
    if clip < np.inf:
        q = q * np.minimum(1.0, clip / np.maximum(weight, 1e-300))
    return q, np.minimum(weight, clip)


def _by_column(log: LogCells, values: Floats) -> Floats:
    """Return values of the cells with axes, shape (G, N, K, M)."""
    n, n_items, n_positions = log.shape
    table = np.zeros((len(log.visits), n, n_positions, n_items))
    table[log.group, log.user_type, log.position, log.item] = values
    return table


def _maximum(rows: NDArray[np.int64], values: Floats, size: int) -> Floats:
    largest = np.zeros(size)
    np.maximum.at(largest, rows, values)
    return largest


def _supported(
    log: LogCells, shares: Floats, values: Floats, variances: Floats, largest: Floats
) -> TypeValues:
    missing = sorted({i for i, _, _ in unsupported_cells(log, shares)})
    values[missing] = np.nan
    return TypeValues(values, variances, largest, _UNSUPPORTED if missing else "")
