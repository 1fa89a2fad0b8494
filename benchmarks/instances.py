"""Small worlds to look for wrong certificates on: of every family, and degenerate on purpose."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from banditrank.model.generators import FAMILIES
from banditrank.testing.worlds import World, draw_world

MOST_RANKINGS = 400
SIZES = tuple(
    (n, m, k)
    for n in (1, 2, 3, 4)
    for m in range(1, 21)
    for k in range(1, m + 1)
    if math.perm(m, k) <= MOST_RANKINGS
)


def draw(rng: np.random.Generator) -> World:
    """Draw a world, half the time of a family, with bonuses half the time."""
    size = SIZES[rng.integers(len(SIZES))]
    if rng.random() < 0.5:
        return draw_of(rng, sorted(FAMILIES), size)
    return degenerate(rng, *size)


def draw_of(rng: np.random.Generator, families: list[str], size: tuple[int, int, int]) -> World:
    """Draw a world of one of the families."""
    family = families[rng.integers(len(families))]
    return draw_world(family, size, int(rng.integers(2**31)), bonuses=rng.random() < 0.5)


def degenerate(rng: np.random.Generator, n: int, m: int, k: int) -> World:
    """Draw a world of the kind that arithmetic and ties make difficult."""
    means = pick(
        rng,
        lambda: rng.integers(2, size=(n, m)).astype(np.float64),
        lambda: rng.choice([0.0, 0.5, 1.0], (n, m)),
        lambda: rng.uniform(0.0, 1.0, (n, m)).round(1),
        lambda: 10.0 ** rng.uniform(-6, 0, (n, m)),
        lambda: np.where(rng.random((n, m)) < 0.6, 0.0, rng.uniform(0.0, 1.0, (n, m))),
        lambda: np.full((n, m), rng.uniform(0.1, 1.0)) + 1e-9 * rng.random((n, m)),
    )
    if rng.random() < 0.4:  # duplicates
        means = means[:, rng.integers(m, size=m)]
    preferences = pick(
        rng,
        lambda: rng.dirichlet(np.ones(k), n),
        lambda: rng.integers(2, size=(n, k)).astype(np.float64),
        lambda: np.tile(rng.dirichlet(np.ones(k)), (n, 1)),
        lambda: np.full((n, k), 1.0 / k),
        lambda: 10.0 ** rng.uniform(-4, 0, (n, k)),
    )
    rates = pick(
        rng,
        lambda: rng.dirichlet(np.ones(n)),
        lambda: rng.integers(2, size=n).astype(np.float64),
        lambda: np.full(n, 1.0 / n),
        lambda: 10.0 ** rng.uniform(-8, 0, n),
    )
    if not rates.any():  # somebody must arrive
        rates[rng.integers(n)] = 1.0
    bonuses = pick(
        rng,
        lambda: None,
        lambda: None,
        lambda: rng.exponential(0.05, m),
        lambda: rng.integers(2, size=m).astype(np.float64),
        lambda: rng.choice([0.0, 0.1], m),
        lambda: 10.0 ** rng.uniform(-6, 2, m),
    )
    return World(rates, preferences, means, bonuses)


def pick(rng: np.random.Generator, *choices: Callable[[], Any]) -> Any:
    """Return what one of the functions gives."""
    return choices[rng.integers(len(choices))]()
