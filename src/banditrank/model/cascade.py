"""Users who scan one position after the other: the dependent-click model, and the cascade, a case of it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from banditrank.checks import check_number
from banditrank.compilation import inlined
from banditrank.model.click_models import ClickModel, CompiledProblem


@inlined
def _draw(
    problem: CompiledProblem,
    user_type: int,
    ranking: NDArray[np.uintp],
    rng: np.random.Generator,
    rewards: NDArray[np.float64],
) -> None:
    scanning = True
    for step in range(ranking.size):
        position = problem.scan_order[user_type, step]
        rewards[position] = 0.0
        if scanning and rng.random() < problem.item_means[user_type, ranking[position]]:
            rewards[position] = problem.scale
            scanning = rng.random() >= problem.click_parameter


@inlined
def _value(problem: CompiledProblem, user_type: int, ranking: NDArray[np.uintp]) -> float:
    """Return Σ_k μ_k Π_{l before k} (1 − s μ_l), which is (1 − Π_k (1 − s μ_k)) / s, whatever the order."""
    unsatisfied = 1.0
    for position in range(ranking.size):
        unsatisfied *= 1.0 - problem.click_parameter * problem.item_means[user_type, ranking[position]]
    return problem.scale * (1.0 - unsatisfied) / problem.click_parameter


@dataclass(frozen=True)
class DependentClick(ClickModel):
    """A user scans the positions, clicks what she likes, and leaves after a click if it satisfied her.

    She begins where her type looks most, and goes on by decreasing position preference. How much less a
    position is looked at is of no account: only their order is. A click earns the whole reward: rewards
    are not graded here.

    Parameters
    ----------
    satisfaction
        How probably a click satisfies, above 0 and at most 1.
    """

    name: ClassVar[str] = "dependent-click"
    depends_on = "items"
    has_graded_rewards = False
    draw = staticmethod(_draw)
    value = staticmethod(_value)

    satisfaction: float = 0.5

    def __post_init__(self) -> None:
        check_number("satisfaction", self.satisfaction, 1e-3, 1.0)

    @property
    def parameter(self) -> float:  # type: ignore[override]
        """The satisfaction."""
        return self.satisfaction

    def __str__(self) -> str:
        return f"{self.name}:{self.satisfaction:.15g}"


class Cascade(ClickModel):
    """A user scans the positions until something pleases her, clicks it, and leaves."""

    name: ClassVar[str] = "cascade"
    depends_on = "items"
    has_graded_rewards = False
    parameter = 1.0
    draw = staticmethod(_draw)
    value = staticmethod(_value)


CASCADE = Cascade()
