"""Values by cells: the click rate of each cell of the target, whatever the positions and items are worth.

For a target that shows item j at position k with probability q_jk, the value is Σ q_jk S_jk / T_jk. It
assumes that a click on an item depends on its position and not on the items around it.

A target that was learned differs between groups of folds, and each is evaluated on its own group. Groups that
show the same item at the same position are pooled: the rate is Σ_g q_gjk S_gjk / Σ_g q_gjk T_gjk.
"""

import numpy as np
from numpy.typing import NDArray

from banditrank.evaluation._log_cells import LogCells, sum_by
from banditrank.evaluation._type_values import TypeValues
from banditrank.evaluation._visit_clusters import VisitSample

Floats = NDArray[np.float64]


def value_by_cells(log: LogCells, shares: Floats, visits: VisitSample | None = None) -> TypeValues:
    """Return the values of a target by cells.

    Parameters
    ----------
    log
        Cells of the log, in G groups.
    shares
        Probability with which the target shows each item at each position, shape (G, N, M, K).
    visits
        Visits of the log, for variances with correlated clicks of a visit; by default clicks are independent.

    Returns
    -------
    TypeValues
        NaN for a type with a cell that was not shown in the groups that it is evaluated on.
    """
    q = shares[log.group, log.user_type, log.item, log.position]
    clicks, displays = log.table(q * log.clicks), log.table(q * log.displays)
    squares = log.table(q**2 * log.clicks)
    wanted = np.einsum("gn,gnjk->njk", log.group_shares, shares)  # (N, M, K)
    is_shown = displays > 0
    safe = np.where(is_shown, displays, 1.0)
    rates = np.where(is_shown, clicks / safe, 0.0)
    # The variance of a binomial count, with one more click and one more miss than were seen.
    misses = 1.0 - (clicks + 1.0) / (displays + 2.0)
    variances = np.where(is_shown, wanted**2 * squares * misses / safe**2, 0.0).sum(axis=(1, 2))
    if visits is not None:
        influences = np.where(is_shown, wanted * shares / safe, 0.0).transpose(0, 1, 3, 2)  # (G, N, K, M)
        variances += visits.covariance(influences, influences * rates.transpose(0, 2, 1))
    largest = np.where(is_shown & (wanted > 0), wanted * shares.max(axis=0) / safe, 0.0).max(axis=(1, 2))
    is_supported = ~((wanted > 0) & ~is_shown).any(axis=(1, 2))
    values = np.where(is_supported, (wanted * rates).sum(axis=(1, 2)), np.nan)
    reason = "" if is_supported.all() else "the target has cells that were not shown"
    return TypeValues(values, variances, largest, reason)


def unsupported_cells(log: LogCells, shares: Floats) -> list[tuple[int, int, int]]:
    """Return user type, item and position of the target's cells that were not shown where it is evaluated."""
    q = shares[log.group, log.user_type, log.item, log.position]
    is_missing = (np.einsum("gn,gnjk->njk", log.group_shares, shares) > 0) & (
        log.table(q * log.displays) <= 0
    )
    return [(int(i), int(j), int(k)) for i, j, k in np.argwhere(is_missing)]


def effective_visits(log: LogCells, shares: Floats) -> Floats:
    """Return the effective sample size of each type, shape (N,): of the position with the smallest one.

    (Σ q w)² / Σ q² w², after Kish (1965), w being the inverse propensity of a display: the number of visits
    with equal weights that would tell as much.
    """
    q = shares[log.group, log.user_type, log.item, log.position]
    n, _, n_positions = log.shape
    index = log.user_type * n_positions + log.position
    first = sum_by(index, q * log.weights, n * n_positions)
    second = sum_by(index, q**2 * log.squared_weights, n * n_positions)
    sizes = np.divide(first**2, second, out=np.zeros_like(first), where=second > 0).reshape(n, n_positions)
    is_used = shares.max(axis=(0, 2)) > 0  # (N, K)
    return np.asarray(np.where(is_used, sizes, np.inf).min(axis=1))
