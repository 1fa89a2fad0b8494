"""PBM-UCB: upper confidence bounds of item means with known examination probabilities κ."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_number
from banditrank._compilation import inlined
from banditrank.counts._counts import Counts
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._kernel import Kernel
from banditrank.policies._sorting import assign_in_order, top_k
from banditrank.policies.baselines._base import ExaminationBaselinePolicy
from banditrank.policies.baselines._components.exposure_counts import (
    ExposureCounts,
    init_exposure_counts,
    update_exposure_counts,
)

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class PBMUCBState(NamedTuple):
    """Counts, and the index of each item as mean + width · √(δ/2): only δ changes in every round."""

    statistics: ExposureCounts
    means: Floats  # (copies, M) S_j / Ñ_j; infinite without exposure
    widths: Floats  # (copies, M) √N_j / Ñ_j
    leaders: Indices  # (K,) workspace
    indices: Floats  # (M,) workspace


@inlined
def _rank(
    state: PBMUCBState,
    user_type: int,
    t: int,  # noqa: ARG001 - each copy counts its rounds
    parameters: Floats,
    rng: np.random.Generator,  # noqa: ARG001 - deterministic
    ranking: Indices,
) -> None:
    i = user_type
    scale = math.sqrt(0.5 * parameters[0] * math.log(state.statistics.arrivals[i] + 1.0))  # √(δ/2)
    for j in range(state.indices.size):
        state.indices[j] = state.means[i, j] + scale * state.widths[i, j]
    top_k(state.indices, state.leaders)
    assign_in_order(state.leaders, state.statistics.positions[i], ranking)


@inlined
def _observe(
    state: PBMUCBState,
    user_type: int,
    t: int,  # noqa: ARG001 - as above
    ranking: Indices,
    rewards: Floats,
) -> None:
    update_exposure_counts(state.statistics, user_type, ranking, rewards)
    for k in range(ranking.size):
        _update(state, user_type, ranking[k])


@inlined
def _update(state: PBMUCBState, user_type: int, item: int) -> None:
    i, j = user_type, item
    exposure = state.statistics.exposures[i, j]
    if exposure > 0.0:
        state.means[i, j] = state.statistics.reward_totals[i, j] / exposure
        state.widths[i, j] = math.sqrt(state.statistics.display_totals[i, j]) / exposure
    else:
        state.means[i, j], state.widths[i, j] = np.inf, 0.0


@dataclass(frozen=True, kw_only=True)
class PBMUCB(ExaminationBaselinePolicy):
    """PBM-UCB: items by decreasing upper confidence bound, to positions by decreasing examination.

    The bound of item j in round t of a copy is S_j/Ñ_j + √(N_j/Ñ_j) √(δ/(2Ñ_j)), δ = (1+ε) ln t, where
    Ñ_j = Σ_k κ_k N_jk is its expected number of examinations. Items without exposure come first.

    Parameters
    ----------
    examination
        κ, a row for each copy, or one for all.
    epsilon
        ε ≥ 0. The regret bound requires ε > 0; the paper's experiments use 0.
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    InvalidInputError
        If κ, ε, the treatment or the utility is not valid.

    References
    ----------
    P. Lagrée, C. Vernade and O. Cappé (2016), Multiple-play bandits in the position-based model. Advances in
    Neural Information Processing Systems 29.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[40, 0], [40, 10], [0, 50]]], [[[10, 0], [9, 1], [0, 9]]], [100])
    >>> PBMUCB(examination=((0.3, 0.7),)).rank(counts, 0, rng=np.random.default_rng(0))
    array([1, 0])
    """

    name: ClassVar[str] = "pbm-ucb"
    assumptions: ClassVar[Assumptions] = replace(
        ExaminationBaselinePolicy.assumptions,
        allows_graded_rewards=True,  # from 0 to 1, as Hoeffding's inequality requires
    )
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    epsilon: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", check_number("epsilon", self.epsilon, 0.0, 1e6))

    def init_state(self, counts: Counts, scratch: Any) -> PBMUCBState:  # noqa: ARG002 - keeps none
        """Return the state for counts."""
        statistics = init_exposure_counts(counts, self.examination_rows(counts))
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        is_exposed = statistics.exposures > 0
        means, widths = np.full((n, m), np.inf), np.zeros((n, m))
        np.divide(statistics.reward_totals, statistics.exposures, out=means, where=is_exposed)
        np.divide(np.sqrt(statistics.display_totals), statistics.exposures, out=widths, where=is_exposed)
        return PBMUCBState(statistics, means, widths, np.zeros(k, dtype=np.uintp), np.zeros(m))

    def parameters(self, rounds: NDArray[np.int64]) -> Floats:
        """Return 1 + ε of every round, shape (rounds, 1)."""
        return np.full((len(rounds), 1), 1.0 + self.epsilon)
