"""FTRL-PBM: a lottery over rankings that follows the regularized leader, in any environment.

In round t, X minimises Σ_kj L̂_kj X_kj − (1/η) Σ_kj √X_kj over all lotteries, from which
`_components.dependent_rounding` draws. L̂ are importance-weighted estimates of the losses of cells and η =
c/√t. The minimum is X_kj = (2η s_kj)⁻² with s_kj = L̂_kj + u_k + v_j > 0, for dual prices u of the positions
and v ≥ 0 of the items. They are found by Newton's method from those of the last round: the prices of items
are eliminated, so that each step solves a system of K equations. After a step that does not help, all prices
are set in turn. If the prices of the last round are far away, as after items have changed, the search starts
at a small η and increases it in stages.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_number
from banditrank._compilation import inlined, internal
from banditrank.counts._counts import Counts
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._cholesky import cholesky_factor, solve_lower, solve_upper
from banditrank.policies._count_arrays import arrays_of, record_round
from banditrank.policies._kernel import Kernel
from banditrank.policies.baselines._base import BaselinePolicy
from banditrank.policies.baselines._components.dependent_rounding import (
    LotteryWorkspace,
    draw_from_lottery,
    init_lottery_workspace,
)
from banditrank.policies.baselines._components.item_remapping import remap_items
from banditrank.policies.baselines._components.notes import note_float, noted_float

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

_TOLERANCE = 1e-10  # of the sums of probabilities
_ACCEPTED = 1e-8  # violation that rounding errors may leave
_MAX_STEPS = 100  # three are typical
_MIN_PROGRESS = 0.9  # of the violation, after a step of Newton's method; otherwise all prices are set in turn
_MAX_SWEEPS = 20
_STAGE = 0.7  # ratio of the scales of two stages, if prices are not near those of the last round
_MAX_SHRINKAGE = 0.7  # of s in a step, which must stay positive


class LeaderWorkspace(NamedTuple):
    """Dual prices, and the workspace of Newton's method."""

    position_prices: Floats  # (copies, K) u
    item_prices: Floats  # (copies, M) v
    lottery: Floats  # (K, M) X of the last round
    slopes: Floats  # (K, M) −dX/ds
    item_sums: Floats  # (M,) excess of the probabilities of an item over 1
    item_slopes: Floats  # (M,) sums of slopes of priced items; 0 for others
    system: Floats  # (K, K)
    step: Floats  # (K,)
    kept_position_prices: Floats  # (K,) before a step
    kept_item_prices: Floats  # (M,) before a step


def init_leader(losses: Floats) -> LeaderWorkspace:
    """Return a workspace for losses, shape (copies, K, M), with prices of a uniform lottery in round 1."""
    n_copies, k, m = losses.shape
    return LeaderWorkspace(
        -losses.min(axis=2) + math.sqrt(m) / 2.0,
        np.zeros((n_copies, m)),
        np.zeros((k, m)),
        np.zeros((k, m)),
        np.zeros(m),
        np.zeros(m),
        np.zeros((k, k)),
        np.zeros(k),
        np.zeros(k),
        np.zeros(m),
    )


@internal
def follow_leader(losses: Floats, rate: float, copy: int, leader: LeaderWorkspace) -> None:
    """Write the lottery for losses, shape (K, M), and a learning rate η."""
    u, v = leader.position_prices[copy], leader.item_prices[copy]
    scale = 0.25 / (rate * rate)  # X = scale / s²
    if _find_prices(losses, scale, u, v, leader) <= _ACCEPTED:
        return
    spread = 0.0
    for k in range(u.size):
        least = most = losses[k, 0]
        for j in range(1, v.size):
            least, most = min(least, losses[k, j]), max(most, losses[k, j])
        spread = max(spread, most - least)
        u[k] = -least
    for j in range(v.size):
        v[j] = 0.0
    stage = max(scale, spread * spread)  # at which the lottery is nearly uniform
    for k in range(u.size):
        u[k] += math.sqrt(stage * v.size)
    while _find_prices(losses, stage, u, v, leader) <= 1.0 and stage > scale:
        stage = max(scale, _STAGE * stage)


@internal
def _find_prices(losses: Floats, scale: float, u: Floats, v: Floats, leader: LeaderWorkspace) -> float:
    """Find prices by Newton's method from the given ones; return the largest violation of a constraint."""
    sweeps, violation = 0, _evaluate(losses, scale, u, v, leader)
    for _ in range(_MAX_STEPS):
        if violation <= _TOLERANCE or violation == np.inf or sweeps > _MAX_SWEEPS:
            break
        before = violation
        _copy(u, leader.kept_position_prices)
        _copy(v, leader.kept_item_prices)
        _take_step(losses, u, v, leader)
        violation = _evaluate(losses, scale, u, v, leader)
        if not violation <= _MIN_PROGRESS * before:
            _copy(leader.kept_position_prices, u)
            _copy(leader.kept_item_prices, v)
            for k in range(u.size):
                _set_price(losses[k], v, scale, u, k)
            for j in range(v.size - (u.size == v.size)):
                _set_price(losses[:, j], u, scale, v, j)
                if u.size < v.size:
                    v[j] = max(v[j], 0.0)
            sweeps += 1
            violation = _evaluate(losses, scale, u, v, leader)
    return violation


