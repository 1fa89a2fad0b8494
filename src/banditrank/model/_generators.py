"""Problems by family: the paper's synthetic experiment, some that are hard in other ways, a carousel."""

import math
from collections.abc import Callable
from os import PathLike
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model._carousel import N_POSITIONS, carousel_preferences, read_carousel
from banditrank.model._problem import Problem

Floats = NDArray[np.float64]

MAX_SIZE = 100_000
CAROUSEL = "carousel"


@overload
def make_problem(family: str, *, n_user_types: int, n_items: int, n_positions: int, seed: int) -> Problem: ...


@overload
def make_problem(
    family: Literal["carousel"], *, path: str | PathLike[str], n_positions: int = N_POSITIONS
) -> Problem: ...


def make_problem(
    family: str,
    *,
    n_user_types: int | None = None,
    n_items: int | None = None,
    n_positions: int | None = None,
    seed: int | None = None,
    path: str | PathLike[str] | None = None,
) -> Problem:
    """Generate a random problem, or read that of a carousel.

    Parameters
    ----------
    family
        A key of `FAMILIES`, or ``carousel``: a streaming service's carousel, whose users are user types and
        look as under the cascade model.
    n_user_types, n_items, n_positions
        N, M and K. A carousel has the users and items of its files, and 12 positions by default.
    seed
        Seed of the generator; the same seed returns the same problem.
    path
        Directory with the files of a carousel, ``playlist_features.csv`` and ``user_features_small.csv``.

    Raises
    ------
    UnknownNameError
        If there is no family of this name.
    InvalidInputError
        If a size is out of range, there are more positions than items, an argument is missing or does not
        belong to the family, or the files cannot be read.

    Examples
    --------
    >>> problem = make_problem("conflict", n_user_types=3, n_items=20, n_positions=4, seed=1)
    >>> problem.name
    'conflict-3x20x4-seed1'
    """
    if family == CAROUSEL:
        if not isinstance(path, str | PathLike):
            raise InvalidInputError("path", "must be the directory with the files of the carousel", path)
        for field, given in (("n_user_types", n_user_types), ("n_items", n_items), ("seed", seed)):
            if given is not None:
                raise InvalidInputError(field, "must be left out of a carousel", given)
        return read_carousel(path, n_positions=N_POSITIONS if n_positions is None else n_positions)
    if family not in FAMILIES:
        raise UnknownNameError("family", family, (*FAMILIES, CAROUSEL))
    if path is not None:
        raise InvalidInputError("path", f"must be left out of the family {family}", str(path))
    n, m, k = (
        check_integer(f"number of {field}", size, 1, MAX_SIZE)
        for field, size in (("user types", n_user_types), ("items", n_items), ("positions", n_positions))
    )
    if k > m:
        raise InvalidInputError("number of positions", f"must not exceed the {m} items", k)
    rng = np.random.default_rng(check_integer("seed", seed, 0))
    means, preferences, rates = FAMILIES[family](rng, n, m, k)
    return Problem(rates, preferences, means, name=f"{family}-{n}x{m}x{k}-seed{seed}")


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


def _long_tail(rng: np.random.Generator, n: int, m: int, k: int) -> tuple[Floats, Floats, Floats]:
    """Draw what a carousel has: most items seldom clicked, a few often, and tastes that are much alike."""
    popularities = 0.005 * np.exp(0.65 * rng.standard_t(3, m))
    means = np.minimum(popularities * np.exp(0.2 * rng.standard_normal((n, m))), 0.5)
    return means, _shared(carousel_preferences(k), n), rng.dirichlet(np.full(n, 5.0))


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
    "long-tail": _long_tail,
}
