"""What a policy takes for granted about the world, said in a way that can be checked."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

PositionKnowledge: TypeAlias = Literal["nothing", "order", "examination"]


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a policy takes for granted.

    Parameters
    ----------
    positions
        What it must be told of positions: ``nothing``; their ``order``, from the most to the least looked
        at; or their ``examination``, how probably each is looked at.
    click_models
        Names of the click models that its paper's guarantees are for; empty if any will do.
    graded_rewards
        Whether rewards may be other than clicks (0 or 1).
    utilitarian_only
        Whether under equal treatment it seeks the most clicks, whatever the utility.
    fixed_world
        Whether without a memory that forgets it counts on what was learned to stay true.
    """

    positions: PositionKnowledge = "nothing"
    click_models: tuple[str, ...] = ()
    allows_graded_rewards: bool = False
    is_utilitarian_only: bool = True
    is_stationary: bool = True


NO_ASSUMPTIONS = Assumptions(allows_graded_rewards=True, is_utilitarian_only=False)

RANK_ONE_REWARDS = Assumptions(
    click_models=("single-look", "position-based"), allows_graded_rewards=True, is_utilitarian_only=False
)
"""Rewards are an item's factor times a position's: what the paper's estimators and ours rest on."""
