"""UCB for Nash welfare over lotteries: a fair distribution over rankings instead of a best ranking.

The welfare of a lottery is the product over user types of their expected rewards. Hossain, Micha and Shah
define it for lotteries over arms; here a lottery is over rankings, whose cells are the arms: with one
position that is their problem. The lottery is a list of rankings with weights. Each round moves weight from
the worst to the best ranking for the gradient of the objective: pairwise steps of Frank and Wolfe's method,
from the lottery of the last round.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_number
from banditrank._compilation import compiled, inlined, internal
from banditrank.counts._counts import Counts
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._base import is_equal
from banditrank.policies._count_arrays import arrays_of, record_round
from banditrank.policies._kernel import Kernel
from banditrank.policies.baselines._base import BaselinePolicy
from banditrank.policies.baselines._components.cell_means import init_cell_means
from banditrank.policies.baselines._components.matching import Matching, best_matching, init_matching

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

_STEPS = 3  # of each round
_FIRST_STEPS = 200  # of the first round
_HALVINGS = 16  # of a step that is too long
_TOLERANCE = 1e-9  # of the gain of a step, relative to the objective


class RankingLottery(NamedTuple):
    """Rankings with weights for each copy, and the workspace of a step."""

    rankings: Indices  # (copies, A, K)
    weights: Floats  # (copies, A) 0 for free entries
    values: Floats  # (N, A) expected reward of each ranking by user type
    bonuses: Floats  # (A,)
    means: Floats  # (N,) expected reward of the lottery
    slopes: Floats  # (N,) derivatives of the welfare
    scores: Floats  # (K, M)
    best: Indices  # (K,)
    matching: Matching


def init_ranking_lottery(n_copies: int, n_user_types: int, n_items: int, n_positions: int) -> RankingLottery:
    """Return lotteries without rankings; each has room for twice as many as an optimal one can need."""
    n, m, k = n_user_types, n_items, n_positions
    size = 2 * (n // n_copies + 2)
    return RankingLottery(
        np.zeros((n_copies, size, k), dtype=np.uintp),
        np.zeros((n_copies, size)),
        np.zeros((n, size)),
        np.zeros(size),
        np.zeros(n),
        np.zeros(n),
        np.zeros((k, m)),
        np.zeros(k, dtype=np.uintp),
        init_matching(n_copies, m, k),
    )


@compiled
def nash_welfare(values: Floats) -> float:
    """Return the product of the expected rewards of user types, shape (N,).

    Examples
    --------
    >>> nash_welfare(np.array([0.5, 0.25]))
    0.125
    """
    product = 1.0
    for i in range(values.size):
        product *= values[i]
    return product


class NashUCBState(NamedTuple):
    """Counts, means and widths of cells for each user type, and the lotteries."""

    displays: Floats  # (N, K, M)
    rewards: Floats  # (N, K, M)
    arrivals: Floats  # (N,)
    means: Floats  # (N, K, M) 1 for cells without displays
    widths: Floats  # (N, K, M) 1 / √N_ijk, 1 for cells without displays
    bonuses: Floats  # (copies, K, M) sums of widths over the user types of a lottery
    exploration: float
    lottery: RankingLottery  # one for all user types, or one for each


@inlined
def _rank(
    state: NashUCBState,
    user_type: int,
    t: int,  # noqa: ARG001 - each lottery counts its rounds
    parameters: Floats,  # noqa: ARG001 - none
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    n_types = state.arrivals.size
    is_shared = state.bonuses.shape[0] == 1
    copy = 0 if is_shared else user_type
    first, last = (0, n_types) if is_shared else (user_type, user_type + 1)
    rounds = 1.0
    for i in range(first, last):
        rounds += state.arrivals[i]
    cells = float(state.bonuses.shape[1] * state.bonuses.shape[2])
    scale = state.exploration * math.sqrt(math.log((last - first) * cells * rounds))
    _improve_welfare(state, copy, first, last, scale)
    left = rng.random()
    weights, chosen = state.lottery.weights[copy], 0
    for entry in range(weights.size):
        if weights[entry] > 0.0:
            chosen = entry
            left -= weights[entry]
            if left < 0.0:
                break
    for k in range(ranking.size):
        ranking[k] = state.lottery.rankings[copy, chosen, k]


@internal
def _improve_welfare(state: NashUCBState, copy: int, first: int, last: int, scale: float) -> None:
    """Take steps that increase the welfare of user types ``first`` to ``last − 1`` plus bonuses."""
    lottery = state.lottery
    weights = lottery.weights[copy]
    total = 0.0
    for entry in range(weights.size):
        total += weights[entry]
        _value_entry(state, copy, entry, first, last, scale)
    steps = _STEPS
    if total == 0.0:
        steps = _FIRST_STEPS
    else:
        for entry in range(weights.size):
            weights[entry] /= total  # removes rounding errors
    _value_lottery(lottery, copy, first, last)
    for _ in range(steps):
        if not _move_weight(state, copy, first, last, scale):
            break


@inlined
def _value_entry(state: NashUCBState, copy: int, entry: int, first: int, last: int, scale: float) -> None:
    """Write the values and the bonus of a ranking of the lottery."""
    lottery = state.lottery
    items = lottery.rankings[copy, entry]
    lottery.bonuses[entry] = 0.0
    for k in range(items.size):
        lottery.bonuses[entry] += scale * state.bonuses[copy, k, items[k]]
    for i in range(first, last):
        lottery.values[i, entry] = 0.0
        for k in range(items.size):
            lottery.values[i, entry] += state.means[i, k, items[k]]


@inlined
def _value_lottery(lottery: RankingLottery, copy: int, first: int, last: int) -> None:
    """Write the expected rewards of the lottery."""
    for i in range(first, last):
        lottery.means[i] = 0.0
        for entry in range(lottery.weights.shape[1]):
            lottery.means[i] += lottery.weights[copy, entry] * lottery.values[i, entry]


@inlined
def _move_weight(state: NashUCBState, copy: int, first: int, last: int, scale: float) -> bool:
    """Move weight to the best ranking for the gradient from the worst one; return whether that gains."""
    lottery = state.lottery
    weights, best = lottery.weights[copy], lottery.best
    _score_cells(state, copy, first, last, scale)
    best_matching(lottery.matching, copy, lottery.scores, best)
    worst, same, free, gain = _compare_entries(lottery, copy)
    if gain <= _TOLERANCE and (worst >= 0 or same >= 0):
        return False
    if same < 0:
        same = free
        for k in range(best.size):
            lottery.rankings[copy, same, k] = best[k]
        if worst < 0:
            weights[same] = 1.0  # the first ranking
        _value_entry(state, copy, same, first, last, scale)
        if weights[same] > 0.0:  # also if the lottery is full: the ranking of least weight is replaced
            _value_lottery(lottery, copy, first, last)
            if worst < 0 or worst == same:
                return True
    return _search_line(lottery, copy, first, last, worst, same)


@inlined
def _score_cells(state: NashUCBState, copy: int, first: int, last: int, scale: float) -> None:
    """Write the gradient of the objective: the product of the other means times the mean of each cell."""
    lottery = state.lottery
    means, slopes, scores = lottery.means, lottery.slopes, lottery.scores
    zeros, product = 0, 1.0
    for i in range(first, last):
        if means[i] > 0.0:
            product *= means[i]
        else:
            zeros += 1
    for i in range(first, last):
        slopes[i] = 0.0
        if zeros == 0 or (zeros == 1 and means[i] <= 0.0):
            slopes[i] = product / means[i] if means[i] > 0.0 else product
    for k in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            scores[k, j] = scale * state.bonuses[copy, k, j]
            for i in range(first, last):
                scores[k, j] += slopes[i] * state.means[i, k, j]


@inlined
def _compare_entries(lottery: RankingLottery, copy: int) -> tuple[int, int, int, float]:
    """Compare the rankings of the lottery with the best one.

    Returns
    -------
    worst, same, free, gain
        The entry of the least score among other rankings, and the entry of the best ranking, −1 if there is
        none; the entry of least weight; and the gain of the best over the average, relative to the best.
    """
    weights, scores, best = lottery.weights[copy], lottery.scores, lottery.best
    best_score, average, worst, worst_score, free, same = 0.0, 0.0, -1, np.inf, 0, -1
    for k in range(best.size):
        best_score += scores[k, best[k]]
    for entry in range(weights.size):
        if weights[entry] < weights[free]:
            free = entry
        if weights[entry] <= 0.0:
            continue
        items, score, differs = lottery.rankings[copy, entry], 0.0, False
        for k in range(best.size):
            score += scores[k, items[k]]
            differs |= items[k] != best[k]
        average += weights[entry] * score
        if not differs:
            same = entry
        elif score < worst_score:
            worst, worst_score = entry, score
    return worst, same, free, (best_score - average) / max(best_score, 1e-300)


@inlined
def _search_line(lottery: RankingLottery, copy: int, first: int, last: int, worst: int, best: int) -> bool:
    """Move the share of the worst ranking's weight, 1, ½, ¼ …, that gains most; return whether any does."""
    weights, means = lottery.weights[copy], lottery.means
    longest = weights[worst]
    most, chosen, share = 0.0, 0.0, longest
    welfare = 1.0
    for i in range(first, last):
        welfare *= means[i]
    for _ in range(_HALVINGS):
        product = 1.0
        for i in range(first, last):
            product *= means[i] + share * (lottery.values[i, best] - lottery.values[i, worst])
        gain = product - welfare + share * (lottery.bonuses[best] - lottery.bonuses[worst])
        if gain > most:
            most, chosen = gain, share
        share *= 0.5
    if chosen == 0.0:
        return False
    weights[best] += chosen
    weights[worst] = 0.0 if chosen == longest else weights[worst] - chosen
    for i in range(first, last):
        means[i] += chosen * (lottery.values[i, best] - lottery.values[i, worst])
    return True


