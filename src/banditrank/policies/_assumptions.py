"""Assumptions of a policy about the problem, in a form that can be checked."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

PositionInformation: TypeAlias = Literal["nothing", "order", "examination"]


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Assumptions of a policy about the problem.

    Parameters
    ----------
    positions
        What the policy needs to know about positions: ``nothing``; their ``order``, by decreasing
        examination; or their ``examination`` probabilities.
    click_models
        Names of the click models that the guarantees of its paper hold for; empty if they hold for any.
    allows_graded_rewards
        Whether rewards may be other than clicks (0 or 1).
    is_utilitarian_only
        Whether it maximises clicks under equal treatment, whatever the utility.
    is_stationary
        Whether it assumes, without a memory that forgets, that the problem does not change.
    """

    positions: PositionInformation = "nothing"
    click_models: tuple[str, ...] = ()
    allows_graded_rewards: bool = False
    is_utilitarian_only: bool = True
    is_stationary: bool = True


NO_ASSUMPTIONS = Assumptions(allows_graded_rewards=True, is_utilitarian_only=False)

RANK_ONE_REWARDS = Assumptions(
    click_models=("single-look", "position-based"), allows_graded_rewards=True, is_utilitarian_only=False
)
"""The mean reward of a cell is a factor of the item times a factor of the position."""
