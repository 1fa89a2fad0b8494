"""GreedyRank, Algorithm 2 of the paper."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from banditrank.policies._loop_solvers import MAX_GAP, lottery_gaps
from banditrank.policies._paper_policy import PaperPolicy
from banditrank.policies.schedules import Schedule, inverse_square_root


@dataclass(frozen=True, init=False)
class GreedyRank(PaperPolicy):
    """GreedyRank: the ranking with the best estimates, and with probability ε_t a round-robin exploration.

    Parameters
    ----------
    coefficient
        c of ε_t = min(1, c/√t), as in the paper's experiments; that of its experiment on Table 1 by default.
    schedule
        ε_t, a `Schedule` or any function of the round, instead of a coefficient.
    treatment, utility, solver, estimator, smoothing, guarantees
        See `PaperPolicy`.

    Raises
    ------
    InvalidInputError
        If a parameter is not valid, or both a coefficient and a schedule are given.
    UnsolvableError
        If the solver cannot maximise the utility.

    Examples
    --------
    >>> from banditrank.counts._counts import Counts
    >>> counts = Counts.from_arrays([[[100, 100], [100, 100]]], [[[20, 10], [40, 20]]], [200])
    >>> GreedyRank(coefficient=0.0).rank(counts, 0, rng=np.random.default_rng(1))  # item 1, then item 0
    array([1, 0])
    """

    name: ClassVar[str] = "greedy-rank"

    @staticmethod
    def coefficient_schedule(coefficient: float) -> Schedule:
        """Return ε_t of the paper's experiments."""
        return inverse_square_root(coefficient=coefficient)

    def parameters(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return ε_t, at most 1, no bonus, and the solver's gap δ_t = O(1/t), shape (rounds, 3)."""
        values = np.zeros((len(rounds), 3))
        if self.has_lotteries:
            values[:, 2] = lottery_gaps(rounds, self.treatment)
        else:
            np.minimum(MAX_GAP, 1.0 / rounds, out=values[:, 2])
        np.minimum(1.0, self.schedule(rounds), out=values[:, 0])
        return values
