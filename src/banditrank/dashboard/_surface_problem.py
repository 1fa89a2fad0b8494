"""The problem that the simulated users of a surface act by, and the regret of its rankings."""

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard._estimated_problem import (
    EstimatedSurfaceProblem,
    random_values,
    ranking_value,
)
from banditrank.engine._guarantees import active_guarantees
from banditrank.engine._surface import Surface
from banditrank.model._click_models import as_click_model
from banditrank.model._problem import Problem
from banditrank.model._values import weighted_means
from banditrank.policies._base import draws_lotteries, is_equal
from banditrank.solvers._optimum import best_feasible_lottery, best_rankings
from banditrank.storage._cells import Cells

Floats = NDArray[np.float64]

_MIN_ARRIVAL_RATE = 1e-9  # of user types that the problem does not have; a problem has no rates of 0
_MIN_VALUE = (
    1e-6  # of a ranking to a user type: at 0 a utility, and so the cumulative regret, may be infinite
)


class SurfaceProblem:
    """A problem with the user types and items of a surface.

    Parameters
    ----------
    problem
        The problem. User types and items are matched by name; items that it does not have are never
        clicked.
    surface
        The surface. Users act by its click model.

    Attributes
    ----------
    position_preferences
        Probabilities that positions are looked at, shape (N, K): those of the problem, or its
        `PositionBased.position_weights` if clicks are position-based.
    item_means
        Shape (N, M), with all items of the surface, retired ones included.
    arrival_rates
        Shape (N,).
    optimal_values
        Values of the best rankings under the surface's treatment, or expected values of the best lottery,
        shape (N,).
    random_values
        Values of a random order of the active items, shape (N,).

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> surface = Surface("ads", items=kdd2012().items, user_types=kdd2012().user_types, n_positions=2)
    >>> SurfaceProblem(kdd2012(), surface).optimal_values.round(3)
    array([0.742, 0.491])
    """

    def __init__(self, problem: Problem, surface: Surface) -> None:
        self.surface = surface
        user_types = {name: number for number, name in enumerate(problem.user_types)}
        items = {name: number for number, name in enumerate(problem.items)}
        n_user_types, n_positions = len(surface.user_types), surface.n_positions
        preferences = np.full((n_user_types, n_positions), 1.0 / n_positions)
        self.item_means = np.zeros((n_user_types, len(surface.items)))
        arrivals = np.full(n_user_types, _MIN_ARRIVAL_RATE)
        for i, user_type in enumerate(surface.user_types):
            if user_type not in user_types:
                continue
            number = user_types[user_type]
            arrivals[i] = problem.arrival_rates[number]
            preferences[i] = problem.position_preferences[number, :n_positions]
            for j, item in enumerate(surface.items):
                if item in items:
                    self.item_means[i, j] = problem.item_means[number, items[item]]
        active = np.asarray(surface.active_numbers, dtype=np.intp)
        self.arrival_rates = arrivals / arrivals.sum()
        active_problem = Problem(self.arrival_rates, preferences, self.item_means[:, active])
        click_model = as_click_model(surface.click_model)
        self.position_preferences = click_model.position_weights(active_problem)
        if draws_lotteries(surface.treatment, surface.guarantees):
            best = best_feasible_lottery(
                active_problem,
                surface.compiled_policy.utility,
                active_guarantees(surface),
                treatment=surface.treatment,
                click_model=click_model,
            )
            self.optimal_values = best.user_type_values
        else:
            self.optimal_values = self._best_values(active_problem, active)
        self.random_values: Floats = random_values(
            EstimatedSurfaceProblem(self.arrival_rates, self.position_preferences, active_problem.item_means)
        )
        self._utility_gaps: dict[tuple[int, ...], float] = {}

    def _best_values(self, active_problem: Problem, active: NDArray[np.intp]) -> Floats:
        """Return the values of the best rankings of the active items, shape (N,)."""
        surface = self.surface
        best = best_rankings(
            active_problem,
            equal=is_equal(surface.treatment),
            utility=surface.compiled_policy.utility,
            click_model=as_click_model(surface.click_model),
        )
        return np.array([self.values(active[ranking])[i] for i, ranking in enumerate(best)])

    def values(self, ranking: NDArray[np.intp]) -> Floats:
        """Return the value of a ranking of item numbers to each user type, shape (N,).

        Raises
        ------
        InvalidInputError
            If it is not a ranking of the surface's items.
        """
        return weighted_means(self.position_preferences, self.item_means, ranking)

    def regret(self, cells: Cells) -> float:
        """Return the regret of the displays of a change, summed over its impressions.

        Under personalized treatment it is in clicks, and exact. Under equal treatment it is in the utility
        that the policy maximises. Rankings are then reconstructed from the displays of items at positions,
        which is exact unless several rankings of the change were displayed equally often. Under a lottery it
        is 0: a ranking that was drawn has no regret of its own, and counts do not tell the lottery.
        """
        if draws_lotteries(self.surface.treatment, self.surface.guarantees):
            return 0.0
        n_user_types, n_items = self.item_means.shape
        cells = cells[(cells["user_type"] < n_user_types) & (cells["item"] < n_items)]
        if is_equal(self.surface.treatment):
            return self._utility_regret(cells)
        user_types, positions, items = cells["user_type"], cells["position"], cells["item"]
        optimal = self.optimal_values[user_types] / self.surface.n_positions  # equal shares of the optimum
        values = self.position_preferences[user_types, positions] * self.item_means[user_types, items]
        return float((cells["displays"] * (optimal - values)).sum())

    def _utility_regret(self, cells: Cells) -> float:
        displays = np.zeros((self.surface.n_positions, self.item_means.shape[1]), dtype=np.int64)  # (K, M)
        np.add.at(displays, (cells["position"], cells["item"]), cells["displays"])
        positions, total = np.arange(len(displays)), 0.0
        while (n_impressions := int(displays[positions, ranking := displays.argmax(axis=1)].min())) > 0:
            total += n_impressions * self._utility_gap(tuple(ranking.tolist()))
            displays[positions, ranking] -= n_impressions
        return total

    def _utility_gap(self, ranking: tuple[int, ...]) -> float:
        """Return the collective utility of the optimum less that of a ranking."""
        if ranking not in self._utility_gaps:
            # A reconstructed ranking may repeat an item, so `values` would refuse it.
            values = ranking_value(self, np.array(ranking, dtype=np.intp))
            both = np.stack([self.optimal_values, values]).clip(_MIN_VALUE)
            optimal, actual = self.surface.compiled_policy.utility.collectives(self.arrival_rates, both)
            self._utility_gaps[ranking] = float(optimal - actual)
        return self._utility_gaps[ranking]
