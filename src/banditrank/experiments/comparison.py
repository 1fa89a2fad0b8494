"""Whether runs of one kind give less than runs of another, or grow, or are too few to tell."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVEL = 0.05  # how often, at most, a difference is found where there is none
BY_RANKS = f"by a two-sided rank test at the {LEVEL:.0%} level"
BY_BOOTSTRAP = f"by a {1 - LEVEL:.0%} bootstrap interval over the replications"
_SHUFFLES = 9_999


class Comparison(NamedTuple):
    """What ranks say of two kinds of runs."""

    less: bool | None  # whether the first kind gives less; None if the data do not decide
    chance: float  # of ranks that differ so much if both kinds were the same

    @property
    def greater(self) -> bool | None:
        """Whether the first kind gives more; None if the data do not decide."""
        return None if self.less is None else not self.less

    def __str__(self) -> str:
        return f"p = {self.chance:.2g}" + (", not decided" if self.less is None else "")


def compare(first: Floats, second: Floats) -> Comparison:
    """Compare two kinds of runs by the ranks of their values, which a few extreme runs hardly move.

    If both were the same, any way to deal the values out to them would be as likely: so how often the sum of
    ranks is as far from its mean, among random ways, is the chance of the difference (Mann and Whitney's
    test). The ways are the same each time.

    Examples
    --------
    >>> values = np.arange(10.0)
    >>> str(compare(values, values + 8)), str(compare(values, values + 1))
    ('p = 0.0004', 'p = 0.51, not decided')
    """
    _, places, counts = np.unique(np.concatenate([first, second]), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]  # equal values share theirs
    off = ranks - ranks.mean()
    seen = off[: len(first)].sum()
    dealt = (
        np.random.default_rng(0).permuted(np.tile(off, (_SHUFFLES, 1)), axis=1)[:, : len(first)].sum(axis=1)
    )
    chance = float((1 + (np.abs(dealt) >= abs(seen) - 1e-9).sum()) / (1 + _SHUFFLES))
    return Comparison(bool(seen < 0) if chance < LEVEL else None, chance)


class Factor(NamedTuple):
    """How many times as large a mean is as another, and an interval that says how sure that is."""

    value: float
    low: float
    high: float

    @property
    def at_most_1(self) -> bool | None:
        """Whether it is no larger; None if the data do not decide."""
        return True if self.high <= 1 else False if self.low > 1 else None

    def __str__(self) -> str:
        undecided = ", not decided" if self.at_most_1 is None else ""
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f}{undecided})"


def factor_of_means(before: Floats, after: Floats) -> Factor:
    """Compare the means of two values of the same replications.

    The interval holds the middle 95% of the factors that samples of as many replications give, drawn from
    these with replacement (the bootstrap). The samples are the same each time. One replication tells nothing.

    Examples
    --------
    >>> values = np.arange(1.0, 11.0)
    >>> str(factor_of_means(values, 2 * values)), str(factor_of_means(values, values[::-1]))
    ('2.00 (2.00 to 2.00)', '1.00 (0.51 to 1.97, not decided)')
    """
    value = float(after.mean() / before.mean())
    if len(before) < 2:
        return Factor(value, 0.0, np.inf)
    drawn = np.random.default_rng(0).integers(len(before), size=(_SHUFFLES, len(before)))
    factors = after[drawn].mean(axis=1) / before[drawn].mean(axis=1)
    low, high = np.quantile(factors, (LEVEL / 2, 1 - LEVEL / 2))
    return Factor(value, float(low), float(high))
