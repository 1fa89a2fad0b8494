"""The policy that knows the world: regret 0."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.errors import InvalidInputError
from banditrank.model.problem import Problem
from banditrank.model.values import best_personalized_rankings
from banditrank.policies.base import CompiledPolicy, Kernel, Scratch, Treatment, check_treatment
from banditrank.policies.uniform import observe_nothing
from banditrank.solvers.equal import best_equal_ranking
from banditrank.statistics.counts import Counts
from banditrank.utilities.utility import Utility, find_utility


class OracleState(NamedTuple):
    """The best rankings."""

    rankings: NDArray[np.uintp]  # (N, K)


@inlined
def _rank(
    state: OracleState,
    user_type: int,
    t: int,  # noqa: ARG001 - nothing changes
    exploration: float,  # noqa: ARG001
    bonus: float,  # noqa: ARG001
    rng: np.random.Generator,  # noqa: ARG001
    ranking: NDArray[np.uintp],
) -> None:
    for position in range(ranking.size):
        ranking[position] = state.rankings[user_type, position]


@dataclass(frozen=True, init=False)
class Oracle(CompiledPolicy):
    """Show each type its best ranking, or all types the best equal one.

    Examples
    --------
    >>> from banditrank.model.catalog import kdd2012
    >>> oracle = Oracle(kdd2012())
    >>> oracle.rank(Counts.empty_for(kdd2012()), 1, rng=np.random.default_rng(0))
    array([3, 2])
    """

    name: ClassVar[str] = "oracle"

    problem: Problem
    treatment: Treatment
    utility: Utility

    def __init__(
        self,
        problem: Problem,
        *,
        treatment: Treatment = "personalized",
        utility: Utility | str = "utilitarian",
    ) -> None:
        check_treatment(treatment)
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "treatment", treatment)
        object.__setattr__(self, "utility", find_utility(utility))

    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:  # noqa: ARG002 - one for all sizes
        """Return the formulas."""
        return Kernel(_rank, observe_nothing)

    def start(self, counts: Counts, scratch: Scratch) -> OracleState:  # noqa: ARG002 - nothing is remembered
        """Return the best rankings."""
        problem = self.problem
        known = (problem.n_user_types, problem.n_items, problem.n_positions)
        if counts.displays.shape != known:
            rule = f"must have the shape of the problem that the oracle knows, {known}"
            raise InvalidInputError("counts", rule, counts.displays.shape)
        if self.treatment == "personalized":
            rankings = best_personalized_rankings(problem)
        else:
            rankings = np.tile(best_equal_ranking(problem, self.utility), (problem.n_user_types, 1))
        return OracleState(rankings.astype(np.uintp))
