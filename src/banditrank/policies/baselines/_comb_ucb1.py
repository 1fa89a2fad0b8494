"""CombUCB1: upper confidence bounds of all cells, and the matching that maximises their sum."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.counts._counts import Counts
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._count_arrays import arrays_of, record_round
from banditrank.policies._kernel import Kernel
from banditrank.policies._restricted_solver import load_columns
from banditrank.policies._restriction import LENGTH, Restriction
from banditrank.policies.baselines._base import BaselinePolicy
from banditrank.policies.baselines._components.matching import Matching, best_matching, init_matching
from banditrank.solvers._assignment import AssignmentWorkspace, assign, new_assignment_workspace

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
def _rank(
    state: CombUCB1State,
    user_type: int,
    t: int,  # noqa: ARG001 - each copy counts its rounds
    parameters: Floats,  # noqa: ARG001 - none
    rng: np.random.Generator,  # noqa: ARG001 - deterministic
    ranking: Indices,
) -> None:
    i, n_items = user_type, state.scores.shape[1]
    scale = math.sqrt(1.5 * math.log(max(1.0, state.arrivals[i])))
    for k in range(ranking.size):
        for j in range(n_items):
            state.scores[k, j] = state.means[i, k, j] + scale * state.widths[i, k, j]
    best_matching(state.matching, i, state.scores, ranking)


@inlined
def _observe(
    state: CombUCB1State,
    user_type: int,
    t: int,  # noqa: ARG001 - as above
    ranking: Indices,
    rewards: Floats,
) -> None:
    i = user_type
    record_round(state, i, ranking, rewards)
    for k in range(ranking.size):
        j = ranking[k]
        state.means[i, k, j] = state.rewards[i, k, j] / state.displays[i, k, j]
        state.widths[i, k, j] = 1.0 / math.sqrt(state.displays[i, k, j])


class CombUCB1Choice(NamedTuple):
    """Workspace of the matching among candidates."""

    scores: Floats  # (K, M) by column
    allowed: NDArray[np.int8]  # (K, M) by column
    columns: Indices  # (M,) the item of each column
    start: Indices  # (K,)
    workspace: AssignmentWorkspace


@inlined
def _choose(
    state: CombUCB1State,
    restriction: Restriction,
    workspace: CombUCB1Choice,
    user_type: int,
    t: int,  # noqa: ARG001 - as above
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,  # noqa: ARG001
    ranking: Indices,
) -> None:
    i, columns, scores = user_type, workspace.columns, workspace.scores
    n_columns = load_columns(restriction, workspace.allowed, columns, workspace.start)
    scale = math.sqrt(1.5 * math.log(max(1.0, state.arrivals[i])))
    for column in range(n_columns):
        workspace.workspace.prices[column] = 0.0
        j = columns[column]
        for k in range(ranking.size):
            scores[k, column] = 0.0 if workspace.allowed[k, column] == 1 else -np.inf
            if j < state.means.shape[2]:
                scores[k, column] += state.means[i, k, j] + scale * state.widths[i, k, j]
    assign(scores, n_columns, workspace.workspace, ranking)
    for k in range(restriction.sizes[LENGTH]):
        ranking[k] = columns[ranking[k]]


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
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe, _choose)
    has_candidates = True

    def init_state(self, counts: Counts, scratch: Any) -> CombUCB1State:  # noqa: ARG002 - keeps none
        """Return the state for counts."""
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        displays, rewards, _ = arrays = arrays_of(counts)
        means, widths = np.full((n, k, m), _UNSHOWN), np.zeros((n, k, m))
        np.divide(rewards, displays, out=means, where=displays > 0)
        np.divide(1.0, np.sqrt(displays), out=widths, where=displays > 0)
        return CombUCB1State(*arrays, means, widths, init_matching(n, m, k), np.zeros((k, m)))

    def init_choice(self, *, n_user_types: int, n_items: int, n_positions: int) -> CombUCB1Choice:  # noqa: ARG002
        """Return the workspace of the matching among candidates."""
        m, k = n_items, n_positions
        return CombUCB1Choice(
            np.zeros((k, m)),
            np.zeros((k, m), dtype=np.int8),
            np.zeros(m, dtype=np.uintp),
            np.zeros(k, dtype=np.uintp),
            new_assignment_workspace(m, k),
        )
