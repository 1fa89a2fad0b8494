"""PBM-PIE: the items with the best estimates, and exploration at the last position only."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_number
from banditrank._compilation import compiled, inlined
from banditrank.counts._counts import Counts
from banditrank.policies._kernel import Kernel
from banditrank.policies._round_robin import round_robin
from banditrank.policies._sorting import assign_in_order, top_k
from banditrank.policies.baselines._base import ExaminationBaselinePolicy, check_horizon
from banditrank.policies.baselines._components.exposure_counts import (
    ExposureCounts,
    init_exposure_counts,
    update_exposure_counts,
)

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class PBMPIEState(NamedTuple):
    """Counts, and the terms of the KL statistic of each item.

    Φ_j(q) = Σ_k N_jk d(S_jk/N_jk, κ_k q) = entropy_j − S_j ln q − Σ_k F_jk ln(1 − κ_k q), where F counts
    displays without a click. Only shown items change any of it; the logarithms are the same for all items.
    """

    statistics: ExposureCounts
    estimates: Floats  # (copies, M) S_j / Ñ_j; infinite without exposure
    entropies: Floats  # (copies, M) Σ_k S_jk ln(S_jk / (N_jk κ_k)) + F_jk ln(F_jk / N_jk)
    leaders: Indices  # (K,) workspace
    rivals: Indices  # (M,) workspace
    logs: Floats  # (K + 1,) workspace: ln(1 − κ_k q), then ln q


@inlined
def _rank(
    state: PBMPIEState,
    user_type: int,
    t: int,  # noqa: ARG001 - each copy counts its rounds
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    i, statistics = user_type, state.statistics
    n_items, arrivals = state.rivals.size, statistics.arrivals[user_type]
    if arrivals < n_items:
        round_robin(int(arrivals), n_items, ranking)  # every item once at each position
        return
    top_k(state.estimates[i], state.leaders)
    n_rivals = _find_rivals(state, i, parameters[0] + parameters[1] * math.log(arrivals + 1.0))
    if n_rivals > 0 and rng.random() < 0.5:
        state.leaders[ranking.size - 1] = state.rivals[int(rng.random() * n_rivals)]
    assign_in_order(state.leaders, statistics.positions[i], ranking)


@compiled
def _find_rivals(state: PBMPIEState, user_type: int, level: float) -> int:
    """Write the items outside the leaders whose bound reaches the last leader's estimate; return how many.

    U_j itself is not needed: Φ_j is convex, so U_j ≥ q if Φ_j(q) ≤ level, or if Φ_j decreases at q. (If Φ_j
    exceeds the level everywhere, U_j is its minimiser.)
    """
    i, statistics, n_positions = user_type, state.statistics, state.leaders.size
    last = state.estimates[i, state.leaders[n_positions - 1]]  # q
    if last > 1.0:
        return 0  # bounds are at most 1
    for k in range(n_positions):
        state.logs[k] = math.log1p(-statistics.examination[i, k] * last)
    state.logs[n_positions] = math.log(last) if last > 0.0 else -math.inf
    found = 0
    for j in range(state.rivals.size):
        clicks = statistics.reward_totals[i, j]
        divergence = state.entropies[i, j] - (clicks * state.logs[n_positions] if clicks > 0.0 else 0.0)
        slope = -clicks  # of Φ_j at q, times q
        for k in range(n_positions):
            misses = statistics.displays[i, k, j] - statistics.rewards[i, k, j]
            if misses > 0.0:
                seen = statistics.examination[i, k] * last
                divergence -= misses * state.logs[k]
                slope += misses * seen / (1.0 - seen)
        if divergence <= level or slope <= 0.0:
            state.rivals[found] = j  # overwritten by the next if it leads
            found += 1
            for rank in range(n_positions):
                found -= state.leaders[rank] == j
    return found


@inlined
def _observe(
    state: PBMPIEState,
    user_type: int,
    t: int,  # noqa: ARG001 - as above
    ranking: Indices,
    rewards: Floats,
) -> None:
    update_exposure_counts(state.statistics, user_type, ranking, rewards)
    for k in range(ranking.size):
        _update(state, user_type, ranking[k])


@compiled
def _update(state: PBMPIEState, user_type: int, item: int) -> None:
    i, j, statistics = user_type, item, state.statistics
    exposure = statistics.exposures[i, j]
    state.estimates[i, j] = statistics.reward_totals[i, j] / exposure if exposure > 0.0 else np.inf
    entropy = 0.0
    for k in range(state.leaders.size):
        displays, clicks = statistics.displays[i, k, j], statistics.rewards[i, k, j]
        if clicks > 0.0:
            entropy += clicks * math.log(clicks / (displays * statistics.examination[i, k]))
        if clicks < displays:
            entropy += (displays - clicks) * math.log1p(-clicks / displays)
    state.entropies[i, j] = entropy


@compiled
def _update_all(state: PBMPIEState) -> None:
    for i in range(state.estimates.shape[0]):
        for j in range(state.estimates.shape[1]):
            _update(state, i, j)


@dataclass(frozen=True, kw_only=True)
class PBMPIE(ExaminationBaselinePolicy):
    """PBM-PIE: the leaders by decreasing estimate S_j/Ñ_j, with exploration at the last position.

    Rivals are items outside the leaders whose bound U_j = sup {q ≤ 1 : Σ_k N_jk d(S_jk/N_jk, κ_k q) ≤ (1+ε)
    ln T} reaches the last leader's estimate. With probability ½ one of them, drawn uniformly, replaces the
    last leader. The first M rounds of a copy show every item once at each position.

    Parameters
    ----------
    examination
        κ, a row for each copy, or one for all.
    epsilon
        ε ≥ 0.
    horizon
        T, as in the paper. By default the round t of the copy is used instead: the horizon need not be known,
        and early rounds explore less.
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    InvalidInputError
        If κ, ε or the horizon, the treatment or the utility is not valid.

    References
    ----------
    P. Lagrée, C. Vernade and O. Cappé (2016), Multiple-play bandits in the position-based model. Advances in
    Neural Information Processing Systems 29.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[40, 0], [40, 90], [0, 50]]], [[[10, 0], [9, 30], [0, 2]]], [130])
    >>> PBMPIE(examination=((0.3, 0.7),)).rank(counts, 0, rng=np.random.default_rng(0))
    array([1, 0])
    """

    name: ClassVar[str] = "pbm-pie"
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    epsilon: float = 0.0
    horizon: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", check_number("epsilon", self.epsilon, 0.0, 1e6))
        if self.horizon is not None:
            object.__setattr__(self, "horizon", check_horizon(self.horizon))

    def init_state(self, counts: Counts, scratch: Any) -> PBMPIEState:  # noqa: ARG002 - keeps none
        """Return the state for counts."""
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        statistics = init_exposure_counts(counts, self.examination_rows(counts))
        workspace = np.zeros(k, dtype=np.uintp), np.zeros(m, dtype=np.uintp), np.zeros(k + 1)
        state = PBMPIEState(statistics, np.zeros((n, m)), np.zeros((n, m)), *workspace)
        _update_all(state)
        return state

    def parameters(self, rounds: NDArray[np.int64]) -> Floats:
        """Return the fixed level, and the factor of ln t, one of which is 0, shape (rounds, 2)."""
        factor = 1.0 + self.epsilon
        level = (0.0, factor) if self.horizon is None else (factor * math.log(self.horizon), 0.0)
        return np.tile(level, (len(rounds), 1))
