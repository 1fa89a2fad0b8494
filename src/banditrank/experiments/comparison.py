"""Whether runs of one kind give less than runs of another, or are too few to tell."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVEL = 0.05  # how often, at most, a difference is found where there is none
BY_RANKS = f"by a two-sided rank test at the {LEVEL:.0%} level"
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