@inlined
def _observe(
    state: NashUCBState,
    user_type: int,
    t: int,  # noqa: ARG001 - as above
    ranking: Indices,
    rewards: Floats,
) -> None:
    i = user_type
    copy = 0 if state.bonuses.shape[0] == 1 else i
    record_round(state, i, ranking, rewards)
    for k in range(ranking.size):
        j = ranking[k]
        width = 1.0 / math.sqrt(state.displays[i, k, j])
        state.means[i, k, j] = state.rewards[i, k, j] / state.displays[i, k, j]
        state.bonuses[copy, k, j] += width - state.widths[i, k, j]
        state.widths[i, k, j] = width


@dataclass(frozen=True, kw_only=True)
class NashUCB(BaselinePolicy):
    """UCB for Nash welfare: the lottery over rankings with the largest optimistic welfare.

    The welfare of a lottery X is Π_i u_i(X), where u_i is the expected reward of user type i. Each round
    draws a ranking from the lottery that maximises welfare by mean rewards plus the bonus of its cells,
    Σ_kj X_kj Σ_i √(ln(N K M t) / N_ijk). In the paper all agents see each arm, so that the bonus of an arm is
    N √(ln(N K t) / N_j) with K arms; here a user type learns from its own visits. The sum of a product and a
    linear bonus is not concave: steps from the last lottery find a local maximum. Under equal treatment one
    lottery is for all user types. Under personalized treatment each type has its own, which is a ranking.

    Parameters
    ----------
    exploration
        Factor of the bonus.
    treatment, utility
        What its regret is measured against: the best ranking, as for all policies, where the paper compares
        with the best lottery.

    Raises
    ------
    InvalidInputError
        If the factor is negative.
    UnknownNameError
        If the treatment or the utility is unknown.

    References
    ----------
    S. Hossain, E. Micha and N. Shah (2021), Fair algorithms for multi-agent multi-armed bandits. Advances in
    Neural Information Processing Systems 34.

    Examples
    --------
    >>> displays, rewards = np.full((2, 2, 1), 900.0), [[[800], [20]], [[20], [800]]]
    >>> counts = Counts.from_arrays(displays, rewards, [1800, 1800])
    >>> policy = NashUCB(treatment="equal")  # two user types with opposite tastes
    >>> {int(policy.rank(counts, 0, rng=np.random.default_rng(seed))[0]) for seed in range(9)}
    {0, 1}
    """

    name: ClassVar[str] = "nash-ucb"
    assumptions: ClassVar[Assumptions] = Assumptions(
        "nothing",
        ("single-look", "position-based"),  # a cell's mean must not depend on the rest of the ranking
        allows_graded_rewards=True,  # from 0 to 1
        is_utilitarian_only=False,
    )
    own_statistics: ClassVar[str | None] = "the lottery of the last round"
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    exploration: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("exploration", self.exploration, 0.0, 1e6)

    @property
    def distinguishes_user_types(self) -> bool:  # type: ignore[override]
        """True: the welfare depends on each user type."""
        return True

    def init_state(self, counts: Counts, scratch: Any) -> NashUCBState:  # noqa: ARG002 - keeps none
        """Return the state for counts, without a lottery yet."""
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        displays, rewards, _ = arrays = arrays_of(counts)
        means, widths = init_cell_means(displays, rewards, unshown_mean=1.0, unshown_width=1.0)
        is_shared = is_equal(self.treatment)
        bonuses = widths.sum(axis=0, keepdims=True) if is_shared else widths.copy()
        lottery = init_ranking_lottery(len(bonuses), n, m, k)
        return NashUCBState(*arrays, means, widths, bonuses, float(self.exploration), lottery)
