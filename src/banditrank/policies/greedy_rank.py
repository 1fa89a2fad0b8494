"""GreedyRank, Algorithm 2 of the paper."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from banditrank.policies.loop_solvers import MAX_GAP
from banditrank.policies.paper_policy import PaperPolicy
from banditrank.policies.schedules import Schedule, inverse_square_root


@dataclass(frozen=True, init=False)
class GreedyRank(PaperPolicy):
    """Show the best ranking by today's estimates, and with probability ε_t items in turn.

    A number c given as the schedule means ε_t = min(1, c/√t), as in the paper's experiments.

    Examples
    --------
    >>> from banditrank.counts.counts import Counts
    >>> counts = Counts.from_arrays([[[100, 100], [100, 100]]], [[[20, 10], [40, 20]]], [200])
    >>> GreedyRank(0.0).rank(counts, 0, rng=np.random.default_rng(1))  # item 1, then item 0
    array([1, 0])
    """

    name: ClassVar[str] = "greedy-rank"

    @staticmethod
    def coefficient_schedule(coefficient: float) -> Schedule:
        """Return ε_t of the paper's experiments."""
        return inverse_square_root(coefficient)

    def parameters(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return ε_t, at most 1, no bonus, and the solver's gap δ_t = O(1/t)."""
        values = np.zeros((len(rounds), 3))
        np.minimum(MAX_GAP, 1.0 / rounds, out=values[:, 2])
        np.minimum(1.0, self.schedule(rounds), out=values[:, 0])
        return values
