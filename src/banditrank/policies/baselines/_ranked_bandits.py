"""Ranked bandits: a bandit for each rank, which learns from the users who click nothing above it."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._count_arrays import arrays_of, record_round
from banditrank.policies._kernel import Kernel
from banditrank.policies._sorting import random_argmax
from banditrank.policies.baselines._base import OrderedBaselinePolicy, check_horizon
from banditrank.policies.baselines._components.item_remapping import remap_items
from banditrank.policies.baselines._components.kl_ucb import exploration_level, kl_ucb, kl_ucb_exceeds
from banditrank.policies.baselines._components.notes import note_float, noted_float

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

RankBanditName: TypeAlias = Literal["ucb1", "kl-ucb", "exp3"]

_UCB1, _KL_UCB, _EXP3 = 0, 1, 2  # indices in `RankBanditName`

_MAX_WEIGHT, _MIN_WEIGHT = 1e100, 1e-200


class RankBandits(NamedTuple):
    """A bandit for each rank of each copy."""

    kind: int  # index in `RankBanditName`
    chosen: Floats  # (copies, K, M) choices of each item
    earned: Floats  # (copies, K, M) rewards of each item
    weights: Floats  # (copies, K, M) of EXP3
    mixing: Floats  # (1,) γ of EXP3, its probability of a uniform choice
    choices: NDArray[np.uintp]  # (copies, K) the last choice
    probabilities: Floats  # (copies, K) of the last choice of EXP3; 0 for others
    note: NDArray[np.int64]  # (3 K,) choices; mantissas and exponents of their probabilities
    bounds: Floats  # (M,) workspace


def exp3_mixing(n_items: int, horizon: int) -> float:
    """Return γ = min{1, √(M ln M / (e − 1) T)} (Auer, Cesa-Bianchi, Freund and Schapire 2002).

    Examples
    --------
    >>> round(exp3_mixing(10, 1000), 6)
    0.115761
    """
    return min(1.0, math.sqrt(n_items * math.log(n_items) / ((math.e - 1.0) * horizon)))


def rank_bandits(
    bandit: RankBanditName, chosen: Floats, earned: Floats, weights: Floats, mixing: float
) -> RankBandits:
    """Return bandits with given choices, rewards and weights, shape (copies, K, M) each."""
    n_copies, n_ranks, n_items = chosen.shape
    return RankBandits(
        get_args(RankBanditName).index(bandit),
        chosen,
        earned,
        weights,
        np.array([mixing]),
        np.zeros((n_copies, n_ranks), dtype=np.uintp),
        np.zeros((n_copies, n_ranks)),
        np.zeros(3 * n_ranks, dtype=np.int64),
        np.zeros(n_items),
    )


@inlined
def note_choice(bandits: RankBandits, copy: int, rank: int) -> None:
    """Write the last choice of a rank to the note, with its probability to the last bit."""
    n_ranks = bandits.choices.shape[1]
    bandits.note[rank] = bandits.choices[copy, rank]
    if bandits.kind == _EXP3:
        note_float(bandits.note, n_ranks + rank, 2 * n_ranks + rank, bandits.probabilities[copy, rank])


@inlined
def choose(bandits: RankBandits, copy: int, rank: int, rng: np.random.Generator) -> int:
    """Return the choice of the bandit of a rank."""
    if bandits.kind == _UCB1:
        return _choose_by_ucb1(bandits, copy, rank, rng)
    if bandits.kind == _KL_UCB:
        return _choose_by_kl_ucb(bandits, copy, rank, rng)
    return _choose_by_exp3(bandits, copy, rank, rng)


@internal
def _choose_by_ucb1(bandits: RankBandits, copy: int, rank: int, rng: np.random.Generator) -> int:
    """Return the item with the largest mean + √(2 ln n / choices of the item), n being all choices so far."""
    chosen, earned, bounds = bandits.chosen[copy, rank], bandits.earned[copy, rank], bandits.bounds
    choices = 0.0
    for j in range(bounds.size):
        choices += chosen[j]
    width = 2.0 * math.log(max(1.0, choices))
    for j in range(bounds.size):
        bounds[j] = earned[j] / chosen[j] + math.sqrt(width / chosen[j]) if chosen[j] > 0.0 else np.inf
    return random_argmax(bounds, rng)


@internal
def _choose_by_kl_ucb(bandits: RankBandits, copy: int, rank: int, rng: np.random.Generator) -> int:
    """Return the item with the largest KL-UCB, at level ln n + 3 ln ln n of the n-th choice.

    The last choice is evaluated first: it is often the best, so that few other bounds are needed.
    """
    chosen, earned, bounds = bandits.chosen[copy, rank], bandits.earned[copy, rank], bandits.bounds
    choices, unchosen = 0.0, False
    for j in range(bounds.size):
        choices += chosen[j]
        unchosen |= chosen[j] == 0.0
    if unchosen:
        for j in range(bounds.size):
            bounds[j] = -chosen[j]
        return random_argmax(bounds, rng)
    level = exploration_level(choices + 1.0)
    first = int(np.int64(bandits.choices[copy, rank]))  # signed, like the indices below
    best, ties = first, 1
    most = kl_ucb(earned[best] / chosen[best], chosen[best], level)
    for j in range(bounds.size):
        if j == first:
            continue
        if chosen[j] == chosen[best] and earned[j] == earned[best]:
            ties += 1
            if rng.random() * ties < 1.0:
                best = j
            continue
        mean = earned[j] / chosen[j]
        if kl_ucb_exceeds(mean, chosen[j], level, most):
            best, ties = j, 1
            most = kl_ucb(mean, chosen[j], level)
    return best


@internal
def _choose_by_exp3(bandits: RankBandits, copy: int, rank: int, rng: np.random.Generator) -> int:
    """Return an item drawn with probability (1 − γ) weight / all weights + γ / M."""
    weights, mixing = bandits.weights[copy, rank], bandits.mixing[0]
    total = 0.0
    for j in range(weights.size):
        total += weights[j]
    left = rng.random()
    choice: int = weights.size - 1
    for j in range(weights.size):
        left -= (1.0 - mixing) * weights[j] / total + mixing / weights.size
        if left < 0.0:
            choice = j
            break
    bandits.probabilities[copy, rank] = (1.0 - mixing) * weights[choice] / total + mixing / weights.size
    return choice


@inlined
def reward(bandits: RankBandits, copy: int, rank: int, clicked: bool) -> None:  # noqa: FBT001 - the observation
    """Update the bandit of a rank with the reward of the choice in the note."""
    n_ranks = bandits.choices.shape[1]
    choice = bandits.note[rank]
    bandits.chosen[copy, rank, choice] += 1.0
    if clicked:
        bandits.earned[copy, rank, choice] += 1.0
        if bandits.kind == _EXP3:
            probability = noted_float(bandits.note, n_ranks + rank, 2 * n_ranks + rank)
            _reweigh(bandits.weights[copy, rank], choice, bandits.mixing[0] / probability)


@internal
def _reweigh(weights: Floats, choice: int, estimate: float) -> None:
    """Multiply a weight by exp(γ x̂ / M), x̂ being the importance-weighted reward."""
    weights[choice] *= math.exp(estimate / weights.size)
    if weights[choice] > _MAX_WEIGHT:
        for j in range(weights.size):
            weights[j] = max(weights[j] / _MAX_WEIGHT, _MIN_WEIGHT)


class RankedState(NamedTuple):
    """Counts, and the bandits of the ranks."""

    displays: Floats  # (copies, K, M)
    rewards: Floats  # (copies, K, M)
    arrivals: Floats  # (copies,)
    positions: Indices  # (copies, K) by decreasing examination
    bandits: RankBandits
    taken: NDArray[np.bool_]  # (M,) workspace: whether a rank above shows an item
    note: NDArray[np.int64]  # (3 K,) that of the bandits


@inlined
def _rank(
    state: RankedState,
    user_type: int,
    t: int,  # noqa: ARG001 - each copy counts its rounds
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
    """Show the choice of a rank, or a random other item if a rank above shows it."""
    taken = state.taken
    if rank == 0:
        for j in range(taken.size):
            taken[j] = False
    state.bandits.choices[user_type, rank] = choice
    note_choice(state.bandits, user_type, rank)
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
    record_round(state, user_type, ranking, rewards)
    for rank in range(ranking.size):
        position = state.positions[user_type, rank]
        chosen = ranking[position] == state.bandits.note[rank]
        reward(state.bandits, user_type, rank, chosen and rewards[position] > 0.0)


@dataclass(frozen=True, kw_only=True)
class RankedBandits(OrderedBaselinePolicy):
    """Ranked bandits: a bandit for each rank chooses its item, from the top down.

    A rank whose choice is already shown shows a random other item instead. Its bandit gets reward 1 if its
    choice was shown and clicked, and 0 otherwise. So each rank learns from the users who click nothing above
    it: a diverse ranking, within 1 − 1/e of the best for users who click once.

    Parameters
    ----------
    bandit
        Bandit of a rank: ``ucb1``, as in the paper's experiments; ``kl-ucb``, as in later comparisons; or
        ``exp3``, as in its theorem.
    horizon
        Number of rounds, which sets the exploration of EXP3; other bandits ignore it.
    order
        Positions from the top rank down, a row for each copy, or one for all.
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    InvalidInputError
        If the bandit, the horizon or the order, the treatment or the utility is not valid.

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
    own_statistics: ClassVar[str | None] = "choices and rewards of the bandit of each rank"
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    bandit: RankBanditName = "ucb1"
    horizon: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bandit not in get_args(RankBanditName):
            raise UnknownNameError("bandit", self.bandit, get_args(RankBanditName))
        if self.horizon is None and self.bandit == "exp3":
            raise InvalidInputError("horizon", "must be given for exp3", self.horizon)
        if self.horizon is not None:
            object.__setattr__(self, "horizon", check_horizon(self.horizon))

    def init_state(self, counts: Counts, scratch: Any) -> RankedState:  # noqa: ARG002 - keeps none
        """Return a state without choices: counts do not include choices that were not shown."""
        shape = (counts.n_user_types, counts.n_positions, counts.n_items)
        return self._state(counts, np.zeros(shape), np.zeros(shape), np.ones(shape))

    def update_items(self, state: RankedState, counts: Counts, previous: NDArray[np.intp]) -> RankedState:
        """Return the state for other items, with the statistics of remaining ones."""
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
        bandits = rank_bandits(self.bandit, chosen, earned, weights, mixing)
        taken = np.zeros(counts.n_items, dtype=np.bool_)
        return RankedState(*arrays_of(counts), self.ordered_positions(counts), bandits, taken, bandits.note)
