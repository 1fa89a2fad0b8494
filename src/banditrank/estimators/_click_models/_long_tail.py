"""The long tail of a log: items with so few looks that maximum likelihood is biased by them.

The likelihood has a mean for each item. With a few displays an estimated mean is as extreme as chance has it,
often at its bound of 1, and however many such items there are, positions are biased by them (Neyman and
Scott, 1948). Clicks of such an item are compared within the item only: given how many there are, columns
share them in proportion to displays times γ. That has no mean to estimate and no prior to be wrong: it is
unbiased however few displays an item has, and however the log chose their positions by the item's appeal.

Cells weigh by 1 / (1 − m γ), the inverse variance of clicks at the average appeal m of the tail, not at that
of the item, which depends on its clicks.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

MIN_LOOKS = 50.0
"""Number of looks, displays times γ, below which an item belongs to the tail."""

MAX_CHANCE = 0.9
"""Maximum click probability that the weight of a cell of the tail assumes."""


class InformativeRates(NamedTuple):
    """Rates from which the information about γ is computed.

    Attributes
    ----------
    means
        μ, shape (M,), of items of the tail without a bound, so that their average has no bias.
    chances
        p in the weight T μ γ / (1 − p) of a cell, shape (M, C): at the average appeal for items of the tail.
    is_tail
        Which items belong to the tail, shape (M,).
    """

    means: Floats
    chances: Floats
    is_tail: Booleans


def find_tail(displays: Floats, gamma: Floats) -> Booleans:
    """Return which items belong to the tail, shape (..., M), for displays (..., M, C) and γ (..., C)."""
    return np.asarray(np.einsum("...jc,...c->...j", displays, gamma) < MIN_LOOKS)


def informative_rates(displays: Floats, clicks: Floats, gamma: Floats, means: Floats) -> InformativeRates:
    """Return the rates from which the information about γ is computed.

    Parameters
    ----------
    displays, clicks
        Shape (M, C).
    gamma, means
        Estimates, shapes (C,) and (M,).
    """
    looks, of_items = displays @ gamma, np.minimum(clicks, displays).sum(axis=1)
    is_tail = find_tail(displays, gamma)
    average = of_items[is_tail].sum() / max(looks[is_tail].sum(), 1e-300)
    rates = np.divide(of_items, looks, out=np.zeros_like(looks), where=looks > 0)
    in_tail = np.minimum(average * gamma, MAX_CHANCE)
    return InformativeRates(
        np.where(is_tail, rates, means),
        np.where(is_tail[:, None], in_tail, np.outer(means, gamma)),
        is_tail,
    )


def share_log_likelihood(displays: Floats, clicks: Floats, gamma: Floats) -> float:
    """Return the log-likelihood of the columns of the clicks of each item, given how many there are.

    Parameters
    ----------
    displays, clicks
        Shape (M, C).
    gamma
        Shape (C,).
    """
    looks = displays * gamma
    shares = looks / np.maximum(looks.sum(axis=1, keepdims=True), 1e-300)
    return float((clicks * np.log(np.maximum(shares, 1e-300)))[clicks > 0].sum())


def shrink_means(clicks: Floats, looks: Floats) -> Floats:
    """Return posterior means of rates; nearly equal ones if they vary no more than by chance.

    Rates have a gamma prior whose mean and variance are those of the items (empirical Bayes, by moments).

    Parameters
    ----------
    clicks, looks
        Shape (M,), looks positive.

    Examples
    --------
    >>> shrink_means(np.array([0.0, 2.0, 30.0]), np.array([10.0, 2.0, 100.0])).round(2)
    array([0.09, 0.49, 0.3 ])
    """
    total = looks.sum()
    mean = clicks.sum() / total
    if mean <= 0:
        return np.zeros_like(looks)
    excess = (looks * (clicks / looks - mean) ** 2).sum() - (looks.size - 1) * mean
    variance = excess / max(total - (looks**2).sum() / total, 1e-300)
    strength = mean / max(variance, 1e-3 * mean**2)  # in looks
    return np.asarray((clicks + strength * mean) / (looks + strength))
