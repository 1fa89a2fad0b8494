"""Worlds of the field's papers: one kind of user, positions that are looked at from the top."""

from collections.abc import Sequence

import numpy as np

from banditrank.model.problem import Problem


def positions_world(examination: Sequence[float], attraction: Sequence[float], name: str) -> Problem:
    """Return a world where position k is looked at with probability κ_k and item j then clicked with θ_j.

    Here the first position is always looked at: what it lacks is taken from the items, which changes no
    chance of a click.

    Examples
    --------
    >>> world = positions_world([0.9, 0.6, 0.3], [0.5, 0.1, 0.1], "a")
    >>> world.position_preferences[0].round(3), world.item_means[0]
    (array([0.5  , 0.333, 0.167]), array([0.45, 0.09, 0.09]))
    """
    looks = np.array(examination)
    return Problem([1.0], [looks / looks.sum()], [looks.max() * np.array(attraction)], name=name)


def cascade_world(attraction: Sequence[float], n_positions: int, name: str) -> Problem:
    """Return a world for users who read from the top; only the order of positions matters."""
    looks = [(n_positions - place) / n_positions for place in range(n_positions)]
    return positions_world(looks, attraction, name)


EXAMINATION = (0.9, 0.6, 0.3)
ATTRACTION = (0.45, 0.35, 0.25, 0.15, 0.05)

FIVE = positions_world(EXAMINATION, ATTRACTION, "five-items")
"""The synthetic experiment of Lagrée, Vernade and Cappé (2016)."""

TEN = positions_world(
    (1.0, 0.8, 0.6, 0.5, 0.4),
    (0.35, 0.1, 0.9, 0.2, 0.55, 0.05, 0.7, 0.15, 0.45, 0.25),
    "ten-items",
)
"""Ten items in five positions, the size of a page of results in the field's papers; no two are alike."""

FOUR = positions_world((1.0, 0.6, 0.3), (0.3, 0.7, 0.1, 0.5), "four-items")
"""Small and with wide gaps: regret is soon logarithmic."""

PAIR = positions_world((1.0, 0.6), (0.5, 0.95, 0.35, 0.8, 0.65), "two-positions")
"""Five items in two positions."""
