"""UCBRank, Algorithm 3 of the paper."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from banditrank.policies.loop_solvers import optimality_gaps
from banditrank.policies.paper_policy import PaperPolicy
from banditrank.policies.schedules import Schedule, constant


@dataclass(frozen=True, init=False)
class UCBRank(PaperPolicy):
    """Show the best ranking by today's estimates plus a bonus of a_t ln t / N_ij for each item shown.

    A number c given as the schedule means a_t = c, as in the paper's experiments.

    Examples
    --------
    The bonus favours an item that was hardly looked at:

    >>> from banditrank.counts.counts import Counts
    >>> counts = Counts.from_arrays([[[900], [9]]], [[[450], [3]]], [909])
    >>> UCBRank(0.0).rank(counts, 0, rng=np.random.default_rng(1))
    array([0])
    >>> UCBRank(1.0).rank(counts, 0, rng=np.random.default_rng(1))
    array([1])
    """

    name: ClassVar[str] = "ucb-rank"

    @staticmethod
    def coefficient_schedule(coefficient: float) -> Schedule:
        """Return a_t of the paper's experiments."""
        return constant(coefficient)

    def parameters(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return no exploration, the bonus's weight a_t ln t, and the solver's gap δ_t = O(√(ln t / t))."""
        values = np.zeros((len(rounds), 3))
        values[:, 2] = optimality_gaps(rounds)
        np.multiply(self.schedule(rounds), np.log(rounds), out=values[:, 1])
        return values
