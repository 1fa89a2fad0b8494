"""What became of the users of a surface, beside what could have."""

from collections import deque
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from banditrank.demo.surfaces import KnownSurface
from banditrank.solvers.optimum import best_rankings
from banditrank.utilities.utility import as_utility

UNKNOWN_ITEM = -1
"""Stands for an item that was added while the demo runs: the world does not know it, nobody clicks it."""

_LATEST = 1000  # visits that the present click rate is of


class Account:
    """Visits, clicks and regret.

    Parameters
    ----------
    known
        The surface and its truth.

    Attributes
    ----------
    means
        The chance that a user who looks at an item clicks it, shape (N, M + 1), with that of an unknown one.
    best
        The best ranking of each type, shape (N, K); under equal treatment all rows are the same.
    best_values
        What they are worth to each type, shape (N,).
    optimum, random
        Clicks a visit if everybody is shown the best ranking, and if everything is in random order.
    late, lost
        How many reports came late, and never.
    deleted
        Whether somebody deleted the surface.
    regret
        What was lost by not showing the best: clicks, or collective utility under equal treatment.
    """

    def __init__(self, known: KnownSurface) -> None:
        self.known = known
        world = known.world
        unknown = np.zeros((world.n_user_types, 1))
        self.means = np.hstack([world.item_means, unknown])  # (N, M + 1)
        self._equal = known.treatment == "equal"
        self._utility = as_utility(known.utility)
        self.best = best_rankings(world, equal=self._equal, utility=self._utility)
        self.best_values = np.array([self.values(tuple(row))[i] for i, row in enumerate(self.best.tolist())])
        self.optimum = float(world.arrival_rates @ self.best_values)
        self.random = float(world.arrival_rates @ world.item_means.mean(axis=1))  # looks sum to 1
        self.visits = self.clicks = 0
        self.late = self.lost = 0
        self.regret = 0.0
        self.deleted = False
        self._latest: deque[bool] = deque(maxlen=_LATEST)
        self._loss = cache(self._loss_of)

    def note(self, user_type: int, ranking: Sequence[int], *, clicked: bool) -> None:
        """Count a visit."""
        self.visits += 1
        self.clicks += int(clicked)
        self.regret += self._loss(user_type, tuple(ranking))
        self._latest.append(clicked)

    @property
    def latest_rate(self) -> float:
        """Clicks a visit, of late; 0 without any visit."""
        return sum(self._latest) / max(len(self._latest), 1)

    def values(self, ranking: Sequence[int]) -> NDArray[np.float64]:
        """Return what a ranking is truly worth to each user type, shape (N,)."""
        preferences = self.known.world.position_preferences
        values: NDArray[np.float64] = np.einsum("ik,ik->i", preferences, self.means[:, list(ranking)])
        return values

    def _loss_of(self, user_type: int, ranking: tuple[int, ...]) -> float:
        values = self.values(ranking)
        if not self._equal:
            return float(self.best_values[user_type] - values[user_type])
        rates = self.known.world.arrival_rates
        return self._utility.collective(rates, self.best_values) - self._utility.collective(rates, values)
