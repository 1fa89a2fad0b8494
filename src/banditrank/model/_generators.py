"""Random problems: the paper's synthetic experiment, and families that are hard in different ways."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model._problem import Problem

Floats = NDArray[np.float64]

MAX_SIZE = 100_000


def make_problem(family: str, *, n_user_types: int, n_items: int, n_positions: int, seed: int) -> Problem:
    """Generate a random problem.

    Parameters
    ----------
    family
        A key of `FAMILIES`.
    n_user_types, n_items, n_positions
        N, M and K.
    seed
        Seed of the generator; the same seed returns the same problem.

    Raises
    ------
    UnknownNameError
        If there is no family of this name.
    InvalidInputError
        If a size is out of range, or there are more positions than items.

    Examples
    --------
    >>> problem = make_problem("conflict", n_user_types=3, n_items=20, n_positions=4, seed=1)
    >>> problem.name
    'conflict-3x20x4-seed1'
    """
    if family not in FAMILIES:
        raise UnknownNameError("family", family, FAMILIES)
    for field, size in (("user types", n_user_types), ("items", n_items), ("positions", n_positions)):
        check_integer(f"number of {field}", size, 1, MAX_SIZE)
    if n_positions > n_items:
        raise InvalidInputError("number of positions", f"must not exceed the {n_items} items", n_positions)
    rng = np.random.default_rng(check_integer("seed", seed, 0))
    means, preferences, rates = FAMILIES[family](rng, n_user_types, n_items, n_positions)
    name = f"{family}-{n_user_types}x{n_items}x{n_positions}-seed{seed}"
    return Problem(rates, preferences, means, name=name)


def exponential_bonuses(n_items: int, *, seed: int, scale: float = 0.05) -> Floats:
    """Draw a bonus for each item from an exponential distribution, shape (M,)."""
    return np.random.default_rng(seed).exponential(scale, n_items)


def _synthetic(rng: np.random.Generator, n: int, m: int, k: int) -> tuple[Floats, Floats, Floats]:
    """Draw the paper's synthetic problem; the paper leaves the distributions open."""
    return rng.uniform(0.05, 0.95, (n, m)), rng.dirichlet(np.ones(k), n), rng.dirichlet(np.full(n, 5.0))


def _random(rng: np.random.Generator, n: int, m: int, k: int) -> tuple[Floats, Floats, Floats]:
    return rng.uniform(0.05, 0.95, (n, m)), rng.dirichlet(np.ones(k), n), rng.dirichlet(np.ones(n))


def _conflict(rng: np.random.Generator, n: int, m: int, k: int) -> tuple[Floats, Floats, Floats]:
    """Draw conflicting means, each item appealing to one type; preferences are geometric with noise."""
    return _conflicting_means(rng, n, m), _geometric(rng, n, k), rng.dirichlet(np.full(n, 2.0))


def _ties(rng: np.random.Generator, n: int, m: int, k: int) -> tuple[Floats, Floats, Floats]:
    """Round means to a tenth and share position preferences: many rankings are optimal."""
    means, _, rates = _random(rng, n, m, k)
    return means.round(1), _shared(rng.dirichlet(np.ones(k)), n), rates


def _conflict_ties(rng: np.random.Generator, n: int, m: int, k: int) -> tuple[Floats, Floats, Floats]:
    means, preferences, rates = _conflict(rng, n, m, k)
    return means.round(1), _shared(preferences[0], n), rates


def _common(rng: np.random.Generator, n: int, m: int, k: int) -> tuple[Floats, Floats, Floats]:
    """Draw conflicting means; preferences are geometric and shared, arrival rates equal."""
    return _conflicting_means(rng, n, m), _shared(np.power(0.7, np.arange(k)), n), np.full(n, 1 / n)


def _common_log(rng: np.random.Generator, n: int, m: int, k: int) -> tuple[Floats, Floats, Floats]:
    """Draw as for ``common``, with the discounts of DCG as preferences: 1 / log₂(k + 1)."""
    return (
        _conflicting_means(rng, n, m),
        _shared(np.array([1 / math.log2(position + 2) for position in range(k)]), n),
        np.full(n, 1 / n),
    )


def _conflicting_means(rng: np.random.Generator, n: int, m: int) -> Floats:
    means = rng.uniform(0.02, 0.15, (n, m))
    means[rng.integers(n, size=m), np.arange(m)] = rng.uniform(0.6, 0.95, m)
    return means


def _geometric(rng: np.random.Generator, n: int, k: int) -> Floats:
    preferences = 0.7 ** np.arange(k) * rng.uniform(0.8, 1.2, (n, k))
    return np.asarray(preferences / preferences.sum(axis=1, keepdims=True))


def _shared(preferences: Floats, n: int) -> Floats:
    return np.tile(preferences / preferences.sum(), (n, 1))


FAMILIES: dict[str, Callable[[np.random.Generator, int, int, int], tuple[Floats, Floats, Floats]]] = {
    "synthetic": _synthetic,
    "random": _random,
    "conflict": _conflict,
    "ties": _ties,
    "conflict-ties": _conflict_ties,
    "common": _common,
    "common-log": _common_log,
}
