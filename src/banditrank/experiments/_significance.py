"""Significance tests: whether values of one sample are lower than those of another, or grew."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SIGNIFICANCE_LEVEL = 0.05  # maximum rate of differences found where there are none
BY_RANK_TEST = f"by a two-sided rank test at the {SIGNIFICANCE_LEVEL:.0%} level"
BY_BOOTSTRAP = f"by a {1 - SIGNIFICANCE_LEVEL:.0%} bootstrap interval over the replications"
_N_RESAMPLES = 9_999


class RankTest(NamedTuple):
    """Result of a rank test."""

    less: bool | None  # whether the first sample is lower; None if not significant
    p_value: float

    @property
    def greater(self) -> bool | None:
        """Whether the first sample is higher; None if not significant."""
        return None if self.less is None else not self.less

    def __str__(self) -> str:
        return f"p = {self.p_value:.2g}" + (", not decided" if self.less is None else "")


def rank_test(first: Floats, second: Floats) -> RankTest:
    """Compare two samples with the Mann-Whitney test, which is robust to extreme values.

    The p-value is estimated from random permutations, the same ones in each call.

    Parameters
    ----------
    first, second
        Samples, shapes (n,) and (m,).

    Examples
    --------
    >>> values = np.arange(10.0)
    >>> str(rank_test(values, values + 8)), str(rank_test(values, values + 1))
    ('p = 0.0004', 'p = 0.51, not decided')
    """
    _, places, counts = np.unique(np.concatenate([first, second]), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]  # ties share their mean rank
    centred = ranks - ranks.mean()
    statistic = centred[: len(first)].sum()
    permuted = np.random.default_rng(0).permuted(np.tile(centred, (_N_RESAMPLES, 1)), axis=1)
    statistics = permuted[:, : len(first)].sum(axis=1)
    p_value = float((1 + (np.abs(statistics) >= abs(statistic) - 1e-9).sum()) / (1 + _N_RESAMPLES))
    return RankTest(bool(statistic < 0) if p_value < SIGNIFICANCE_LEVEL else None, p_value)


class MeanRatio(NamedTuple):
    """Ratio of two means with a confidence interval."""

    value: float
    low: float
    high: float

    @property
    def at_most_1(self) -> bool | None:
        """Whether the ratio is at most 1; None if the interval contains 1."""
        return True if self.high <= 1 else False if self.low > 1 else None

    def __str__(self) -> str:
        undecided = ", not decided" if self.at_most_1 is None else ""
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f}{undecided})"


def ratio_of_means(before: Floats, after: Floats) -> MeanRatio:
    """Return the mean of ``after`` over the mean of ``before`` with a percentile bootstrap interval.

    Replications are resampled in pairs, the same way in each call. The interval of a single replication is
    unbounded.

    Parameters
    ----------
    before, after
        Two values of each replication, shape (R,) each.

    Examples
    --------
    >>> values = np.arange(1.0, 11.0)
    >>> str(ratio_of_means(values, 2 * values)), str(ratio_of_means(values, values[::-1]))
    ('2.00 (2.00 to 2.00)', '1.00 (0.51 to 1.97, not decided)')
    """
    value = float(after.mean() / before.mean())
    if len(before) < 2:
        return MeanRatio(value, 0.0, np.inf)
    resampled = np.random.default_rng(0).integers(len(before), size=(_N_RESAMPLES, len(before)))
    ratios = after[resampled].mean(axis=1) / before[resampled].mean(axis=1)
    low, high = np.quantile(ratios, (SIGNIFICANCE_LEVEL / 2, 1 - SIGNIFICANCE_LEVEL / 2))
    return MeanRatio(value, float(low), float(high))
