"""The lottery that the ranking of a round was drawn from."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.model._rankings import Ranking


class LotteryBuffer(NamedTuple):
    """The lottery of the last ranking, where compiled code reads and writes it.

    ``rank`` of a policy with lotteries writes it. The caller sets ``size`` to 0 before: it is still 0 if the
    ranking was not drawn from a lottery, as in exploration.
    """

    rankings: NDArray[np.uintp]  # (S, K)
    probabilities: NDArray[np.float64]  # (S,)
    size: NDArray[np.int64]  # (1,) number of rankings
    factor: NDArray[np.float64]  # (1,) share of all guarantees that the lottery keeps


class DrawnLottery(NamedTuple):
    """The lottery that a ranking was drawn from: the same for all user types.

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


def read_lottery(buffer: LotteryBuffer) -> DrawnLottery | None:
    """Return the lottery in a buffer; None if the last ranking was not drawn from one."""
    size = int(buffer.size[0])
    if size == 0:
        return None
    return DrawnLottery(
        buffer.rankings[:size].astype(np.intp), buffer.probabilities[:size].copy(), float(buffer.factor[0])
    )
