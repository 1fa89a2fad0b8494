"""Problems of other papers: one user type, and positions that are examined from the top."""

from collections.abc import Sequence

import numpy as np

from banditrank.model._click_models import CASCADE, ClickModel, PositionBased
from banditrank.model._problem import Problem


def position_based_problem(examination: Sequence[float], attraction: Sequence[float], name: str) -> Problem:
    """Return a problem where position k is examined with probability κ_k and item j then clicked with θ_j.

    `PositionBased` always examines the first position, so the item means are multiplied by its probability,
    which changes no click probability.

    Examples
    --------
    >>> problem = position_based_problem([0.9, 0.6, 0.3], [0.5, 0.1, 0.1], "a")
    >>> problem.position_preferences[0].round(3), problem.item_means[0]
    (array([0.5  , 0.333, 0.167]), array([0.45, 0.09, 0.09]))
    """
    weights = np.array(examination)
    return Problem([1.0], [weights / weights.sum()], [weights.max() * np.array(attraction)], name=name)


def cascade_problem(attraction: Sequence[float], n_positions: int, name: str) -> Problem:
    """Return a problem for the cascade model, in which only the order of positions matters."""
    weights = [(n_positions - position) / n_positions for position in range(n_positions)]
    return position_based_problem(weights, attraction, name)


EXAMINATION = (0.9, 0.6, 0.3)
ATTRACTION = (0.45, 0.35, 0.25, 0.15, 0.05)

FIVE_ITEMS = position_based_problem(EXAMINATION, ATTRACTION, "five-items")
"""Synthetic experiment of Lagrée, Vernade and Cappé (2016)."""

TEN_ITEMS = position_based_problem(
    (1.0, 0.8, 0.6, 0.5, 0.4),
    (0.35, 0.1, 0.9, 0.2, 0.55, 0.05, 0.7, 0.15, 0.45, 0.25),
    "ten-items",
)
"""Ten different items in five positions, the size of a result page in several papers."""

FOUR_ITEMS = position_based_problem((1.0, 0.6, 0.3), (0.3, 0.7, 0.1, 0.5), "four-items")
"""Small problem with large gaps, on which regret is soon logarithmic."""

TWO_POSITIONS = position_based_problem((1.0, 0.6), (0.5, 0.95, 0.35, 0.8, 0.65), "two-positions")
"""Five items in two positions."""

CLICK_MODELS: dict[str, ClickModel] = {"position-based": PositionBased(), "cascade": CASCADE}
"""The two click models of papers on policies that work under both."""

TEN_ITEMS_SETTING = (
    "Ten items in five positions, as in the paper, but with click rates of our own (.9 to .05, κ from 1 to "
    "0.4) instead of click models fitted to the log of Yandex, and fewer rounds."
)
FOUR_ITEMS_SETTING = (
    "Four items with θ = (.7, .5, .3, .1) in three positions with κ = (1, .6, .3): a small problem of our "
    "own, on which regret is logarithmic after fewer rounds than in the paper."
)
