"""How users look and click, given what they are shown.

A click model brings two formulas. The simulation loop is compiled around them, so a new model costs nothing
to the others:

``draw(problem, user_type, ranking, rng, rewards)``
    Simulate one user: write the reward earned at each position, 0 where nothing was clicked.
``value(problem, user_type, ranking)``
    The expected reward of showing the ranking to a user of the type.

It also says what that value depends on, for the best rankings can often be found without trying all of them.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.model.problem import Problem
from banditrank.model.rewards import BernoulliRewards, Rewards, draw_reward


class CompiledProblem(NamedTuple):
    """What the formulas of a click model read: a problem and its rewards, as arrays."""

    arrival_rates: NDArray[np.float64]  # (N,)
    arrival_limits: NDArray[np.float64]  # (N,) cumulative
    position_preferences: NDArray[np.float64]  # (N, K)
    position_limits: NDArray[np.float64]  # (N, K) cumulative
    position_weights: NDArray[np.float64]  # (N, K) of the click model
    scan_order: NDArray[np.uintp]  # (N, K) positions by decreasing preference
    item_means: NDArray[np.float64]  # (N, M)
    concentration: float
    scale: float
    click_parameter: float  # of the click model


class ClickModel:
    """How users look and click: a name, the two formulas above, and what is known of them.

    Attributes
    ----------
    name
        What to call it.
    depends_on
        What a ranking's value depends on. ``cells``: it is scale · Σ_k w_ik μ_i,σ(k) with the model's
        `position_weights`. ``items``: it grows with the mean of every item shown, wherever that is shown.
        ``ranking``: nothing is known.
    graded
        Whether rewards may be graded: whether ``draw`` knows of more than clicks.
    parameter
        A number of the model's own, which its formulas find in the world.
    """

    name: ClassVar[str]
    depends_on: ClassVar[Literal["cells", "items", "ranking"]] = "ranking"
    has_graded_rewards: ClassVar[bool] = True
    parameter: float = 0.0
    draw: Callable[..., None]
    value: Callable[..., Any]

    def position_weights(self, problem: Problem) -> NDArray[np.float64]:
        """Return w, shape (N, K), where values depend on cells."""
        return problem.position_preferences

    def __str__(self) -> str:
        return self.name


@inlined
def draw_user_type(problem: CompiledProblem, uniform: float) -> int:
    """Return who arrives, given a uniform number.

    Counting limits, instead of stopping at one, spares a mispredicted branch.
    """
    user_type = 0
    for other in range(problem.arrival_limits.size - 1):
        user_type += uniform >= problem.arrival_limits[other]
    return user_type


@inlined
def _draw_single_look(
    problem: CompiledProblem,
    user_type: int,
    ranking: NDArray[np.uintp],
    rng: np.random.Generator,
    rewards: NDArray[np.float64],
) -> None:
    uniform = rng.random()
    look, start = 0, 0.0
    for position in range(ranking.size - 1):
        limit = problem.position_limits[user_type, position]
        look += uniform >= limit
        start = max(start, limit) if uniform >= limit else start
    mean = problem.item_means[user_type, ranking[look]]
    if problem.concentration == 0.0:
        # What is left of the uniform number is uniform within the position's share: it decides the click.
        clicked = uniform - start < mean * problem.position_preferences[user_type, look]
        reward = problem.scale if clicked else 0.0
    else:
        reward = draw_reward(mean, problem.concentration, problem.scale, rng)
    for position in range(ranking.size):
        rewards[position] = reward if position == look else 0.0


@inlined
def value_of_cells(problem: CompiledProblem, user_type: int, ranking: NDArray[np.uintp]) -> float:
    """Return the value where it depends on cells: scale · Σ_k w_ik μ_i,σ(k)."""
    value = 0.0
    for position in range(ranking.size):
        value += problem.position_weights[user_type, position] * problem.item_means[user_type, ranking[position]]
    return value * problem.scale


class SingleLook(ClickModel):
    """The paper's click model: a user looks at exactly one position, and clicks the item there or not.

    A click tells the item and the position; no click tells nothing about where the user looked.
    """

    name: ClassVar[str] = "single-look"
    depends_on = "cells"
    draw = staticmethod(_draw_single_look)
    value = staticmethod(value_of_cells)


SINGLE_LOOK = SingleLook()


def compile_problem(
    problem: Problem, rewards: Rewards | None = None, click_model: ClickModel = SINGLE_LOOK
) -> CompiledProblem:
    """Lay a problem out for the compiled formulas."""
    rewards = rewards or BernoulliRewards()
    preferences = problem.position_preferences
    return CompiledProblem(
        problem.arrival_rates,
        np.cumsum(problem.arrival_rates),
        preferences,
        np.cumsum(preferences, axis=1),
        click_model.position_weights(problem),
        np.argsort(-preferences, axis=1, kind="stable").astype(np.uintp),
        problem.item_means,
        float(rewards.concentration),
        float(rewards.scale),
        float(click_model.parameter),
    )
