"""Small problems for tests of solvers, with values and optima computed naively."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from banditrank.model._generators import FAMILIES, exponential_bonuses, make_problem
from banditrank.model._rankings import Ranking
from banditrank.solvers._instance import Instance, as_instance
from banditrank.utilities._utility import Utility

Floats = NDArray[np.float64]

SOLVER_FAMILIES = tuple(sorted(set(FAMILIES) - {"long-tail"}))
"""Families with values of about 1; those of ``long-tail`` are near the tolerances of general solvers."""

SIZES = ((3, 5, 3), (2, 4, 4), (4, 6, 2), (3, 5, 1), (1, 5, 2))  # N, M, K: also K = M, K = 1, one type


@dataclass(frozen=True, slots=True, eq=False)
class SolverProblem:
    """Problem without the checks of `Problem`: rates may be 0, and rows need not sum to 1.

    Examples
    --------
    >>> from banditrank.utilities._utility import MAXIMIN
    >>> problem = SolverProblem(np.ones(2), np.ones((2, 1)), np.array([[0.2, 0.5, 0.9], [0.8, 0.4, 0.1]]))
    >>> problem.n_items, problem.n_positions, problem.best(MAXIMIN)
    (3, 1, 0.4)
    """

    arrival_rates: Floats  # (N,)
    position_preferences: Floats  # (N, K)
    item_means: Floats  # (N, M)
    bonuses: Floats | None = None  # (M,)

    @property
    def n_user_types(self) -> int:
        """Number of user types, N."""
        return int(self.item_means.shape[0])

    @property
    def n_items(self) -> int:
        """Number of items, M."""
        return int(self.item_means.shape[1])

    @property
    def n_positions(self) -> int:
        """Number of positions, K."""
        return int(self.position_preferences.shape[1])

    def instance(self) -> Instance:
        """Return the problem as an `Instance` for solver methods."""
        return as_instance(self, bonuses=self.bonuses)

    def values(self, ranking: Ranking) -> Floats:
        """Return the value of a ranking to each type, shape (N,)."""
        return np.asarray((self.position_preferences * self.item_means[:, ranking]).sum(axis=1))

    def total(self, utility: Utility, ranking: Ranking) -> float:
        """Return the collective value of a ranking, including bonuses."""
        extra = 0.0 if self.bonuses is None else float(self.bonuses[ranking].sum())
        return utility.collective(self.arrival_rates, self.values(ranking)) + extra

    def rankings(self) -> Iterator[Ranking]:
        """Yield all rankings."""
        return (np.array(ranking) for ranking in permutations(range(self.n_items), self.n_positions))

    def best(self, utility: Utility, allowed: NDArray[np.bool_] | None = None) -> float:
        """Return the value of the best ranking of allowed cells, by enumeration."""
        rankings = np.array(list(self.rankings()))  # (R, K)
        if allowed is not None:
            rankings = rankings[allowed[np.arange(self.n_positions), rankings].all(axis=1)]
        values = (self.position_preferences[:, None] * self.item_means[:, rankings]).sum(axis=2)  # (N, R)
        extra = 0.0 if self.bonuses is None else self.bonuses[rankings].sum(axis=1)
        return float((utility.collectives(self.arrival_rates, values.T) + extra).max())


def generate_solver_problem(
    family: str, size: tuple[int, int, int], seed: int, *, bonuses: bool
) -> SolverProblem:
    """Return a random problem of a family; ``size`` is N, M, K."""
    n, m, k = size
    problem = make_problem(family, n_user_types=n, n_items=m, n_positions=k, seed=seed)
    extra = exponential_bonuses(m, seed=seed) if bonuses else None
    return SolverProblem(problem.arrival_rates, problem.position_preferences, problem.item_means, extra)


def random_allowed_cells(problem: SolverProblem, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return random cells that allow at least one ranking, shape (K, M)."""
    allowed = rng.random((problem.n_positions, problem.n_items)) < rng.uniform(0.1, 0.9)
    allowed[np.arange(problem.n_positions), rng.permutation(problem.n_items)[: problem.n_positions]] = True
    return allowed


def small_solver_problems() -> list[SolverProblem]:
    """Return small problems of every family, with and without bonuses, of different seeds and sizes."""
    return [
        generate_solver_problem(family, SIZES[(2 * number + bonuses) % len(SIZES)], number, bonuses=bonuses)
        for number, family in enumerate(SOLVER_FAMILIES)
        for bonuses in (False, True)
    ]
