"""The classic position-based model: every position is examined or not, apart from the others."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.model.click_models import ClickModel, CompiledProblem, value_of_cells
from banditrank.model.problem import Problem
from banditrank.model.rewards import draw_reward


@inlined
def _draw(
    problem: CompiledProblem,
    user_type: int,
    ranking: NDArray[np.uintp],
    rng: np.random.Generator,
    rewards: NDArray[np.float64],
) -> None:
    for position in range(ranking.size):
        examined = rng.random() < problem.position_weights[user_type, position]
        mean = problem.item_means[user_type, ranking[position]]
        rewards[position] = draw_reward(mean, problem.concentration, problem.scale, rng) if examined else 0.0


class PositionBased(ClickModel):
    """The field's usual model: position k is examined with probability κ_k, and what is there clicked or not.

    A round may bring several clicks. The most looked at position is always examined: κ_ik is ρ_ik over the
    largest of the type's ρ.
    """

    name: ClassVar[str] = "position-based"
    depends_on = "cells"
    draw = staticmethod(_draw)
    value = staticmethod(value_of_cells)

    def position_weights(self, problem: Problem) -> NDArray[np.float64]:
        """Return κ, shape (N, K)."""
        preferences = problem.position_preferences
        return np.asarray(preferences / preferences.max(axis=1, keepdims=True))
