"""The bandits that choose the item of a rank: UCB1, KL-UCB and EXP3."""

import math
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined, internal
from banditrank.policies.baselines.components.kl_ucb import kl_ucb_exceeds, exploration_level, kl_ucb
from banditrank.policies.sorting import largest

RankBanditName: TypeAlias = Literal["ucb1", "kl-ucb", "exp3"]
Floats = NDArray[np.float64]

_UCB1, _KL_UCB = 0, 1  # places in `RankBanditName`

_LARGEST_WEIGHT, _SMALLEST_WEIGHT = 1e100, 1e-200


class RankBandits(NamedTuple):
    """A bandit for each rank of each copy."""

    kind: int  # which of `RankBanditName`
    chosen: Floats  # (copies, K, M) how often it chose an item
    earned: Floats  # (copies, K, M) how often it was rewarded for that
    weights: Floats  # (copies, K, M) of EXP3
    mixing: Floats  # (1,) γ of EXP3: how often it chooses uniformly
    choices: NDArray[np.uintp]  # (copies, K) the last choice
    probabilities: Floats  # (copies, K) with which EXP3 made it; 0 for others
    bounds: Floats  # (M,) room


def exp3_mixing(n_items: int, horizon: int) -> float:
    """Return γ = min{1, √(M ln M / (e − 1) T)} (Auer, Cesa-Bianchi, Freund and Schapire 2002).

    Examples
    --------
    >>> round(exp3_mixing(10, 1000), 6)
    0.115761
    """
    return min(1.0, math.sqrt(n_items * math.log(n_items) / ((math.e - 1.0) * horizon)))


def rank_bandits(inner: RankBanditName, chosen: Floats, earned: Floats, weights: Floats, mixing: float) -> RankBandits:
    """Return bandits that have chosen, and earned, so much."""
    n_copies, n_ranks, n_items = chosen.shape
    return RankBandits(
        get_args(RankBanditName).index(inner),
        chosen,
        earned,
        weights,
        np.array([mixing]),
        np.zeros((n_copies, n_ranks), dtype=np.uintp),
        np.zeros((n_copies, n_ranks)),
        np.zeros(n_items),
    )


@inlined
def choose(bandits: RankBandits, copy: int, rank: int, rng: np.random.Generator) -> int:
    """Return the item that the bandit of a rank chooses."""
    if bandits.kind == _UCB1:
        return _choose_by_ucb1(bandits, copy, rank, rng)
    if bandits.kind == _KL_UCB:
        return _choose_by_kl_ucb(bandits, copy, rank, rng)
    return _choose_by_exp3(bandits, copy, rank, rng)


@internal
def _choose_by_ucb1(bandits: RankBandits, copy: int, rank: int, rng: np.random.Generator) -> int:
    """Return the item of the largest mean + √(2 ln n / times chosen), n being the choices so far."""
    chosen, earned, bounds = bandits.chosen[copy, rank], bandits.earned[copy, rank], bandits.bounds
    choices = 0.0
    for j in range(bounds.size):
        choices += chosen[j]
    width = 2.0 * math.log(max(1.0, choices))
    for j in range(bounds.size):
        bounds[j] = earned[j] / chosen[j] + math.sqrt(width / chosen[j]) if chosen[j] > 0.0 else np.inf
    return largest(bounds, rng)


@internal
def _choose_by_kl_ucb(bandits: RankBandits, copy: int, rank: int, rng: np.random.Generator) -> int:
    """Return the item of the largest KL-UCB, at level ln n + 3 ln ln n of the n-th choice.

    The last choice is tried first, because it is often the best still: few other bounds are then needed.
    """
    chosen, earned, bounds = bandits.chosen[copy, rank], bandits.earned[copy, rank], bandits.bounds
    choices, unchosen = 0.0, False
    for j in range(bounds.size):
        choices += chosen[j]
        unchosen |= chosen[j] == 0.0
    if unchosen:
        for j in range(bounds.size):
            bounds[j] = -chosen[j]
        return largest(bounds, rng)
    level = exploration_level(choices + 1.0)
    first = int(np.int64(bandits.choices[copy, rank]))  # signed, as the numbers below
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
def reward(bandits: RankBandits, copy: int, rank: int, clicked: bool) -> None:  # noqa: FBT001 - what is learnt
    """Take in what a bandit's last choice earned."""
    choice = bandits.choices[copy, rank]
    bandits.chosen[copy, rank, choice] += 1.0
    if clicked:
        bandits.earned[copy, rank, choice] += 1.0
        probability = bandits.probabilities[copy, rank]
        if probability > 0.0:
            _reweigh(bandits.weights[copy, rank], choice, bandits.mixing[0] / probability)


@internal
def _reweigh(weights: Floats, choice: int, estimate: float) -> None:
    """Multiply a weight by exp(γ x̂ / M), x̂ being the reward over its probability."""
    weights[choice] *= math.exp(estimate / weights.size)
    if weights[choice] > _LARGEST_WEIGHT:
        for j in range(weights.size):
            weights[j] = max(weights[j] / _LARGEST_WEIGHT, _SMALLEST_WEIGHT)