@inlined
def _copy(source: Floats, target: Floats) -> None:
    for index in range(source.size):
        target[index] = source[index]


@internal
def _evaluate(losses: Floats, scale: float, u: Floats, v: Floats, leader: LeaderWorkspace) -> float:
    """Write X, its slopes and sums for prices; return the largest violation, ∞ if some s is not positive."""
    lottery, slopes, step = leader.lottery, leader.slopes, leader.step
    for j in range(v.size):
        leader.item_sums[j] = -1.0
        leader.item_slopes[j] = 0.0
    violation = 0.0
    for k in range(u.size):
        step[k] = -1.0
        for j in range(v.size):
            s = losses[k, j] + u[k] + v[j]
            if not s > 0.0:
                return np.inf
            probability = scale / (s * s)
            lottery[k, j] = probability
            slopes[k, j] = 2.0 * probability / s
            step[k] += probability
            leader.item_sums[j] += probability
            leader.item_slopes[j] += slopes[k, j]
        violation = max(violation, abs(step[k]))
    return max(violation, _select_items(v, leader))


@inlined
def _select_items(v: Floats, leader: LeaderWorkspace) -> float:
    """Set the slopes of items whose price stays to 0; return the largest violation of the other items.

    At least one price must stay, or the system is singular. If every item is shown, prices have either sign,
    and that of the last one stays. Otherwise they are positive or 0.
    """
    violation, is_square, cheapest, stays = 0.0, leader.step.size == v.size, 0, False
    for j in range(v.size):
        is_priced = j < v.size - 1 if is_square else v[j] > 0.0 or leader.item_sums[j] > _TOLERANCE
        if is_priced:
            violation = max(violation, abs(leader.item_sums[j]))
            if v[j] < v[cheapest]:
                cheapest = j
        else:
            leader.item_slopes[j] = 0.0
            stays = True
    if not stays:
        leader.item_slopes[cheapest] = 0.0
    return violation


@internal
def _set_price(losses: Floats, others: Floats, scale: float, prices: Floats, index: int) -> None:
    """Set a price to the one at which its probabilities sum to 1, given the prices of the other side."""
    least = losses[0] + others[0]
    for other in range(1, others.size):
        least = min(least, losses[other] + others[other])
    price = math.sqrt(scale) - least  # at most the solution, from where the steps increase it
    for _ in range(_MAX_STEPS):
        excess, slope = -1.0, 0.0
        for other in range(others.size):
            s = losses[other] + others[other] + price
            excess += scale / (s * s)
            slope += 2.0 * scale / (s * s * s)
        if excess <= _TOLERANCE:
            break
        price += excess / slope
    prices[index] = price


@inlined
def _take_step(losses: Floats, u: Floats, v: Floats, leader: LeaderWorkspace) -> None:
    """Take a step of Newton's method, short enough for s to stay positive."""
    _load_system(leader)
    cholesky_factor(leader.system, leader.system, 1e-200)
    solve_lower(leader.system, leader.step)
    solve_upper(leader.system, leader.step)
    _price_items(v, leader)
    length = 1.0
    for k in range(u.size):
        for j in range(v.size):
            change = leader.step[k] + leader.item_sums[j]
            room = _MAX_SHRINKAGE * (losses[k, j] + u[k] + v[j])
            if -change * length > room:
                length = -room / change
    for k in range(u.size):
        u[k] += length * leader.step[k]
    for j in range(v.size):
        v[j] += length * leader.item_sums[j]


@inlined
def _load_system(leader: LeaderWorkspace) -> None:
    """Write the system of the position prices; sums of the other slopes avoid cancellation."""
    slopes, step, system = leader.slopes, leader.step, leader.system
    for k in range(step.size):
        for other in range(k + 1):
            system[k, other] = 0.0
        for j in range(leader.item_sums.size):
            total = leader.item_slopes[j]
            if total == 0.0:
                system[k, k] += slopes[k, j]
                continue
            step[k] -= slopes[k, j] * leader.item_sums[j] / total
            others = 0.0
            for other in range(step.size):
                others += slopes[other, j] if other != k else 0.0
            system[k, k] += slopes[k, j] * others / total
            for other in range(k):
                system[k, other] -= slopes[k, j] * slopes[other, j] / total


