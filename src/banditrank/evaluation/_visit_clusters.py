"""Variances of values for correlated clicks: of a visit, and of a user who returns.

Estimators of values are sums of clicks, each with an influence on the value. Their variances by cells count
the clicks as independent. If users differ in activity, or clicks depend on those above, two parts are
missing:

* within visits, the sum of (Σ_k ψ_k)² − Σ_k ψ_k² over the visits, ψ being the influences of their displays:
  the sandwich variance less its diagonal. It is that of the sample of ranking lists that a cube retains.
* between the visits of a user. A cube knows only the folds of users. If the clicks per visit of folds vary
  more than those of visits do, users have an activity of their own, which multiplies the value of each
  target.
"""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._click_cube import N_FOLDS, ClickCube
from banditrank.estimators._click_models._list_sample import MAX_SCORED_LISTS, sample_lists
from banditrank.estimators._distributions import student_quantile
from banditrank.evaluation._log_cells import sum_by

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class VisitSample(NamedTuple):
    """Displays of a sample of the visits of a log.

    Attributes
    ----------
    group, user_type
        Of each list, shape (L,).
    item, above
        Item, and position of the last click above from 1 (0: none), at each position, shape (L, K).
    is_shown, is_clicked
        Shape (L, K).
    visits
        Number of visits of the log that a list stands for, shape (L,).
    """

    group: Indices
    user_type: Indices
    item: Indices
    above: Indices
    is_shown: NDArray[np.bool_]
    is_clicked: NDArray[np.bool_]
    visits: Floats

    def covariance(self, by_click: Floats, expected: Floats) -> Floats:
        """Return what correlated clicks of visits add to the variance of a value, at least 0, shape (N,).

        Parameters
        ----------
        by_click
            Influence of a click of each column and item on the value, for visits of each group, shape
            (G, N, C, M). Columns are positions, or pairs of a last click above and a position.
        expected
            Expected influence of a display, of the same shape.
        """
        groups = [self] if len(by_click) == 1 else [self.of_group(group) for group in range(len(by_click))]
        sums = [
            visits.pairs(*influences) for visits, *influences in zip(groups, by_click, expected, strict=True)
        ]
        return np.asarray(np.maximum(np.sum(sums, axis=0), 0.0))

    def pairs(self, by_click: Floats, expected: Floats) -> Floats:
        """Return the sums over visits of products of the influences of different displays, shape (N,).

        Parameters
        ----------
        by_click, expected
            As for `covariance`, of one group, shape (N, C, M).
        """
        n_types, n_columns, _ = by_click.shape
        n_positions = self.item.shape[1]
        column = np.broadcast_to(np.arange(n_positions), self.item.shape)
        if n_columns > n_positions:
            column = column + n_positions * self.above
        cell = np.ravel_multi_index((self.user_type[:, None], column, self.item), by_click.shape)
        influence = self.is_clicked * by_click.ravel()[cell] - expected.ravel()[cell]
        influence *= self.is_shown
        products = influence.sum(axis=1) ** 2 - (influence**2).sum(axis=1)
        return sum_by(self.user_type, self.visits * products, n_types)

    def of_group(self, group: int) -> "VisitSample":
        """Return the visits of a group of folds."""
        return VisitSample(*(column[self.group == group] for column in self))


def sample_visits(cube: ClickCube, *, n_groups: int, seed: int) -> VisitSample | None:
    """Return the displays of the lists that a cube retains; None if there are none.

    Parameters
    ----------
    cube
        The cube.
    n_groups, seed
        As for `banditrank.evaluation._log_cells.log_cells`.
    """
    lists = sample_lists(cube.split_folds(np.random.default_rng(seed)), MAX_SCORED_LISTS)
    if not lists.fold.size:
        return None
    n, positions = len(cube.type_values), np.arange(cube.n_positions)
    is_clicked = (lists.clicks[:, None] >> positions & 1).astype(np.bool_)
    last = np.maximum.accumulate(np.where(is_clicked, positions + 1, 0), axis=1)
    in_sample = sum_by(lists.user_type, lists.visits, n)
    in_log = sum_by(cube.visits.user_type, cube.visits.visits, n)
    factor = np.divide(in_log, in_sample, out=np.zeros(n), where=in_sample > 0)
    return VisitSample(
        lists.fold % n_groups,
        lists.user_type,
        np.maximum(lists.items, 0),
        np.pad(last[:, :-1], ((0, 0), (1, 0))),
        lists.items >= 0,
        is_clicked,
        lists.visits * factor[lists.user_type],
    )


class ReturningUsers(NamedTuple):
    """What the visits of a user have in common.

    Attributes
    ----------
    variances
        What it adds to the variance of a value, relative to its square, shape (N,).
    arrival_dispersion
        Variance of the shares of user types over that of independent visits, at least 1.
    """

    variances: Floats
    arrival_dispersion: float


def assess_returning_users(cube: ClickCube, level: float) -> ReturningUsers:
    """Return what the visits of a user have in common, from the folds of a log.

    Parameters
    ----------
    cube
        The cube. Without visits and folds, nothing is known, and visits count as independent.
    level
        Confidence level of the intervals: that variance is known from few folds widens them as Student's
        distribution does.
    """
    visits, n = cube.visits, len(cube.type_values)
    nothing = ReturningUsers(np.zeros(n), 1.0)
    if not cube.has_visits or (visits.fold < 0).any():
        return nothing
    index = visits.user_type * N_FOLDS + visits.fold
    by_fold, clicks, squares = (
        sum_by(index, visits.visits * visits.n_clicks.astype(np.float64) ** power, n * N_FOLDS).reshape(n, -1)
        for power in (0, 1, 2)
    )
    freedom = np.maximum((by_fold > 0).sum(axis=1) - 1.0, 0.0)
    total = np.maximum(by_fold.sum(axis=1), 1.0)
    mean = clicks.sum(axis=1) / total
    within = squares.sum(axis=1) / total - mean**2
    is_used = (freedom > 0) & (mean > 0) & (within > 0)
    if not is_used.any():
        return nothing
    by_fold, clicks, freedom = by_fold[is_used], clicks[is_used], freedom[is_used]
    relative = within[is_used] / mean[is_used] ** 2  # variance of the clicks of a visit
    means = np.divide(clicks, by_fold, out=np.zeros_like(clicks), where=by_fold > 0)
    between = (by_fold * (means / mean[is_used, None] - 1.0) ** 2).sum(axis=1) / freedom
    precision = freedom / relative**2
    excess = max(float(precision @ (between - relative) / precision.sum()), 0.0)
    tail = (1 + level) / 2
    factor = student_quantile(tail, freedom.sum()) / NormalDist().inv_cdf(tail)
    return ReturningUsers(excess * factor**2 / total, _dispersion(by_fold))


def _dispersion(by_fold: Floats) -> float:
    """Return Pearson's statistic of visits by type and fold, shape (N, F), over its degrees of freedom."""
    by_fold = by_fold[:, by_fold.any(axis=0)]
    freedom = (by_fold.shape[0] - 1) * (by_fold.shape[1] - 1)
    if freedom < 1:
        return 1.0
    expected = np.outer(by_fold.sum(axis=1), by_fold.sum(axis=0)) / by_fold.sum()
    return max(float(((by_fold - expected) ** 2 / expected).sum() / freedom), 1.0)
