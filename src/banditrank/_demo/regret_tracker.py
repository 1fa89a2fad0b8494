"""Visits, clicks and regret of a demo surface, computed from its true problem."""

from collections import deque
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from banditrank._demo.surfaces import DemoSurface
from banditrank.solvers._optimum import best_rankings
from banditrank.utilities._utility import as_utility

UNKNOWN_ITEM = -1
"""Index of an item that was added while the demo runs; it is not in the problem and never clicked."""

_N_RECENT_VISITS = 1000


class RegretTracker:
    """Visits, clicks and regret of one surface.

    Parameters
    ----------
    surface
        Surface with its true problem.

    Attributes
    ----------
    item_means
        Click probability of each item when examined, shape (N, M + 1); the last column is for unknown items.
    best_rankings
        Best ranking of each type, shape (N, K); all rows are equal under equal treatment.
    best_values
        Value of the best rankings to each type, shape (N,).
    optimal_click_rate, random_click_rate
        Expected clicks per visit of the best rankings and of random rankings.
    visits, clicks
        Numbers of visits and clicks.
    late_reports, lost_reports
        Numbers of late and of missing feedback reports.
    regret
        Cumulative regret in clicks, or in collective utility under equal treatment.
    is_deleted
        Whether the surface was deleted while the demo runs.
    """

    def __init__(self, surface: DemoSurface) -> None:
        self.surface = surface
        problem = surface.problem
        unknown = np.zeros((problem.n_user_types, 1))
        self.item_means = np.hstack([problem.item_means, unknown])  # (N, M + 1)
        self._is_equal = surface.treatment == "equal"
        self._utility = as_utility(surface.utility)
        self.best_rankings = best_rankings(problem, equal=self._is_equal, utility=self._utility)
        self.best_values = np.array(
            [self.true_values(tuple(row))[i] for i, row in enumerate(self.best_rankings.tolist())]
        )
        self.optimal_click_rate = float(problem.arrival_rates @ self.best_values)
        # Position preferences sum to 1, so a random ranking has the mean over items.
        self.random_click_rate = float(problem.arrival_rates @ problem.item_means.mean(axis=1))
        self.visits = self.clicks = 0
        self.late_reports = self.lost_reports = 0
        self.regret = 0.0
        self.is_deleted = False
        self._recent_clicks: deque[bool] = deque(maxlen=_N_RECENT_VISITS)
        self._loss = cache(self._compute_loss)

    def record(self, user_type: int, ranking: Sequence[int], *, clicked: bool) -> None:
        """Count a visit."""
        self.visits += 1
        self.clicks += int(clicked)
        self.regret += self._loss(user_type, tuple(ranking))
        self._recent_clicks.append(clicked)

    @property
    def recent_click_rate(self) -> float:
        """Clicks per visit over the last 1,000 visits; 0 without visits."""
        return sum(self._recent_clicks) / max(len(self._recent_clicks), 1)

    def true_values(self, ranking: Sequence[int]) -> NDArray[np.float64]:
        """Return the true value of a ranking to each user type, shape (N,)."""
        preferences = self.surface.problem.position_preferences
        values: NDArray[np.float64] = np.einsum("ik,ik->i", preferences, self.item_means[:, list(ranking)])
        return values

    def _compute_loss(self, user_type: int, ranking: tuple[int, ...]) -> float:
        values = self.true_values(ranking)
        if not self._is_equal:
            return float(self.best_values[user_type] - values[user_type])
        rates = self.surface.problem.arrival_rates
        return self._utility.collective(rates, self.best_values) - self._utility.collective(rates, values)
