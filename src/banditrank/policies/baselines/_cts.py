"""Combinatorial Thompson sampling: Beta posteriors of all cells, and the best ranking for a sample."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.counts._counts import Counts
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._count_arrays import arrays_of, record_round
from banditrank.policies._kernel import Kernel
from banditrank.policies.baselines._base import BaselinePolicy
from banditrank.policies.baselines._components.cell_choice import CellChoice, choose_cells, init_cell_choice
from banditrank.policies.baselines._components.matching import Matching, best_matching, init_matching

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class CTSState(NamedTuple):
    """Counts, which are the parameters of the posteriors, and the last sample."""

    displays: Floats  # (copies, K, M)
    rewards: Floats  # (copies, K, M)
    arrivals: Floats  # (copies,)
    matching: Matching
    scores: Floats  # (K, M) the last sample


@inlined
def _rank(
    state: CTSState,
    user_type: int,
    t: int,  # noqa: ARG001 - the posterior depends on counts alone
    parameters: Floats,  # noqa: ARG001 - none
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    i = user_type
    for k in range(ranking.size):
        for j in range(state.scores.shape[1]):
            clicks = state.rewards[i, k, j]
            misses = max(0.0, state.displays[i, k, j] - clicks)
            state.scores[k, j] = rng.beta(1.0 + clicks, 1.0 + misses)
    best_matching(state.matching, i, state.scores, ranking)


@inlined
def _observe(state: CTSState, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:  # noqa: ARG001
    record_round(state, user_type, ranking, rewards)


@dataclass(frozen=True, kw_only=True)
class CTS(BaselinePolicy):
    """Combinatorial Thompson sampling: the best ranking for posterior samples of its cells.

    A cell is an item at a position, with a Beta(1, 1) prior of its mean. Each round samples all cells and
    shows the ranking with the largest sum, found by an exact oracle, which the paper's bound needs. Its
    posteriors are Beta(1 + clicks, 1 + displays without a click). Graded rewards count as fractions of a
    click, where the paper draws a click with that probability.

    Parameters
    ----------
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    UnknownNameError
        If the treatment or the utility is unknown.

    References
    ----------
    S. Wang and W. Chen (2018), Thompson sampling for combinatorial semi-bandits. International Conference on
    Machine Learning 35.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[400, 300], [400, 900]]], [[[320, 60], [40, 90]]], [1300])
    >>> CTS().rank(counts, 0, rng=np.random.default_rng(1))
    array([0, 1])
    """

    name: ClassVar[str] = "cts"
    assumptions: ClassVar[Assumptions] = Assumptions(
        "nothing",
        ("single-look", "position-based"),  # a cell's mean must not depend on the rest of the ranking
        allows_graded_rewards=True,  # from 0 to 1
    )
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe, choose_cells, ranks_first=True)
    has_candidates = True

    def init_state(self, counts: Counts, scratch: Any) -> CTSState:  # noqa: ARG002 - keeps none
        """Return the state for counts."""
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        return CTSState(*arrays_of(counts), init_matching(n, m, k), np.zeros((k, m)))

    def init_choice(self, *, n_user_types: int, n_items: int, n_positions: int) -> CellChoice:  # noqa: ARG002
        """Return the workspace of the matching among candidates."""
        return init_cell_choice(n_items, n_positions)
