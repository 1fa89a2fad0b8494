"""Metropolis–Hastings over θ and κ, given clicks of probability θ_j κ_k and uniform priors on [0, 1]."""

import math

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, internal

Floats = NDArray[np.float64]

WIDE = 0.4  # from this width on, a uniform candidate is taken more often than a normal one falls inside


@compiled
def sweep(
    displays: Floats,
    rewards: Floats,
    items: Floats,
    positions: Floats,
    user_type: int,
    width: float,
    rng: np.random.Generator,
) -> None:
    """Offer every θ, then every κ, a step of the walk, which leaves the posterior as it is.

    Parameters
    ----------
    displays, rewards
        Shape (N, K, M).
    items, positions
        θ and κ, where the walk is, shapes (N, M) and (N, K).
    user_type
        Whose.
    width
        Standard deviation of the steps.
    rng
        Where the steps come from.
    """
    i = user_type
    for j in range(items.shape[1]):
        _step(items[i], j, positions[i], displays[i, :, j], rewards[i, :, j], width, rng)
    for k in range(positions.shape[1]):
        _step(positions[i], k, items[i], displays[i, k], rewards[i, k], width, rng)


@internal
def _step(
    values: Floats,
    number: int,
    partners: Floats,
    displays: Floats,
    rewards: Floats,
    width: float,
    rng: np.random.Generator,
) -> None:
    """Offer one value a step, given those it is multiplied with and what was displayed and earned with each.

    It is taken with probability min(1, ratio of the posteriors × ratio of the proposals back and forth).
    """
    old = values[number]
    new = propose(old, width, rng)
    gain = math.log(proposal_mass(old, width) / proposal_mass(new, width))
    clicks = 0.0
    for other in range(partners.size):
        clicks += rewards[other]
        misses = displays[other] - rewards[other]
        if misses > 0.0:
            gain += misses * math.log((1.0 - partners[other] * new) / (1.0 - partners[other] * old))
    if math.log(rng.random()) < gain + clicks * math.log(new / old):
        values[number] = new


@compiled
def propose(old: float, width: float, rng: np.random.Generator) -> float:
    """Return a normal step from a number between 0 and 1, drawn anew until it stays between them."""
    while True:
        if width > WIDE:  # the same law, without throwing nearly all of wide steps away
            new = rng.random()
            distance = (new - old) / width
            inside = new > 0.0 and rng.random() < math.exp(-0.5 * distance * distance)
        else:
            new = old + width * rng.standard_normal()
            inside = 0.0 < new < 1.0
        if inside:
            return new


@compiled
def proposal_mass(old: float, width: float) -> float:
    """Return how probably a normal step from a number between 0 and 1 stays between them: ΔΦ_σ.

    Examples
    --------
    >>> round(proposal_mass(0.5, 0.3), 4)  # 2 Φ(5/3) − 1
    0.9044
    """
    scale = math.sqrt(0.5) / width
    return 0.5 * (math.erf((1.0 - old) * scale) + math.erf(old * scale))
