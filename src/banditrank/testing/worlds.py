"""Small worlds to try solvers on, and what their rankings are worth, worked out plainly."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from banditrank.model.generators import FAMILIES, exponential_bonuses, make_problem
from banditrank.model.rankings import Ranking
from banditrank.solvers.instance import Instance, as_instance
from banditrank.utilities.utility import Utility

Floats = NDArray[np.float64]

SIZES = ((3, 5, 3), (2, 4, 4), (4, 6, 2), (3, 5, 1), (1, 5, 2))  # N, M, K: also K = M, K = 1, one type


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """What solvers are given: unlike in a `Problem`, types may never arrive, and nothing need add up to 1.

    Examples
    --------
    >>> from banditrank.utilities.utility import MAXIMIN
    >>> world = World(np.ones(2), np.ones((2, 1)), np.array([[0.2, 0.5, 0.9], [0.8, 0.4, 0.1]]))
    >>> world.n_items, world.n_positions, world.best(MAXIMIN)
    (3, 1, 0.4)
    """

    arrival_rates: Floats  # (N,)
    position_preferences: Floats  # (N, K)
    item_means: Floats  # (N, M)
    bonuses: Floats | None = None  # (M,)

    @property
    def n_user_types(self) -> int:
        """N."""
        return int(self.item_means.shape[0])

    @property
    def n_items(self) -> int:
        """M."""
        return int(self.item_means.shape[1])

    @property
    def n_positions(self) -> int:
        """K."""
        return int(self.position_preferences.shape[1])

    def instance(self) -> Instance:
        """Return the world as methods take it."""
        return as_instance(self, bonuses=self.bonuses)

    def values(self, ranking: Ranking) -> Floats:
        """Return what a ranking is worth to each type, shape (N,)."""
        return np.asarray((self.position_preferences * self.item_means[:, ranking]).sum(axis=1))

    def total(self, utility: Utility, ranking: Ranking) -> float:
        """Return what a ranking is worth, bonuses included."""
        extra = 0.0 if self.bonuses is None else float(self.bonuses[ranking].sum())
        return utility.collective(self.arrival_rates, self.values(ranking)) + extra

    def rankings(self) -> Iterator[Ranking]:
        """Give all rankings."""
        return (np.array(ranking) for ranking in permutations(range(self.n_items), self.n_positions))

    def best(self, utility: Utility) -> float:
        """Return what the best ranking is worth, by trying all of them."""
        return max(self.total(utility, ranking) for ranking in self.rankings())


def draw_world(family: str, size: tuple[int, int, int], seed: int, *, bonuses: bool) -> World:
    """Draw a world of a family; ``size`` is N, M, K."""
    n, m, k = size
    problem = make_problem(family, n_user_types=n, n_items=m, n_positions=k, seed=seed)
    extra = exponential_bonuses(m, seed=seed) if bonuses else None
    return World(problem.arrival_rates, problem.position_preferences, problem.item_means, extra)


def worlds() -> list[World]:
    """Return small worlds of every family, with and without bonuses, each with its own seed and size."""
    return [
        draw_world(family, SIZES[(2 * number + bonuses) % len(SIZES)], number, bonuses=bonuses)
        for number, family in enumerate(sorted(FAMILIES))
        for bonuses in (False, True)
    ]
