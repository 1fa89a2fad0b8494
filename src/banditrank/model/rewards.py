"""What a user gives an item she looks at: a click or not, or a graded reward."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from banditrank.checks import check_number
from banditrank.compilation import inlined
from banditrank.errors import InvalidInputError, UnknownNameError


class Rewards(Protocol):
    """A family of reward distributions on [0, scale] with mean ``scale · μ``.

    A concentration c > 0 stands for ``scale · BetaRewards(cμ, c(1 − μ))``. As c goes to 0 this tends to
    ``scale · BernoulliRewards(μ)``, so 0 stands for Bernoulli rewards.
    """

    @property
    def concentration(self) -> float:
        """How tightly rewards gather around their mean; 0 for Bernoulli."""

    @property
    def scale(self) -> float:
        """The largest reward."""


@dataclass(frozen=True, slots=True)
class BernoulliRewards:
    """A click (reward 1) with probability μ: the paper's model."""

    @property
    def concentration(self) -> float:
        """Return 0: Bernoulli is the limit of Beta rewards."""
        return 0.0

    @property
    def scale(self) -> float:
        """Return 1: a click counts once."""
        return 1.0

    def __str__(self) -> str:
        return "bernoulli"


@dataclass(frozen=True, slots=True)
class BetaRewards:
    """``scale · BetaRewards(cμ, c(1 − μ))`` with concentration c: the paper's synthetic experiment.

    Every look then yields a positive reward (almost surely), so the learner always sees where the user
    looked, and the initial phase is short.

    Parameters
    ----------
    concentration
        c; the variance is scale² · μ(1 − μ) / (c + 1).
    scale
        The largest reward. Means, values and regrets are all multiplied by it.

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
    """Return rewards, or those of a name; raise an error if they are neither.

    Examples
    --------
    >>> as_rewards("beta:10")
    Beta(concentration=10.0, scale=1.0)
    """
    if isinstance(rewards, str):
        return as_rewards(rewards)
    if not hasattr(rewards, "concentration") or not hasattr(rewards, "scale"):
        raise InvalidInputError("rewards", "must be Rewards or a name of some", rewards)
    return rewards


def as_rewards(text: str) -> Rewards:
    """Return rewards by name: ``bernoulli``, ``beta`` or ``beta:CONCENTRATION:SCALE``.

    Examples
    --------
    >>> as_rewards("beta:10")
    Beta(concentration=10.0, scale=1.0)
    """
    name, *parameters = text.split(":")
    if name == "bernoulli" and not parameters:
        return BernoulliRewards()
    if name == "beta" and len(parameters) <= 2:
        try:
            return BetaRewards(*map(float, parameters))
        except ValueError as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(
                "rewards", "must be beta:CONCENTRATION:SCALE with numbers", text
            ) from None
    raise UnknownNameError("rewards", text, ("bernoulli", "beta", "beta:CONCENTRATION:SCALE"))


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
