"""UCBRank, Algorithm 3 of the paper."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from banditrank.policies._loop_solvers import lottery_gaps, optimality_gaps
from banditrank.policies._paper_policy import PaperPolicy
from banditrank.policies.schedules import Schedule, constant


@dataclass(frozen=True, init=False)
class UCBRank(PaperPolicy):
    """UCBRank: the ranking with the best estimates plus a bonus of a_t ln t / N_ij for each item.

    Parameters
    ----------
    coefficient
        c of a_t = c, as in the paper's experiments; that of its experiment on Table 1 by default.
    schedule
        a_t, a `Schedule` or any function of the round, instead of a coefficient.
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
    The bonus favours an item with little exposure:

    >>> from banditrank.counts._counts import Counts
    >>> counts = Counts.from_arrays([[[900], [9]]], [[[450], [3]]], [909])
    >>> UCBRank(coefficient=0.0).rank(counts, 0, rng=np.random.default_rng(1))
    array([0])
    >>> UCBRank(coefficient=1.0).rank(counts, 0, rng=np.random.default_rng(1))
    array([1])
    """

    name: ClassVar[str] = "ucb-rank"

    @staticmethod
    def coefficient_schedule(coefficient: float) -> Schedule:
        """Return a_t of the paper's experiments."""
        return constant(coefficient=coefficient)

    def parameters(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return no exploration, the bonus a_t ln t, and the solver's gap, shape (rounds, 3)."""
        values = np.zeros((len(rounds), 3))
        values[:, 2] = lottery_gaps(rounds, self.treatment) if self.has_lotteries else optimality_gaps(rounds)
        np.multiply(self.schedule(rounds), np.log(rounds), out=values[:, 1])
        return values
