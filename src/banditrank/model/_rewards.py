"""Reward distributions: Bernoulli (clicks) and Beta (graded)."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from banditrank._checks import check_number
from banditrank._compilation import inlined
from banditrank.errors import InvalidInputError, UnknownNameError


class Rewards(Protocol):
    """A family of reward distributions on [0, scale] with mean ``scale · μ``.

    A concentration c > 0 stands for ``scale · Beta(cμ, c(1 − μ))``. As c tends to 0 this tends to
    ``scale · Bernoulli(μ)``, so 0 stands for Bernoulli rewards.
    """

    @property
    def concentration(self) -> float:
        """Concentration c of the rewards around their mean; 0 for Bernoulli."""

    @property
    def scale(self) -> float:
        """The maximum reward."""


@dataclass(frozen=True, slots=True)
class BernoulliRewards:
    """A click (reward 1) with probability μ: the paper's rewards."""

    @property
    def concentration(self) -> float:
        """0: Bernoulli is the limit of Beta rewards."""
        return 0.0

    @property
    def scale(self) -> float:
        """1: the reward of a click."""
        return 1.0

    def __str__(self) -> str:
        return "bernoulli"


@dataclass(frozen=True, slots=True)
class BetaRewards:
    """``scale · Beta(cμ, c(1 − μ))`` with concentration c: the paper's synthetic experiment.

    Every examined item then yields a positive reward (almost surely), which reveals the examined position and
    keeps the initial phase short.

    Parameters
    ----------
    concentration
        c; the variance is scale² · μ(1 − μ) / (c + 1).
    scale
        The maximum reward; means, values and regrets are multiplied by it.

    Raises
    ------
    InvalidInputError
        If a parameter is not between 0.001 and 1,000,000.

    Examples
    --------
    >>> str(BetaRewards(concentration=10, scale=2))
    'beta:10:2'
    """

    concentration: float = 4.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        for field in ("concentration", "scale"):
            check_number(f"rewards' {field}", getattr(self, field), 1e-3, 1e6)

    def __str__(self) -> str:
        return f"beta:{self.concentration:.15g}:{self.scale:.15g}"


def as_rewards(rewards: Rewards | str) -> Rewards:
    """Return rewards, by name if a string is given.

    Parameters
    ----------
    rewards
        Rewards, or ``bernoulli``, ``beta``, ``beta:CONCENTRATION`` or ``beta:CONCENTRATION:SCALE``.

    Raises
    ------
    UnknownNameError
        If there are no rewards of this name.
    InvalidInputError
        If a parameter is invalid, or the value is neither rewards nor a string.

    Examples
    --------
    >>> as_rewards("beta:10")
    BetaRewards(concentration=10.0, scale=1.0)
    """
    if not isinstance(rewards, str):
        if not hasattr(rewards, "concentration") or not hasattr(rewards, "scale"):
            raise InvalidInputError("rewards", "must be Rewards or a name of some", rewards)
        return rewards
    name, *parameters = rewards.split(":")
    if name == "bernoulli" and not parameters:
        return BernoulliRewards()
    if name == "beta" and len(parameters) <= 2:
        try:
            return BetaRewards(*map(float, parameters))
        except ValueError as error:
            if isinstance(error, InvalidInputError):
                raise
            rule = "must be beta:CONCENTRATION:SCALE with numbers"
            raise InvalidInputError("rewards", rule, rewards) from None
    raise UnknownNameError("rewards", rewards, ("bernoulli", "beta", "beta:CONCENTRATION:SCALE"))


@inlined
def draw_reward(mean: float, concentration: float, scale: float, rng: np.random.Generator) -> float:
    """Draw one reward with mean ``scale · mean``."""
    if concentration == 0.0:
        return scale if rng.random() < mean else 0.0
    if mean <= 0.0:
        return 0.0
    if mean >= 1.0:
        return scale
    return scale * rng.beta(concentration * mean, concentration * (1.0 - mean))
