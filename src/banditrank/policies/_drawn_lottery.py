"""The lottery that the ranking of a round was drawn from."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.model._rankings import Ranking

Indices = NDArray[np.uintp]


ALL_TYPES = -1  # the owner of a ranking for all user types


class LotteryBuffer(NamedTuple):
    """The lottery of the last ranking, or those of all user types, where compiled code reads and writes it.

    ``rank`` of a policy with lotteries writes it. The caller sets ``size`` to 0 before: it is still 0 if the
    ranking was not drawn from a lottery, as in exploration.
    """

    rankings: NDArray[np.uintp]  # (S, K)
    probabilities: NDArray[np.float64]  # (S,)
    owners: NDArray[np.int64]  # (S,) the user type that a ranking is for; ALL_TYPES if for all
    size: NDArray[np.int64]  # (1,) number of rankings
    factor: NDArray[np.float64]  # (1,) share of all guarantees that the lottery keeps


class DrawnLottery(NamedTuple):
    """The lottery that a ranking was drawn from: the same for all user types, or that of the user's type.

    Parameters
    ----------
    rankings
        Rankings, shape (S, K).
    probabilities
        Probability of each, shape (S,).
    kept_factor
        Share of all guarantees that the lottery keeps, by the estimates or the posterior sample that it was
        made from: 1 unless they cannot be kept together there.
    """

    rankings: Ranking
    probabilities: NDArray[np.float64]
    kept_factor: float = 1.0


def new_lottery_buffer(capacity: int, n_positions: int) -> LotteryBuffer:
    """Return a buffer for lotteries over at most ``capacity`` rankings."""
    return LotteryBuffer(
        np.zeros((capacity, n_positions), dtype=np.uintp),
        np.zeros(capacity),
        np.full(capacity, ALL_TYPES, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.ones(1),
    )


def state_lottery(state: Any) -> LotteryBuffer | None:
    """Return the lottery of a state, or of its solver; None if it has none.

    Examples
    --------
    >>> state_lottery(None) is None
    True
    """
    for owner in (state, getattr(state, "solver", None)):
        lottery = getattr(owner, "lottery", None)
        if isinstance(lottery, LotteryBuffer):  # baselines may have lotteries of another kind
            return lottery
    return None


def read_lottery(buffer: LotteryBuffer, user_type: int) -> DrawnLottery | None:
    """Return the lottery of a user type in a buffer; None if the last ranking was not drawn from one."""
    size = int(buffer.size[0])
    if size == 0:
        return None
    is_own = np.isin(buffer.owners[:size], (ALL_TYPES, user_type))
    return DrawnLottery(
        buffer.rankings[:size][is_own].astype(np.intp),
        buffer.probabilities[:size][is_own],
        float(buffer.factor[0]),
    )


@inlined
def draw_from_buffer(lottery: LotteryBuffer, user_type: int, uniform: float, ranking: Indices) -> None:
    """Write the ranking that a number from [0, 1) draws from the lottery of a user type, shape (K,)."""
    chosen, passed = -1, 0.0
    for s in range(lottery.size[0]):
        if lottery.owners[s] == ALL_TYPES or lottery.owners[s] == user_type:
            chosen, passed = s, passed + lottery.probabilities[s]
            if uniform < passed:
                break
    for k in range(ranking.size):
        ranking[k] = lottery.rankings[chosen, k]
