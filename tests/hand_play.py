"""Play field policies round by round, with users written in plain Python: any click model will do."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditrank.policies.base import CompiledPolicy
from banditrank.statistics.counts import Counts

Floats = NDArray[np.float64]
User = Callable[[NDArray[np.uintp], np.random.Generator], Floats]
"""Returns the rewards of a ranking."""


def cascade(attraction: Floats) -> User:
    """Users who look from position 0 down and stop at the first item that they like."""

    def click(ranking: NDArray[np.uintp], rng: np.random.Generator) -> Floats:
        likes = rng.random(ranking.size) < attraction[ranking]
        return (likes & (np.cumsum(likes) == 1)).astype(np.float64)

    return click


def position_based(examination: Floats, attraction: Floats) -> User:
    """Users who look at each position independently."""

    def click(ranking: NDArray[np.uintp], rng: np.random.Generator) -> Floats:
        return (rng.random(ranking.size) < examination * attraction[ranking]).astype(np.float64)

    return click


class Play:
    """A policy at play with one kind of user."""

    def __init__(
        self, policy: CompiledPolicy, *, n_items: int, n_positions: int, counts: Counts | None = None
    ) -> None:
        self.counts = counts or Counts.empty(n_user_types=1, n_items=n_items, n_positions=n_positions)
        self.policy = policy
        self.kernel = policy.kernel(n_items=n_items, n_positions=n_positions)
        self.state: Any = policy.start(self.counts, policy.new_scratch())
        self.ranking = np.zeros(n_positions, dtype=np.uintp)
        self.t = 0

    def rank(self, rng: np.random.Generator) -> NDArray[np.uintp]:
        """Return a copy of the next ranking."""
        self.t += 1
        parameters = self.policy.parameters(np.array([self.t]))[0]
        self.kernel.rank(self.state, 0, self.t, parameters, rng, self.ranking)
        return self.ranking.copy()

    def observe(self, ranking: Any, rewards: Any) -> None:
        """Take in a round."""
        shown, earned = np.asarray(ranking, dtype=np.uintp), np.asarray(rewards, dtype=np.float64)
        self.kernel.observe(self.state, 0, self.t, shown, earned)

    def rounds(self, user: User, number: int, seed: int) -> NDArray[np.uintp]:
        """Play and return the rankings, shape (number, K)."""
        rng, users = np.random.default_rng(seed), np.random.default_rng(seed + 1000)
        shown = np.zeros((number, self.ranking.size), dtype=np.uintp)
        for n in range(number):
            shown[n] = self.rank(rng)
            self.observe(shown[n], user(shown[n], users))
        return shown
