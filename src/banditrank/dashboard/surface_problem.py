"""The true world behind a surface whose users are simulated: what there is to learn."""

import numpy as np
from numpy.typing import NDArray

from banditrank.engine.surface import Surface
from banditrank.model.problem import Problem
from banditrank.model.values import weighted_means
from banditrank.solvers.optimum import best_rankings
from banditrank.storage.cells import Cells

Floats = NDArray[np.float64]

_LEAST_VALUE = 1e-6  # of a ranking to a type: a utility may be −∞ at 0, and would stay so for ever


class SurfaceProblem:
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
    arrival_rates
        Shape (N,).
    optimum
        What the best rankings under the surface's treatment are worth to each type, shape (N,).
    random
        What a random order of the items that can be shown is worth, shape (N,).

    Examples
    --------
    >>> from banditrank.model.catalog import kdd2012
    >>> surface = Surface("ads", items=kdd2012().items, user_types=kdd2012().user_types, n_positions=2)
    >>> SurfaceProblem(kdd2012(), surface).optimum.round(3)
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
        shown = np.asarray(surface.active_numbers, dtype=np.intp)
        self.arrival_rates = arrivals / arrivals.sum()
        present = Problem(self.arrival_rates, self.position_preferences, self.item_means[:, shown])
        best = best_rankings(present, equal=surface.treatment == "equal", utility=surface.compiled_policy.utility)
        self.optimum = np.array([self.values(shown[ranking])[i] for i, ranking in enumerate(best)])
        self._gaps: dict[tuple[int, ...], float] = {}
        self.random: Floats = self.item_means[:, shown].mean(axis=1)

    def values(self, ranking: NDArray[np.intp]) -> Floats:
        """Return what a ranking of the surface's items is worth to each type, shape (N,)."""
        return weighted_means(self.position_preferences, self.item_means, ranking)

    def given_up(self, cells: Cells) -> float:
        """Return the regret of what was shown at about the same time.

        Under personalized treatment it is in clicks, and exact. Under equal treatment it is in the utility
        that is maximised, for each visit: rankings are made out from how often items stood at positions,
        which is exact unless several that were shown equally often share a commit.
        """
        known = cells[
            (cells["user_type"] < len(self.item_means)) & (cells["item"] < self.item_means.shape[1])
        ]
        if self.surface.treatment == "equal":
            return self._utility_given_up(known)
        types, positions, items = known["user_type"], known["position"], known["item"]
        best = self.optimum[types] / self.surface.n_positions  # a position's part
        values = self.position_preferences[types, positions] * self.item_means[types, items]
        return float((known["displays"] * (best - values)).sum())

    def _utility_given_up(self, cells: Cells) -> float:
        shown = np.zeros((self.surface.n_positions, self.item_means.shape[1]), dtype=np.int64)
        np.add.at(shown, (cells["position"], cells["item"]), cells["displays"])
        positions, total = np.arange(len(shown)), 0.0
        while (visits := int(shown[positions, ranking := shown.argmax(axis=1)].min())) > 0:
            total += visits * self._gap(tuple(ranking.tolist()))
            shown[positions, ranking] -= visits
        return total

    def _gap(self, ranking: tuple[int, ...]) -> float:
        """Return by how much a ranking's utility for all types falls short."""
        if ranking not in self._gaps:
            both = np.stack([self.optimum, self._worth(ranking)]).clip(_LEAST_VALUE)
            best, ours = self.surface.compiled_policy.utility.collectives(self.arrival_rates, both)
            self._gaps[ranking] = float(best - ours)
        return self._gaps[ranking]

    def _worth(self, ranking: tuple[int, ...]) -> Floats:
        return np.asarray((self.position_preferences * self.item_means[:, ranking]).sum(axis=1))
