"""Click models: which positions a user examines, and what she clicks.

A click model provides two formulas. The simulation loop is compiled around them, so a new model does not slow
down the others:

``draw(problem, user_type, ranking, rng, rewards)``
    Simulate one user: write the reward at each position, 0 where nothing is clicked.
``value(problem, user_type, ranking)``
    Return the expected reward of showing the ranking to a user of the type.

It also declares what the value depends on, because the best rankings can then often be found without
enumerating all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_number
from banditrank._compilation import inlined
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model._problem import Problem
from banditrank.model._rewards import BernoulliRewards, Rewards, draw_reward

RankOneClickModel: TypeAlias = Literal["single-look", "position-based"]
"""Names of the click models in which an item at a position is clicked with probability ρ_k μ_j."""


class CompiledProblem(NamedTuple):
    """A problem, its rewards and the parameters of its click model, as compiled formulas read them."""

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
    """Base class of click models: a name, the two formulas above, and their properties.

    Attributes
    ----------
    name
        The name in results and on the command line.
    depends_on
        What a ranking's value depends on. ``cells``: it is scale · Σ_k w_ik μ_i,σ(k) with the model's
        `position_weights`. ``items``: it increases with the mean of every item in the ranking, wherever the
        item is placed. ``ranking``: nothing is known.
    has_graded_rewards
        Whether ``draw`` supports rewards other than clicks.
    parameter
        A number that the formulas find in `CompiledProblem.click_parameter`.
    """

    name: ClassVar[str]
    depends_on: ClassVar[Literal["cells", "items", "ranking"]] = "ranking"
    has_graded_rewards: ClassVar[bool] = True
    parameter: float = 0.0
    draw: Callable[..., None]
    value: Callable[..., Any]

    def position_weights(self, problem: Problem) -> NDArray[np.float64]:
        """Return w, shape (N, K), for models whose values depend on cells."""
        return problem.position_preferences

    def __str__(self) -> str:
        return self.name


@inlined
def draw_user_type(problem: Any, uniform: float) -> int:
    """Return the user type that arrives, given a uniform number.

    Counting limits, instead of stopping at one, avoids a mispredicted branch.
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
        # The rest of the uniform number is uniform within the position's share: it decides the click.
        clicked = uniform - start < mean * problem.position_preferences[user_type, look]
        reward = problem.scale if clicked else 0.0
    else:
        reward = draw_reward(mean, problem.concentration, problem.scale, rng)
    for position in range(ranking.size):
        rewards[position] = reward if position == look else 0.0


