"""CUCB: upper confidence bounds of all cells, at most 1, and an oracle for the best ranking by them."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.counts._counts import Counts
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._count_arrays import arrays_of
from banditrank.policies._kernel import Kernel
from banditrank.policies.baselines._base import BaselinePolicy
from banditrank.policies.baselines._components.cell_choice import CellChoice, choose_cells, init_cell_choice
from banditrank.policies.baselines._components.cell_means import init_cell_means, observe_cells
from banditrank.policies.baselines._components.matching import Matching, best_matching, init_matching

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class CUCBState(NamedTuple):
    """Counts, and the index of each cell as min{mean + width · √(1.5 ln t), 1}: only t changes each round."""

    displays: Floats  # (copies, K, M)
    rewards: Floats  # (copies, K, M)
    arrivals: Floats  # (copies,)
    means: Floats  # (copies, K, M) 1 for cells without displays
    widths: Floats  # (copies, K, M) 1 / √N_jk
    matching: Matching
    scores: Floats  # (K, M) indices of the last ranking


@inlined
def _rank(
    state: CUCBState,
    user_type: int,
    t: int,  # noqa: ARG001 - each copy counts its rounds
    parameters: Floats,  # noqa: ARG001 - none
    rng: np.random.Generator,  # noqa: ARG001 - deterministic
    ranking: Indices,
) -> None:
    i, n_items = user_type, state.scores.shape[1]
    scale = math.sqrt(1.5 * math.log(state.arrivals[i] + 1.0))
    for k in range(ranking.size):
        for j in range(n_items):
            state.scores[k, j] = min(state.means[i, k, j] + scale * state.widths[i, k, j], 1.0)
    best_matching(state.matching, i, state.scores, ranking)


@dataclass(frozen=True, kw_only=True)
class CUCB(BaselinePolicy):
    """CUCB: the ranking that an oracle finds best for upper confidence bounds of its cells.

    A cell is an item at a position; its index in round t of a copy is min{mean reward + √(3 ln t / 2 N_jk),
    1}, and 1 before its first display. The value of a ranking is the sum over its cells, for which the
    matching is an exact oracle. The radius is that of `CombUCB1`, whose bounds are not capped: at 1, many
    cells are equally good at the start, and those that are shown stay until their index is below 1.

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
    W. Chen, Y. Wang, Y. Yuan and Q. Wang (2016), Combinatorial multi-armed bandit and its extension to
    probabilistically triggered arms. Journal of Machine Learning Research 17.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[40, 30], [40, 90], [40, 50]]], [[[10, 6], [9, 30], [1, 2]]], [130])
    >>> CUCB().rank(counts, 0, rng=np.random.default_rng(0))
    array([1, 0])
    """

    name: ClassVar[str] = "cucb"
    assumptions: ClassVar[Assumptions] = Assumptions(
        "nothing",
        ("single-look", "position-based"),  # a cell's mean must not depend on the rest of the ranking
        allows_graded_rewards=True,  # from 0 to 1
    )
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, observe_cells, choose_cells, ranks_first=True)
    has_candidates = True

    def init_state(self, counts: Counts, scratch: Any) -> CUCBState:  # noqa: ARG002 - keeps none
        """Return the state for counts."""
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        displays, rewards, _ = arrays = arrays_of(counts)
        means, widths = init_cell_means(displays, rewards, unshown_mean=1.0, unshown_width=0.0)
        return CUCBState(*arrays, means, widths, init_matching(n, m, k), np.zeros((k, m)))

    def init_choice(self, *, n_user_types: int, n_items: int, n_positions: int) -> CellChoice:  # noqa: ARG002
        """Return the workspace of the matching among candidates."""
        return init_cell_choice(n_items, n_positions)
