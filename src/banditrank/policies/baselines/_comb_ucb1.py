"""CombUCB1: upper confidence bounds of all cells, and the matching that maximises their sum."""

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
from banditrank.policies._restriction import Restriction
from banditrank.policies.baselines._base import BaselinePolicy
from banditrank.policies.baselines._components.cell_choice import CellChoice, choose_cells, init_cell_choice
from banditrank.policies.baselines._components.cell_means import init_cell_means, observe_cells
from banditrank.policies.baselines._components.matching import Matching, best_matching, init_matching

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

_UNSHOWN = 1e4  # index of a cell that was never shown: exceeds any sum of other indices


class CombUCB1State(NamedTuple):
    """Counts, and the index of each cell as mean + width · √(1.5 ln t): only t changes in every round."""

    displays: Floats  # (copies, K, M)
    rewards: Floats  # (copies, K, M)
    arrivals: Floats  # (copies,)
    means: Floats  # (copies, K, M)
    widths: Floats  # (copies, K, M) 1 / √N_jk
    matching: Matching
    scores: Floats  # (K, M) workspace


@inlined
def _score_cells(state: CombUCB1State, i: int) -> None:
    """Write the index of each cell."""
    scale = math.sqrt(1.5 * math.log(max(1.0, state.arrivals[i])))
    for k in range(state.scores.shape[0]):
        for j in range(state.scores.shape[1]):
            state.scores[k, j] = state.means[i, k, j] + scale * state.widths[i, k, j]


@inlined
def _rank(
    state: CombUCB1State,
    user_type: int,
    t: int,  # noqa: ARG001 - each copy counts its rounds
    parameters: Floats,  # noqa: ARG001 - none
    rng: np.random.Generator,  # noqa: ARG001 - deterministic
    ranking: Indices,
) -> None:
    _score_cells(state, user_type)
    best_matching(state.matching, user_type, state.scores, ranking)


@inlined
def _choose(
    state: CombUCB1State,
    restriction: Restriction,
    workspace: CellChoice,
    user_type: int,
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    _score_cells(state, user_type)
    choose_cells(state, restriction, workspace, user_type, t, parameters, rng, ranking)


@dataclass(frozen=True, kw_only=True)
class CombUCB1(BaselinePolicy):
    """CombUCB1: the ranking with the largest sum of upper confidence bounds.

    A cell is an item at a position; its bound in round t of a copy is its mean reward plus √(1.5 ln(t − 1) /
    N_jk). The policy assumes nothing about positions and learns nothing across them, so that every item has
    to be tried at each. A cell that was never shown comes first.

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
    B. Kveton, Z. Wen, A. Ashkan and C. Szepesvári (2015), Tight regret bounds for stochastic combinatorial
    semi-bandits. Artificial Intelligence and Statistics 18.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[40, 30], [40, 90], [40, 50]]], [[[10, 6], [9, 30], [1, 2]]], [130])
    >>> CombUCB1().rank(counts, 0, rng=np.random.default_rng(0))
    array([1, 0])
    """

    name: ClassVar[str] = "comb-ucb1"
    assumptions: ClassVar[Assumptions] = Assumptions(
        "nothing",
        ("single-look", "position-based"),  # a cell's mean must not depend on the rest of the ranking
        allows_graded_rewards=True,  # from 0 to 1
    )
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, observe_cells, _choose)
    has_candidates = True

    def init_state(self, counts: Counts, scratch: Any) -> CombUCB1State:  # noqa: ARG002 - keeps none
        """Return the state for counts."""
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        displays, rewards, _ = arrays = arrays_of(counts)
        means, widths = init_cell_means(displays, rewards, unshown_mean=_UNSHOWN, unshown_width=0.0)
        return CombUCB1State(*arrays, means, widths, init_matching(n, m, k), np.zeros((k, m)))

    def init_choice(self, *, n_user_types: int, n_items: int, n_positions: int) -> CellChoice:  # noqa: ARG002
        """Return the workspace of the matching among candidates."""
        return init_cell_choice(n_items, n_positions)