@inlined
def _draw_position_based(
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


@inlined
def _draw_dependent_click(
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
def _value_of_cells(problem: CompiledProblem, user_type: int, ranking: NDArray[np.uintp]) -> float:
    """Return the value of models that depend on cells: scale · Σ_k w_ik μ_i,σ(k)."""
    value = 0.0
    for position in range(ranking.size):
        mean = problem.item_means[user_type, ranking[position]]
        value += problem.position_weights[user_type, position] * mean
    return value * problem.scale


@inlined
def _value_of_dependent_click(problem: CompiledProblem, user_type: int, ranking: NDArray[np.uintp]) -> float:
    """Return Σ_k μ_k Π_{l before k} (1 − s μ_l), which is (1 − Π_k (1 − s μ_k)) / s, whatever the order."""
    unsatisfied = 1.0
    for position in range(ranking.size):
        unsatisfied *= 1.0 - problem.click_parameter * problem.item_means[user_type, ranking[position]]
    return problem.scale * (1.0 - unsatisfied) / problem.click_parameter


class SingleLook(ClickModel):
    """The paper's click model: a user examines exactly one position, and clicks the item there or not.

    A click reveals the item and the position; without a click the examined position stays unknown.
    """

    name: ClassVar[str] = "single-look"
    depends_on = "cells"
    draw = staticmethod(_draw_single_look)
    value = staticmethod(_value_of_cells)


class PositionBased(ClickModel):
    """The position-based model: position k is examined with probability κ_k, independently of the others.

    A round may have several clicks. κ_ik is ρ_ik over the largest of the type's ρ: the position of the
    largest preference is always examined.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> PositionBased().position_weights(kdd2012()).round(2)
    array([[0.48, 1.  ],
           [0.71, 1.  ]])
    """

    name: ClassVar[str] = "position-based"
    depends_on = "cells"
    draw = staticmethod(_draw_position_based)
    value = staticmethod(_value_of_cells)

    def position_weights(self, problem: Problem) -> NDArray[np.float64]:
        """Return κ, shape (N, K)."""
        preferences = problem.position_preferences
        return np.asarray(preferences / preferences.max(axis=1, keepdims=True))


@dataclass(frozen=True)
class DependentClick(ClickModel):
    """The dependent click model: a user scans the positions, and may stop after each click.

    She scans by decreasing position preference, clicks an item with its mean, and leaves after a click with
    the probability ``satisfaction``. Only the order of the preferences matters. Rewards are not graded: a
    click earns the whole reward.

    Parameters
    ----------
    satisfaction
        The probability that a click satisfies the user, from 0.001 to 1.

    Raises
    ------
    InvalidInputError
        If the satisfaction is out of range.

    Examples
    --------
    >>> str(DependentClick(0.8))
    'dependent-click:0.8'
    """

    name: ClassVar[str] = "dependent-click"
    depends_on = "items"
    has_graded_rewards = False
    draw = staticmethod(_draw_dependent_click)
    value = staticmethod(_value_of_dependent_click)

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
    """The cascade model: a user scans by decreasing position preference, and leaves after the first click."""

    name: ClassVar[str] = "cascade"
    depends_on = "items"
    has_graded_rewards = False
    parameter = 1.0
    draw = staticmethod(_draw_dependent_click)
    value = staticmethod(_value_of_dependent_click)


SINGLE_LOOK = SingleLook()
CASCADE = Cascade()

_MODELS = {model.name: model for model in (SINGLE_LOOK, PositionBased(), CASCADE, DependentClick())}
CLICK_MODEL_NAMES = tuple(_MODELS)
"""Names that `as_click_model` accepts."""


def as_click_model(model: ClickModel | str) -> ClickModel:
    """Return a click model, by name if a string is given.

    Parameters
    ----------
    model
        A click model or one of `CLICK_MODEL_NAMES`; ``dependent-click:0.8`` sets the satisfaction.

    Raises
    ------
    UnknownNameError
        If there is no click model of this name.
    InvalidInputError
        If the satisfaction is invalid, or the value is neither a click model nor a string.

    Examples
    --------
    >>> as_click_model("cascade").name
    'cascade'
    >>> str(as_click_model("dependent-click:0.8"))
    'dependent-click:0.8'
    """
    if isinstance(model, ClickModel):
        return model
    if not isinstance(model, str):
        raise InvalidInputError("click model", "must be a ClickModel or the name of one", model)
    if model in _MODELS:
        return _MODELS[model]
    name, _, parameter = model.partition(":")
    if name != DependentClick.name:
        raise UnknownNameError("click model", model, CLICK_MODEL_NAMES)
    try:
        satisfaction = float(parameter)
    except ValueError:
        raise InvalidInputError("click model", "must be dependent-click:SATISFACTION", model) from None
    return DependentClick(satisfaction)


def check_rank_one(click_model: RankOneClickModel) -> RankOneClickModel:
    """Return the name of a click model that estimates are computed for.

    Raises
    ------
    UnknownNameError
        If it is another name.

    Examples
    --------
    >>> check_rank_one("position-based")
    'position-based'
    """
    if click_model not in get_args(RankOneClickModel):
        raise UnknownNameError("click_model", click_model, get_args(RankOneClickModel))
    return click_model


def compile_problem(
    problem: Problem, rewards: Rewards | None = None, click_model: ClickModel = SINGLE_LOOK
) -> CompiledProblem:
    """Return a problem as the arrays that compiled formulas read; rewards are Bernoulli by default."""
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
