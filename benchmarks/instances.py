"""Random problems for a search of wrong certificates: small, degenerate and larger ones."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from banditrank.model._generators import FAMILIES
from banditrank.testing._solver_problems import SolverProblem, generate_solver_problem

Size = tuple[int, int, int]  # N, M, K

FEW, MANY = 400, 5000  # rankings that enumeration can try at once, or in a short time
DISPUTED = ["common", "common-log", "conflict", "conflict-ties"]  # where types want different items


def sizes(user_types: Iterable[int], items: range, minimum: int, maximum: int) -> tuple[Size, ...]:
    """Return the sizes whose number of rankings is in a range."""
    return tuple(
        (n, m, k)
        for n in user_types
        for m in items
        for k in range(1, m + 1)
        if minimum <= math.perm(m, k) <= maximum
    )


SMALL = sizes((1, 2, 3, 4), range(1, 21), 1, FEW)
LARGE = sizes((3, 4), range(6, 21), FEW + 1, MANY)


def draw(rng: np.random.Generator) -> SolverProblem:
    """Draw a problem: one in ten is large and its types disagree, so that most need branching.

    Of the others half are of a family, and half are degenerate.
    """
    if rng.random() < 0.1:
        return draw_of(rng, DISPUTED, LARGE[rng.integers(len(LARGE))])
    size = SMALL[rng.integers(len(SMALL))]
    if rng.random() < 0.5:
        return draw_of(rng, sorted(FAMILIES), size)
    return degenerate(rng, *size)


def draw_of(rng: np.random.Generator, families: list[str], size: Size) -> SolverProblem:
    """Draw a problem of one of the families, half the time with bonuses."""
    family = families[rng.integers(len(families))]
    return generate_solver_problem(family, size, int(rng.integers(2**31)), bonuses=rng.random() < 0.5)


def degenerate(rng: np.random.Generator, n: int, m: int, k: int) -> SolverProblem:
    """Draw a problem with ties or extreme values, which are numerically difficult."""
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
    if not rates.any():  # at least one type must arrive
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
    return SolverProblem(rates, preferences, means, bonuses)


def pick(rng: np.random.Generator, *choices: Callable[[], Any]) -> Any:
    """Return the result of one of the functions, chosen at random."""
    return choices[rng.integers(len(choices))]()