@inlined
def _price_items(v: Floats, leader: LeaderWorkspace) -> None:
    """Replace ``item_sums`` by the steps of the item prices, given those of the position prices."""
    steps, is_square = leader.item_sums, leader.step.size == v.size
    for j in range(v.size):
        if leader.item_slopes[j] == 0.0:
            steps[j] = 0.0
            continue
        for k in range(leader.step.size):
            steps[j] -= leader.slopes[k, j] * leader.step[k]
        steps[j] /= leader.item_slopes[j]
        if not is_square:
            steps[j] = max(steps[j], -v[j])


class FTRLPBMState(NamedTuple):
    """Counts, estimated losses, and the lottery of the last round."""

    displays: Floats  # (copies, K, M)
    rewards: Floats  # (copies, K, M)
    arrivals: Floats  # (copies,)
    losses: Floats  # (copies, K, M) L̂
    learning_rate: float
    leader: LeaderWorkspace
    draw: LotteryWorkspace
    note: NDArray[np.int64]  # (2 K,) mantissas and exponents of the probabilities of the shown cells


@inlined
def _rank(
    state: FTRLPBMState,
    user_type: int,
    t: int,  # noqa: ARG001 - each copy counts its rounds
    parameters: Floats,  # noqa: ARG001 - none
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    rate = state.learning_rate / math.sqrt(state.arrivals[user_type] + 1.0)
    follow_leader(state.losses[user_type], rate, user_type, state.leader)
    draw_from_lottery(state.leader.lottery, state.draw, rng, ranking)
    for k in range(ranking.size):
        note_float(state.note, k, ranking.size + k, state.leader.lottery[k, ranking[k]])


@inlined
def _observe(
    state: FTRLPBMState,
    user_type: int,
    t: int,  # noqa: ARG001 - as above
    ranking: Indices,
    rewards: Floats,
) -> None:
    record_round(state, user_type, ranking, rewards)
    for k in range(ranking.size):
        probability = noted_float(state.note, k, ranking.size + k)
        if probability > 0.0:  # 0 for a ranking that the policy has not made
            state.losses[user_type, k, ranking[k]] += max(0.0, 1.0 - rewards[k]) / probability


@dataclass(frozen=True, kw_only=True)
class FTRLPBM(BaselinePolicy):
    """FTRL-PBM: follow the regularized leader, with guarantees for stochastic and adversarial clicks.

    A cell is an item at a position, and its loss in a round is 1 minus its reward, divided by the probability
    of the cell if it is shown. Each round draws a ranking from the lottery that minimises estimated losses
    minus the Tsallis entropy √X of each cell times √t / c. The regret of M items at K positions is O(ln T) if
    click probabilities stay the same, and O(K √(M T)) whatever they do. The policy needs to know neither
    which is the case nor anything about positions.

    Parameters
    ----------
    learning_rate
        c, of the learning rate c/√t; 1 as for semi-bandits (Zimmert, Luo and Wei 2019).
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    InvalidInputError
        If the learning rate is not positive.
    UnknownNameError
        If the treatment or the utility is unknown.

    References
    ----------
    C. Chen, C. Zhao and S. Li (2022), Simultaneously learning stochastic and adversarial bandits under the
    position-based model. AAAI Conference on Artificial Intelligence 36.

    Examples
    --------
    >>> from banditrank import kdd2012, simulate
    >>> simulate(FTRLPBM(), kdd2012(), horizon=100, replications=2).final_regret.shape
    (2,)
    """

    name: ClassVar[str] = "ftrl-pbm"
    assumptions: ClassVar[Assumptions] = Assumptions(
        "nothing",
        ("single-look", "position-based"),  # a cell's mean must not depend on the rest of the ranking
        allows_graded_rewards=True,  # from 0 to 1
        is_stationary=False,
    )
    own_statistics: ClassVar[str | None] = "the probabilities with which it has shown items"
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    learning_rate: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("learning_rate", self.learning_rate, 1e-6, 1e6)

    def init_state(self, counts: Counts, scratch: Any) -> FTRLPBMState:  # noqa: ARG002 - keeps none
        """Return a state without losses: counts do not include probabilities."""
        return self._state(counts, np.zeros_like(counts.displays_by_position))

    def update_items(self, state: FTRLPBMState, counts: Counts, previous: NDArray[np.intp]) -> FTRLPBMState:
        """Return the state for other items; a new item starts as good as the best at each position."""
        excess = state.losses - state.losses.min(axis=2, keepdims=True)
        return self._state(counts, remap_items(excess, previous))

    def _state(self, counts: Counts, losses: Floats) -> FTRLPBMState:
        m, k = counts.n_items, counts.n_positions
        return FTRLPBMState(
            *arrays_of(counts),
            losses,
            float(self.learning_rate),
            init_leader(losses),
            init_lottery_workspace(m, k),
            np.zeros(2 * k, dtype=np.int64),
        )
