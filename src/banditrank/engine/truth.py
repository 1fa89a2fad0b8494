"""The true world behind a surface whose users are simulated: what there is to learn."""

import numpy as np
from numpy.typing import NDArray

from banditrank.engine.surface import Surface
from banditrank.model.problem import Problem
from banditrank.model.values import weighted_means
from banditrank.solvers.optimum import best_rankings

Floats = NDArray[np.float64]


class Truth:
    """A world, with the types and items of a surface.

    Parameters
    ----------
    problem
        The world. What the surface has beside, by name, is never clicked.
    surface
        The surface.

    Attributes
    ----------
    position_preferences, item_means
        Shapes (N, K) and (N, M), of all items there ever were.
    optimum
        What the best rankings under the surface's treatment are worth to each type, shape (N,).
    random
        What a random order of the items that can be shown is worth, shape (N,).

    Examples
    --------
    >>> from banditrank.model.catalog import kdd2012
    >>> surface = Surface("ads", items=kdd2012().items, user_types=kdd2012().user_types, n_positions=2)
    >>> Truth(kdd2012(), surface).optimum.round(3)
    array([0.742, 0.491])
    """

    def __init__(self, problem: Problem, surface: Surface) -> None:
        self.surface = surface
        types = {name: number for number, name in enumerate(problem.user_types)}
        items = {name: number for number, name in enumerate(problem.items)}
        size = len(surface.user_types), len(surface.items)
        self.position_preferences = np.full((size[0], surface.n_positions), 1.0 / surface.n_positions)
        self.item_means = np.zeros(size)
        arrivals = np.full(size[0], 1e-9)
        for i, user_type in enumerate(surface.user_types):
            if user_type not in types:
                continue
            number = types[user_type]
            arrivals[i] = problem.arrival_rates[number]
            self.position_preferences[i] = problem.position_preferences[number, : surface.n_positions]
            for j, item in enumerate(surface.items):
                if item in items:
                    self.item_means[i, j] = problem.item_means[number, items[item]]
        shown = np.asarray(surface.shown_numbers, dtype=np.intp)
        present = Problem(arrivals / arrivals.sum(), self.position_preferences, self.item_means[:, shown])
        best = best_rankings(present, equal=surface.treatment == "equal", utility=surface.made_policy.utility)
        self.optimum = np.array([self.values(shown[ranking])[i] for i, ranking in enumerate(best)])
        self.random: Floats = self.item_means[:, shown].mean(axis=1)

    def values(self, ranking: NDArray[np.intp]) -> Floats:
        """Return what a ranking of the surface's items is worth to each type, shape (N,)."""
        return weighted_means(self.position_preferences, self.item_means, ranking)

    @property
    def cell_values(self) -> Floats:
        """What an item is worth to a type at a position, shape (N, K, M)."""
        return self.position_preferences[:, :, None] * self.item_means[:, None, :]
