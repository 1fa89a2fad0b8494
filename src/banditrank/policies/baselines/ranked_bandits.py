"""Ranked bandits: a bandit for each rank, which learns what those above it leave to be clicked."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.policies.assumptions import Assumptions
from banditrank.policies.base import Kernel
from banditrank.policies.baselines.base import OrderedBaselinePolicy, check_horizon
from banditrank.policies.baselines.components.item_remapping import remap_items
from banditrank.policies.baselines.components.rank_bandits import (
    RankBanditName,
    RankBandits,
    choose,
    exp3_mixing,
    rank_bandits,
    reward,
)
from banditrank.policies.count_arrays import record, arrays_of
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class RankedState(NamedTuple):
    """The counts, and the bandits of the ranks."""

    displays: Floats  # (copies, K, M)
    rewards: Floats  # (copies, K, M)
    arrivals: Floats  # (copies,)
    positions: Indices  # (copies, K) from the most to the least looked at
    bandits: RankBandits
    taken: NDArray[np.bool_]  # (M,) room: whether a rank above shows an item


@inlined
def _rank(
    state: RankedState,
    user_type: int,
    t: int,  # noqa: ARG001 - each copy has its own clock
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    for rank in range(ranking.size):
        _place(state, user_type, rank, choose(state.bandits, user_type, rank, rng), rng, ranking)


@inlined
def _place(
    state: RankedState, user_type: int, rank: int, choice: int, rng: np.random.Generator, ranking: Indices
) -> None:
    """Show a rank's choice, or if a rank above shows it already any other item, drawn uniformly."""
    taken = state.taken
    if rank == 0:
        for j in range(taken.size):
            taken[j] = False
    state.bandits.choices[user_type, rank] = choice
    shown = choice
    if taken[choice]:
        left = int(rng.random() * (taken.size - rank))
        for j in range(taken.size):
            if not taken[j]:
                if left == 0:
                    shown = j
                left -= 1
    taken[shown] = True
    ranking[state.positions[user_type, rank]] = shown


@inlined
def _observe(state: RankedState, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:  # noqa: ARG001
    record(state, user_type, ranking, rewards)
    for rank in range(ranking.size):
        position = state.positions[user_type, rank]
        chosen = ranking[position] == state.bandits.choices[user_type, rank]
        reward(state.bandits, user_type, rank, chosen and rewards[position] > 0.0)


@dataclass(frozen=True, kw_only=True)
class RankedBandits(OrderedBaselinePolicy):
    """Let a bandit choose the item of each rank, from the top down.

    A rank whose choice is shown already shows any other item instead. Its bandit is rewarded with 1 if its
    choice was shown and clicked, with 0 otherwise. So each rank learns what users click who do not click
    above it: a ranking of different things, within 1 − 1/e of the best for users who click once.

    Parameters
    ----------
    inner
        The bandit of a rank: ``ucb1``, as in the paper's experiments; ``kl-ucb``, as others compare with; or
        ``exp3``, as in its theorem.
    horizon
        Rounds that EXP3 is to last for, which decide how much it explores; for no other.
    order
        The positions from the top rank down, a row for each copy, or one for all.
    treatment, utility
        What its regret is measured against.

    References
    ----------
    F. Radlinski, R. Kleinberg and T. Joachims (2008), Learning diverse rankings with multi-armed bandits.
    International Conference on Machine Learning 25.

    Examples
    --------
    >>> from banditrank import kdd2012, simulate
    >>> policy = RankedBandits(bandit="kl-ucb")
    >>> simulate(policy, kdd2012(), horizon=100, replications=2).final_regret.shape
    (2,)
    """

    name: ClassVar[str] = "ranked-bandits"
    assumptions: ClassVar[Assumptions] = Assumptions(positions="order", click_models=("cascade",))
    own_statistics: ClassVar[str | None] = "what the bandit of each rank chose and was rewarded for"
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    bandit: RankBanditName = "ucb1"
    horizon: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bandit not in get_args(RankBanditName):
            raise UnknownNameError("inner", self.bandit, get_args(RankBanditName))
        if self.horizon is None and self.bandit == "exp3":
            raise InvalidInputError("horizon", "must be given for exp3", self.horizon)
        if self.horizon is not None:
            object.__setattr__(self, "horizon", check_horizon(self.horizon))

    def start(self, counts: Counts, scratch: Any) -> RankedState:  # noqa: ARG002 - nothing is remembered
        """Return a state in which no bandit has chosen: counts do not tell choices that were not shown."""
        shape = (counts.n_user_types, counts.n_positions, counts.n_items)
        return self._state(counts, np.zeros(shape), np.zeros(shape), np.ones(shape))

    def update_items(self, state: RankedState, counts: Counts, previous: NDArray[np.intp]) -> RankedState:
        """Return the state for other items, with what the bandits know of those that stay."""
        chosen, earned, weights = state.bandits.chosen, state.bandits.earned, state.bandits.weights
        typical = weights.mean(axis=2, keepdims=True)
        return self._state(
            counts,
            remap_items(chosen, previous),
            remap_items(earned, previous),
            remap_items(weights / typical, previous, fill=1.0),
        )

    def _state(self, counts: Counts, chosen: Floats, earned: Floats, weights: Floats) -> RankedState:
        mixing = 0.0 if self.horizon is None else exp3_mixing(counts.n_items, self.horizon)
        return RankedState(
            *arrays_of(counts),
            self.ordered_positions(counts),
            rank_bandits(self.bandit, chosen, earned, weights, mixing),
            np.zeros(counts.n_items, dtype=np.bool_),
        )
