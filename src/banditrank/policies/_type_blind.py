"""Type-blind policies, which do not distinguish user types: any policy, and the paper's baseline."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from banditrank.errors import InvalidInputError
from banditrank.policies._assumptions import RANK_ONE_REWARDS, Assumptions
from banditrank.policies._base import CompiledPolicy, Treatment, check_treatment, check_utility, is_equal
from banditrank.policies._paper_policy import PAPER_COEFFICIENTS
from banditrank.policies._ucb_rank import UCBRank
from banditrank.policies._wrapper import PolicyWrapper
from banditrank.policies.schedules import Schedule
from banditrank.utilities._utility import UTILITARIAN, Utility

TYPE_BLIND_PREFIX = "type-blind-"
"""Prefix of the name of a policy that learns from counts pooled over user types."""


@dataclass(frozen=True, init=False)
class TypeBlind(PolicyWrapper):
    """A policy on counts that are pooled over user types: all users are of one type to it.

    It learns from all users at once, and is wrong where user types have different tastes.

    Parameters
    ----------
    policy
        The policy, which then sees a single user type. Prior knowledge about positions must have one row.
    treatment, utility
        What its regret is measured against; those of the policy by default.

    Raises
    ------
    InvalidInputError
        If the policy is not a `CompiledPolicy`.
    UnknownNameError
        If the treatment or the utility is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from banditrank import Counts, ThompsonRank
    >>> policy = TypeBlind(ThompsonRank())
    >>> policy.name
    'type-blind-thompson-rank'
    >>> counts = Counts.from_arrays([[[99], [0]], [[0], [99]]], [[[90], [0]], [[0], [9]]], [99, 99])
    >>> policy.rank(counts, 1, rng=np.random.default_rng(1))
    array([0])
    """

    distinguishes_user_types = False

    treatment: Treatment
    utility: Utility

    def __init__(
        self,
        policy: CompiledPolicy,
        *,
        treatment: Treatment | None = None,
        utility: Utility | str | None = None,
    ) -> None:
        if not isinstance(policy, CompiledPolicy):
            raise InvalidInputError("policy", "must be a CompiledPolicy (make_policy returns one)", policy)
        object.__setattr__(self, "policy", policy)
        object.__setattr__(self, "treatment", check_treatment(treatment or policy.treatment))
        if utility is None:
            utility = policy.utility if is_equal(self.treatment) else UTILITARIAN
        object.__setattr__(self, "utility", check_utility(utility, self.treatment))
        if "name" not in vars(type(self)):
            object.__setattr__(self, "name", f"{TYPE_BLIND_PREFIX}{policy.name}")
        for name in ("assumptions", "own_statistics", "has_candidates", "memory"):
            object.__setattr__(self, name, getattr(policy, name))

    def describe(self) -> dict[str, Any]:
        """Return the policy's name, and the wrapped policy's parameters."""
        utility = str(self.utility) if is_equal(self.treatment) else None
        own = {"policy": self.name, "treatment": self.treatment, "utility": utility}
        return {**self.policy.describe(), **own}

    def fingerprint(self) -> dict[str, Any]:
        """Return the wrapped policy's fingerprint, with the name, treatment and utility of this one."""
        return {**self.policy.fingerprint(), **super().fingerprint()}


@dataclass(frozen=True, init=False)
class TypeBlindUCB(TypeBlind):
    """UCBRank on counts that are pooled over user types: the paper's baseline.

    Its initial phase ends when every item was clicked at every position by a user of any type.

    Parameters
    ----------
    coefficient, schedule
        As for `UCBRank`.
    treatment, utility
        What its regret is measured against; its rankings do not depend on them.

    Raises
    ------
    InvalidInputError
        If a parameter is not valid, or both a coefficient and a schedule are given.

    Examples
    --------
    >>> import numpy as np
    >>> from banditrank.counts._counts import Counts
    >>> counts = Counts.from_arrays([[[50], [9]], [[850], [1]]], [[[20], [3]], [[430], [0]]], [59, 851])
    >>> TypeBlindUCB(coefficient=0.0).rank(counts, 1, rng=np.random.default_rng(1))
    array([0])
    """

    name: ClassVar[str] = "type-blind-ucb"
    assumptions: ClassVar[Assumptions] = RANK_ONE_REWARDS
    has_candidates = True

    policy: UCBRank

    def __init__(
        self,
        *,
        coefficient: float | None = None,
        schedule: Schedule | Callable[[int], float] | None = None,
        treatment: Treatment = "personalized",
        utility: Utility | str = "utilitarian",
    ) -> None:
        check_treatment(treatment)
        if coefficient is None and schedule is None:
            coefficient = PAPER_COEFFICIENTS[treatment]
        policy = UCBRank(coefficient=coefficient, schedule=schedule)
        super().__init__(policy, treatment=treatment, utility=utility)

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values."""
        own = ("policy", "treatment", "utility", "coefficient", "schedule")
        return {name: value for name, value in super().describe().items() if name in own}

    def fingerprint(self) -> dict[str, Any]:
        """Return the description, and samples of the schedule and the utility."""
        return {**CompiledPolicy.fingerprint(self), "schedule_sample": self.policy.schedule.sample()}
